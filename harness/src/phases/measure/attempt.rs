//! One attempt: what a worker's answer becomes in a record.

use super::disturb::{self, Normal, Outside};
use super::record::{self, Rules};
use super::slots;
use crate::evidence::{Attempt, Disturbed, Exit, RefusedCount, TimingRecord};
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
        None => Attempt::empty(exit),
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
        Ending::Interrupted => (Exit::Interrupted, Some(slots::CUT_OFF.into())),
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

/// An attempt that was measured with what disturbed it, held against its record: one that counted with
/// another source does not count, nor one whose count is refused, unless it is the last of the slot; that
/// one gives its time alone.
pub fn judge(
    limits: &Disturbed,
    rules: &Rules,
    record: &TimingRecord,
    trial: u32,
    mut attempt: Attempt,
    (measured, outside): (&Measured, Outside),
) -> Attempt {
    let normal = Normal {
        limits,
        clock_hz: rules.clock_hz,
        minor_faults: record::reference_faults(record, trial),
    };
    attempt.flags = disturb::flags(measured, outside, normal);
    if record::changes_source(record, measured) {
        attempt.exit = Exit::Interrupted;
        attempt.detail = Some("it counted with another source than the record's".into());
    } else if let Some(why) = refused(measured, rules.clock_hz) {
        attempt = without_count(attempt, measured, why);
        if !slots::last_try(&record.trials[trial as usize]) {
            attempt.exit = Exit::Interrupted;
        }
    }
    attempt
}

/// Core clock that no processor reaches, hertz: counts above it are wrong where the clock is not known.
const IMPOSSIBLE_HZ: f64 = 1e10;

/// Why the count of an attempt cannot be used although its time can: the readings around the loop
/// contradict each other, or there are more cycles than twice the clock gives.
fn refused(measured: &Measured, clock_hz: Option<f64>) -> Option<String> {
    if let Some(why) = &measured.count_refused {
        return Some(why.clone());
    }
    let cycles = measured.cycles?;
    let hz = cycles as f64 / (measured.nanoseconds.max(1) as f64 / 1e9);
    let limit = clock_hz.map_or(IMPOSSIBLE_HZ, |clock| 2.0 * clock);
    (hz > limit).then(|| {
        format!(
            "{cycles} cycles in {} ns would be {:.2} GHz: the count is wrong",
            measured.nanoseconds,
            hz / 1e9
        )
    })
}

/// The attempt with its time and without its count, which stays as evidence of the refusal.
pub(super) fn without_count(attempt: Attempt, measured: &Measured, why: String) -> Attempt {
    let counted = measured.cycles.or(measured.ticks);
    Attempt {
        refused: Some(RefusedCount {
            value: counted.or(measured.refused_value),
            instructions: measured.instructions.or(measured.refused_instructions),
            time_enabled: measured.time_enabled_ns,
            time_running: measured.time_running_ns,
        }),
        cycles: None,
        ticks: None,
        instructions: None,
        time_enabled: None,
        time_running: None,
        detail: Some(why),
        ..attempt
    }
}

/// An attempt with the figures of an answer. A counter counts the calling thread alone: of a library that
/// ran others there are no cycles.
pub fn of_answer(measured: &Measured) -> Attempt {
    Attempt {
        calls: measured.calls,
        nanoseconds: measured.nanoseconds,
        cycles: measured.cycles.filter(|_| measured.threads <= 1),
        ticks: measured.ticks,
        instructions: measured.instructions.filter(|_| measured.threads <= 1),
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
        ..Attempt::empty(Exit::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let counted = |cycles| {
            let mut m = measured(1, 1_000);
            m.cycles = Some(cycles);
            m
        };
        assert_eq!(refused(&measured(1, 1_000), Some(2e9)), None);
        assert_eq!(refused(&counted(4_000), Some(2e9)), None);
        let why = refused(&counted(4_001), Some(2e9)).unwrap();
        assert_eq!(
            why,
            "4001 cycles in 1000 ns would be 4.00 GHz: the count is wrong"
        );
        assert_eq!(refused(&counted(10_000), None), None);
        // One wrapped read of a 48-bit counter.
        assert!(refused(&counted(150_000_000_000_000), None).is_some());
        let frozen = Measured {
            count_refused: Some("it is frozen".into()),
            ..measured(1, 1_000)
        };
        assert_eq!(refused(&frozen, None).as_deref(), Some("it is frozen"));
    }

    #[test]
    fn an_attempt_without_its_count_keeps_its_time() {
        let mut m = measured(4, 400);
        m.cycles = Some(7);
        m.instructions = Some(8);
        let attempt = without_count(of_answer(&m), &m, "why".into());
        assert_eq!((attempt.calls, attempt.nanoseconds), (4, 400));
        assert_eq!((attempt.cycles, attempt.instructions), (None, None));
        assert_eq!(attempt.detail.as_deref(), Some("why"));
        let refused = attempt.refused.unwrap();
        assert_eq!((refused.value, refused.instructions), (Some(7), Some(8)));
    }

    /// 4 of 9 ns on the hardware, and a count that no double holds.
    fn shared() -> Measured {
        Measured {
            count_refused: Some("it took turns".into()),
            refused_value: Some((1 << 60) + 1),
            refused_instructions: Some((1 << 59) + 1),
            time_enabled_ns: Some(9),
            time_running_ns: Some(4),
            ..measured(4, 400)
        }
    }

    #[test]
    fn a_refused_count_leaves_its_raw_integers_and_both_times() {
        let m = shared();
        let attempt = without_count(of_answer(&m), &m, "why".into());
        assert_eq!((attempt.time_enabled, attempt.time_running), (None, None));
        let bytes = serde_json::to_string(&attempt).unwrap();
        let again: Attempt = serde_json::from_str(&bytes).unwrap();
        let refused = again.refused.unwrap();
        assert_eq!(refused.value, Some((1 << 60) + 1));
        assert_eq!(refused.instructions, Some((1 << 59) + 1));
        assert_eq!(
            (refused.time_enabled, refused.time_running),
            (Some(9), Some(4))
        );
        // An impossible count is told to the last digit, too.
        let mut m = measured(1, 1_000);
        m.cycles = Some((1 << 60) + 1);
        let why = refused_why(&m);
        assert!(why.starts_with("1152921504606846977 cycles"), "{why}");
        let good = serde_json::to_string(&of_answer(&measured(4, 400))).unwrap();
        assert!(!good.contains("refused"), "{good}");
    }

    fn refused_why(m: &Measured) -> String {
        refused(m, None).expect("the count cannot be")
    }

    /// A count of zero, or one that took turns, is tried again with its reason; the last try of the slot
    /// gives its time alone.
    #[test]
    fn a_refused_count_is_repeated_with_its_reason_until_the_last_try() {
        let mut record = super::super::tests::record(1);
        record.cycle_source.kind = protocol::SourceKind::None;
        let limits = crate::config::defaults::defaults().plans["quick"].disturbed;
        let rules = Rules {
            repeats: 0,
            verdicts: false,
            clock_hz: None,
            no_cycles: None,
        };
        for tried in 0..3 {
            let m = shared();
            let outside = Outside::default();
            let attempt = judge(&limits, &rules, &record, 0, of_answer(&m), (&m, outside));
            assert_eq!(attempt.detail.as_deref(), Some("it took turns"));
            assert_eq!((attempt.cycles, attempt.nanoseconds), (None, 400));
            let exit = match tried {
                2 => Exit::Ok,
                _ => Exit::Interrupted,
            };
            assert_eq!(attempt.exit, exit, "try {tried}");
            assert_eq!(attempt.refused.unwrap().time_running, Some(4));
            record.trials[0].attempts.push(attempt);
            let open = slots::is_open(&record.trials[0], 0);
            assert_eq!(open, tried < 2, "try {tried}");
        }
    }

    #[test]
    fn a_counter_of_one_thread_says_nothing_of_a_library_with_several() {
        let mut m = measured(4, 400);
        m.cycles = Some(7);
        assert_eq!(of_answer(&m).cycles, Some(7));
        m.threads = 2;
        assert_eq!(of_answer(&m).cycles, None);
    }
}
