//! Locks between processes: one orchestrator per run directory, one campaign per CPU.
//!
//! A lock is `flock` on a file that stays; the file holds a line about who took it, for the message
//! to the second one. The kernel gives the lock back when its holder ends, however it ends.

use crate::clock;
use crate::process::Stop;
use rustix::fs::{flock, FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder of the CPU locks instead of the usual ones: for tests, and for machines without them.
pub const LOCK_DIR: &str = "CAMPAIGN_LOCK_DIR";

/// Pause between two tries of somebody who waits.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// A lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{what} is in use by {holder}; let it end, or wait for it with --wait (lock file {path})", path = path.display())]
    Held {
        /// What is locked.
        what: String,
        /// Who has it, as its lock file says.
        holder: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made or locked.
    #[error("{what} cannot be locked with {path}", path = path.display())]
    Io {
        /// What is locked.
        what: String,
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No folder for lock files.
    #[error("CPU {cpu} cannot be locked: neither /run/lock nor $XDG_RUNTIME_DIR can be written; name a folder with {LOCK_DIR}")]
    NoFolder {
        /// Number of the CPU.
        cpu: u32,
    },
    /// A stop was asked for while waiting.
    #[error("interrupted while waiting for {what}")]
    Interrupted {
        /// What is locked.
        what: String,
    },
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What to do when somebody else has the lock.
#[derive(Debug, Clone, Copy)]
pub enum Patience<'a> {
    /// Fail at once, naming the holder.
    None,
    /// Wait until it is free, or until a stop is asked for.
    Until(&'a Stop),
}

/// Locks the file, which is made where it is missing. `what` names the thing in messages, `me` is
/// what a second one reads about us.
pub fn lock(path: &Path, what: &str, me: &str, patience: Patience) -> Result<Lock, LockError> {
    let io = |source| LockError::Io {
        what: what.to_owned(),
        path: path.to_owned(),
        source,
    };
    let mut file = open(path).map_err(io)?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(io(errno.into())),
        }
        match patience {
            Patience::None => {
                return Err(LockError::Held {
                    what: what.to_owned(),
                    holder: holder(&mut file),
                    path: path.to_owned(),
                })
            }
            Patience::Until(stop) if stop.is_requested() => {
                return Err(LockError::Interrupted {
                    what: what.to_owned(),
                })
            }
            Patience::Until(_) => std::thread::sleep(TRY_AGAIN),
        }
    }
    // A file of another user can be locked but not written; then the second one reads an older name.
    let _ = sign(&mut file, me);
    Ok(Lock { _file: file })
}

/// Locks one CPU for this machine.
pub fn lock_cpu(cpu: u32, me: &str, patience: Patience) -> Result<Lock, LockError> {
    let what = format!("CPU {cpu}");
    let mut refused = LockError::NoFolder { cpu };
    for folder in cpu_lock_folders() {
        let path = folder.join(format!("campaign-cpu{cpu}.lock"));
        match lock(&path, &what, me, patience) {
            Err(LockError::Io { .. }) if !path.exists() => {}
            Err(error @ LockError::Io { .. }) => refused = error,
            taken_or_held => return taken_or_held,
        }
    }
    Err(refused)
}

fn cpu_lock_folders() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if let Some(folder) = set(LOCK_DIR) {
        return vec![folder.into()];
    }
    std::iter::once(PathBuf::from("/run/lock"))
        .chain(set("XDG_RUNTIME_DIR").map(PathBuf::from))
        .collect()
}

/// Opens what is there before making it: in a sticky folder the kernel may refuse to "create" the
/// file of another user. A link is never followed there.
fn open(path: &Path) -> io::Result<File> {
    let base = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let everybody = Mode::from_raw_mode(0o666);
    for flags in [OFlags::RDWR, OFlags::RDONLY, OFlags::RDWR | OFlags::CREATE] {
        match rustix::fs::open(path, base | flags, everybody) {
            Ok(fd) => return Ok(fd.into()),
            Err(errno) if flags.contains(OFlags::CREATE) => return Err(errno.into()),
            Err(_) => {}
        }
    }
    unreachable!("the last way of opening returns")
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(1000).read_to_string(&mut text));
    match read {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "a process that left no name".to_owned(),
    }
}

fn sign(file: &mut File, me: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    let (pid, since) = (std::process::id(), clock::utc_now());
    writeln!(file, "process {pid} ({me}) since {since}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.lock");
        let held = lock(&path, "the run x", "run x", Patience::None).unwrap();
        let error = lock(&path, "the run x", "run x", Patience::None).unwrap_err();
        let expected = format!(
            "the run x is in use by process {} (run x) since ",
            std::process::id()
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
        drop(held);
        lock(&path, "the run x", "run x", Patience::None).unwrap();
    }

    #[test]
    fn who_waits_gets_the_lock_or_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.lock");
        let held = lock(&path, "it", "me", Patience::None).unwrap();
        let stop = Stop::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&path, "it", "me", Patience::Until(&stop)));
            stop.request();
            let end = waiting.join().unwrap();
            assert!(matches!(end, Err(LockError::Interrupted { .. })), "{end:?}");
            let patient = Stop::new();
            let path = &path;
            let waiting = scope.spawn(move || lock(path, "it", "me", Patience::Until(&patient)));
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("precious");
        std::fs::write(&target, "text").unwrap();
        let path = dir.path().join("run.lock");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(lock(&path, "it", "me", Patience::None).is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"text");
    }
}
