//! The journal of a tuned host: one JSON object a line, in `/var/lib/campaign`, which outlives a reboot.
//!
//! First the head, then every value that will or may change, then `saved`: up to here nothing has been
//! changed. Then a line before each write, and `complete` after the last. Every line is on disk before
//! what it announces is done. A torn last line announced something that was not done. Who holds a lock
//! on the file is still at work; the kernel gives it back when that process ends, however it ends.

use super::{Plan, TuneError};
use crate::clock;
use crate::host::root::Root;
use rustix::fs::{flock, FlockOperation};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where it is, below the root.
pub const JOURNAL: &str = "var/lib/campaign/tuned.jsonl";

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "line")]
pub(super) enum Line {
    /// The first.
    Head(Head),
    /// A value before any change; `value` is the file's content as it was.
    Value { path: String, value: String },
    /// All values are saved; changes begin.
    Saved,
    /// A value that is written next.
    Write { path: String, to: String },
    /// All changes have been made.
    Complete,
}

/// Who tuned what, when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Process.
    pub pid: u32,
    /// UTC.
    pub started: String,
    /// Id of the boot; `None` where the kernel does not tell.
    pub boot_id: Option<String>,
    /// Whether the process stays and restores (`run --tune`).
    pub guarded: bool,
    /// CPUs that are measured on.
    pub cpus: Vec<u32>,
}

/// A journal that is read.
#[derive(Debug)]
pub(super) struct Found {
    pub head: Head,
    /// Path and content, in the order saved; empty when nothing was changed.
    pub values: Vec<(String, String)>,
    /// Paths that were written or about to be, in order.
    pub written: Vec<String>,
    pub complete: bool,
}

/// What an earlier command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// UTC of the beginning.
    pub since: String,
    /// Process that began it.
    pub pid: u32,
    /// In which state.
    pub how: How,
}

/// States of a tuned host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By `tune`, completely.
    Tuned,
    /// A process is at work, or guards a run.
    InUse,
    /// The process ended before it was done, or before it restored.
    CutOff,
    /// The machine was started again in the meantime.
    Restarted,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Left { since, pid, how } = self;
        match how {
            How::Tuned => write!(f, "this host is tuned since {since}"),
            How::InUse => write!(f, "this host is tuned by process {pid} since {since}, which is at work"),
            How::CutOff => write!(
                f,
                "this host was tuned by process {pid} at {since}, which ended without restoring it"
            ),
            How::Restarted => write!(
                f,
                "this host was tuned at {since} and not restored, and was started again in the meantime"
            ),
        }
    }
}

/// What an earlier command left on this machine, if anything. A journal that cannot be read counts as
/// cut off: it is there.
pub fn left(root: &Root) -> Option<Left> {
    let path = root.path(JOURNAL);
    let file = File::open(&path).ok()?;
    let in_use = lock_soon(&file, FlockOperation::NonBlockingLockShared).is_err();
    let nobody = |how| Left {
        since: "an unknown time".to_owned(),
        pid: 0,
        how,
    };
    let found = match read(&path) {
        Ok(Some(found)) => found,
        // Nothing had been changed yet.
        Ok(None) => return in_use.then(|| nobody(How::InUse)),
        Err(_) => return Some(nobody(How::CutOff)),
    };
    let how = match (in_use, same_boot(root, &found.head)) {
        (true, _) => How::InUse,
        (false, false) => How::Restarted,
        (false, true) if found.complete && !found.head.guarded => How::Tuned,
        (false, true) => How::CutOff,
    };
    Some(Left {
        since: found.head.started,
        pid: found.head.pid,
        how,
    })
}

/// Whether the machine is still in the boot in which it was tuned.
pub(super) fn same_boot(root: &Root, head: &Head) -> bool {
    head.boot_id == root.text(BOOT_ID)
}

/// Reads a journal; `None` when nothing had been changed when it ended.
pub(super) fn read(path: &Path) -> Result<Option<Found>, TuneError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|source| failed(path, "read", source))?;
    let mut lines = Vec::new();
    let pieces: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    for (index, piece) in pieces.iter().enumerate() {
        match serde_json::from_slice(piece) {
            Ok(line) if piece.ends_with(b"\n") => lines.push(line),
            // Torn: what it announces was not done.
            _ if index + 1 == pieces.len() => {}
            _ => {
                return Err(TuneError::Damaged {
                    path: path.to_owned(),
                    line: index + 1,
                })
            }
        }
    }
    Ok(sort(lines))
}

fn sort(lines: Vec<Line>) -> Option<Found> {
    let mut head = None;
    let mut found = (Vec::new(), Vec::new());
    let (mut saved, mut complete) = (false, false);
    for line in lines {
        match line {
            Line::Head(first) => head = Some(first),
            Line::Value { path, value } => found.0.push((path, value)),
            Line::Saved => saved = true,
            Line::Write { path, .. } => found.1.push(path),
            Line::Complete => complete = true,
        }
    }
    let head = head.filter(|_| saved)?;
    Some(Found {
        head,
        values: found.0,
        written: found.1,
        complete,
    })
}

/// A journal that is being written, or that is being restored from. The lock goes with it.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Makes it, with all values that the plan will or may change.
    pub fn create(
        root: &Root,
        plan: &Plan,
        cpus: &[u32],
        guarded: bool,
    ) -> Result<Journal, TuneError> {
        let path = root.path(JOURNAL);
        let failed = |source| TuneError::NoJournal {
            path: root.path(JOURNAL),
            source,
        };
        let folder = path.parent().expect("it has a folder").to_owned();
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        let mut journal = Journal { path, file };
        let mut lines = vec![Line::Head(Head {
            pid: std::process::id(),
            started: clock::utc_now(),
            boot_id: root.text(BOOT_ID),
            guarded,
            cpus: cpus.to_vec(),
        })];
        let paths = plan
            .touched
            .iter()
            .chain(plan.steps.iter().map(|step| &step.path));
        for path in paths {
            // What cannot be read is not changed either.
            if let Ok(value) = root.raw(path) {
                let path = path.clone();
                lines.push(Line::Value { path, value });
            }
        }
        lines.push(Line::Saved);
        journal.append(&lines)?;
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed)?;
        Ok(journal)
    }

    /// Takes the lock of the one that is there; `None` where there is none.
    pub fn open(root: &Root) -> Result<Option<Journal>, TuneError> {
        let path = root.path(JOURNAL);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => return Err(failed(&path, "read", source)),
        };
        match lock_soon(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Journal { path, file })),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let held = left(root).unwrap_or(Left {
                    since: "a moment ago".to_owned(),
                    pid: 0,
                    how: How::InUse,
                });
                Err(TuneError::InUse(held))
            }
            Err(errno) => Err(failed(&path, "locked", errno.into())),
        }
    }

    /// What is in it.
    pub fn found(&self) -> Result<Option<Found>, TuneError> {
        read(&self.path)
    }

    /// Adds lines; they are on disk afterwards.
    pub fn append(&mut self, lines: &[Line]) -> Result<(), TuneError> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line).expect("lines are plain data");
            bytes.push(b'\n');
        }
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| failed(&self.path, "written", source))
    }

    /// Removes it, and its folder where nothing else is in it.
    pub fn remove(self) -> Result<(), TuneError> {
        std::fs::remove_file(&self.path).map_err(|source| failed(&self.path, "removed", source))?;
        let folder = self.path.parent().expect("it has a folder");
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }
}

/// Takes a lock that may be held for a moment longer than its holder wants: a process that the holder
/// starts has a copy of the open file until it has become another program.
fn lock_soon(file: &File, how: FlockOperation) -> rustix::io::Result<()> {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(25);
    for _ in 1..TRIES {
        match flock(file, how) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            taken_or_failed => return taken_or_failed,
        }
    }
    flock(file, how)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> TuneError {
    TuneError::Journal {
        path: path.to_owned(),
        action,
        source,
    }
}
