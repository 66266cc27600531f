//! The supervisor of `run --tune`: a process of its own, in a session of its own, that tunes the host,
//! waits for the end of the orchestrator, however it ends, and restores.
//!
//! The orchestrator holds the only writing end of the supervisor's standard input. When it ends, by
//! itself or by SIGKILL, the kernel closes that end, and the supervisor reads the end of file. Signals
//! of the terminal go to the orchestrator's session alone; SIGTERM and the like are not for the
//! supervisor either, for a service manager sends them to both, and the last trial is still running
//! then. Where the supervisor itself is killed, the journal is left, and the next command says so.

use super::apply::{apply_and_hold, Applied};
use super::restore::{restore_from, Restored};
use super::{plan, TuneError};
use crate::host::root::Root;
use crate::process::Stop;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Name of the subcommand that [`watch`] is the body of.
pub const COMMAND: &str = "tune-guard";
/// What an orchestrator says that ends by itself.
const GOODBYE: &[u8] = b"end\n";

/// The supervisor did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It cannot be started.
    #[error("{program}: the process that tunes and restores the host cannot be started", program = program.display())]
    Start {
        /// This program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It says why not.
    #[error("the host cannot be tuned: {0}")]
    Failed(String),
    /// It ended early.
    #[error("the process that tunes and restores the host ended early; `campaign untune` restores what it changed")]
    Gone,
}

/// What the supervisor says, one a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    Applied(Applied),
    Restored(Restored),
    Failed(String),
}

/// The orchestrator's hold on its supervisor. Dropped, it waits until the host is restored.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    lifeline: Option<ChildStdin>,
    messages: BufReader<ChildStdout>,
}

impl Guard {
    /// Starts `program` as the supervisor; returns when the host is tuned.
    pub fn start(
        program: &Path,
        cpus: &[u32],
        sysroot: Option<&Path>,
    ) -> Result<(Guard, Applied), GuardError> {
        let failed = |source| GuardError::Start {
            program: program.to_owned(),
            source,
        };
        let list = crate::values::number_list(cpus);
        let mut command = Command::new(program);
        command.args([COMMAND, "--cpu", &list]);
        if let Some(sysroot) = sysroot {
            command.arg("--sysroot").arg(sysroot);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let lifeline = child.stdin.take();
        let messages = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut guard = Guard {
            child,
            lifeline,
            messages,
        };
        match guard.next()? {
            Message::Applied(applied) => Ok((guard, applied)),
            Message::Failed(text) => Err(GuardError::Failed(text)),
            Message::Restored(_) => Err(GuardError::Gone),
        }
    }

    /// Lets the supervisor restore the host, and waits for it.
    pub fn finish(mut self) -> Result<Restored, GuardError> {
        self.let_go();
        match self.next()? {
            Message::Restored(restored) => Ok(restored),
            Message::Failed(text) => Err(GuardError::Failed(text)),
            Message::Applied(_) => Err(GuardError::Gone),
        }
    }

    fn let_go(&mut self) {
        if let Some(mut lifeline) = self.lifeline.take() {
            // One that is gone has left the journal, which the missing message tells.
            let _ = lifeline.write_all(GOODBYE);
        }
    }

    fn next(&mut self) -> Result<Message, GuardError> {
        let mut line = String::new();
        match self.messages.read_line(&mut line) {
            Ok(1..) => serde_json::from_str(&line).map_err(|_| GuardError::Gone),
            _ => Err(GuardError::Gone),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.let_go();
        let _ = self.child.wait();
    }
}

/// The supervisor itself: tunes, says so on `output`, reads `input` to its end, and restores. Returns
/// whether all went well.
pub fn watch(root: &Root, cpus: &[u32], mut input: impl Read, mut output: impl Write) -> bool {
    // A leader of a process group, as a shell makes one, cannot leave its session; it works there too.
    let _ = nix::unistd::setsid();
    // Listening is what keeps signals from ending this process; nobody reads them.
    let _signals = Stop::on_signals();
    let mut say = |message: &Message| {
        let line = serde_json::to_string(message).expect("messages are plain data");
        // Nobody may be there any more to hear it.
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    };
    let tuned = plan(root, cpus).and_then(|plan| apply_and_hold(root, &plan, cpus, true));
    let (applied, journal) = match tuned {
        Ok(tuned) => tuned,
        Err(error) => {
            say(&Message::Failed(chain(&error)));
            return false;
        }
    };
    say(&Message::Applied(applied));
    let mut said = Vec::new();
    let _ = input.read_to_end(&mut said);
    let was_tuned = journal.is_some();
    let restored = match journal {
        None => Ok(Restored::default()),
        Some(journal) => restore_from(root, journal),
    };
    if was_tuned && said != GOODBYE {
        let _ = writeln!(io::stderr(), "{}", last_words(&restored));
    }
    let is_restored = matches!(&restored, Ok(restored) if restored.open.is_empty());
    say(&match restored {
        Ok(restored) => Message::Restored(restored),
        Err(error) => Message::Failed(chain(&error)),
    });
    is_restored
}

/// What is said to whoever looks at the terminal, since the orchestrator cannot.
fn last_words(restored: &Result<Restored, TuneError>) -> String {
    match restored {
        Ok(restored) if restored.open.is_empty() => {
            "campaign: the orchestrator was killed; the host is restored".to_owned()
        }
        Ok(restored) => format!(
            "campaign: the orchestrator was killed; {} values of the host could not be restored, see `campaign untune`",
            restored.open.len()
        ),
        Err(error) => format!(
            "campaign: the orchestrator was killed; the host could not be restored: {}",
            chain(error)
        ),
    }
}

fn chain(error: &TuneError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(" ({error})");
        cause = error.source();
    }
    text
}
