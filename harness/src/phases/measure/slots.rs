//! Which attempt of a slot counts, whether another is due, and what that makes of the record.

use crate::evidence::{Attempt, Exit, Reason, ReasonCode, Status, Trial};

/// Times that a slot is tried again when the machine, not the candidate, spoilt an attempt (a
/// suspend, a counter that failed).
const SPOILT: usize = 3;

/// Detail of an attempt that the end of the orchestrator cut off.
pub const CUT_OFF: &str = "cut off by the end of the orchestrator";

/// The attempt that counts: the first undisturbed one that went well, else the last that went well.
pub fn counted(attempts: &[Attempt]) -> Option<u32> {
    let good = |attempt: &&Attempt| attempt.exit == Exit::Ok;
    let undisturbed = attempts.iter().position(|a| good(&a) && !is_disturbed(a));
    let index = undisturbed.or_else(|| attempts.iter().rposition(|a| good(&a)));
    index.map(|index| index as u32)
}

/// Whether something disturbed an attempt. Threads of the library are flagged, but are its nature: another
/// attempt would have them too.
fn is_disturbed(attempt: &Attempt) -> bool {
    attempt.flags.iter().any(|flag| !flag.is_threads())
}

/// Attempts of a slot that the machine spoilt.
fn spoilt(trial: &Trial) -> usize {
    let attempts = trial.attempts.iter();
    attempts
        .filter(|a| a.exit == Exit::Interrupted && a.detail.as_deref() != Some(CUT_OFF))
        .count()
}

/// Whether the next attempt is the last one that the machine may spoil.
pub fn last_try(trial: &Trial) -> bool {
    spoilt(trial) + 1 >= SPOILT
}

/// Whether a slot needs another attempt: it has none, or only disturbed ones and repeats are left. A
/// failed call, a crash and a timeout are not repeated; an interrupted attempt is no repeat.
pub fn is_open(trial: &Trial, repeats: u32) -> bool {
    let attempts = trial.attempts.iter();
    let real: Vec<&Attempt> = attempts.filter(|a| a.exit != Exit::Interrupted).collect();
    spoilt(trial) < SPOILT
        && real.iter().all(|a| a.exit == Exit::Ok && is_disturbed(a))
        && real.len() <= repeats as usize
}

/// Status and reason of a record with these slots.
pub fn status(trials: &[Trial], repeats: u32) -> (Status, Option<Reason>) {
    let failed = trials
        .iter()
        .enumerate()
        .find(|(_, trial)| trial.counted.is_none() && !is_open(trial, repeats));
    if let Some((index, trial)) = failed {
        return (Status::Failed, Some(failure(index, trial)));
    }
    match trials.iter().position(|trial| is_open(trial, repeats)) {
        Some(index) => {
            let text = format!("{index} of {} trials are done", trials.len());
            (
                Status::Partial,
                Some(Reason::new(ReasonCode::Interrupted, text)),
            )
        }
        None => (Status::Complete, None),
    }
}

fn failure(index: usize, trial: &Trial) -> Reason {
    let last = trial.attempts.last();
    let code = match last.map(|a| a.exit) {
        Some(Exit::Timeout) => ReasonCode::Timeout,
        Some(Exit::CallFailed) => ReasonCode::CallFailed,
        Some(Exit::NotVerified) => ReasonCode::NotVerified,
        // A suspend, a clock that went backwards: not the library's doing.
        Some(Exit::Interrupted) => ReasonCode::Interrupted,
        _ => ReasonCode::Crash,
    };
    let detail = last.and_then(|a| a.detail.as_deref());
    let text = format!(
        "trial {index}: {}",
        detail.unwrap_or("no attempt went well")
    );
    Reason::new(code, text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::attempt;
    use super::*;
    use crate::evidence::Flag;

    fn flagged() -> Attempt {
        let flags = vec![Flag {
            name: "steal_percent".into(),
            value: 1.0,
            limit: 0.5,
        }];
        Attempt {
            flags,
            ..attempt(Exit::Ok)
        }
    }

    fn cut_off() -> Attempt {
        Attempt {
            detail: Some(CUT_OFF.into()),
            ..attempt(Exit::Interrupted)
        }
    }

    fn suspended() -> Attempt {
        Attempt {
            detail: Some("the machine was suspended".into()),
            ..attempt(Exit::Interrupted)
        }
    }

    fn threaded() -> Attempt {
        let flags = vec![Flag {
            name: Flag::THREADS.into(),
            value: 2.0,
            limit: 1.0,
        }];
        Attempt {
            flags,
            ..attempt(Exit::Ok)
        }
    }

    #[test]
    fn a_slot_has_a_last_try_and_an_end_that_is_nobodys_crash() {
        let spoilt = |n| trial(vec![suspended(); n]);
        assert!(!last_try(&spoilt(0)) && !last_try(&spoilt(1)) && last_try(&spoilt(2)));
        assert!(!last_try(&trial(vec![cut_off(), cut_off(), cut_off()])));
        let (failed, reason) = status(&[spoilt(3)], 0);
        assert_eq!(failed, Status::Failed);
        assert_eq!(
            reason,
            Some(Reason::new(
                ReasonCode::Interrupted,
                "trial 0: the machine was suspended"
            ))
        );
    }

    fn trial(attempts: Vec<Attempt>) -> Trial {
        Trial {
            counted: counted(&attempts),
            attempts,
        }
    }

    #[test]
    fn the_table_of_attempts() {
        let ok = || attempt(Exit::Ok);
        let crash = || attempt(Exit::Crash);
        // attempts, counted, open with 0 repeats, open with 2 repeats
        let cases = [
            (vec![], None, true, true),
            (vec![ok()], Some(0), false, false),
            (vec![flagged()], Some(0), false, true),
            (vec![flagged(), flagged()], Some(1), false, true),
            (vec![flagged(), flagged(), flagged()], Some(2), false, false),
            (vec![flagged(), ok()], Some(1), false, false),
            (vec![threaded()], Some(0), false, false),
            (vec![flagged(), crash()], Some(0), false, false),
            (vec![crash()], None, false, false),
            (vec![attempt(Exit::Timeout)], None, false, false),
            (vec![cut_off()], None, true, true),
            (
                vec![cut_off(), cut_off(), cut_off(), cut_off()],
                None,
                true,
                true,
            ),
            (vec![cut_off(), ok()], Some(1), false, false),
            (vec![suspended(), suspended()], None, true, true),
            (
                vec![suspended(), suspended(), suspended()],
                None,
                false,
                false,
            ),
        ];
        for (n, (attempts, expected, open_0, open_2)) in cases.into_iter().enumerate() {
            let trial = trial(attempts);
            assert_eq!(trial.counted, expected, "case {n}");
            assert_eq!(is_open(&trial, 0), open_0, "case {n}");
            assert_eq!(is_open(&trial, 2), open_2, "case {n}");
        }
    }

    #[test]
    fn a_record_is_as_far_as_its_slots() {
        let good = || trial(vec![attempt(Exit::Ok)]);
        let empty = || trial(vec![]);
        let status_of = |trials: Vec<Trial>| status(&trials, 0);
        assert_eq!(status_of(vec![good(), good()]), (Status::Complete, None));
        let (partial, reason) = status_of(vec![good(), empty()]);
        assert_eq!(partial, Status::Partial);
        assert_eq!(reason.unwrap().text, "1 of 2 trials are done");
        let crashed = Attempt {
            detail: Some("it was ended by SIGSEGV".into()),
            ..attempt(Exit::Crash)
        };
        let (failed, reason) = status_of(vec![good(), trial(vec![crashed]), empty()]);
        assert_eq!(failed, Status::Failed);
        assert_eq!(
            reason,
            Some(Reason::new(
                ReasonCode::Crash,
                "trial 1: it was ended by SIGSEGV"
            ))
        );
    }
}
