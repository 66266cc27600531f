//! The virtual counter of AArch64 (CNTVCT_EL0): a clock whose rate is in a register.
//!
//! Its ticks are no cycles, and often long: 19.2 MHz is 52 ns a tick. The rate comes from CNTFRQ_EL0,
//! which firmware sets; the self test compares it with the kernel's clock.

use super::reading::Reading;
use super::{clock, selftest, CycleSource};
use protocol::SourceKind;
use std::arch::asm;
use std::io;

/// The counter, with its rate.
#[derive(Debug)]
pub struct Cntvct {
    facts: protocol::CycleSource,
}

/// Reads the rate and measures the step. An error is reason code and text.
pub fn open() -> Result<Cntvct, (String, String)> {
    let not_recorded = |text: &str| ("not_recorded".to_owned(), text.to_owned());
    let frequency_hz = frequency();
    if frequency_hz == 0 {
        return Err(not_recorded(
            "CNTFRQ_EL0 is 0: the firmware does not say how fast the counter runs",
        ));
    }
    let resolution = clock::smallest_step(ticks)
        .ok_or_else(|| not_recorded("the virtual counter CNTVCT_EL0 does not move"))?;
    Ok(reopen(facts(frequency_hz, resolution)))
}

/// The counter with facts that were measured before in this machine.
pub fn reopen(facts: protocol::CycleSource) -> Cntvct {
    Cntvct { facts }
}

fn facts(frequency_hz: u64, resolution: u64) -> protocol::CycleSource {
    protocol::CycleSource {
        kind: SourceKind::Cntvct,
        pmu: None,
        event: format!(
            "virtual counter, rate from cntfrq_el0, {:.2} ns a tick",
            1e9 / frequency_hz as f64
        ),
        user_only: false,
        access: "cntvct_el0".to_owned(),
        frequency_hz: Some(frequency_hz),
        resolution: Some(resolution),
        read_cost_ns: 0,
        self_test: selftest::pending(),
    }
}

fn frequency() -> u64 {
    let hz: u64;
    // SAFETY: Linux lets user mode read this register; where it did not, the processor traps.
    unsafe { asm!("mrs {hz}, cntfrq_el0", hz = out(reg) hz, options(nomem, nostack)) };
    hz
}

/// The barriers keep the reading between what comes before and what comes after it.
#[inline(always)]
fn ticks() -> u64 {
    let value: u64;
    // SAFETY: as above.
    unsafe {
        asm!("isb", "mrs {value}, cntvct_el0", "isb", value = out(reg) value, options(nostack));
    }
    value
}

impl CycleSource for Cntvct {
    fn facts(&self) -> &protocol::CycleSource {
        &self.facts
    }

    fn facts_mut(&mut self) -> &mut protocol::CycleSource {
        &mut self.facts
    }

    #[inline]
    fn read(&mut self) -> io::Result<Reading> {
        Ok(Reading::clock(ticks()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_moves_forward_at_a_known_rate() {
        assert!(
            frequency() >= 1_000_000,
            "the architecture allows 1 MHz and more"
        );
        let readings: Vec<u64> = (0..10_000).map(|_| ticks()).collect();
        assert!(readings.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(readings[0] < readings[9_999]);
    }
}
