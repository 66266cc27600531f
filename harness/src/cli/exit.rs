//! How a command ends: what it returns, and which exit status that is.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done; skipped rows and an unready host under `quick` included, both are said |
//! | 1 | it ran and found something wrong: a KAT that fails, a row that failed to build or run, an audit finding, a difference under `--check`, a regression, a host that is not ready under `guide`, `public` or `check` |
//! | 2 | the request is wrong: arguments, configuration, a run directory of another campaign |
//! | 3 | it could not be done: no compiler, disk full, lock held |
//! | 130, 143 | interrupted (SIGINT, SIGTERM), and resumable |
//!
//! An error type of the library becomes a [`Failure`] by an `impl From<ItsError> for Failure` next
//! to that error's other uses in this folder, or where one type mixes the classes, by a match over
//! its variants. The library itself knows no exit status.

use crate::process::Stop;
use std::error::Error;
use std::process::ExitCode;

/// Shown below `--help`.
pub const HELP: &str = "\
Exit status: 0 done; 1 it ran and found something wrong; 2 the request is wrong;
3 it could not be done; 130 or 143 interrupted, and resumable.";

/// How a command ended that did what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Status 0.
    Done,
    /// Status 1. The command has printed what it found.
    Found,
}

impl Outcome {
    /// [`Outcome::Found`] if anything was found.
    pub fn found(anything: bool) -> Outcome {
        if anything {
            Outcome::Found
        } else {
            Outcome::Done
        }
    }
}

/// An error of the library, kept whole.
pub type Cause = Box<dyn Error + Send + Sync + 'static>;

/// Why a command ended early. The cause's text says what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Status 1: something is wrong with what was examined, so nothing more was done (an unready
    /// host under `guide`).
    #[error(transparent)]
    Found(Cause),
    /// Status 2: the request is wrong.
    #[error(transparent)]
    Request(Cause),
    /// Status 3: it could not be done.
    #[error(transparent)]
    CouldNot(Cause),
    /// Status 130 or 143.
    #[error("interrupted: the run is as it was before the work that was cut off; the same command resumes it, without --new")]
    Interrupted(Signal),
}

/// Signals that end a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Failure {
    /// Status 1 with a cause.
    pub fn found(cause: impl Into<Cause>) -> Self {
        Failure::Found(cause.into())
    }

    /// Status 2 with a cause.
    pub fn request(cause: impl Into<Cause>) -> Self {
        Failure::Request(cause.into())
    }

    /// Status 3 with a cause.
    pub fn could_not(cause: impl Into<Cause>) -> Self {
        Failure::CouldNot(cause.into())
    }

    /// Status 130 or 143, by the signal that was caught.
    pub fn interrupted(stop: &Stop) -> Self {
        Failure::Interrupted(match stop.signal() {
            Some(2) => Signal::Interrupt,
            _ => Signal::Terminate,
        })
    }
}

/// A documented exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status.0)
    }
}

/// The one place where an exit status is decided. Arguments that clap refuses are status 2 as well,
/// by clap's own choice.
pub fn code(result: &Result<Outcome, Failure>) -> Status {
    Status(match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Found) | Err(Failure::Found(_)) => 1,
        Err(Failure::Request(_)) => 2,
        Err(Failure::CouldNot(_)) => 3,
        Err(Failure::Interrupted(Signal::Interrupt)) => 130,
        Err(Failure::Interrupted(Signal::Terminate)) => 143,
    })
}

/// The error and its causes, one a line.
pub fn chain(failure: &Failure) -> String {
    let mut text = format!("error: {failure}");
    let mut cause = failure.source();
    while let Some(error) = cause {
        text += &format!("\n  cause: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write runs/x: make room or name another place with --run")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn each_ending_has_its_documented_status() {
        let cases: [(Result<Outcome, Failure>, u8); 7] = [
            (Ok(Outcome::Done), 0),
            (Ok(Outcome::Found), 1),
            (Err(Failure::found("host not ready")), 1),
            (Err(Failure::request("no such plan")), 2),
            (Err(Failure::could_not("no compiler")), 3),
            (Err(Failure::Interrupted(Signal::Interrupt)), 130),
            (Err(Failure::Interrupted(Signal::Terminate)), 143),
        ];
        for (result, status) in cases {
            assert_eq!(code(&result).number(), status, "{result:?}");
        }
    }

    #[test]
    fn every_cause_is_printed_once() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let text = chain(&Failure::could_not(Outer(full)));
        assert_eq!(
            text,
            "error: cannot write runs/x: make room or name another place with --run\n  cause: no storage space"
        );
    }
}
