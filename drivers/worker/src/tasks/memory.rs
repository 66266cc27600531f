//! The memory of single operations: the deepest use of a painted stack, the heap as the wrappers of
//! a memory library count it, and the resident set before and after one operation.
//!
//! A library that comes already built has no wrappers: an interposed allocator counts the whole process
//! then, so nothing here allocates between [`MemorySymbols::reset`] and [`MemorySymbols::figures`].
//!
//! Runs on the worker's own stack, so that the dedicated one can be painted between operations.

use super::inputs::Inputs;
use super::measure::Meters;
use super::single::Single;
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, MemorySymbols};
use crate::memory::Stack;
use protocol::{MemoryOutcome, MemoryRun, Operation};
use std::fs::File;

/// What to run.
#[derive(Debug)]
pub struct MemoryTask<'a> {
    /// Operation.
    pub operation: Operation,
    /// Seeds.
    pub inputs: &'a protocol::Inputs,
    /// Number of keys, one message each.
    pub keys: u32,
    /// Counters of the interposed allocator, where the library has none of its own.
    pub interposed: Option<&'a MemorySymbols>,
}

/// Runs the operation once for the resident set and then once for each key.
pub fn memory(
    stack: &mut Stack,
    candidate: &Candidate,
    task: &MemoryTask<'_>,
    prepared: Option<&File>,
    meters: &Meters,
) -> Result<MemoryOutcome> {
    let own = match task.interposed {
        Some(_) => None,
        None => Some(candidate.memory_symbols()?),
    };
    let heap = task.interposed.or(own.as_ref());
    let heap = heap.expect("one of the two counts");
    let mut inputs = Inputs::new(candidate, task.operation, task.inputs, prepared);
    let mut messages = inputs.messages(task.keys.max(1).into())?;
    let mut prepare = |stack: &Stack, inputs: &mut Inputs<'_>, number| {
        stack
            .run(|on| Single::prepare(on, candidate, task.operation, inputs, &mut messages, number))
    };
    let mut single = prepare(stack, &mut inputs, 0)?;
    let baseline = meters.status.read()?;
    let code = stack.run(|on| single.call(on, candidate.symbols()));
    let peak = meters.status.read()?;
    stack.run(|on| single.check(on, candidate, code))?;
    let empty_stack_bytes = empty(stack, candidate, &mut single);

    stack.run(|on| single.again(on, &mut inputs))?;
    let mut runs = Vec::with_capacity(task.keys as usize);
    for number in 0..task.keys {
        if number > 0 {
            drop(single); // its buffers go before those of the next
            single = prepare(stack, &mut inputs, number.into())?;
        }
        let (code, run) = look(stack, candidate, heap, &mut single, number)?;
        stack
            .run(|on| single.check(on, candidate, code))
            .map_err(|error| error.at(format_args!("run {number}")))?;
        runs.push(MemoryRun {
            stack_peak_bytes: run.stack_peak_bytes.saturating_sub(empty_stack_bytes),
            ..run
        });
    }
    Ok(MemoryOutcome {
        operation: task.operation,
        baseline_rss_bytes: baseline.rss_bytes,
        peak_rss_bytes: peak.peak_rss_bytes,
        empty_stack_bytes,
        runs,
    })
}

/// Stack use of the empty operation through the same frames, bytes.
fn empty(stack: &mut Stack, candidate: &Candidate, single: &mut Single) -> u64 {
    let symbols = candidate.symbols().with_empty_operations();
    stack.paint();
    stack.run(|on| single.call(on, &symbols));
    stack.high_water() as u64
}

/// One operation on a painted stack with the heap counted from 0.
fn look(
    stack: &mut Stack,
    candidate: &Candidate,
    heap: &MemorySymbols,
    single: &mut Single,
    number: u32,
) -> Result<(i32, MemoryRun)> {
    stack.paint();
    heap.reset();
    let code = stack.run(|on| single.call(on, candidate.symbols()));
    let [heap_peak_bytes, leaked_bytes, allocations, overflow] = heap.figures();
    if overflow > 0 {
        return Err(WorkerError::Contract(format!(
            "the table of the memory library overflowed: {overflow} blocks are not counted"
        )));
    }
    let run = MemoryRun {
        key: number,
        message: number,
        stack_peak_bytes: stack.high_water() as u64,
        heap_peak_bytes,
        allocations,
        leaked_bytes,
    };
    Ok((code, run))
}
