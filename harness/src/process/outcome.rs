//! How a child ended.

use super::Capture;
use std::io;
use std::time::Duration;

/// How a child ended.
#[derive(Debug)]
pub enum End {
    /// It ended by itself.
    Finished {
        /// Exit status, 0 to 255.
        status: i32,
    },
    /// A signal that was not ours ended it.
    Signalled {
        /// Number of the signal.
        signal: i32,
    },
    /// Its time limit passed, and it was ended.
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// It was ended, or not even started, because a stop was asked for.
    Interrupted,
    /// It could not be started, or not be supervised.
    NotStarted(io::Error),
}

impl End {
    /// Whether it ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        matches!(self, End::Finished { status: 0 })
    }

    /// Whether the program is not there at all.
    pub fn is_missing_program(&self) -> bool {
        matches!(self, End::NotStarted(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Finished { status } => write!(f, "ended with status {status}"),
            End::Signalled { signal } => write!(f, "was ended by {}", signal_name(*signal)),
            End::TimedOut { after } => {
                write!(f, "did not end within {} s", after.as_secs_f64())
            }
            End::Interrupted => write!(f, "was interrupted"),
            End::NotStarted(error) => write!(f, "could not be started: {error}"),
        }
    }
}

/// `SIGSEGV`, or `signal 35` for one without a name.
fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => known.as_str().to_owned(),
        Err(_) => format!("signal {signal}"),
    }
}

/// A child's end and outputs.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub stdout: Capture,
    /// What it wrote to stderr.
    pub stderr: Capture,
    /// What it wrote to the channel of its description; empty without one.
    pub channel: Capture,
    /// Time from before the start to after the sweep.
    pub elapsed: Duration,
    /// SIGKILL was needed: the polite signal did not suffice.
    pub killed: bool,
    /// Processes of its group or session that outlived it and were killed.
    pub swept: usize,
    /// Numbers of the processes that could not be ended (waiting inside the kernel, say), the child
    /// included. What they do disturbs everything that is measured after them.
    pub left: Vec<i32>,
}

/// Processes outlived SIGKILL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} of a program that was ended cannot be killed: {}; nothing can be measured beside {}. See what holds \
     them (`cat /proc/PID/stack`), end them or restart the machine, and run again to resume",
    if .0.len() == 1 { "a process" } else { "processes" },
    numbers(.0),
    if .0.len() == 1 { "it" } else { "them" }
)]
pub struct Survivors(pub Vec<i32>);

fn numbers(pids: &[i32]) -> String {
    let texts: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
    texts.join(", ")
}

impl Outcome {
    /// An error that names them, if processes of the child could not be ended.
    pub fn proven_empty(&self) -> Result<(), Survivors> {
        match self.left.is_empty() {
            true => Ok(()),
            false => Err(Survivors(self.left.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survivors_are_named() {
        let one = Survivors(vec![17]).to_string();
        assert!(one.starts_with("a process of a program"), "{one}");
        assert!(one.contains("pid 17;"), "{one}");
        let two = Survivors(vec![17, 18]).to_string();
        assert!(two.contains("pid 17, pid 18;"), "{two}");
    }
}
