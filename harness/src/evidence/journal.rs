//! `journal.jsonl`: what happened to a run, in order, so that nothing can be taken out later.
//!
//! One JSON object a line; each carries the SHA-256 of the line before, so a change anywhere but in
//! the last line breaks the chain, and the seal is the digest of the last. Lines are appended in
//! one write and synced. A written evidence file is announced *before* it is written: whatever lies
//! in a run directory has its digest here, also after a kill between the two.
//!
//! What the events mean for a resume is decided in [`crate::run`]; this file stores and verifies.

use super::StudySettings;
use crate::clock::{self, Stamp};
use crate::hash;
use protocol::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the file in a run or dataset.
pub const JOURNAL: &str = "journal.jsonl";

/// `prev` of the first line.
pub const NO_LINE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// No line of ours comes near this; a longer one is damage, not something to read into memory.
const LONGEST_LINE: u64 = 1 << 20;

/// UTC may drift against the monotonic clock by this much between two lines before it is said.
const CLOCK_JUMP_MS: i64 = 1000;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalLine {
    /// 0, 1, 2, ...
    pub seq: u64,
    /// When, UTC.
    pub utc: String,
    /// When, CLOCK_MONOTONIC of that session, nanoseconds.
    pub monotonic_ns: u64,
    /// What, with its data beside it.
    #[serde(flatten)]
    pub event: JournalEvent,
    /// SHA-256 of the bytes of the line before, without its line end; 64 zeros in the first.
    pub prev: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JournalEvent {
    /// First line: the request that made the run. A resume must ask for the same.
    RunBegun {
        /// Id of the system, or `local`.
        system: String,
        /// Name of the plan, or `study`.
        plan: String,
        /// SHA-256 of the configuration.
        config_sha256: String,
        /// `--only` as given.
        only: Option<String>,
        /// `--cpu` as given; null when the CPUs were chosen.
        cpus: Option<Vec<u32>>,
        /// Seed of the order of trials, 32 hex digits.
        order_seed: String,
        /// What is studied; left out of a campaign.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        study: Option<Box<StudySettings>>,
    },
    /// A start or a resume.
    SessionBegun {
        /// Number of the session, from 0.
        session: u32,
        /// The machine, salted.
        host_token: String,
    },
    /// A fact of the machine differs from the session before, or a worker had other protections than
    /// the first of its session.
    HostChange {
        /// Number of the session that saw it.
        session: u32,
        /// `fact: before -> now`.
        facts: Vec<String>,
    },
    /// A phase begins to work.
    PhaseBegun {
        /// Which.
        phase: String,
    },
    /// A phase has nothing left to do.
    PhaseEnded {
        /// Which.
        phase: String,
    },
    /// An evidence file is written, atomically, right after this line.
    Written {
        /// Path below the run directory.
        path: String,
        /// SHA-256 of its bytes.
        sha256: String,
    },
    /// A key pair was made for later use.
    Prepared {
        /// SHA-256 of the library that made it.
        library: String,
        /// Operation in whose seed it belongs.
        operation: Operation,
        /// SHA-256 of the key file.
        sha256: String,
        /// Time of the key generation, nanoseconds.
        keygen_ns: u64,
    },
    /// A worker is started for a trial.
    AttemptBegun {
        /// Path of the record below the run directory.
        record: String,
        /// Index of the planned slot.
        trial: u32,
        /// Index of the attempt in it.
        attempt: u32,
    },
    /// A disturbed attempt is repeated.
    Retry {
        /// Path of the record below the run directory.
        record: String,
        /// Index of the planned slot.
        trial: u32,
        /// Names of the flags that asked for it.
        flags: Vec<String>,
    },
    /// Something that a reader of the run should know.
    Note {
        /// In words.
        text: String,
    },
    /// UTC moved against the monotonic clock since the line before, or back since the session before.
    ClockJump {
        /// By how much, milliseconds.
        milliseconds: i64,
    },
    /// The run was stopped; it can be resumed.
    Interrupted {
        /// By what (`SIGINT`, `SIGTERM`, `error`).
        by: String,
    },
    /// A torn last line was cut off on resume.
    Repaired {
        /// Bytes cut off.
        bytes: u64,
        /// Their SHA-256.
        sha256: String,
    },
    /// A dataset was made from another tool's evidence.
    Imported {
        /// What it is, in a sentence.
        text: String,
    },
    /// A part of a sealed run was taken for publication.
    Subset {
        /// Seal of the whole.
        parent_seal: String,
        /// What was taken.
        regex: String,
    },
    /// Last line: the SHA-256 of this line is the seal.
    Sealed {
        /// SHA-256 of `MANIFEST.sha256`.
        manifest_sha256: String,
    },
}

/// Something is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: the journal cannot be {action}", path = path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// `read` or `written`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A line is not what was written.
    #[error("{path}: line {line}: {what}; the journal was changed or damaged after it was written", path = path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What does not hold.
        what: String,
    },
    /// Nothing can follow a seal but a published subset.
    #[error("{path}: the run is sealed; start another with --new", path = path.display())]
    Sealed {
        /// The journal.
        path: PathBuf,
    },
    /// An earlier write failed; the state on disk must be read again first.
    #[error("{path}: the journal cannot be continued after a failed write; run again to resume", path = path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
    },
}

/// A verified journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// All whole lines.
    pub lines: Vec<JournalLine>,
    /// SHA-256 of the last whole line; [`NO_LINE`] when there is none. The seal, if it is sealed.
    pub last_sha256: String,
    /// Bytes of the whole lines.
    pub bytes: u64,
    /// What follows them without being a line.
    pub torn: Option<Torn>,
}

/// The torn end of an unsealed journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Bytes of it.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

impl Chain {
    /// The digest in the sealing line, if the last line is one.
    pub fn sealed(&self) -> Option<&str> {
        match self.lines.last().map(|line| &line.event) {
            Some(JournalEvent::Sealed { manifest_sha256 }) => Some(manifest_sha256),
            _ => None,
        }
    }

    /// What was taken for publication, where this is a part of a sealed run: the seal of the whole and the
    /// expression. A part of a part has both, in order.
    pub fn subsets(&self) -> Vec<(String, String)> {
        let parts = self.lines.iter().filter_map(|line| match &line.event {
            JournalEvent::Subset { parent_seal, regex } => {
                Some((parent_seal.clone(), regex.clone()))
            }
            _ => None,
        });
        parts.collect()
    }

    /// The last announced digest of each evidence file, with all earlier ones: path, digests in
    /// order of their lines.
    pub fn written(&self) -> std::collections::BTreeMap<&str, Vec<&str>> {
        let mut written = std::collections::BTreeMap::<&str, Vec<&str>>::new();
        for line in &self.lines {
            if let JournalEvent::Written { path, sha256 } = &line.event {
                written.entry(path).or_default().push(sha256);
            }
        }
        written
    }
}

/// Reads a journal and verifies numbers, chain, and what may follow a seal.
///
/// A torn last line (no line end, or no JSON) is reported in [`Chain::torn`] when the run is not
/// sealed; every other flaw is [`JournalError::Damaged`] with its line.
pub fn verify(path: &Path) -> Result<Chain, JournalError> {
    let file = File::open(path).map_err(|source| JournalError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    })?;
    verify_from(path, BufReader::new(file))
}

/// [`verify`] of a journal that is read from elsewhere; `path` is what errors name.
pub fn verify_from(path: &Path, reader: impl BufRead) -> Result<Chain, JournalError> {
    Verifier::new(path).run(reader)
}

struct Verifier<'a> {
    path: &'a Path,
    chain: Chain,
}

impl<'a> Verifier<'a> {
    fn new(path: &'a Path) -> Self {
        Verifier {
            path,
            chain: Chain {
                lines: Vec::new(),
                last_sha256: NO_LINE.to_owned(),
                bytes: 0,
                torn: None,
            },
        }
    }

    fn run(mut self, mut reader: impl BufRead) -> Result<Chain, JournalError> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut reader)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut bytes)
                .map_err(|source| JournalError::Io {
                    path: self.path.to_owned(),
                    action: "read",
                    source,
                })?;
            if read == 0 {
                return Ok(self.chain);
            }
            let last = reader.fill_buf().is_ok_and(<[u8]>::is_empty);
            self.line(&bytes, last)?;
        }
    }

    /// Takes one line with its end; `last` when nothing follows it.
    fn line(&mut self, bytes: &[u8], last: bool) -> Result<(), JournalError> {
        let parsed = bytes
            .strip_suffix(b"\n")
            .ok_or_else(|| "it has no line end".to_owned())
            .and_then(|text| match serde_json::from_slice(text) {
                Ok(line) => Ok((text, line)),
                Err(error) => Err(format!("it is no journal line: {error}")),
            });
        let (text, line) = match parsed {
            Ok(parsed) => parsed,
            Err(_) if last && self.chain.sealed().is_none() => {
                self.chain.torn = Some(Torn {
                    bytes: bytes.len() as u64,
                    sha256: hash::sha256(bytes),
                });
                return Ok(());
            }
            Err(what) => return Err(self.damaged(what)),
        };
        self.check(text, &line)?;
        self.chain.last_sha256 = hash::sha256(text);
        self.chain.bytes += bytes.len() as u64;
        self.chain.lines.push(line);
        Ok(())
    }

    fn check(&self, text: &[u8], line: &JournalLine) -> Result<(), JournalError> {
        let expected = self.chain.lines.len() as u64;
        if line.seq != expected {
            return Err(self.damaged(format!("seq is {}, expected {expected}", line.seq)));
        }
        if line.prev != self.chain.last_sha256 {
            return Err(self.damaged(format!(
                "prev is {}, but the line before has SHA-256 {}",
                line.prev, self.chain.last_sha256
            )));
        }
        if serde_json::to_vec(line).ok().as_deref() != Some(text) {
            return Err(self.damaged("it is not written as this program writes it".into()));
        }
        if !follows(self.chain.lines.last().map(|l| &l.event), &line.event) {
            return Err(self.damaged("it cannot follow the line before".into()));
        }
        Ok(())
    }

    fn damaged(&self, what: String) -> JournalError {
        JournalError::Damaged {
            path: self.path.to_owned(),
            line: self.chain.lines.len() as u64 + 1,
            what,
        }
    }
}

/// A seal ends a journal; only a subset follows it, and only a seal follows a subset.
fn follows(before: Option<&JournalEvent>, event: &JournalEvent) -> bool {
    use JournalEvent::{Sealed, Subset};
    match before {
        Some(Sealed { .. }) => matches!(event, Subset { .. }),
        Some(Subset { .. }) => matches!(event, Sealed { .. }),
        _ => !matches!(event, Subset { .. }),
    }
}

/// The text of a whole journal, and the digest of its last line: for a dataset that is made in one step.
pub fn compose(events: impl IntoIterator<Item = (Stamp, JournalEvent)>) -> (String, String) {
    let (mut text, mut prev) = (String::new(), NO_LINE.to_owned());
    for (seq, (stamp, event)) in (0..).zip(events) {
        let line = JournalLine {
            seq,
            utc: clock::utc_text(stamp.utc_us),
            monotonic_ns: stamp.monotonic_ns,
            event,
            prev,
        };
        let json = serde_json::to_string(&line).expect("a journal line has text keys only");
        prev = hash::sha256(json.as_bytes());
        text.push_str(&json);
        text.push('\n');
    }
    (text, prev)
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    next: u64,
    prev: String,
    last_event: Option<JournalEvent>,
    last_stamp: Option<Stamp>,
    /// UTC of the last line of the session before, microseconds since the epoch.
    resumed_after: Option<i64>,
    clock: fn() -> Stamp,
    broken: bool,
}

impl Journal {
    /// Starts a journal; the file must not exist.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| JournalError::Io {
                path: path.to_owned(),
                action: "written",
                source,
            })?;
        Ok(Journal {
            path: path.to_owned(),
            file,
            bytes: 0,
            next: 0,
            prev: NO_LINE.to_owned(),
            last_event: None,
            last_stamp: None,
            resumed_after: None,
            clock: clock::now,
            broken: false,
        })
    }

    /// Verifies a journal and opens it for more, cutting off a torn last line of an unsealed one
    /// (which is itself recorded).
    pub fn resume(path: &Path) -> Result<(Self, Chain), JournalError> {
        let chain = verify(path)?;
        let io = |source| JournalError::Io {
            path: path.to_owned(),
            action: "written",
            source,
        };
        let file = OpenOptions::new().append(true).open(path).map_err(io)?;
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            bytes: chain.bytes,
            next: chain.lines.len() as u64,
            prev: chain.last_sha256.clone(),
            last_event: chain.lines.last().map(|line| line.event.clone()),
            last_stamp: None,
            resumed_after: chain.lines.last().and_then(|line| clock::utc_us(&line.utc)),
            clock: clock::now,
            broken: false,
        };
        if let Some(torn) = &chain.torn {
            journal.file.set_len(chain.bytes).map_err(io)?;
            journal.append(JournalEvent::Repaired {
                bytes: torn.bytes,
                sha256: torn.sha256.clone(),
            })?;
        }
        Ok((journal, chain))
    }

    /// Takes times from `clock` instead of the machine's.
    pub fn with_clock(mut self, clock: fn() -> Stamp) -> Self {
        self.clock = clock;
        self
    }

    /// Where the journal lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SHA-256 of the last line: the seal, after [`JournalEvent::Sealed`].
    pub fn last_sha256(&self) -> &str {
        &self.prev
    }

    /// Appends one event and waits until it is on the disk.
    pub fn append(&mut self, event: JournalEvent) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken {
                path: self.path.clone(),
            });
        }
        if !follows(self.last_event.as_ref(), &event) {
            return Err(JournalError::Sealed {
                path: self.path.clone(),
            });
        }
        let stamp = (self.clock)();
        if let Some(milliseconds) = self.jump(stamp) {
            let sealed = matches!(self.last_event, Some(JournalEvent::Sealed { .. }));
            let subset = matches!(self.last_event, Some(JournalEvent::Subset { .. }));
            if !sealed && !subset {
                self.write(stamp, JournalEvent::ClockJump { milliseconds })?;
            }
        }
        self.write(stamp, event)
    }

    /// How far UTC moved against the monotonic clock since the last line of this session, or, the
    /// monotonic clock being another one after a restart, how far it went back since the session
    /// before; `None` for no more than a clock drifts.
    fn jump(&self, stamp: Stamp) -> Option<i64> {
        let Some(before) = self.last_stamp else {
            let back = (stamp.utc_us.saturating_sub(self.resumed_after?)) / 1000;
            return (stamp.utc_us < self.resumed_after?).then_some(back);
        };
        let monotonic_ms =
            (i128::from(stamp.monotonic_ns) - i128::from(before.monotonic_ns)) / 1_000_000;
        let utc_ms = (i128::from(stamp.utc_us) - i128::from(before.utc_us)) / 1000;
        let jump = i64::try_from(utc_ms - monotonic_ms).unwrap_or(i64::MAX);
        (jump.abs() > CLOCK_JUMP_MS || stamp.utc_us < before.utc_us).then_some(jump)
    }

    fn write(&mut self, stamp: Stamp, event: JournalEvent) -> Result<(), JournalError> {
        let line = JournalLine {
            seq: self.next,
            utc: clock::utc_text(stamp.utc_us),
            monotonic_ns: stamp.monotonic_ns,
            event,
            prev: self.prev.clone(),
        };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| self.failed(error.into()))?;
        let digest = hash::sha256(&bytes);
        bytes.push(b'\n');
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| self.failed(source))?;
        self.bytes += bytes.len() as u64;
        self.next += 1;
        self.prev = digest;
        self.last_event = Some(line.event);
        self.last_stamp = Some(stamp);
        Ok(())
    }

    /// Takes back what a failed write may have left; if that fails too, a resume repairs it.
    fn failed(&mut self, source: io::Error) -> JournalError {
        self.broken = true;
        let _ = self.file.set_len(self.bytes);
        JournalError::Io {
            path: self.path.clone(),
            action: "written",
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events() -> Vec<JournalEvent> {
        vec![
            JournalEvent::RunBegun {
                system: "local".into(),
                plan: "quick".into(),
                config_sha256: hash::sha256(b""),
                only: Some("dove \"\\ \u{e9}".into()),
                cpus: None,
                order_seed: "00".into(),
                study: None,
            },
            JournalEvent::PhaseBegun {
                phase: "kat".into(),
            },
            JournalEvent::Written {
                path: "kat/a/b.json".into(),
                sha256: hash::sha256(b"x"),
            },
            JournalEvent::Written {
                path: "kat/a/b.json".into(),
                sha256: hash::sha256(b"y"),
            },
        ]
    }

    fn sealed() -> JournalEvent {
        JournalEvent::Sealed {
            manifest_sha256: hash::sha256(b"manifest"),
        }
    }

    /// A journal of these events, and the bytes of the file.
    fn journal(events: Vec<JournalEvent>) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(JOURNAL);
        let mut journal = Journal::create(&path).unwrap();
        for event in events {
            journal.append(event).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        (dir, path, bytes)
    }

    #[test]
    fn lines_are_chained_and_numbered() {
        let (_dir, path, bytes) = journal(events());
        let chain = verify(&path).unwrap();
        assert_eq!(chain.lines.len(), 4);
        assert_eq!(chain.lines[0].prev, NO_LINE);
        let first = bytes.split(|&b| b == b'\n').next().unwrap();
        assert_eq!(chain.lines[1].prev, hash::sha256(first));
        assert_eq!(chain.sealed(), None);
        assert_eq!(
            chain.written()["kat/a/b.json"],
            [hash::sha256(b"x"), hash::sha256(b"y")]
        );
    }

    #[test]
    fn a_torn_last_line_is_cut_off_and_said_in_an_unsealed_journal() {
        let (_dir, path, bytes) = journal(events());
        std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
        let torn = verify(&path).unwrap().torn.unwrap();
        let (mut journal, chain) = Journal::resume(&path).unwrap();
        assert_eq!(chain.lines.len(), 3);
        journal
            .append(JournalEvent::PhaseEnded {
                phase: "kat".into(),
            })
            .unwrap();
        let chain = verify(&path).unwrap();
        assert_eq!(
            chain.lines[3].event,
            JournalEvent::Repaired {
                bytes: torn.bytes,
                sha256: torn.sha256
            }
        );
        assert_eq!((chain.lines.len(), chain.torn), (5, None));
    }

    #[test]
    fn a_sealed_journal_forgives_nothing_and_takes_nothing() {
        let (_dir, path, mut bytes) = journal([events(), vec![sealed()]].concat());
        let (mut open, chain) = Journal::resume(&path).unwrap();
        assert_eq!(chain.sealed(), Some(&*hash::sha256(b"manifest")));
        let refused = open.append(events().remove(1));
        assert!(matches!(refused, Err(JournalError::Sealed { .. })));
        bytes.extend_from_slice(b"{\"seq\":");
        std::fs::write(&path, &bytes).unwrap();
        let damaged = verify(&path).unwrap_err();
        assert!(
            matches!(damaged, JournalError::Damaged { line: 6, .. }),
            "{damaged}"
        );
    }

    #[test]
    fn a_subset_follows_a_seal_and_is_sealed_again() {
        let subset = JournalEvent::Subset {
            parent_seal: hash::sha256(b"seal"),
            regex: "dove".into(),
        };
        let (_dir, path, _) = journal([events(), vec![sealed(), subset, sealed()]].concat());
        assert!(verify(&path).unwrap().sealed().is_some());
    }

    #[test]
    fn a_jump_of_the_clock_is_a_line_of_its_own() {
        fn jumping() -> Stamp {
            use std::sync::atomic::{AtomicI64, Ordering};
            static CALLS: AtomicI64 = AtomicI64::new(0);
            let n = CALLS.fetch_add(1, Ordering::Relaxed);
            Stamp {
                utc_us: if n < 2 { n } else { 86_400_000_000 + n },
                monotonic_ns: n as u64 * 1000,
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(JOURNAL);
        let mut journal = Journal::create(&path).unwrap().with_clock(jumping);
        for event in events() {
            journal.append(event).unwrap();
        }
        let jumps: Vec<_> = verify(&path)
            .unwrap()
            .lines
            .into_iter()
            .filter_map(|line| match line.event {
                JournalEvent::ClockJump { milliseconds } => Some((line.seq, milliseconds)),
                _ => None,
            })
            .collect();
        assert_eq!(jumps, [(2, 86_400_000)]);
    }

    #[test]
    fn a_clock_that_went_back_between_sessions_is_a_line_of_its_own() {
        let (_dir, path, _) = journal(events());
        let early = || Stamp {
            utc_us: 0,
            monotonic_ns: 5,
        };
        let (resumed, chain) = Journal::resume(&path).unwrap();
        resumed
            .with_clock(early)
            .append(events().remove(1))
            .unwrap();
        let lines = verify(&path).unwrap().lines;
        let added: Vec<_> = lines[chain.lines.len()..]
            .iter()
            .map(|l| &l.event)
            .collect();
        assert!(
            matches!(added[..], [JournalEvent::ClockJump { milliseconds }, _] if *milliseconds < 0),
            "{added:?}"
        );
    }

    #[test]
    fn a_failed_write_leaves_no_half_line_and_ends_the_journal() {
        let (_dir, path, bytes) = journal(events());
        let (mut journal, _) = Journal::resume(&path).unwrap();
        // A descriptor that cannot be written to stands for a full disk.
        journal.file = File::open(&path).unwrap();
        let event = || events().remove(1);
        assert!(matches!(
            journal.append(event()),
            Err(JournalError::Io { .. })
        ));
        assert!(matches!(
            journal.append(event()),
            Err(JournalError::Broken { .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    /// Bytes of one sealed journal, made once: each line of it waits for the disk.
    fn sealed_bytes() -> &'static [u8] {
        static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        BYTES.get_or_init(|| journal([events(), vec![sealed()]].concat()).2)
    }

    /// What `verify` says of these bytes.
    fn verdict(bytes: &[u8]) -> Result<Chain, JournalError> {
        Verifier::new(Path::new(JOURNAL)).run(bytes)
    }

    /// The seal of [`sealed_bytes`].
    fn seal() -> String {
        verdict(sealed_bytes()).unwrap().last_sha256
    }

    proptest! {
        /// The seal is the digest of the last line, so a change there is found by comparing it.
        #[test]
        fn any_change_of_a_single_byte_is_found(at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = sealed_bytes().to_vec();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            prop_assert!(verdict(&bytes).map_or(true, |chain| chain.last_sha256 != seal()));
        }

        #[test]
        fn any_cut_of_a_sealed_journal_is_found(at in any::<prop::sample::Index>()) {
            let bytes = &sealed_bytes()[..at.index(sealed_bytes().len())];
            prop_assert!(verdict(bytes).map_or(true, |chain| chain.last_sha256 != seal()));
        }

        #[test]
        fn any_two_lines_that_change_places_are_found(a in 0usize..5, b in 0usize..5) {
            prop_assume!(a != b);
            let mut lines: Vec<&[u8]> = sealed_bytes().split_inclusive(|&b| b == b'\n').collect();
            lines.swap(a, b);
            prop_assert!(verdict(&lines.concat()).is_err());
        }
    }
}
