//! The time-stamp counter of x86, as a clock: only where the processor says that it is invariant.
//!
//! Its ticks are no cycles: the core's clock moves, this one does not. A reading waits for what came
//! before (RDTSCP, or a fence where the processor lacks it) and holds back what comes after (LFENCE),
//! so the same reading serves both ends of a span.

use super::reading::Reading;
use super::{clock, rate, selftest, CycleSource};
use protocol::SourceKind;
use std::arch::x86_64::{__cpuid, __rdtscp, _mm_lfence, _rdtsc, CpuidResult};
use std::io;

/// What CPUID says about the counter (Intel SDM vol. 2, CPUID; AMD APM vol. 3, appendix E).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpuid {
    /// Leaf 8000_0007h, EDX bit 8: constant rate in all power states.
    pub invariant: bool,
    /// Leaf 8000_0001h, EDX bit 27: RDTSCP exists.
    pub rdtscp: bool,
    /// Rate by leaf 15h, or with the base frequency of leaf 16h for its crystal, hertz.
    pub nominal_hz: Option<u64>,
}

/// The leaves that [`Cpuid`] is decoded from; absent ones are zero.
#[derive(Debug, Clone, Copy)]
struct Leaves {
    x15: CpuidResult,
    x16: CpuidResult,
    x8000_0001: CpuidResult,
    x8000_0007: CpuidResult,
}

impl Cpuid {
    /// Asks the processor.
    pub fn read() -> Cpuid {
        let (basic, extended) = (leaf(0).eax, leaf(0x8000_0000).eax);
        let up_to = |highest: u32, number: u32| match number <= highest {
            true => leaf(number),
            false => NOTHING,
        };
        Cpuid::decode(Leaves {
            x15: up_to(basic, 0x15),
            x16: up_to(basic, 0x16),
            x8000_0001: up_to(extended, 0x8000_0001),
            x8000_0007: up_to(extended, 0x8000_0007),
        })
    }

    fn decode(leaves: Leaves) -> Cpuid {
        Cpuid {
            invariant: leaves.x8000_0007.edx >> 8 & 1 == 1,
            rdtscp: leaves.x8000_0001.edx >> 27 & 1 == 1,
            nominal_hz: nominal(leaves.x15, leaves.x16.eax),
        }
    }
}

const NOTHING: CpuidResult = CpuidResult {
    eax: 0,
    ebx: 0,
    ecx: 0,
    edx: 0,
};

fn leaf(number: u32) -> CpuidResult {
    // CPUID exists on every x86-64 processor. Older compilers have it as an unsafe function.
    #[allow(unused_unsafe)]
    // SAFETY: the instruction has no preconditions there.
    unsafe {
        __cpuid(number)
    }
}

/// Crystal (ECX) times EBX / EAX; where the crystal is not told, the ratio makes the base frequency
/// (leaf 16h, MHz) itself the rate, as Linux computes it (arch/x86/kernel/tsc.c).
fn nominal(ratio: CpuidResult, base_mhz: u32) -> Option<u64> {
    if ratio.eax == 0 || ratio.ebx == 0 {
        return None;
    }
    if ratio.ecx != 0 {
        return Some(u64::from(ratio.ecx) * u64::from(ratio.ebx) / u64::from(ratio.eax));
    }
    (base_mhz != 0).then(|| u64::from(base_mhz) * 1_000_000)
}

/// The counter, with its rate.
#[derive(Debug)]
pub struct Tsc {
    rdtscp: bool,
    facts: protocol::CycleSource,
}

/// Measures rate and step. An error is reason code and text.
pub fn open() -> Result<Tsc, (String, String)> {
    let cpuid = Cpuid::read();
    refuse(&cpuid)?;
    let ticks = || read(cpuid.rdtscp);
    let standing = || not_recorded("the time-stamp counter does not move".to_owned());
    let frequency_hz = rate::calibrate(ticks).ok_or_else(standing)?;
    let resolution = clock::smallest_step(ticks).ok_or_else(standing)?;
    Ok(Tsc {
        rdtscp: cpuid.rdtscp,
        facts: facts(&cpuid, frequency_hz, resolution),
    })
}

/// The counter with facts that were measured before in this machine.
pub fn reopen(facts: protocol::CycleSource) -> Tsc {
    Tsc {
        rdtscp: Cpuid::read().rdtscp,
        facts,
    }
}

fn refuse(cpuid: &Cpuid) -> Result<(), (String, String)> {
    match cpuid.invariant {
        true => Ok(()),
        false => Err(not_recorded(
            "the time-stamp counter is not invariant (CPUID 80000007h, EDX bit 8, is 0): its rate may \
             change, so it is no clock. A virtual machine may hide the bit: expose invtsc to the guest"
                .to_owned(),
        )),
    }
}

fn not_recorded(text: String) -> (String, String) {
    ("not_recorded".to_owned(), text)
}

fn facts(cpuid: &Cpuid, frequency_hz: u64, resolution: u64) -> protocol::CycleSource {
    let nominal = match cpuid.nominal_hz {
        Some(hz) => format!("CPUID 15h/16h: {hz} Hz"),
        None => "CPUID tells no rate".to_owned(),
    };
    protocol::CycleSource {
        kind: SourceKind::Tsc,
        pmu: None,
        event: format!("time-stamp counter, invariant ({nominal})"),
        user_only: false,
        access: if cpuid.rdtscp { "rdtscp" } else { "rdtsc" }.to_owned(),
        frequency_hz: Some(frequency_hz),
        resolution: Some(resolution),
        read_cost_ns: 0,
        self_test: selftest::pending(),
    }
}

#[inline(always)]
fn read(rdtscp: bool) -> u64 {
    let mut core = 0;
    // SAFETY: SSE2 (LFENCE) is part of x86-64; RDTSCP is executed only where CPUID has it; `core` is
    // a valid place for it. Where the kernel forbids the counter both raise a fault, no more.
    unsafe {
        let ticks = if rdtscp {
            __rdtscp(&mut core)
        } else {
            _mm_lfence();
            _rdtsc()
        };
        _mm_lfence();
        ticks
    }
}

impl CycleSource for Tsc {
    fn facts(&self) -> &protocol::CycleSource {
        &self.facts
    }

    fn facts_mut(&mut self) -> &mut protocol::CycleSource {
        &mut self.facts
    }

    #[inline]
    fn read(&mut self) -> io::Result<Reading> {
        Ok(Reading::clock(read(self.rdtscp)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves() -> Leaves {
        Leaves {
            x15: NOTHING,
            x16: NOTHING,
            x8000_0001: NOTHING,
            x8000_0007: NOTHING,
        }
    }

    #[test]
    fn a_counter_that_is_not_invariant_is_refused() {
        assert!(!Cpuid::decode(leaves()).invariant);
        let mut with = leaves();
        with.x8000_0007.edx = 1 << 8;
        assert!(refuse(&Cpuid::decode(with)).is_ok());
        with.x8000_0007.edx = !(1 << 8);
        let (code, text) = refuse(&Cpuid::decode(with)).unwrap_err();
        assert_eq!(code, "not_recorded");
        assert!(text.contains("not invariant"), "{text}");
    }

    #[test]
    fn the_rate_by_cpuid_needs_the_ratio_and_a_crystal_or_a_base_frequency() {
        let ratio = |eax, ebx, ecx| CpuidResult {
            eax,
            ebx,
            ecx,
            edx: 0,
        };
        for (x15, base_mhz, expected) in [
            (ratio(2, 216, 24_000_000), 0, Some(2_592_000_000)), // 24 MHz × 108
            (ratio(2, 216, 0), 2600, Some(2_600_000_000)),
            (ratio(2, 216, 0), 0, None),
            (ratio(0, 216, 24_000_000), 2600, None),
            (ratio(2, 0, 24_000_000), 2600, None),
        ] {
            assert_eq!(nominal(x15, base_mhz), expected, "{x15:?} {base_mhz}");
        }
    }

    #[test]
    fn the_counter_of_this_machine_never_goes_back() {
        let rdtscp = Cpuid::read().rdtscp;
        let readings: Vec<u64> = (0..1000).map(|_| read(rdtscp)).collect();
        assert!(readings.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(readings[0] < readings[999]);
    }
}
