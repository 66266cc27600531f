//! One attempt: what a worker's answer becomes in a record.

use crate::evidence::{Attempt, Exit};
use crate::phases::context::{is_own_failure, PhaseError};
use crate::process::End;
use crate::worker::{Answer, Ending};
use protocol::{Body, FailureCode, Measured};

/// What was measured, of the answer to a measure task.
pub fn of_measure(body: &Body) -> Option<&Measured> {
    match body {
        Body::Measured(measured) => Some(measured),
        _ => None,
    }
}

/// The attempt of an answer, without flags; with what was measured if it ended well. `figures` takes
/// that out of the body, `None` for an answer to something else.
pub fn of(
    answer: &Answer,
    session: u32,
    figures: fn(&Body) -> Option<&Measured>,
) -> Result<(Attempt, Option<&Measured>), PhaseError> {
    let measured = match &answer.ending {
        Ending::Done => answer.body.as_ref().and_then(figures),
        _ => None,
    };
    let (exit, detail) = ending(answer, measured.is_some())?;
    let mut attempt = match measured {
        Some(measured) => of_answer(measured),
        None => empty(exit),
    };
    attempt.exit = exit;
    attempt.detail = detail;
    attempt.session = session;
    attempt.started_utc = Some(answer.started_utc.clone());
    attempt.stdout = Some(answer.outcome.stdout.evidence());
    attempt.stderr = Some(answer.outcome.stderr.evidence());
    attempt.command = answer.command.clone();
    Ok((attempt, measured))
}

fn ending(answer: &Answer, measured: bool) -> Result<(Exit, Option<String>), PhaseError> {
    Ok(match &answer.ending {
        Ending::Done if measured => (Exit::Ok, None),
        Ending::Done => (Exit::Crash, Some("it answered something else".into())),
        Ending::Timeout(seconds) => (Exit::Timeout, Some(format!("killed after {seconds} s"))),
        // Nobody but the machine sends it (out of memory) or a person: the attempt says nothing of the
        // library, and is made again. One that does it to itself fails after some tries.
        Ending::Crash(text) if is_killed(&answer.outcome.end) => {
            (Exit::Interrupted, Some(text.clone()))
        }
        Ending::Crash(text) => (Exit::Crash, Some(text.clone())),
        Ending::Interrupted => (Exit::Interrupted, Some(super::slots::CUT_OFF.into())),
        Ending::Failed(failure) if is_own_failure(failure.code) => {
            return Err(PhaseError::WorkerFailed {
                code: failure.code,
                text: failure.text.clone(),
            })
        }
        Ending::Failed(failure) => (exit(failure.code), Some(failure.text.clone())),
    })
}

/// Whether a SIGKILL that was not ours ended the process.
fn is_killed(end: &End) -> bool {
    matches!(end, End::Signalled { signal: 9 })
}

/// How an attempt ended that the worker itself calls a failure. A clock or a counter that fails is
/// the machine's doing: the attempt does not count and is tried again.
fn exit(code: FailureCode) -> Exit {
    match code {
        FailureCode::CallFailed | FailureCode::Contract | FailureCode::Overflow => Exit::CallFailed,
        FailureCode::NotVerified => Exit::NotVerified,
        FailureCode::Counter | FailureCode::Clock => Exit::Interrupted,
        _ => Exit::Crash,
    }
}

/// An attempt with the figures of an answer.
pub fn of_answer(measured: &Measured) -> Attempt {
    Attempt {
        calls: measured.calls,
        nanoseconds: measured.nanoseconds,
        cycles: measured.cycles,
        ticks: measured.ticks,
        instructions: measured.instructions,
        time_enabled: measured.time_enabled_ns,
        time_running: measured.time_running_ns,
        batch: Some(measured.batch),
        samples: measured.samples_ns.clone(),
        rest: Some(measured.rest),
        user_ns: Some(measured.usage.user_ns),
        system_ns: Some(measured.usage.system_ns),
        switches: Some(measured.usage.into()),
        faults: Some(measured.usage.into()),
        baseline_rss_bytes: Some(measured.baseline_rss_bytes),
        peak_rss_bytes: Some(measured.peak_rss_bytes),
        cpu_before: Some(measured.cpu_before),
        cpu_after: Some(measured.cpu_after),
        ..empty(Exit::Ok)
    }
}

/// An attempt without figures.
pub fn empty(exit: Exit) -> Attempt {
    Attempt {
        session: 0,
        started_utc: None,
        exit,
        detail: None,
        calls: 0,
        nanoseconds: 0,
        cycles: None,
        ticks: None,
        instructions: None,
        time_enabled: None,
        time_running: None,
        batch: None,
        samples: Vec::new(),
        rest: None,
        user_ns: None,
        system_ns: None,
        switches: None,
        faults: None,
        steal: None,
        baseline_rss_bytes: None,
        peak_rss_bytes: None,
        cpu_before: None,
        cpu_after: None,
        flags: Vec::new(),
        stdout: None,
        stderr: None,
        command: Vec::new(),
    }
}
