//! The messages of a study: files of the planned sizes, generated into the run or named by the user.
//!
//! Generated messages are written by a worker from the recorded DRNG rule, once, at the largest size:
//! each smaller one is its beginning. They lie in the run's `keys/`, which neither manifest nor dataset
//! holds, and go when the phase ends, however it ends.

use crate::evidence::store::TEMPORARY;
use crate::evidence::StudyFile;
use crate::phases::context::{Context, PhaseError};
use crate::phases::inputs;
use crate::worker::Job;
use protocol::{Body, Task, FILE_FD};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What takes the place of `candidate/label` in the seed: one message for all of them, so that what
/// differs between parameter sets is not the message.
pub const SUBJECT: &str = "study/message-size";

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Least bytes a second that a message is generated with before its worker is given up.
const LEAST_RATE: u64 = 1_000_000;

/// A message that cannot be measured with.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read; name a file that is there and that you may read", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else than a file.
    #[error("{path}: it is {kind}, and only a regular file has a length that can be measured; copy what it holds into a file", path = path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// There is nothing in it.
    #[error("{path}: it is empty, so there is nothing of whose size the cost could depend; name a file with at least one byte", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Its content or its length is not what it was when the study began.
    #[error("{path}: it was changed while it was measured; measure a copy that nobody writes to (what was measured before is kept in the run)", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A generated message cannot be written.
    #[error("{path}: the message cannot be written; make room there, or name another place with --run", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The worker did not generate it.
    #[error("the message could not be generated: {0}")]
    NotGenerated(String),
}

/// Looks at a file that a user names: what it is, its length and its digest.
pub fn inspect(path: &Path) -> Result<StudyFile, MessageError> {
    let (mut file, before) = open(path)?;
    let (sha256, bytes) = crate::hash::sha256_reader(&mut file).map_err(unreadable(path))?;
    let after = file.metadata().map_err(unreadable(path))?;
    if bytes != before.len() || stamp(&before) != stamp(&after) {
        return Err(MessageError::Changed {
            path: path.to_owned(),
        });
    }
    // st_blocks counts 512 bytes on every file system of Linux (stat(2)).
    let sparse = before.blocks().saturating_mul(512) < before.len() && before.blksize() > 0;
    Ok(StudyFile {
        sha256,
        bytes,
        sparse,
    })
}

/// Opens a regular, non-empty file. A FIFO is not waited for.
fn open(path: &Path) -> Result<(File, Metadata), MessageError> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(unreadable(path))?;
    let metadata = file.metadata().map_err(unreadable(path))?;
    let kind = metadata.file_type();
    let what = match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_fifo() => Some("a FIFO"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    };
    let path = path.to_owned();
    match what {
        Some(kind) => Err(MessageError::NotAFile { path, kind }),
        None if metadata.len() == 0 => Err(MessageError::Empty { path }),
        None => Ok((file, metadata)),
    }
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> MessageError + '_ {
    |source| MessageError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// What changes when a file is written to.
fn stamp(metadata: &Metadata) -> (u64, i64, i64, i64, i64) {
    (
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

/// A file whose bytes are a message.
#[derive(Debug)]
pub struct Message {
    path: PathBuf,
    file: File,
    as_opened: Metadata,
    /// SHA-256 of its bytes.
    pub sha256: String,
    generated: bool,
}

impl Message {
    /// A descriptor for a worker.
    pub fn descriptor(&self) -> Result<OwnedFd, MessageError> {
        let copy = self.file.try_clone().map_err(unreadable(&self.path))?;
        Ok(copy.into())
    }

    /// Whether somebody has written to it since it was opened: by its state, or by its content.
    pub fn is_changed(&self, look_inside: bool) -> bool {
        let now = self.file.metadata().map(|now| stamp(&now)).ok();
        let touched = now != Some(stamp(&self.as_opened));
        touched || (look_inside && !inspect(&self.path).is_ok_and(|now| now.sha256 == self.sha256))
    }

    /// The error of a message that has changed.
    pub fn changed(&self) -> MessageError {
        MessageError::Changed {
            path: self.path.clone(),
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if self.generated {
            // A file that stays behind has a temporary name: a resume takes it away.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Messages by size.
pub type Messages = BTreeMap<u64, Message>;

/// The messages of these sizes.
pub async fn messages(context: &Context<'_>, sizes: &[u64]) -> Result<Messages, PhaseError> {
    let study = context.study.expect("a study has messages");
    match (study.file, &study.settings.file) {
        (Some(path), Some(known)) => Ok(named(path, known, sizes)?),
        _ => generated(context, sizes).await,
    }
}

fn named(path: &Path, known: &StudyFile, sizes: &[u64]) -> Result<Messages, MessageError> {
    if sizes.is_empty() {
        return Ok(Messages::new());
    }
    let (file, as_opened) = open(path)?;
    let message = Message {
        path: path.to_owned(),
        file,
        as_opened,
        sha256: known.sha256.clone(),
        generated: false,
    };
    match message.is_changed(true) {
        true => Err(message.changed()),
        false => Ok(Messages::from([(known.bytes, message)])),
    }
}

async fn generated(context: &Context<'_>, sizes: &[u64]) -> Result<Messages, PhaseError> {
    let Some(&largest) = sizes.iter().max() else {
        return Ok(Messages::new());
    };
    let mut whole = blank(context, largest)?;
    let answer = context
        .ask(Job {
            task: Task::Message {
                subject: SUBJECT.to_owned(),
                bytes: largest,
            },
            library: None,
            cpu: None,
            limit: Duration::from_secs_f64(context.plan.timeout_floor_s)
                + Duration::from_secs(largest / LEAST_RATE),
            file: Some((FILE_FD, whole.descriptor()?)),
            preload: None,
        })
        .await?;
    let written = match inputs::body(&answer)? {
        Ok(Body::Message(written)) => written.clone(),
        Ok(_) => {
            return Err(MessageError::NotGenerated("it answered something else".into()).into())
        }
        Err(reason) => return Err(MessageError::NotGenerated(reason.text).into()),
    };
    let found = inspect(&whole.path)?;
    if (found.bytes, &found.sha256) != (largest, &written.sha256) {
        return Err(whole.changed().into());
    }
    whole.settle(found.sha256)?;
    let mut messages = Messages::new();
    for &size in sizes.iter().filter(|&&size| size != largest) {
        messages.insert(size, beginning(context, &whole, size)?);
    }
    messages.insert(largest, whole);
    Ok(messages)
}

/// An empty file for a message.
fn blank(context: &Context, bytes: u64) -> Result<Message, MessageError> {
    let path = context
        .book
        .path(&format!("keys/{TEMPORARY}message-{bytes}"));
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .and_then(|file| Ok((file.metadata()?, file)));
    match made {
        Ok((as_opened, file)) => Ok(Message {
            path,
            file,
            as_opened,
            sha256: String::new(),
            generated: true,
        }),
        Err(source) => Err(MessageError::Write { path, source }),
    }
}

/// The first `bytes` bytes of a message, as one of its own.
fn beginning(context: &Context, of: &Message, bytes: u64) -> Result<Message, MessageError> {
    let mut message = blank(context, bytes)?;
    let mut copy = || -> io::Result<String> {
        let mut from = File::open(&of.path)?.take(bytes);
        let mut hash = Sha256::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(const_hex::encode(hash.finalize())),
                n => {
                    hash.update(&buffer[..n]);
                    message.file.write_all(&buffer[..n])?;
                }
            }
        }
    };
    let sha256 = copy().map_err(|source| MessageError::Write {
        path: message.path.clone(),
        source,
    })?;
    message.settle(sha256)?;
    Ok(message)
}

impl Message {
    /// Takes its state over as the one that it must keep; from now on it is read only.
    fn settle(&mut self, sha256: String) -> Result<(), MessageError> {
        self.file = File::open(&self.path).map_err(unreadable(&self.path))?;
        self.as_opened = self.file.metadata().map_err(unreadable(&self.path))?;
        self.sha256 = sha256;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn text(path: &Path) -> String {
        inspect(path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_file_is_refused_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(text(folder.path()).contains("it is a directory"));
        assert!(text(Path::new("/dev/null")).contains("it is a device"));
        assert!(text(&path("absent")).contains("cannot be read"));
        std::fs::write(path("empty"), "").unwrap();
        assert!(text(&path("empty")).contains("it is empty"));
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(
            text(&path("fifo")).contains("it is a FIFO"),
            "and it is not waited for"
        );
    }

    #[test]
    fn a_file_without_permission_cannot_be_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x").unwrap();
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o000)).unwrap();
        // Who may read everything is not stopped by a mode.
        match nix::unistd::geteuid().is_root() {
            true => assert_eq!(inspect(file.path()).unwrap().bytes, 1),
            false => assert!(text(file.path()).contains("cannot be read")),
        }
    }

    #[test]
    fn a_file_has_its_length_its_digest_and_perhaps_holes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let found = inspect(file.path()).unwrap();
        assert_eq!(
            (found.bytes, found.sha256),
            (3, crate::hash::sha256(b"abc"))
        );
        file.as_file().set_len(1 << 24).unwrap();
        let found = inspect(file.path()).unwrap();
        assert!(found.sparse && found.bytes == 1 << 24);
    }

    #[test]
    fn a_change_is_seen_by_state_and_by_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let known = inspect(file.path()).unwrap();
        let messages = named(file.path(), &known, &[3]).unwrap();
        let message = &messages[&3];
        assert!(!message.is_changed(false) && !message.is_changed(true));
        // A write within the same moment, of the same length, leaves no trace but the content.
        let (file_again, as_opened) = open(file.path()).unwrap();
        let other = Message {
            path: file.path().to_owned(),
            file: file_again,
            as_opened,
            sha256: crate::hash::sha256(b"abd"),
            generated: false,
        };
        assert!(!other.is_changed(false) && other.is_changed(true));
        std::fs::write(file.path(), "abcd").unwrap();
        assert!(message.is_changed(false) && message.is_changed(true));
        let error = named(file.path(), &known, &[3]).unwrap_err().to_string();
        assert!(error.contains("changed while it was measured"), "{error}");
        drop(messages);
        assert!(file.path().is_file(), "a user's file stays");
    }
}
