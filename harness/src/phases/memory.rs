//! The memory phase: static figures from the file, resident set of one process, and isolated peaks of
//! stack and heap over some keys, with the memory library. Nothing is timed, so all CPUs take part.
//!
//! A library that comes already built is looked at itself, in a worker that is started with an allocator
//! interposed: the same counts, taken over the whole process.

use super::context::{Context, PhaseError};
use super::inputs::other_answer;
use super::singles::{self, Phase, ReadyMade, Single, Written};
use crate::evidence::{
    self, memory_file, ElfFigures, EmptyMemory, Kind, LibraryKind, MemoryDerived, MemoryEvidence,
    MemoryFigures, ProcessMemory, Reason, ReasonCode,
};
use crate::stats;
use protocol::{Body, Inputs, MemoryOutcome, MemoryRun, Task, TRIAL_MEMORY};

/// Name of the phase.
pub const NAME: &str = "memory";

/// Runs the phase.
pub async fn run(context: &Context<'_>) -> Result<(), PhaseError> {
    singles::run::<Memory>(context, context.free_lanes()).await
}

struct Memory;

impl Phase for Memory {
    const NAME: &'static str = NAME;
    const LIBRARY: LibraryKind = LibraryKind::Memory;
    const TRIAL: u32 = TRIAL_MEMORY;

    fn ready_made() -> ReadyMade {
        ReadyMade::Interpose
    }

    fn known(context: &Context, single: &Single) -> Result<Option<String>, PhaseError> {
        let file = memory_file(&single.row.identity, single.operation);
        let known = context.book.read::<MemoryEvidence>(&file)?;
        Ok(known.map(|stored| stored.value.library.sha256))
    }

    fn task(single: &Single, inputs: Inputs) -> Task {
        Task::Memory {
            operation: single.operation,
            inputs,
            keys: single.keys,
            interposed: single.interposed.clone(),
        }
    }

    fn write(
        context: &Context,
        single: &Single,
        answer: Result<&Body, Reason>,
    ) -> Result<Written, PhaseError> {
        let Some(elf) = &single.built.elf else {
            return Ok(Written::Wrong(
                "build.json has no figures of its file".into(),
            ));
        };
        let outcome = match answer {
            Ok(Body::Memory(outcome)) => Ok(outcome),
            Ok(_) => Err(other_answer()),
            Err(reason) => Err(reason),
        };
        let evidence = evidence(context, single, elf, outcome);
        let file = memory_file(&single.row.identity, single.operation);
        context.book.write(&file, &evidence)?;
        Ok(evidence.head.reason.into())
    }
}

fn evidence(
    context: &Context,
    single: &Single,
    elf: &ElfFigures,
    outcome: Result<&MemoryOutcome, Reason>,
) -> MemoryEvidence {
    let mut head = context.head(Kind::Memory, &single.row.identity);
    let mut why = None;
    if let Err(reason) = &outcome {
        single.mark(&mut head, reason);
        why = Some(reason.clone());
    }
    let outcome = outcome.ok();
    let runs = outcome.map(|o| o.runs.clone()).unwrap_or_default();
    // Resident set under emulation includes the emulator: not a figure of the library.
    let process = outcome.filter(|_| !context.is_emulated());
    let mut evidence = MemoryEvidence {
        head,
        operation: single.operation,
        library: single.library_ref(),
        interposed_sha256: single.interposed.as_ref().map(|file| file.sha256.clone()),
        lto_removed: single.built.lto_removed.unwrap_or(false),
        static_: elf.clone(),
        process: process.map(|o| ProcessMemory {
            baseline_rss_bytes: o.baseline_rss_bytes,
            peak_rss_bytes: o.peak_rss_bytes,
        }),
        derived: derive(elf, &runs),
        runs,
        empty: outcome.map(|o| EmptyMemory {
            stack_peak_bytes: o.empty_stack_bytes,
        }),
    };
    let emulated = context.is_emulated();
    evidence::explain_with(&mut evidence, |pointer| match pointer {
        "/process" if emulated => Some(Reason::new(
            ReasonCode::Emulated,
            "the resident set includes the emulator",
        )),
        _ => why.clone(),
    });
    evidence
}

/// Worst and median over the runs, and the guide's peak memory: static, stack and heap together.
/// `None` when nothing ran.
fn derive(elf: &ElfFigures, runs: &[MemoryRun]) -> Option<MemoryDerived> {
    let stacks: Vec<f64> = runs.iter().map(|r| r.stack_peak_bytes as f64).collect();
    let heaps: Vec<f64> = runs.iter().map(|r| r.heap_peak_bytes as f64).collect();
    let worst_stack = runs.iter().map(|r| r.stack_peak_bytes).max()?;
    let worst_heap = runs.iter().map(|r| r.heap_peak_bytes).max()?;
    Some(MemoryDerived {
        worst: MemoryFigures {
            stack_peak_bytes: worst_stack as f64,
            heap_peak_bytes: worst_heap as f64,
        },
        median: MemoryFigures {
            stack_peak_bytes: stats::median(&stacks)?,
            heap_peak_bytes: stats::median(&heaps)?,
        },
        guide_total_bytes: elf.load_bytes + worst_stack + worst_heap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_median_and_the_guides_total() {
        let elf = ElfFigures {
            text: None,
            rodata: None,
            data: None,
            bss: None,
            headers_and_tables: None,
            load_bytes: 1000,
            needed: None,
        };
        let run = |stack, heap| MemoryRun {
            key: 0,
            message: 0,
            stack_peak_bytes: stack,
            heap_peak_bytes: heap,
            allocations: 0,
            leaked_bytes: 0,
        };
        // The worst stack and the worst heap are of different runs.
        let runs = [run(100, 50), run(300, 10), run(200, 20), run(120, 30)];
        let derived = derive(&elf, &runs).unwrap();
        assert_eq!(derived.worst.stack_peak_bytes, 300.0);
        assert_eq!(derived.worst.heap_peak_bytes, 50.0);
        assert_eq!(derived.median.stack_peak_bytes, 160.0);
        assert_eq!(derived.median.heap_peak_bytes, 25.0);
        assert_eq!(derived.guide_total_bytes, 1350);
        assert_eq!(derive(&elf, &[]), None);
    }
}
