//! What every phase works with: the campaign, the open run, the worker, and how to report.

use crate::config::{Campaign, System};
use crate::evidence::journal::JournalEvent;
use crate::evidence::{
    self, BuildFile, BuildRow, Class, Head, Kind, LibraryKind, PlanSettings, Reason, ReasonCode,
    SessionRef, Status, StudySettings,
};
use crate::identity::Identity;
use crate::process::Stop;
use crate::progress::Progress;
use crate::run::book::{Book, BookError};
use crate::select::Row;
use crate::worker::{session, Answer, Job, Worker, WorkerError};
use protocol::{FailureCode, Layer, LibraryFile};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A phase cannot go on. What a library does wrong is never one of these: it is evidence.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// Evidence cannot be read or written.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The worker cannot be started.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The worker could not do its own part.
    #[error("the worker failed on its own account ({code:?}): {text}")]
    WorkerFailed {
        /// Class.
        code: FailureCode,
        /// What happened.
        text: String,
    },
    /// An earlier phase has not been run.
    #[error("{missing} is missing: run `campaign {phase}` first")]
    Earlier {
        /// The file.
        missing: &'static str,
        /// The phase.
        phase: &'static str,
    },
    /// A pack cannot be used.
    #[error(transparent)]
    Pack(crate::pack::PackError),
    /// A KAT manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] crate::kat::manifest::ManifestError),
    /// The message of a study.
    #[error(transparent)]
    Message(#[from] super::study::message::MessageError),
    /// Known answers of what was timed in this run would be tried again.
    #[error("{identity} was timed in this run, and {why}")]
    Timed {
        /// Which.
        identity: String,
        /// Why they would, and what to do.
        why: String,
    },
    /// A file beside the run cannot be made.
    #[error("{path}: cannot be {action}", path = path.display())]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The orchestrator's threads cannot be kept off the measured CPUs.
    #[error("the threads of this program cannot be kept off the measured CPUs")]
    Affinity(#[source] std::io::Error),
    /// A stop was asked for.
    #[error("interrupted; the same command resumes")]
    Interrupted,
}

/// What a study works with beside a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// What was asked for.
    pub settings: &'a StudySettings,
    /// The user's file that is the message; `None` where messages are generated.
    pub file: Option<&'a std::path::Path>,
}

/// Everything that a phase works with.
pub struct Context<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// Its plan.
    pub plan: &'a PlanSettings,
    /// The system, or the one called `local`.
    pub system: &'a System,
    /// What this machine is to the campaign.
    pub class: Class,
    /// All identities of the run, in page order.
    pub rows: Vec<Row>,
    /// The open run.
    pub book: Book,
    /// All sessions so far, this one last.
    pub sessions: Vec<SessionRef>,
    /// This machine, salted.
    pub host_token: String,
    /// Whether the host was found ready.
    pub host_ready: bool,
    /// Protections of workers as this session found them.
    pub layers: Layers,
    /// Core clock, hertz, where it is known to be fixed.
    pub clock_hz: BTreeMap<u32, f64>,
    /// Why core cycles cannot be counted, by CPU.
    pub no_cycles: BTreeMap<u32, Reason>,
    /// Sibling threads of the measured CPUs.
    pub siblings: BTreeMap<u32, Vec<u32>>,
    /// The worker.
    pub worker: Worker,
    /// What is studied; `None` for a campaign.
    pub study: Option<Study<'a>>,
    /// CPUs to measure on.
    pub cpus: Vec<u32>,
    /// CPUs that this process may use.
    pub allowed: Vec<u32>,
    /// The wish to stop.
    pub stop: &'a Stop,
    /// Who hears of what happens.
    pub progress: &'a dyn Progress,
}

impl Context<'_> {
    /// Whether libraries run under a runner: functional only.
    pub fn is_emulated(&self) -> bool {
        self.class == Class::Emulated
    }

    /// CPUs that workers are pinned to where calls are timed, one lane each. Under emulation nothing is
    /// timed: as many lanes as there are CPUs, pinned to none.
    pub fn timing_lanes(&self) -> Vec<Option<u32>> {
        match self.is_emulated() {
            true => self.free_lanes(),
            false => self.cpus.iter().map(|&cpu| Some(cpu)).collect(),
        }
    }

    /// Lanes of work that is not timed.
    pub fn free_lanes(&self) -> Vec<Option<u32>> {
        vec![None; self.allowed.len().max(1)]
    }

    /// Number of this session.
    pub fn session(&self) -> u32 {
        self.sessions.last().expect("a phase runs in a session").k
    }

    /// Rows that take part, in page order.
    pub fn active(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.skipped.is_none())
    }

    /// Head of an evidence file of this session.
    pub fn head(&self, kind: Kind, identity: &Identity) -> Head {
        let origin = self.campaign.find(identity).map(|(c, ..)| c.origin);
        Head {
            schema: evidence::SCHEMA.to_owned(),
            kind,
            identity: identity.clone(),
            origin: origin.expect("rows are made from the configuration"),
            class: self.class,
            system: self.system.id.clone(),
            status: Status::Complete,
            reason: None,
            host_token: Some(self.host_token.clone()),
            sessions: self.sessions.last().cloned().into_iter().collect(),
            missing: BTreeMap::new(),
        }
    }

    /// `build.json`.
    pub fn build(&self) -> Result<BuildFile, PhaseError> {
        match self.book.read(evidence::BUILD_FILE)? {
            Some(stored) => Ok(stored.value),
            None => Err(PhaseError::Earlier {
                missing: evidence::BUILD_FILE,
                phase: "build",
            }),
        }
    }

    /// Runs one worker in the run's directory. A stop ends in [`PhaseError::Interrupted`] only where
    /// the caller makes it one: the answer says how it ended.
    pub async fn ask(&self, job: Job<'_>) -> Result<Answer, PhaseError> {
        let dir = self.book.directory().path();
        let answer = session::run(&self.worker, dir, job, self.stop).await;
        if let Err(WorkerError::Survivors(survivors)) = &answer {
            // The attempt has no record, so the journal keeps what became of it.
            let text = survivors.to_string();
            self.book.log(JournalEvent::Note { text })?;
        }
        let answer = answer?;
        if let crate::process::End::NotStarted(error) = &answer.outcome.end {
            return Err(PhaseError::WorkerFailed {
                code: FailureCode::Io,
                text: format!(
                    "`{}` could not be started: {error}; put it back, or name another one with --worker",
                    self.worker.path().display()
                ),
            });
        }
        let changed = self.layers.changed(answer.layers());
        if !changed.is_empty() {
            self.book.log(JournalEvent::HostChange {
                session: self.session(),
                facts: changed,
            })?;
        }
        Ok(answer)
    }
}

/// Protections of workers: those that the environment file of the session has, and what was found to
/// be otherwise since.
#[derive(Debug, Default)]
pub struct Layers {
    known: BTreeMap<String, bool>,
    said: RefCell<BTreeSet<(String, bool)>>,
}

impl Layers {
    /// As they were found.
    pub fn of(found: &[Layer]) -> Self {
        let known = found.iter().map(|layer| (layer.name.clone(), layer.active));
        Layers {
            known: known.collect(),
            said: RefCell::default(),
        }
    }

    /// Those of a worker that are otherwise, each once a session.
    fn changed<'l>(&self, of_worker: impl Iterator<Item = &'l Layer>) -> Vec<String> {
        let word = |active: Option<&bool>| match active {
            Some(true) => "active",
            Some(false) => "not active",
            None => "unknown",
        };
        of_worker
            .filter(|layer| self.known.get(&layer.name) != Some(&layer.active))
            .filter(|layer| {
                let key = (layer.name.clone(), layer.active);
                self.said.borrow_mut().insert(key)
            })
            .map(
                |Layer {
                     name,
                     active,
                     detail,
                 }| {
                    let before = word(self.known.get(name));
                    format!(
                        "layers.{name}: {before} -> {} ({detail})",
                        word(Some(active))
                    )
                },
            )
            .collect()
    }
}

/// A library of an identity as a request names it.
pub fn library(row: &BuildRow, kind: LibraryKind) -> Option<LibraryFile> {
    let built = row.libraries.get(kind.name())?;
    Some(LibraryFile {
        path: protocol::path_to_text(std::path::Path::new(&built.file)),
        sha256: built.sha256.clone(),
    })
}

/// The reason that a failed or skipped build gives to everything that needs it.
pub fn not_built(row: &BuildRow) -> Option<Reason> {
    match row.status {
        Status::Complete => None,
        _ => Some(row.reason.clone().unwrap_or_else(|| {
            Reason::new(ReasonCode::BuildFailed, "it was not built; see build.json")
        })),
    }
}

/// Whether a failure is the worker's or the machine's, and no finding about the library.
pub fn is_own_failure(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::BadRequest | FailureCode::Pin | FailureCode::Isolation | FailureCode::Io
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, active: bool) -> Layer {
        Layer {
            name: name.to_owned(),
            active,
            detail: "why".to_owned(),
        }
    }

    #[test]
    fn protections_that_are_otherwise_than_at_the_start_are_said_once() {
        let layers = Layers::of(&[layer("seccomp", true), layer("namespaces", false)]);
        let changed = |of: &[Layer]| layers.changed(of.iter());
        let same = [layer("seccomp", true), layer("namespaces", false)];
        assert_eq!(changed(&same), [""; 0]);
        let other = [layer("seccomp", false), layer("landlock", true)];
        let said = [
            "layers.seccomp: active -> not active (why)",
            "layers.landlock: unknown -> active (why)",
        ];
        assert_eq!(changed(&other), said);
        assert_eq!(changed(&other), [""; 0]);
        // A worker that ended early has told of some only.
        assert_eq!(changed(&[]), [""; 0]);
    }
}
