//! The cache of objects and libraries, by content.
//!
//! An entry's name is the digest of everything that the product depends on, so an entry is never out
//! of date; its own digest is checked whenever it is used, so a damaged one is made again. The folder
//! can be deleted at any time. Entries come into being under another name and are renamed; since they
//! are checked, they need not be flushed to the disk.

use super::error::BuildError;
use crate::hash;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Environment variable that names another place for the cache.
pub const VARIABLE: &str = "CAMPAIGN_CACHE";
/// Place below the root of the configuration.
const FOLDER: &str = "target/campaign-cache";

/// Age at which a temporary folder belongs to nobody: many times the limit of a compile.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The folder: that of the environment variable, else the one below `root`.
pub fn folder(root: &Path) -> PathBuf {
    match std::env::var_os(VARIABLE) {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => root.join(FOLDER),
    }
}

/// An open cache.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

/// A product in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: String,
    /// What the tool said while making it, lines.
    pub messages: Vec<String>,
}

/// What is kept beside a product.
#[derive(Debug, Serialize, Deserialize)]
struct Label {
    sha256: String,
    messages: Vec<String>,
}

impl Cache {
    /// Opens the cache in `dir`, making it.
    pub fn open(dir: &Path) -> Result<Cache, BuildError> {
        let io = |source| BuildError::Cache {
            path: dir.to_owned(),
            source,
        };
        std::fs::create_dir_all(dir.join("tmp")).map_err(io)?;
        remove_old(&dir.join("tmp"));
        let dir = dir.canonicalize().map_err(io)?;
        Ok(Cache { dir })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A folder for temporary files of tools, on the same file system.
    pub fn temporary(&self) -> Result<tempfile::TempDir, BuildError> {
        let tmp = self.dir.join("tmp");
        tempfile::tempdir_in(&tmp).map_err(|source| BuildError::Cache { path: tmp, source })
    }

    fn path(&self, key: &str, suffix: &str) -> PathBuf {
        self.dir
            .join("made")
            .join(&key[..2])
            .join(format!("{key}{suffix}"))
    }

    /// The product of that key, if it is there and whole.
    pub fn find(&self, key: &str, suffix: &str) -> Option<Product> {
        let path = self.path(key, suffix);
        let label = std::fs::read(self.path(key, ".json")).ok()?;
        let label: Label = serde_json::from_slice(&label).ok()?;
        let found = hash::sha256_file(&path).ok()?;
        (found == label.sha256).then_some(Product {
            path,
            sha256: found,
            messages: label.messages,
        })
    }

    /// Moves a finished file in under its key.
    pub fn keep(
        &self,
        key: &str,
        suffix: &str,
        made: &Path,
        messages: Vec<String>,
    ) -> Result<Product, BuildError> {
        let path = self.path(key, suffix);
        let io = |source| BuildError::Cache {
            path: path.clone(),
            source,
        };
        let sha256 = hash::sha256_file(made).map_err(io)?;
        let label = Label {
            sha256: sha256.clone(),
            messages: messages.clone(),
        };
        let text = serde_json::to_vec(&label).map_err(|e| io(e.into()))?;
        put(&self.path(key, ".json"), &text)?;
        std::fs::rename(made, &path).map_err(io)?;
        Ok(Product {
            path,
            sha256,
            messages,
        })
    }
}

/// Takes away what killed builds left. What cannot be removed does no harm.
fn remove_old(tmp: &Path) {
    let old = |path: &Path| {
        let age = path.metadata().and_then(|m| m.modified()).ok()?.elapsed();
        Some(age.ok()? > ABANDONED)
    };
    for entry in std::fs::read_dir(tmp).into_iter().flatten().flatten() {
        if old(&entry.path()) == Some(true) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Writes a file whole, without flushing it to the disk.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let write = || -> io::Result<()> {
        let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        std::fs::create_dir_all(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        io::Write::write_all(&mut file, bytes)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|source| BuildError::Cache {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_build_left_goes_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("tmp/old"), dir.path().join("tmp/new"));
        for path in [&old, &new] {
            std::fs::create_dir_all(path).unwrap();
            std::fs::write(path.join("half.o"), "").unwrap();
        }
        let yesterday = std::time::SystemTime::now() - 2 * ABANDONED;
        let folder = std::fs::File::open(&old).unwrap();
        folder.set_modified(yesterday).unwrap();
        Cache::open(dir.path()).unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn a_damaged_entry_is_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        let tmp = cache.temporary().unwrap();
        let made = tmp.path().join("x.o");
        std::fs::write(&made, b"object").unwrap();
        let key = hash::sha256(b"key");
        let kept = cache
            .keep(&key, ".o", &made, vec!["warning".into()])
            .unwrap();
        assert_eq!(cache.find(&key, ".o").unwrap(), kept);
        assert_eq!(cache.find(&hash::sha256(b"other"), ".o"), None);
        std::fs::write(&kept.path, b"objecT").unwrap();
        assert_eq!(cache.find(&key, ".o"), None);
    }
}
