//! The symmetric share, raw: what the wrappers of a profile library counted in single operations.

use super::inputs::Inputs;
use super::single::Single;
use crate::counters;
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, ProfileSymbols};
use crate::memory::OnStack;
use crate::timing::{Clock, MonotonicRaw};
use protocol::{Operation, ProfileOutcome, ProfileRow, ProfileRun, SourceKind};
use std::collections::BTreeMap;
use std::fs::File;

/// A first operation below this is a warm-up and runs again, as in the calibrate phase.
const WARM_UP_BELOW_NS: u64 = 50_000_000;

/// What to run.
#[derive(Debug)]
pub struct ProfileTask<'a> {
    /// Operation.
    pub operation: Operation,
    /// Seeds.
    pub inputs: &'a protocol::Inputs,
    /// Number of keys, one message each.
    pub keys: u32,
    /// Rate of the ticks, where the counters know it.
    pub tick_hz: Option<u64>,
}

/// Clock that the wrappers of this architecture read.
pub const TICKS: SourceKind = if cfg!(target_arch = "x86_64") {
    SourceKind::Tsc
} else {
    SourceKind::Cntvct
};

/// Rate of [`TICKS`] by the counters' own test, hertz; asked before the isolation is in place.
pub fn tick_hz(cpu: Option<u32>) -> Option<u64> {
    let (_, probe) = counters::open(&[TICKS], cpu);
    probe.source?.frequency_hz
}

/// Runs the operation once for each key.
pub fn profile(
    on: &OnStack<'_>,
    candidate: &Candidate,
    task: &ProfileTask<'_>,
    prepared: Option<&File>,
) -> Result<ProfileOutcome> {
    let wrappers = candidate.profile_symbols()?;
    let (source, own_hz) = wrappers.tick_source();
    if source != TICKS.name() {
        return Err(WorkerError::Contract(format!(
            "the wrappers read `{source}`, on this architecture it is {}",
            TICKS.name()
        )));
    }
    // Calibrates the wrappers at the first call; not in the middle of an operation.
    let [cost, inside, around] = wrappers.costs();
    let mut inputs = Inputs::new(candidate, task.operation, task.inputs, prepared);
    let mut messages = inputs.messages(task.keys.max(1).into())?;
    let mut tally = Tally::default();
    for number in 0..task.keys {
        let (operation, number) = (task.operation, u64::from(number));
        let mut single =
            Single::prepare(on, candidate, operation, &mut inputs, &mut messages, number)?;
        let start = MonotonicRaw.now();
        let mut code = tally.count(on, candidate, &wrappers, &mut single);
        let elapsed = MonotonicRaw.now().saturating_sub(start);
        if number == 0 && elapsed < WARM_UP_BELOW_NS {
            single.check(on, candidate, code)?;
            single.again(on, &mut inputs)?;
            tally = Tally::default();
            code = tally.count(on, candidate, &wrappers, &mut single);
        }
        single
            .check(on, candidate, code)
            .map_err(|error| error.at(format_args!("run {number}")))?;
    }
    Ok(ProfileOutcome {
        operation: task.operation,
        tick_source: TICKS,
        tick_hz: own_hz.or(task.tick_hz),
        wrapper_cost_ticks: cost,
        wrapper_inside_milliticks: inside,
        wrapper_around_milliticks: around,
        operations: tally.operations,
        total_ticks: tally.ticks,
        calls: tally.named(&wrappers),
        overflow_calls: tally.overflow,
        rejected_draws: tally.rejected,
        runs: tally.runs,
    })
}

/// Sums over the operations so far.
#[derive(Debug, Default)]
struct Tally {
    operations: u64,
    ticks: u64,
    overflow: u64,
    rejected: u64,
    /// Calls and ticks by function, input bits, output bits.
    rows: BTreeMap<(u32, u64, u64), (u64, u64)>,
    /// Each operation by itself.
    runs: Vec<ProfileRun>,
}

impl Tally {
    /// Runs `single` and adds what was counted; its return code.
    fn count(
        &mut self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        wrappers: &ProfileSymbols,
        single: &mut Single,
    ) -> i32 {
        let rejected = candidate.rejected(on);
        wrappers.reset();
        let start = wrappers.ticks();
        let code = single.call(on, candidate.symbols());
        let end = wrappers.ticks();
        let (rows, overflow) = wrappers.rows();
        self.operations += 1;
        self.ticks += end.saturating_sub(start);
        self.overflow += overflow;
        let mut run = ProfileRun {
            calls: BTreeMap::new(),
            rejected_draws: candidate.rejected(on).saturating_sub(rejected),
        };
        self.rejected += run.rejected_draws;
        let names = wrappers.names();
        for row in rows {
            let (name, _) = name_of(&names, row.function);
            *run.calls.entry(name).or_default() += row.calls;
            let sum = self
                .rows
                .entry((row.function, row.in_bits, row.out_bits))
                .or_default();
            sum.0 += row.calls;
            sum.1 += row.ticks;
        }
        self.runs.push(run);
        code
    }

    fn named(&self, wrappers: &ProfileSymbols) -> Vec<ProfileRow> {
        let names = wrappers.names();
        let row = |(&(function, in_bits, out_bits), &(calls, ticks))| {
            let (name, group) = name_of(&names, function);
            ProfileRow {
                function: name,
                group,
                in_bits,
                out_bits,
                calls,
                ticks,
            }
        };
        self.rows.iter().map(row).collect()
    }
}

/// Reported name and group of a wrapped function.
fn name_of(names: &[(String, String)], function: u32) -> (String, String) {
    let unknown = || (format!("function {function}"), "other".to_owned());
    names
        .get(function as usize)
        .cloned()
        .unwrap_or_else(unknown)
}
