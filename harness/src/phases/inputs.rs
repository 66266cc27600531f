//! Inputs of timed calls as requests name them, and keys that are prepared once.

use super::context::{is_own_failure, library, Context, PhaseError};
use crate::config::KeyPer;
use crate::evidence::store::TEMPORARY;
use crate::evidence::{BuildRow, LibraryKind, Reason, ReasonCode};
use crate::identity::Identity;
use crate::run::book::{key_file, PreparedKey};
use crate::worker::{Answer, Ending, Job};
use crate::{hash, plan};
use protocol::{Body, FailureCode, InputRule, Inputs, LibraryFile, Operation, Task, KEY_FD};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of every message.
pub const MESSAGE_BYTES: u32 = 64;

/// The rule of the plan.
pub fn rule(context: &Context) -> InputRule {
    match context.plan.inputs.as_str() {
        "fixed" => InputRule::Fixed,
        _ => InputRule::Fresh,
    }
}

/// Whether all trials of an instance use trial 0's key.
fn one_key(context: &Context, identity: &Identity) -> bool {
    context
        .campaign
        .find(identity)
        .is_some_and(|(_, instance, ..)| instance.key_per == KeyPer::Run)
}

/// Inputs of `trial`, with the prepared key where there is one.
pub fn inputs(
    context: &Context,
    identity: &Identity,
    trial: u32,
    prepared: Option<&PreparedKey>,
) -> Inputs {
    Inputs {
        subject: identity.subject(),
        rule: rule(context),
        message_bytes: MESSAGE_BYTES,
        trial,
        key_trial: match one_key(context, identity) {
            true => 0,
            false => trial,
        },
        prepared_key: prepared.map(|key| LibraryFile {
            path: key_file(&key.sha256),
            sha256: key.sha256.clone(),
        }),
    }
}

/// The key that all trials of an instance share, made now if it is not there yet; `None` for an
/// instance with a key for each trial. An inner error is the library's.
pub async fn prepared_key(
    context: &Context<'_>,
    built: &BuildRow,
    cpu: Option<u32>,
) -> Result<Result<Option<PreparedKey>, Reason>, PhaseError> {
    if !one_key(context, &built.identity) {
        return Ok(Ok(None));
    }
    let Some(file) = library(built, LibraryKind::Timed) else {
        return Ok(Ok(None)); // what needs the library says that it is missing
    };
    if let Some(known) = context.book.prepared(&file.sha256, Operation::Sign) {
        return Ok(Ok(Some(known)));
    }
    let library_sha256 = file.sha256.clone();
    let draft = Draft::new(context)?;
    let answer = context
        .ask(Job {
            task: Task::Prepare {
                operation: Operation::Sign,
                inputs: inputs(context, &built.identity, 0, None),
            },
            library: Some(file),
            cpu,
            limit: Duration::from_secs_f64(plan::calibrate_timeout_s(context.plan)),
            file: Some((KEY_FD, draft.descriptor()?)),
            preload: None,
        })
        .await?;
    let prepared = match body(&answer)? {
        Ok(Body::Prepared(prepared)) => prepared,
        Ok(_) => return Ok(Err(other_answer())),
        Err(reason) => return Ok(Err(reason)),
    };
    let key = PreparedKey {
        sha256: prepared.sha256.clone(),
        keygen_ns: prepared.keygen_ns,
    };
    if !draft.keep(context, &key.sha256)? {
        let text = "the prepared key is not what the worker said it wrote";
        return Ok(Err(Reason::new(ReasonCode::Crash, text)));
    }
    context
        .book
        .add_prepared(&library_sha256, Operation::Sign, key.clone())?;
    Ok(Ok(Some(key)))
}

/// A key file that has no name yet; it goes when it is dropped before it is kept.
struct Draft {
    file: tempfile::NamedTempFile,
}

impl Draft {
    fn new(context: &Context) -> Result<Self, PhaseError> {
        let folder = context.book.path("keys");
        let made = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(&folder);
        match made {
            Ok(file) => Ok(Draft { file }),
            Err(source) => Err(failed(folder, source)),
        }
    }

    fn descriptor(&self) -> Result<std::os::fd::OwnedFd, PhaseError> {
        match self.file.as_file().try_clone() {
            Ok(file) => Ok(file.into()),
            Err(source) => Err(failed(self.file.path().to_owned(), source)),
        }
    }

    /// Gives the file its name if its content has that digest.
    fn keep(self, context: &Context, sha256: &str) -> Result<bool, PhaseError> {
        let path = self.file.path().to_owned();
        let written = hash::sha256_file(&path).map_err(|source| failed(path.clone(), source))?;
        if written != sha256 {
            return Ok(false);
        }
        self.file
            .as_file()
            .sync_all()
            .map_err(|source| failed(path, source))?;
        let place = context.book.path(&key_file(sha256));
        match self.file.persist(&place) {
            Ok(_) => Ok(true),
            Err(error) => Err(failed(place, error.error)),
        }
    }
}

fn failed(path: PathBuf, source: std::io::Error) -> PhaseError {
    PhaseError::File {
        path,
        action: "written",
        source,
    }
}

/// The answer of a worker, or the reason that its ending gives. A stop and a failure of the worker's
/// own are errors of the phase.
pub fn body(answer: &Answer) -> Result<Result<&Body, Reason>, PhaseError> {
    let reason = match &answer.ending {
        Ending::Done => return Ok(answer.body.as_ref().ok_or_else(other_answer)),
        Ending::Interrupted => return Err(PhaseError::Interrupted),
        Ending::Failed(failure) if is_own_failure(failure.code) => {
            return Err(PhaseError::WorkerFailed {
                code: failure.code,
                text: failure.text.clone(),
            })
        }
        Ending::Failed(failure) => Reason::new(failure_code(failure.code), failure.text.clone()),
        Ending::Timeout(seconds) => {
            Reason::new(ReasonCode::Timeout, format!("killed after {seconds} s"))
        }
        Ending::Crash(text) => Reason::new(ReasonCode::Crash, text.clone()),
    };
    Ok(Err(reason))
}

/// Reason code of a failure that the worker tells about a library.
pub fn failure_code(code: FailureCode) -> ReasonCode {
    match code {
        FailureCode::CallFailed | FailureCode::Contract | FailureCode::Overflow => {
            ReasonCode::CallFailed
        }
        FailureCode::NotVerified => ReasonCode::NotVerified,
        // The machine's doing.
        FailureCode::Counter | FailureCode::Clock => ReasonCode::Interrupted,
        _ => ReasonCode::Crash,
    }
}

/// The worker answered, but not to what it was asked.
pub fn other_answer() -> Reason {
    Reason::new(ReasonCode::Crash, "it answered something else")
}
