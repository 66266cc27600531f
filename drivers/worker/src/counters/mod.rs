//! Cycle sources and clocks: which counter may be used on this machine, how it is read, and what
//! reading costs.
//!
//! The timing loop (`crate::timing`) is generic over its clock and reads a [`CycleSource`] just
//! before the first and just after the last clock read, never in between. What a missing counter
//! means for a row is the orchestrator's decision.

use protocol::{Overhead, Probe, SourceKind, SourceProbe};

/// One reading of a counter group. Values grow from an arbitrary start: only differences mean
/// something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Core cycles (`perf`) or ticks (`tsc`, `cntvct`).
    pub value: u64,
    /// Instructions of the same group, where it has them.
    pub instructions: Option<u64>,
    /// `time_enabled` and `time_running` of the group, nanoseconds; `None` for clocks.
    pub enabled_running: Option<(u64, u64)>,
}

/// An opened, tested counter of the calling thread.
pub trait CycleSource {
    /// What enters the record.
    fn facts(&self) -> &protocol::CycleSource;

    /// Starts counting where the source needs it (a group that was opened disabled). Called once,
    /// before the warm-ups, on the thread that will make the calls.
    fn start(&mut self) -> std::io::Result<()>;

    /// Reads the whole group at once: no allocation, and no more system calls than the access needs.
    fn read(&mut self) -> std::io::Result<Reading>;
}

/// Opens the first of `kinds` that works on `cpu` and passes its self test. The probe says what was
/// found: the facts of the source returned, or the reason of the first kind asked for when there is
/// none. Must be called before the isolation layers close the way to it, on the calling thread.
pub fn open(kinds: &[SourceKind], cpu: Option<u32>) -> (Option<Box<dyn CycleSource>>, SourceProbe) {
    let _ = (kinds, cpu);
    let reason = (
        "not_recorded".to_owned(),
        "no cycle source is built into this worker".to_owned(),
    );
    let probe = SourceProbe {
        kind: SourceKind::None,
        source: None,
        reason: Some(reason),
    };
    (None, probe)
}

/// Answer to [`protocol::Task::Probe`]: each source with its self test over `loop_adds` dependent
/// additions, the core clock estimate, the loop's overhead, limits and capabilities.
pub fn probe(loop_adds: u64, cpu: Option<u32>) -> Probe {
    let _ = loop_adds;
    Probe {
        sources: vec![open(&[SourceKind::None], cpu).1],
        core_clock_estimate_hz: None,
        core_clock_spread_hz: None,
        overhead: measure_overhead(10_000),
        facts: Vec::new(),
    }
}

/// Cost of one clock read, and of one empty operation in the timing loop, in this process.
pub fn measure_overhead(iterations: u64) -> Overhead {
    crate::timing::overhead(iterations)
}
