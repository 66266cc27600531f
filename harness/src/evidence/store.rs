//! Files that are whole or not there: everything that a run writes goes through here.
//!
//! A file gets a temporary name beside its place, is flushed to the disk, renamed, and its folder is
//! flushed too. A crash at any moment leaves the old file or the new one, and perhaps a temporary one,
//! which [`remove_leftovers`] takes away. Appending to the journal is not done here.
//!
//! A folder of many files that becomes a dataset by one rename is filled with [`write_unflushed`] and
//! flushed once, with [`flush_all`], before it gets its name.

use serde::{de::DeserializeOwned, Serialize};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Start of every temporary name.
pub const TEMPORARY: &str = ".campaign-tmp-";

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Writing failed; what was there before is unchanged.
    #[error("cannot write `{}`: {}", .path.display(), remedy(.source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Reading failed.
    #[error("cannot read `{}`: is it there, and may you read it?", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The content is not what this version reads.
    #[error("`{}` cannot be understood: it was damaged, or another version of this tool wrote it", .path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        source: serde_json::Error,
    },
}

/// What to do about a write that failed.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or name another place"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "make the place writable, or name another"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is where a folder is needed"
        }
        _ => "see the cause",
    }
}

/// Puts `bytes` at `path`, making its folders.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    put(path, bytes).map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Puts `bytes` at `path`, making its folders, in a folder that nobody looks into before it was flushed.
pub fn write_unflushed(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    fs::create_dir_all(folder(path))
        .and_then(|()| fs::write(path, bytes))
        .map_err(|source| StoreError::Write {
            path: path.to_owned(),
            source,
        })
}

/// Waits until everything on the folder's file system is on the disk: for thousands of small files
/// that is one wait instead of thousands.
pub fn flush_all(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| Ok(rustix::fs::syncfs(&dir)?))
        .map_err(|source| StoreError::Write {
            path: dir.to_owned(),
            source,
        })
}

/// Puts `value` at `path` as indented JSON with a line end.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    write_atomic(path, &json(path, value)?)
}

/// The bytes that [`write_json`] puts at `path`.
pub fn json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, StoreError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| StoreError::Write {
        path: path.to_owned(),
        source: error.into(),
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads what [`write_json`] wrote.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let bytes = fs::read(path).map_err(|source| StoreError::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&bytes).map_err(|source| StoreError::Parse {
        path: path.to_owned(),
        source,
    })
}

/// Whether a file of that name is one that a write was cut off at.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// Takes away the temporary files that a killed process left below `dir`; returns how many.
pub fn remove_leftovers(dir: &Path) -> Result<usize, StoreError> {
    let mut removed = 0;
    let failed = |path: &Path, source| StoreError::Write {
        path: path.to_owned(),
        source,
    };
    for entry in fs::read_dir(dir).map_err(|e| failed(dir, e))? {
        let entry = entry.map_err(|e| failed(dir, e))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed += remove_leftovers(&path)?;
        } else if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(TEMPORARY.as_bytes())
        {
            fs::remove_file(&path).map_err(|e| failed(&path, e))?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = folder(path);
    make_folders(dir)?;
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o644)) // less the user's mask
        .tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(dir)?.sync_all()
}

/// The folder of a path; `.` for a bare name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// `create_dir_all` that also flushes the entry of every folder it makes.
fn make_folders(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = folder(dir);
    make_folders(parent)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(parent)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.json");
        write_json(&path, &["one"]).unwrap();
        assert_eq!(read_json::<Vec<String>>(&path).unwrap(), ["one"]);
        write_json(&path, &["two"]).unwrap();
        assert_eq!(read_json::<Vec<String>>(&path).unwrap(), ["two"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  \"two\"\n]\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("file");
        write_atomic(&blocked, b"old").unwrap();
        let error = write_atomic(&blocked.join("below"), b"x").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("a file is where a folder is needed"),
            "{error}"
        );
        // A folder cannot be replaced by a file.
        fs::create_dir(dir.path().join("folder")).unwrap();
        write_atomic(&dir.path().join("folder"), b"x").unwrap_err();
        assert_eq!(fs::read(&blocked).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let error = StoreError::Write {
            path: "runs/x".into(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        };
        assert!(error.to_string().contains("make room"), "{error}");
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        write_atomic(&dir.path().join("lib/kept"), b"x").unwrap();
        fs::write(dir.path().join(format!("lib/{TEMPORARY}abc")), b"half").unwrap();
        assert_eq!(remove_leftovers(dir.path()).unwrap(), 1);
        assert!(dir.path().join("lib/kept").exists());
        assert_eq!(remove_leftovers(dir.path()).unwrap(), 0);
    }

    #[test]
    fn damaged_json_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        write_atomic(&path, b"{").unwrap();
        let error = read_json::<serde_json::Value>(&path).unwrap_err();
        assert!(matches!(error, StoreError::Parse { .. }), "{error}");
    }
}
