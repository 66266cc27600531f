//! Looks before anything is measured whether the run's place can take what will be written.
//!
//! A full disk later stops the run as well, with the same status and nothing half-written; but then
//! hours may have gone by.

use crate::evidence::store::TEMPORARY;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The place cannot take the run.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// Nothing can be written there.
    #[error("{path}: cannot be written to; name another place with --run", path = path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too little space.
    #[error("{path}: {free} MB are free and the run needs up to {needed} MB; make room, or name another place with --run", path = path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Free there, 10^6 bytes, rounded down.
        free: u64,
        /// Needed, 10^6 bytes, rounded up.
        needed: u64,
    },
}

/// What a run of so many records will write at most, bytes: each record is written to a temporary
/// file beside the old one, and the journal has some lines for each attempt.
pub fn estimate(operations: u64, trials: u64, key_bytes: u64) -> u64 {
    const FIXED: u64 = 4 << 20;
    const LIBRARIES_PER_OPERATION: u64 = 512 << 10;
    const EVIDENCE_PER_OPERATION: u64 = 64 << 10;
    const PER_ATTEMPT: u64 = 12 << 10;
    let per_operation = LIBRARIES_PER_OPERATION + EVIDENCE_PER_OPERATION + trials * PER_ATTEMPT;
    FIXED + operations * per_operation + key_bytes
}

/// Writes a few bytes and waits for the disk. The file has no name, so that a kill leaves nothing; where
/// the file system cannot do that, a resume knows the name and removes it.
pub fn writable(dir: &Path) -> Result<(), PreflightError> {
    use rustix::fs::{openat, Mode, OFlags, CWD};
    let unnamed = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let write = || -> io::Result<()> {
        let mut file = match openat(CWD, dir, unnamed, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => std::fs::File::from(descriptor),
            Err(_) => {
                let made = tempfile::Builder::new()
                    .prefix(TEMPORARY)
                    .tempfile_in(dir)?;
                made.into_file() // its name goes at once
            }
        };
        file.write_all(&[0; 4096])?;
        file.sync_all()
    };
    write().map_err(|source| PreflightError::NotWritable {
        path: dir.to_owned(),
        source,
    })
}

/// Whether `needed` bytes are free. A file system that does not tell is believed to have them.
pub fn space(dir: &Path, needed: u64) -> Result<(), PreflightError> {
    let Ok(stat) = rustix::fs::statvfs(dir) else {
        return Ok(());
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(PreflightError::NoSpace {
        path: dir.to_owned(),
        free: free / 1_000_000,
        needed: needed.div_ceil(1_000_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_the_space_is_refused_with_both_figures() {
        let dir = tempfile::tempdir().unwrap();
        writable(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        space(dir.path(), 1).unwrap();
        let error = space(dir.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("needs up to 18446744073710 MB"), "{error}");
    }

    #[test]
    fn a_place_that_is_no_folder_is_not_writable() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        assert!(matches!(
            writable(&gone),
            Err(PreflightError::NotWritable { .. })
        ));
    }

    #[test]
    fn the_estimate_grows_with_what_is_planned() {
        assert!(estimate(3, 5, 0) < estimate(6, 5, 0));
        assert!(estimate(3, 5, 0) < estimate(3, 15, 0));
        assert_eq!(estimate(0, 5, 7), estimate(0, 0, 0) + 7);
    }
}
