//! Cycle sources and clocks: which counter may be used on this machine, how it is read, and what
//! reading costs.
//!
//! The timing loop (`crate::timing`) is generic over its clock and reads a [`CycleSource`] just
//! before the first and just after the last clock read, never in between; [`difference`] makes a
//! count of two readings, or says why there is none. What a missing counter means for a row is the
//! orchestrator's decision.
//!
//! A source is opened twice: first in a throw-away child (`child`) that lets it count a loop of known
//! length (`selftest`), then, when that was plausible, here. One file per source: `perf` (with `pmu`,
//! `direct`, `registers` and `refusal`), `tsc`, `cntvct`.

mod adds;
mod child;
mod clock;
#[cfg(target_arch = "aarch64")]
mod cntvct;
mod direct;
mod facts;
mod perf;
mod pmu;
#[cfg(target_arch = "x86_64")]
mod rate;
mod reading;
mod refusal;
mod registers;
mod selftest;
#[cfg(target_arch = "x86_64")]
mod tsc;

pub use child::{contained, ChildError};
pub use reading::{difference, raw, Count, CountError, Direct, Raw, Reading};
pub use registers::contain;

use protocol::{Overhead, Probe, SourceKind, SourceProbe};
use std::path::Path;
use std::time::Duration;

/// Longest time that the self test of one source may take.
const TEST_LIMIT: Duration = Duration::from_secs(20);

/// An opened, tested counter of the calling thread.
pub trait CycleSource {
    /// What enters the record.
    fn facts(&self) -> &protocol::CycleSource;

    /// The same, for the self test to enter what it measured.
    fn facts_mut(&mut self) -> &mut protocol::CycleSource;

    /// Reads the whole group at once: no allocation, and no more system calls than the access needs.
    fn read(&mut self) -> std::io::Result<Reading>;
}

/// Reason code and text.
type Refusal = (String, String);
/// A source ready to be read.
type Opened = Box<dyn CycleSource>;

/// Opens the first of `kinds` that works on `cpu` and passes its self test, and starts it. The probe
/// says what was found: the facts of the source returned, and the reason of the first kind asked for
/// when that is another one or there is none. Must be called after pinning, before a library is loaded and before the
/// isolation layers close the way to it, on the thread that will make the calls.
pub fn open(kinds: &[SourceKind], cpu: Option<u32>) -> (Option<Opened>, SourceProbe) {
    let mut first = None;
    for &kind in kinds {
        match open_tested(kind, cpu, selftest::DEFAULT_ADDS) {
            Ok(source) => {
                let probe = SourceProbe {
                    reason: first.and_then(|refused: SourceProbe| refused.reason),
                    ..usable(source.facts().clone())
                };
                return (Some(source), probe);
            }
            Err(reason) => {
                first.get_or_insert_with(|| refused(kind, reason));
            }
        }
    }
    (
        None,
        first.unwrap_or_else(|| refused(SourceKind::None, nothing_asked())),
    )
}

/// Answer to [`protocol::Task::Probe`]: each source with its self test over `loop_adds` dependent
/// additions, the core clock estimate, the loop's overhead, limits and capabilities.
pub fn probe(loop_adds: u64, cpu: Option<u32>) -> Probe {
    let kinds = [SourceKind::Perf, SourceKind::Tsc, SourceKind::Cntvct];
    let sources = kinds.map(|kind| match open_tested(kind, cpu, loop_adds) {
        Ok(source) => usable(source.facts().clone()),
        Err(reason) => refused(kind, reason),
    });
    let clock = selftest::core_clock(loop_adds);
    Probe {
        sources: sources.to_vec(),
        core_clock_estimate_hz: clock.map(|(median, _)| median),
        core_clock_spread_hz: clock.map(|(_, spread)| spread),
        overhead: measure_overhead(10_000),
        facts: facts::collect(),
    }
}

/// Cost of one clock read, and of one empty operation in the timing loop, in this process.
pub fn measure_overhead(iterations: u64) -> Overhead {
    crate::timing::overhead(iterations)
}

fn usable(facts: protocol::CycleSource) -> SourceProbe {
    SourceProbe {
        kind: facts.kind,
        source: Some(facts),
        reason: None,
    }
}

fn refused(kind: SourceKind, reason: Refusal) -> SourceProbe {
    SourceProbe {
        kind,
        source: None,
        reason: Some(reason),
    }
}

fn nothing_asked() -> Refusal {
    not_recorded("the request asks for no cycle source".to_owned())
}

fn not_recorded(text: String) -> Refusal {
    ("not_recorded".to_owned(), text)
}

fn open_tested(kind: SourceKind, cpu: Option<u32>, adds: u64) -> Result<Opened, Refusal> {
    match kind {
        SourceKind::Perf => open_perf(cpu, adds),
        SourceKind::Tsc => open_tsc(adds),
        SourceKind::Cntvct => open_cntvct(adds),
        SourceKind::None => Err(nothing_asked()),
    }
}

/// Ways to use the hardware counter, best first. A way that can be opened and then fails its test
/// (no right to read from user mode, an instruction event that the PMU does not really have) leaves
/// the next one to try.
const PERF_WAYS: [perf::Options; 3] = [
    perf::Options {
        instructions: true,
        direct: true,
    },
    perf::Options {
        instructions: true,
        direct: false,
    },
    perf::Options {
        instructions: false,
        direct: false,
    },
];

fn open_perf(cpu: Option<u32>, adds: u64) -> Result<Opened, Refusal> {
    let root = Path::new("/");
    let mut first = None;
    for options in PERF_WAYS {
        let tested = test(adds, || perf_source(root, cpu, options));
        let facts = match tested {
            Ok(facts) => facts,
            Err(Failed::ToOpen(reason)) => return Err(reason),
            Err(Failed::Test(reason)) => {
                first.get_or_insert(reason);
                continue;
            }
        };
        let mut source = perf_source(root, cpu, options)?;
        *source.facts_mut() = facts;
        return Ok(Box::new(source));
    }
    Err(first.unwrap_or_else(nothing_asked))
}

fn perf_source(
    root: &Path,
    cpu: Option<u32>,
    options: perf::Options,
) -> Result<perf::Perf, Refusal> {
    let mut source = perf::open(root, cpu, options)?;
    if options.direct && !source.reads_directly() {
        source.forget_direct();
    }
    Ok(source)
}

#[cfg(target_arch = "x86_64")]
fn open_tsc(adds: u64) -> Result<Opened, Refusal> {
    let facts = test(adds, tsc::open).map_err(Failed::reason)?;
    Ok(Box::new(tsc::reopen(facts)))
}

#[cfg(target_arch = "aarch64")]
fn open_cntvct(adds: u64) -> Result<Opened, Refusal> {
    let facts = test(adds, cntvct::open).map_err(Failed::reason)?;
    Ok(Box::new(cntvct::reopen(facts)))
}

#[cfg(not(target_arch = "x86_64"))]
fn open_tsc(_adds: u64) -> Result<Opened, Refusal> {
    Err(not_recorded(
        "the time-stamp counter belongs to x86; this is another architecture".to_owned(),
    ))
}

#[cfg(not(target_arch = "aarch64"))]
fn open_cntvct(_adds: u64) -> Result<Opened, Refusal> {
    Err(not_recorded(
        "CNTVCT_EL0 belongs to AArch64; this is another architecture".to_owned(),
    ))
}

/// Where a source failed.
#[derive(Debug)]
enum Failed {
    ToOpen(Refusal),
    Test(Refusal),
}

impl Failed {
    fn reason(self) -> Refusal {
        match self {
            Failed::ToOpen(reason) | Failed::Test(reason) => reason,
        }
    }
}

/// Opens a source in a child and lets it count there; its facts, when they are plausible.
fn test<S: CycleSource>(
    adds: u64,
    open: impl FnOnce() -> Result<S, Refusal>,
) -> Result<protocol::CycleSource, Failed> {
    let tested = contained(TEST_LIMIT, || {
        let mut source = open()?;
        let examined = selftest::examine(&mut source, adds);
        Ok::<_, Refusal>(examined.map(|()| source.facts().clone()))
    });
    let failed = |text: String| Failed::Test(not_recorded(format!("the self test failed: {text}")));
    match tested {
        Err(error) => Err(failed(error.to_string())),
        Ok(Err(reason)) => Err(Failed::ToOpen(reason)),
        Ok(Ok(Err(text))) => Err(failed(text)),
        Ok(Ok(Ok(facts))) if !facts.self_test.plausible => Err(failed(facts.self_test.text)),
        Ok(Ok(Ok(facts))) => Ok(facts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_kills_its_process_is_refused_and_the_worker_lives() {
        let crash = || -> Result<perf::Perf, Refusal> { std::process::abort() };
        let Err(Failed::Test((code, text))) = test(64, crash) else {
            panic!("a crash is a failed test");
        };
        assert_eq!(code, "not_recorded");
        assert!(text.contains("SIGABRT"), "{text}");
    }

    #[test]
    fn asking_for_nothing_gives_a_reason() {
        for kinds in [&[][..], &[SourceKind::None]] {
            let (source, probe) = open(kinds, None);
            assert!(source.is_none());
            assert_eq!((probe.kind, probe.source), (SourceKind::None, None));
            assert_eq!(probe.reason.unwrap().0, "not_recorded");
        }
    }

    #[test]
    fn a_source_of_another_architecture_is_refused_by_name() {
        let foreign = if cfg!(target_arch = "x86_64") {
            SourceKind::Cntvct
        } else {
            SourceKind::Tsc
        };
        let (source, probe) = open(&[foreign], None);
        assert!(source.is_none());
        assert_eq!(probe.kind, foreign);
        assert!(probe.reason.unwrap().1.contains("another architecture"));
    }

    #[test]
    fn every_source_of_a_probe_is_either_tested_or_has_a_reason() {
        let probe = probe(1 << 16, None);
        assert_eq!(probe.sources.len(), 3);
        for source in &probe.sources {
            match (&source.source, &source.reason) {
                (Some(facts), None) => {
                    assert!(facts.self_test.plausible, "{facts:?}");
                    assert!(facts.self_test.counted > 0 && facts.read_cost_ns > 0);
                }
                (None, Some((code, text))) => {
                    assert!(!code.is_empty() && text.len() > 20, "{code}: {text}")
                }
                other => panic!("one of the two: {other:?}"),
            }
        }
        let (low, high) = probe.core_clock_spread_hz.unwrap();
        let estimate = probe.core_clock_estimate_hz.unwrap();
        assert!((low..=high).contains(&estimate));
    }
}
