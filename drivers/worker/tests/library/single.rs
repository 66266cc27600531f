//! Memory and profile: libraries whose use is known.

use crate::drive::{inputs, isolated, request, run};
use crate::toy::{build, Kind};
use protocol::{Body, FailureCode, MemoryOutcome, Operation, ProfileOutcome, Task};

fn memory(behaviour: &str, operation: Operation, keys: u32) -> Option<MemoryOutcome> {
    let toy = build(behaviour, Kind::Memory, &[])?;
    let task = Task::Memory {
        operation,
        inputs: inputs(),
        keys,
        interposed: None,
    };
    let run = run(&isolated(request(task, Some(toy.file()))));
    match run.answer() {
        Body::Memory(outcome) => Some(outcome.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn known_stack_use_is_reported_within_64_bytes() {
    let peak = |behaviour| {
        let outcome = memory(behaviour, Operation::Sign, 3)?;
        let peaks: Vec<u64> = outcome.runs.iter().map(|r| r.stack_peak_bytes).collect();
        assert!(peaks.iter().all(|p| p.is_multiple_of(16)), "{peaks:?}");
        assert!(
            peaks.iter().all(|p| p.abs_diff(peaks[0]) <= 16),
            "{peaks:?}"
        );
        assert!(outcome.empty_stack_bytes > 0);
        Some(peaks[0])
    };
    // `use_stack` is called by `sig_sign` and calls nothing, so the peak is the array, the two small
    // frames around it, and nothing else; the frames are measured by the differences.
    let (Some(small), Some(middle), Some(large)) =
        (peak("STACK_4K"), peak("STACK_100K"), peak("STACK_1M"))
    else {
        return;
    };
    let frames = small - 4096;
    assert!(frames <= 256, "frames of {frames} bytes");
    assert!((middle - frames).abs_diff(102_400) <= 64, "{middle}");
    assert!((large - frames).abs_diff(1_048_576) <= 64, "{large}");
}

#[test]
fn heap_use_is_counted_exactly() {
    for (behaviour, peak, allocations, leaked) in [
        ("CORRECT", 0, 0, 0),
        ("HEAP_20K", 20_480, 3, 0),
        ("HEAP_3M", 3_145_728, 1, 0),
        ("HEAP_MAP", 1_049_576, 2, 0),
        ("HEAP_LEAKS", 32, 1, 32),
    ] {
        let Some(outcome) = memory(behaviour, Operation::Sign, 4) else {
            return;
        };
        assert_eq!(outcome.runs.len(), 4);
        for (number, run) in outcome.runs.iter().enumerate() {
            assert_eq!((run.key, run.message), (number as u32, number as u32));
            assert_eq!(
                (run.heap_peak_bytes, run.allocations, run.leaked_bytes),
                (peak, allocations, leaked),
                "{behaviour}"
            );
        }
        assert!(outcome.peak_rss_bytes >= outcome.baseline_rss_bytes);
    }
}

#[test]
fn the_resident_set_is_the_workers_own_and_holds_what_an_operation_touched() {
    // A maximum over processes, or one that a fork hands down, would be that of this one.
    let ballast = std::hint::black_box(vec![1u8; 200 << 20]);
    let Some(outcome) = memory("HEAP_3M", Operation::Sign, 1) else {
        return;
    };
    let grown = outcome.peak_rss_bytes - outcome.baseline_rss_bytes;
    // The kernel counts pages in batches of some dozens for each processor.
    assert!((2_500_000..20_000_000).contains(&grown), "{outcome:?}");
    assert!(
        outcome.peak_rss_bytes < ballast.len() as u64 / 2,
        "{outcome:?}"
    );
}

#[test]
fn every_operation_has_its_memory() {
    for operation in [Operation::Keygen, Operation::Verify] {
        let Some(outcome) = memory("CORRECT", operation, 2) else {
            return;
        };
        assert_eq!((outcome.operation, outcome.runs.len()), (operation, 2));
        assert!(outcome.runs.iter().all(|run| run.stack_peak_bytes > 0));
    }
}

#[test]
fn endless_recursion_is_a_result_of_the_memory_phase() {
    let Some(toy) = build("KEYGEN_RECURSES", Kind::Memory, &[]) else {
        return;
    };
    let task = Task::Memory {
        operation: Operation::Keygen,
        inputs: inputs(),
        keys: 1,
        interposed: None,
    };
    let run = run(&isolated(request(task, Some(toy.file()))));
    run.fails_with(FailureCode::StackExhausted, "stack exhausted at 67108864");
}

#[test]
fn a_library_of_another_kind_is_refused_by_its_missing_symbols() {
    let Some(toy) = build("CORRECT", Kind::Timed, &[]) else {
        return;
    };
    let memory = Task::Memory {
        operation: Operation::Sign,
        inputs: inputs(),
        keys: 1,
        interposed: None,
    };
    let profile = Task::Profile {
        operation: Operation::Sign,
        inputs: inputs(),
        keys: 1,
    };
    for (task, symbol) in [
        (memory, "campaign_memory_reset"),
        (profile, "campaign_profile_rows"),
    ] {
        run(&request(task, Some(toy.file()))).fails_with(FailureCode::LoadFail, symbol);
    }
}

fn profile(operation: Operation, keys: u32) -> Option<ProfileOutcome> {
    let toy = build("CORRECT", Kind::Profile, &[])?;
    let task = Task::Profile {
        operation,
        inputs: inputs(),
        keys,
    };
    let run = run(&isolated(request(task, Some(toy.file()))));
    match run.answer() {
        Body::Profile(outcome) => Some(outcome.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_call_shape_of_the_operations_alone_is_counted() {
    // (function, input bits, output bits, calls an operation)
    let cases = [
        (Operation::Keygen, vec![("drng", 0, 256, 1)]),
        (
            Operation::Sign,
            vec![
                ("absorb", 128, 0, 1),
                ("absorb", 512, 0, 2),
                ("drng", 0, 128, 1),
            ],
        ),
        (
            Operation::Verify,
            vec![("absorb", 128, 0, 1), ("absorb", 512, 0, 2)],
        ),
    ];
    for (operation, shapes) in cases {
        let Some(outcome) = profile(operation, 20) else {
            return;
        };
        let found: Vec<_> = outcome
            .calls
            .iter()
            .map(|row| {
                (
                    row.function.as_str(),
                    row.in_bits,
                    row.out_bits,
                    row.calls / 20,
                )
            })
            .collect();
        assert_eq!(found, shapes, "{operation}");
        assert!(outcome.calls.iter().all(|row| row.calls.is_multiple_of(20)));
        assert_eq!((outcome.operations, outcome.overflow_calls), (20, 0));
        assert!(outcome.total_ticks > outcome.calls.iter().map(|row| row.ticks).sum());
        let groups: Vec<_> = outcome.calls.iter().map(|r| r.group.as_str()).collect();
        assert_eq!(groups.contains(&"drng"), operation != Operation::Verify);
        match operation {
            Operation::Sign => {
                assert!((1..20).contains(&outcome.rejected_draws));
                // The toy rejects one draw at most, and makes none of its calls for it.
                assert!(outcome.runs.iter().all(|run| run.calls["absorb"] == 3));
            }
            _ => assert_eq!(outcome.rejected_draws, 0),
        }
        assert_eq!(outcome.passes.len(), 20, "one of each key");
        let ticks = |key: &protocol::ProfilePasses| key.ticks[key.counted as usize];
        assert_eq!(
            outcome.passes.iter().map(ticks).sum::<u64>(),
            outcome.total_ticks
        );
        for key in &outcome.passes {
            assert!(
                key.ticks.len() >= 3 && key.other_calls.is_empty(),
                "{key:?}"
            );
        }
    }
}

/// So runs of another number of keys, on another machine, can be compared.
#[test]
fn the_runs_of_fewer_keys_are_the_first_of_more() {
    let (Some(few), Some(many)) = (profile(Operation::Sign, 3), profile(Operation::Sign, 9)) else {
        return;
    };
    assert_eq!((few.runs.len(), many.runs.len()), (3, 9));
    assert_eq!(few.runs[..], many.runs[..3]);
    let calls = |function: &str| many.runs.iter().map(|run| run.calls[function]).sum::<u64>();
    let rows = many.calls.iter().filter(|row| row.function == "absorb");
    assert_eq!(calls("absorb"), rows.map(|row| row.calls).sum::<u64>());
    let rejected: u64 = many.runs.iter().map(|run| run.rejected_draws).sum();
    assert_eq!(rejected, many.rejected_draws);
}

#[test]
fn equal_inputs_give_equal_call_counts() {
    let (Some(one), Some(two)) = (profile(Operation::Sign, 7), profile(Operation::Sign, 7)) else {
        return;
    };
    let counts = |outcome: &ProfileOutcome| {
        let calls = outcome
            .calls
            .iter()
            .map(|r| (r.function.clone(), r.in_bits, r.calls));
        (calls.collect::<Vec<_>>(), outcome.rejected_draws)
    };
    assert_eq!(one.calls.len(), 3);
    assert_eq!(counts(&one), counts(&two));
}
