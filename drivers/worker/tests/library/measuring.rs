//! Calibrating, preparing and measuring with the real worker.

use crate::drive::{inputs, isolated, request, run, run_with};
use crate::toy::{named, toy, Toy};
use protocol::{
    Body, Calibrated, FailureCode, InputRule, Inputs, MeasureTask, Measured, Operation, SourceKind,
    Task,
};
use std::os::unix::process::ExitStatusExt;

fn measure_task(operation: Operation) -> MeasureTask {
    MeasureTask {
        operation,
        inputs: inputs(),
        iterations: 700,
        warmups: 3,
        cost_ns: 10_000_000, // batches of one, also where reading the clock is a system call
        sources: vec![SourceKind::Tsc, SourceKind::Cntvct],
    }
}

fn measure(toy: &Toy, task: MeasureTask) -> Measured {
    let run = run(&isolated(request(Task::Measure(task), Some(toy.file()))));
    match run.answer() {
        Body::Measured(measured) => measured.as_ref().clone(),
        other => panic!("{other:?}"),
    }
}

fn calibrate(toy: &Toy, operation: Operation, inputs: Inputs, outputs: bool) -> Calibrated {
    let task = Task::Calibrate {
        operation,
        inputs,
        outputs,
    };
    let run = run(&isolated(request(task, Some(toy.file()))));
    match run.answer() {
        Body::Calibrated(calibrated) => calibrated.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn samples_and_rest_add_up_for_every_operation() {
    let Some(toy) = toy("CORRECT") else { return };
    for operation in Operation::ALL {
        let found = measure(&toy, measure_task(operation));
        assert_eq!((found.calls, found.batch), (700, 1));
        assert_eq!(found.samples_ns.len(), 512);
        assert_eq!(found.rest.calls, 188);
        let sum: u64 = found.samples_ns.iter().sum();
        assert_eq!(sum + found.rest.value, found.nanoseconds);
        assert!(found.ticks.is_some_and(|t| t > 0), "{:?}", found.source);
        assert_eq!(found.cycles, None, "ticks are never called cycles");
        assert!(found.peak_rss_bytes >= found.baseline_rss_bytes);
        assert!(found.baseline_rss_bytes > 0);
        assert_eq!(found.threads, own_threads());
        assert!(found.boottime_ns > 0);
        let (messages, keys, signature) = match operation {
            Operation::Keygen => (0, 0, 0),
            Operation::Sign => (703, 1, 48),
            Operation::Verify => (64, 1, 48),
        };
        assert_eq!(
            (found.messages, found.keys, found.last_signature_bytes),
            (messages, keys, signature)
        );
        let roles: Vec<&str> = found.seeds.iter().map(|(role, _)| role.as_str()).collect();
        match operation {
            Operation::Keygen => assert_eq!(roles, ["key"]),
            _ => assert_eq!(roles, ["key", "message", "random"]),
        }
    }
}

#[test]
fn cheap_calls_are_timed_in_batches() {
    let Some(toy) = toy("CORRECT") else { return };
    let mut task = measure_task(Operation::Verify);
    task.cost_ns = 1000;
    let found = measure(&toy, task);
    assert!(found.batch > 1);
    assert_eq!(found.samples_ns.len() as u64, 700 / found.batch);
    assert_eq!(found.rest.calls, 700 % found.batch);
}

#[test]
fn without_a_counter_time_is_measured_all_the_same() {
    let Some(toy) = toy("CORRECT") else { return };
    let mut task = measure_task(Operation::Sign);
    task.sources = vec![SourceKind::None];
    let found = measure(&toy, task);
    assert_eq!((found.cycles, found.ticks), (None, None));
    assert!(found.source.reason.is_some() && found.nanoseconds > 0);
}

#[test]
fn a_clock_in_place_of_a_counter_says_why() {
    let Some(toy) = toy("CORRECT") else { return };
    let foreign = match std::env::consts::ARCH {
        "x86_64" => SourceKind::Cntvct,
        _ => SourceKind::Tsc,
    };
    let mut task = measure_task(Operation::Sign);
    task.sources = vec![foreign, SourceKind::Tsc, SourceKind::Cntvct];
    let found = measure(&toy, task);
    assert!(found.ticks.is_some() && found.source.source.is_some());
    assert!(found
        .source
        .reason
        .unwrap()
        .1
        .contains("another architecture"));
}

#[test]
fn outputs_of_trial_0_are_the_same_in_every_process_and_with_a_prepared_key() {
    let Some(toy) = toy("CORRECT") else { return };
    let first = calibrate(&toy, Operation::Sign, inputs(), true);
    let outputs = first.outputs.unwrap();
    assert!(!first.calls_ns.is_empty());
    let keygen = calibrate(&toy, Operation::Keygen, inputs(), true);
    assert_eq!(keygen.outputs.as_ref(), Some(&outputs));
    assert_eq!(
        calibrate(&toy, Operation::Verify, inputs(), false).outputs,
        None
    );

    // The prepared key of signing's trial 0 is the key of these outputs.
    let mut wanted = inputs();
    wanted.trial = 0;
    wanted.key_trial = 0;
    let prepare = Task::Prepare {
        operation: Operation::Sign,
        inputs: wanted.clone(),
    };
    let prepared = run_with(&isolated_but_writing(prepare, &toy), Some(protocol::KEY_FD));
    let Body::Prepared(answer) = prepared.answer() else {
        panic!("{prepared:#?}")
    };
    assert_eq!(answer.bytes, prepared.extra.len() as u64);
    let path = toy.folder().join("key");
    std::fs::write(&path, &prepared.extra).unwrap();
    let file = named(&path);
    assert_eq!(file.sha256, answer.sha256);
    wanted.prepared_key = Some(file);
    let with_key = calibrate(&toy, Operation::Sign, wanted.clone(), true);
    assert_eq!(with_key.outputs, Some(outputs));

    // Trials that use it name the seed of signing for it.
    let mut seeds = Vec::new();
    for operation in [Operation::Sign, Operation::Verify] {
        let mut task = measure_task(operation);
        task.inputs = wanted.clone();
        task.inputs.trial = 5;
        seeds.push(measure(&toy, task).seeds[0].clone());
    }
    assert_eq!(seeds[0], seeds[1]);

    let mut task = measure_task(Operation::Sign);
    task.inputs = wanted;
    std::fs::write(&path, b"another file").unwrap();
    let refused = run(&request(Task::Measure(task), Some(toy.file())));
    refused.fails_with(FailureCode::Io, "another file than the one named");
}

fn isolated_but_writing(task: Task, toy: &Toy) -> protocol::Request {
    let mut wanted = isolated(request(task, Some(toy.file())));
    wanted.isolation.file_bytes = None;
    wanted
}

#[test]
fn the_fixed_rule_uses_one_message_and_the_public_seed() {
    let Some(toy) = toy("CORRECT") else { return };
    let mut task = measure_task(Operation::Sign);
    task.inputs.rule = InputRule::Fixed;
    let found = measure(&toy, task);
    assert_eq!(found.messages, 1);
    let seed: String = (0..48).map(|b| format!("{b:02x}")).collect();
    let seeds = ["key", "message", "random"].map(|role| (role.to_owned(), seed.clone()));
    assert_eq!(found.seeds, seeds);
}

#[test]
fn a_failing_call_voids_the_attempt() {
    let Some(toy) = toy("SIGN_FAILS") else { return };
    let task = Task::Measure(measure_task(Operation::Sign));
    let run = run(&isolated(request(task, Some(toy.file()))));
    run.fails_with(FailureCode::CallFailed, "sig_sign returned -6 in");
}

#[test]
fn last_outputs_that_do_not_verify_void_the_attempt() {
    for (behaviour, operation, code, part) in [
        (
            "SIGN_WRONG",
            Operation::Sign,
            FailureCode::NotVerified,
            "did not verify",
        ),
        (
            "SIGN_WRONG",
            Operation::Keygen,
            FailureCode::NotVerified,
            "did not verify",
        ),
        (
            "VERIFY_ALL",
            Operation::Verify,
            FailureCode::NotVerified,
            "flipped",
        ),
        (
            "SIGN_OUTSIDE_LATER",
            Operation::Sign,
            FailureCode::Overflow,
            "beyond its end",
        ),
        (
            "SIGN_LONGER",
            Operation::Sign,
            FailureCode::Overflow,
            "returned 49",
        ),
        (
            "SIGN_UNTOUCHED",
            Operation::Sign,
            FailureCode::Contract,
            "unwritten",
        ),
    ] {
        let Some(toy) = toy(behaviour) else { return };
        let task = Task::Measure(measure_task(operation));
        let run = run(&isolated(request(task, Some(toy.file()))));
        run.fails_with(code, part);
    }
}

#[test]
fn a_library_that_leaves_its_cpu_is_found_out() {
    let Some(toy) = toy("MOVES_AWAY") else { return };
    let mut wanted = request(
        Task::Measure(measure_task(Operation::Sign)),
        Some(toy.file()),
    );
    wanted.cpu = Some(worker::process::current_cpu().unwrap());
    if worker::process::only_one_cpu() {
        return crate::support::skip("this process may use one CPU only");
    }
    run(&wanted).fails_with(FailureCode::Contract, "the affinity was changed");
}

#[test]
fn ends_that_are_no_answer_are_crashes() {
    for (behaviour, signal) in [
        ("KEYGEN_CRASHES", Some(libc::SIGSEGV)),
        ("ABORTS", Some(libc::SIGABRT)),
        ("KEYGEN_EXITS", None),
    ] {
        let Some(toy) = toy(behaviour) else { return };
        let task = Task::Measure(measure_task(Operation::Keygen));
        let run = run(&isolated(request(task, Some(toy.file()))));
        run.crashed();
        assert_eq!(run.status.signal(), signal, "{behaviour}");
    }
}

#[test]
fn forged_events_do_not_carry_the_token() {
    let Some(toy) = toy("FORGES_EVENTS") else {
        return;
    };
    let mut task = measure_task(Operation::Keygen);
    task.iterations = 1;
    task.warmups = 0;
    let run = run(&request(Task::Measure(task), Some(toy.file())));
    assert!(!run.strange.is_empty(), "{run:#?}");
}

#[test]
fn a_library_that_closes_all_descriptors_leaves_no_last_event() {
    let Some(toy) = toy("CLOSES_DESCRIPTORS") else {
        return;
    };
    let run = run(&isolated(request(
        Task::Measure(measure_task(Operation::Keygen)),
        Some(toy.file()),
    )));
    run.crashed();
}

#[test]
fn what_a_library_prints_is_on_the_captured_streams() {
    let Some(toy) = toy("PRINTS") else { return };
    let mut task = measure_task(Operation::Keygen);
    task.iterations = 1;
    task.warmups = 0;
    let run = run(&isolated(request(Task::Measure(task), Some(toy.file()))));
    assert!(run.done());
    assert_eq!(run.stdout, "key 1");
    assert_eq!(run.stderr, "keygen speaks\n");
}

#[test]
fn twenty_megabytes_of_stack_are_there() {
    let Some(toy) = toy("STACK_20M") else { return };
    let mut task = measure_task(Operation::Sign);
    task.iterations = 3;
    measure(&toy, task);
}

#[test]
fn settings_that_a_library_leaves_changed_void_the_attempt() {
    for (behaviour, part) in [
        ("ROUNDS", "floating-point control word"),
        ("BLOCKS_SIGNALS", "the signal mask"),
        ("CHANGES_FOLDER", "the working directory"),
        ("NICE", "the priority"),
        ("HANDLES_FAULTS", "the handler of SIGSEGV"),
        ("LOCALE", "the locale"),
    ] {
        let Some(toy) = toy(behaviour) else { return };
        // Without the protections: some of these calls would be refused.
        let task = Task::Measure(measure_task(Operation::Keygen));
        let run = run(&request(task, Some(toy.file())));
        run.fails_with(FailureCode::Contract, part);
    }
}

#[test]
fn a_thread_that_a_library_leaves_running_is_counted() {
    let Some(toy) = toy("LEAVES_THREAD") else {
        return;
    };
    let mut task = measure_task(Operation::Keygen);
    task.iterations = 2;
    task.warmups = 0;
    assert_eq!(measure(&toy, task).threads, own_threads() + 2);
}

#[test]
fn a_thread_that_has_ended_before_the_call_returns_is_counted_too() {
    let Some(toy) = toy("JOINS_THREAD") else {
        return;
    };
    let mut task = measure_task(Operation::Keygen);
    task.iterations = 2;
    task.warmups = 0;
    assert_eq!(measure(&toy, task.clone()).threads, 2);
    // Verifying starts none: what others did before the timed calls is not theirs.
    task.operation = Operation::Verify;
    assert_eq!(measure(&toy, task).threads, own_threads());
}

/// Threads of a worker without those of its library: an emulator has one of its own.
fn own_threads() -> u32 {
    if crate::drive::is_emulated() {
        2
    } else {
        1
    }
}
