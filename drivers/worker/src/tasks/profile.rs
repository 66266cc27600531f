//! The symmetric share, raw: what the wrappers of a profile library counted in single operations, each
//! of them in the best of several passes over the same inputs.

use super::inputs::Inputs;
use super::passes::{self, Pass};
use super::single::Single;
use crate::counters;
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, ProfileSymbols};
use crate::memory::OnStack;
use crate::process;
use crate::timing::{Clock, MonotonicRaw};
use protocol::{Operation, ProfileOutcome, ProfilePasses, ProfileRow, ProfileRun, SourceKind};
use std::collections::BTreeMap;
use std::fs::File;

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

/// Profiles the operation with each key; see [`ProfilePasses`] for which of its runs counts.
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
    let names = wrappers.names();
    let mut tally = Tally::default();
    for number in 0..task.keys {
        let (operation, number) = (task.operation, u64::from(number));
        let mut single =
            Single::prepare(on, candidate, operation, &mut inputs, &mut messages, number)?;
        passes_of(on, candidate, &wrappers, &mut single, number == 0)
            .map(|passes| tally.add(&passes, &names))
            .map_err(|error| error.at(format_args!("run {number}")))?;
    }
    Ok(ProfileOutcome {
        operation: task.operation,
        tick_source: TICKS,
        tick_hz: own_hz.or(task.tick_hz),
        wrapper_cost_ticks: cost,
        wrapper_inside_milliticks: inside,
        wrapper_around_milliticks: around,
        operations: tally.passes.len() as u64,
        total_ticks: tally.ticks,
        calls: tally.named(&names),
        overflow_calls: tally.overflow,
        rejected_draws: tally.rejected,
        runs: tally.runs,
        passes: tally.passes,
    })
}

/// All passes over one key. The library's first operation warms it up, unless it is a long one.
fn passes_of(
    on: &OnStack<'_>,
    candidate: &Candidate,
    wrappers: &ProfileSymbols,
    single: &mut Single,
    is_first: bool,
) -> Result<Vec<Pass>> {
    let stream = candidate.drng_state();
    let mut passes = Vec::new();
    let mut warm = !is_first;
    while passes::wants_more(&passes) {
        single.rewind(candidate, &stream);
        let (code, pass) = run(on, candidate, wrappers, single)?;
        if code != 0 {
            single.check(on, candidate, code)?;
        }
        if warm || pass.wall_ns >= passes::LONG_NS {
            passes.push(pass);
        }
        warm = true;
    }
    single.check(on, candidate, 0)?;
    Ok(passes)
}

/// One pass; the return code of its operation. The clocks of the process are read outside those of the
/// operation, so that a switch between the two is in neither.
fn run(
    on: &OnStack<'_>,
    candidate: &Candidate,
    wrappers: &ProfileSymbols,
    single: &mut Single,
) -> Result<(i32, Pass)> {
    let rejected = candidate.rejected(on);
    wrappers.reset();
    let used = process::usage()?;
    let cpu = process::cpu_ns();
    let wall = MonotonicRaw.now();
    let start = wrappers.ticks();
    let code = single.call(on, candidate.symbols());
    let end = wrappers.ticks();
    let wall_ns = MonotonicRaw.now().saturating_sub(wall);
    let cpu_ns = process::cpu_ns().saturating_sub(cpu);
    let used = process::used(used, process::usage()?);
    let (rows, overflow) = wrappers.rows();
    let pass = Pass {
        ticks: end.saturating_sub(start),
        wall_ns,
        cpu_ns,
        involuntary_switches: used.involuntary_switches,
        rows,
        overflow,
        rejected: candidate.rejected(on).saturating_sub(rejected),
    };
    Ok((code, pass))
}

/// Sums over the passes that count, one of each key.
#[derive(Debug, Default)]
struct Tally {
    ticks: u64,
    overflow: u64,
    rejected: u64,
    /// Calls and ticks by function, input bits, output bits.
    rows: BTreeMap<(u32, u64, u64), (u64, u64)>,
    /// What it called, by key.
    runs: Vec<ProfileRun>,
    /// The passes of each key.
    passes: Vec<ProfilePasses>,
}

impl Tally {
    fn add(&mut self, passes: &[Pass], names: &[(String, String)]) {
        let (counted, evidence) = passes::settle(passes);
        let pass = &passes[counted];
        self.ticks += pass.ticks;
        self.overflow += pass.overflow;
        self.rejected += pass.rejected;
        let mut run = ProfileRun {
            calls: BTreeMap::new(),
            rejected_draws: pass.rejected,
        };
        for row in &pass.rows {
            let (name, _) = name_of(names, row.function);
            *run.calls.entry(name).or_default() += row.calls;
            let sum = self
                .rows
                .entry((row.function, row.in_bits, row.out_bits))
                .or_default();
            sum.0 += row.calls;
            sum.1 += row.ticks;
        }
        self.runs.push(run);
        self.passes.push(evidence);
    }

    fn named(&self, names: &[(String, String)]) -> Vec<ProfileRow> {
        let row = |(&(function, in_bits, out_bits), &(calls, ticks))| {
            let (name, group) = name_of(names, function);
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
