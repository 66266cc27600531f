//! Children of every kind of behaviour, each with the outcome that is expected of it.

use harness::process::{run, run_blocking, run_observed, Command, End, Own, Stop, StopLevel};
use std::io::{Read, Write};
use std::time::Duration;

/// A time limit that no well-behaved child of these tests meets, and no test waits out.
const LONG: Duration = Duration::from_secs(120);
/// A time limit for children that are meant to meet it, with time for a slow machine to start them.
const SHORT: Duration = Duration::from_secs(5);

fn shell(script: &str) -> Command {
    Command::new("/bin/sh")
        .args(["-c", script])
        .deadline(LONG)
        .grace(SHORT)
}

/// What is expected of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Finished(i32),
    Signalled(i32),
    TimedOut,
}

struct Case {
    what: &'static str,
    script: &'static str,
    limit: Duration,
    end: Expected,
    killed: bool,
    stdout: &'static str,
    stderr_bytes: u64,
    swept: usize,
}

const CASES: &[Case] = &[
    Case {
        what: "a child that works",
        script: "echo out; echo err >&2; exit 7",
        limit: LONG,
        end: Expected::Finished(7),
        killed: false,
        stdout: "out\n",
        stderr_bytes: 4,
        swept: 0,
    },
    Case {
        what: "a child that crashes",
        script: "kill -SEGV $$",
        limit: LONG,
        end: Expected::Signalled(11),
        killed: false,
        stdout: "",
        stderr_bytes: 0,
        swept: 0,
    },
    Case {
        what: "a child that hangs but minds the polite signal",
        script: "echo begun; exec sleep 1000",
        limit: SHORT,
        end: Expected::TimedOut,
        killed: false,
        stdout: "begun\n",
        stderr_bytes: 0,
        swept: 0,
    },
    Case {
        what: "a child that ignores the polite signal, and so do its children",
        script: "trap '' TERM; echo deaf; sleep 1000; sleep 1000",
        limit: SHORT,
        end: Expected::TimedOut,
        killed: true,
        stdout: "deaf\n",
        stderr_bytes: 0,
        swept: 0,
    },
    Case {
        what: "a child that floods stderr beyond any pipe",
        script: "head -c 3000000 /dev/zero >&2; echo done",
        limit: LONG,
        end: Expected::Finished(0),
        killed: false,
        stdout: "done\n",
        stderr_bytes: 3_000_000,
        swept: 0,
    },
    Case {
        what: "a child that leaves a grandchild which holds its pipes",
        script: "sleep 1000 & echo left",
        limit: LONG,
        end: Expected::Finished(0),
        killed: false,
        stdout: "left\n",
        stderr_bytes: 0,
        swept: 1,
    },
    Case {
        what: "a child that writes half a line",
        script: "printf half",
        limit: LONG,
        end: Expected::Finished(0),
        killed: false,
        stdout: "half",
        stderr_bytes: 0,
        swept: 0,
    },
    Case {
        what: "a child that reads its closed input",
        script: "cat; echo end",
        limit: LONG,
        end: Expected::Finished(0),
        killed: false,
        stdout: "end\n",
        stderr_bytes: 0,
        swept: 0,
    },
];

fn kind(end: &End) -> Expected {
    match end {
        End::Finished { status } => Expected::Finished(*status),
        End::Signalled { signal } => Expected::Signalled(*signal),
        End::TimedOut { .. } => Expected::TimedOut,
        other => panic!("unexpected end: {other}"),
    }
}

#[test]
fn every_kind_of_child_ends_as_expected_and_leaves_nothing() {
    for case in CASES {
        let command = shell(case.script).deadline(case.limit);
        let outcome = run_blocking(command, &Stop::new());
        let seen = (
            kind(&outcome.end),
            outcome.killed,
            outcome.stdout.text(),
            outcome.stderr.bytes(),
            // What was killed as a group may still be ending when the sweep looks.
            if case.killed {
                case.swept
            } else {
                outcome.swept
            },
            outcome.left.clone(),
        );
        let expected = (
            case.end,
            case.killed,
            case.stdout.to_owned(),
            case.stderr_bytes,
            case.swept,
            Vec::new(),
        );
        assert_eq!(seen, expected, "{}", case.what);
    }
}

#[test]
fn only_the_beginning_of_an_output_is_kept_and_all_of_it_is_hashed() {
    let outcome = run_blocking(shell("yes | head -c 100000").keep(10), &Stop::new());
    assert_eq!(outcome.stdout.head(), b"y\ny\ny\ny\ny\n");
    assert_eq!(outcome.stdout.bytes(), 100_000);
    assert!(outcome.stdout.is_cut());
    use sha2::{Digest, Sha256};
    let expected = const_hex::encode(Sha256::digest("y\n".repeat(50_000)));
    assert_eq!(outcome.stdout.sha256(), expected);
}

#[test]
fn input_larger_than_a_pipe_arrives_whole_and_an_unread_one_does_no_harm() {
    let input = vec![b'x'; 1_000_000];
    let outcome = run_blocking(shell("wc -c").input(input.clone()), &Stop::new());
    assert_eq!(outcome.stdout.text().trim(), "1000000");
    let outcome = run_blocking(shell("exit 3").input(input), &Stop::new());
    assert_eq!(kind(&outcome.end), Expected::Finished(3));
}

#[test]
fn the_environment_is_clean() {
    let outcome = run_blocking(
        Command::new("/usr/bin/env")
            .env("EXTRA", "1")
            .env("LC_ALL", "C.UTF-8"),
        &Stop::new(),
    );
    let text = outcome.stdout.text();
    let mut names: Vec<_> = text.lines().filter_map(|l| l.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["EXTRA", "LC_ALL", "PATH"]);
    assert!(text.contains("LC_ALL=C.UTF-8"), "{text}");
}

/// Without a locale of its own a child speaks C, whatever this program was started with.
#[test]
fn the_locale_of_a_child_is_c_unless_it_is_given_another() {
    let outcome = run_blocking(Command::new("/usr/bin/env"), &Stop::new());
    let text = outcome.stdout.text();
    let locale: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("LC_") || line.starts_with("LANG"))
        .collect();
    assert_eq!(locale, ["LC_ALL=C"]);
}

#[test]
fn a_missing_program_is_not_started() {
    let outcome = run_blocking(Command::new("no-such-program-here"), &Stop::new());
    assert!(outcome.end.is_missing_program(), "{}", outcome.end);
    // The mapping of descriptors must not hide the failure.
    for fd in 3..12 {
        let command = Command::new("no-such-program-here").channel(fd, 100);
        let outcome = run_blocking(command, &Stop::new());
        assert!(outcome.end.is_missing_program(), "{fd}: {}", outcome.end);
        assert_eq!(outcome.channel.bytes(), 0);
    }
}

#[test]
fn lines_of_the_channel_are_heard_as_they_come_and_half_a_line_is_kept() {
    let runtime = runtime();
    let mut lines = Vec::new();
    let script = "echo one >&3; echo two >&3; echo noise; printf half >&3";
    let outcome = runtime.block_on(run_observed(
        shell(script).channel(3, 1000),
        &Stop::new(),
        &mut |line| lines.push(line.to_vec()),
    ));
    assert_eq!(lines, [b"one".to_vec(), b"two".to_vec()]);
    assert_eq!(outcome.channel.head(), b"one\ntwo\nhalf");
    assert_eq!(outcome.stdout.text(), "noise\n");
}

#[test]
fn a_channel_line_without_an_end_is_passed_on_in_pieces() {
    let runtime = runtime();
    let mut longest = 0;
    let script = "head -c 200000 /dev/zero >&3";
    let outcome = runtime.block_on(run_observed(
        shell(script).channel(3, 1000),
        &Stop::new(),
        &mut |line| longest = longest.max(line.len()),
    ));
    assert!((1000..=70_000).contains(&longest), "{longest}");
    assert_eq!(outcome.channel.bytes(), 200_000);
}

#[test]
fn a_descriptor_of_ours_is_the_childs() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"from the parent").unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let command = shell("cat /dev/fd/5; echo back >&4")
        .descriptor(5, file)
        .descriptor(4, writer);
    let outcome = run_blocking(command, &Stop::new());
    assert_eq!(outcome.stdout.text(), "from the parent");
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "back\n");
}

#[test]
fn a_standard_stream_cannot_be_given_away_as_a_descriptor() {
    let (_reader, writer) = std::io::pipe().unwrap();
    let outcome = run_blocking(shell("exit 0").descriptor(1, writer), &Stop::new());
    assert!(matches!(outcome.end, End::NotStarted(_)), "{}", outcome.end);
}

#[test]
fn a_child_in_its_own_session_is_ended_with_all_its_groups() {
    if !crate::support::have("setsid", "util-linux") {
        return;
    }
    // The leader calls setsid itself, as the worker does; `set -m` gives each job a group of its own.
    let script = "trap '' TERM; set -m; sleep 1000 & sleep 1000 & echo ready; wait; wait";
    let command = Command::new("setsid")
        .args(["/bin/bash", "-c", script])
        .own(Own::Session)
        .deadline(SHORT)
        .grace(SHORT);
    let outcome = run_blocking(command, &Stop::new());
    assert_eq!(kind(&outcome.end), Expected::TimedOut);
    assert_eq!(outcome.stdout.text(), "ready\n");
    assert!(outcome.killed);
    assert_eq!(outcome.left, [0; 0]);
}

#[test]
fn a_child_that_has_not_made_its_session_yet_is_ended_too() {
    let outcome = run_blocking(
        Command::new("sleep")
            .arg("1000")
            .own(Own::Session)
            .deadline(SHORT),
        &Stop::new(),
    );
    assert_eq!(kind(&outcome.end), Expected::TimedOut);
    assert_eq!((outcome.killed, outcome.left), (false, Vec::new()));
}

#[test]
fn a_stop_ends_the_child_politely_and_a_second_one_at_once() {
    let runtime = runtime();
    // Deaf to the polite signal, with a grace period that the test would not wait out.
    let deaf = shell("trap '' TERM; echo ready >&3; while :; do sleep 1000; done")
        .channel(3, 100)
        .grace(LONG);
    let stop = Stop::new();
    let theirs = stop.clone();
    let outcome = runtime.block_on(run_observed(deaf, &stop, &mut move |_| {
        theirs.request();
        theirs.request();
    }));
    assert!(matches!(outcome.end, End::Interrupted), "{}", outcome.end);
    assert!(outcome.killed);

    let polite =
        shell("trap 'echo saved; exit 0' TERM; echo ready >&3; while :; do sleep 0.01; done")
            .channel(3, 100)
            .grace(LONG);
    let stop = Stop::new();
    let theirs = stop.clone();
    let outcome = runtime.block_on(run_observed(polite, &stop, &mut move |_| theirs.request()));
    assert!(matches!(outcome.end, End::Interrupted), "{}", outcome.end);
    assert_eq!(outcome.stdout.text(), "saved\n");
    assert!(!outcome.killed);
    assert_eq!(stop.level(), StopLevel::Polite);
}

#[test]
fn nothing_is_started_after_a_stop() {
    let stop = Stop::new();
    stop.request();
    let outcome = run_blocking(shell("echo started"), &stop);
    assert!(matches!(outcome.end, End::Interrupted));
    assert_eq!(outcome.stdout.bytes(), 0);
}

#[test]
fn a_dropped_wait_kills_the_child() {
    let runtime = runtime();
    let (mut reader, writer) = std::io::pipe().unwrap();
    runtime.block_on(async {
        let command = shell("echo x >&4; exec sleep 1000").descriptor(4, writer);
        let stop = Stop::new();
        let waiting = run(command, &stop);
        let _ = tokio::time::timeout(SHORT, waiting).await;
    });
    // The end of the file comes only when no process holds the pipe any more.
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all, "x\n");
}

#[test]
fn many_children_at_once_are_told_apart() {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|n| scope.spawn(move || run_blocking(shell(&format!("exit {n}")), &Stop::new())))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(kind(&outcome.end), Expected::Finished(n as i32));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Nothing may be measured beside them: whoever runs a child has to ask.
#[test]
fn processes_that_cannot_be_ended_are_an_error_that_names_them() {
    let mut outcome = run_blocking(shell("exit 0"), &Stop::new());
    assert_eq!(outcome.proven_empty(), Ok(()));
    outcome.left = vec![4242];
    let error = outcome.proven_empty().unwrap_err();
    assert!(error.to_string().contains("pid 4242"), "{error}");
}
