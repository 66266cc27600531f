//! The one way to the kernel's files: everything below `/proc`, `/sys`, `/etc`, `/run` and `/var` that
//! this area reads or writes goes through a [`Root`], so that a copy in another folder can stand in.
//!
//! Reading is the file system's. Writing goes through a [`Kernel`], because a kernel does more with a
//! value than to store it (it refuses some, and other files change with it): tests put a model of one
//! in its place.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What takes a value that is written to a file of the kernel.
pub trait Kernel: fmt::Debug + Send + Sync {
    /// Gives `value` to the file in one write. The file must be there already.
    fn write(&self, file: &Path, value: &[u8]) -> io::Result<()>;
}

/// The kernel of this machine: its files take what is written to them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Kernel for Real {
    fn write(&self, file: &Path, value: &[u8]) -> io::Result<()> {
        // Truncated, as by a shell: the kernel does not mind, and in a copy no rest of a longer value
        // stays. In one write, since the kernel takes each write as a value of its own.
        let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
        match file.write(value)? {
            n if n == value.len() => Ok(()),
            n => Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("{n} of {} bytes were taken", value.len()),
            )),
        }
    }
}

/// Why a file gave no value.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    /// It is not there.
    #[error("file absent")]
    Absent,
    /// It holds nothing.
    #[error("file empty")]
    Empty,
    /// It cannot be read: refused, or what it is about is switched off.
    #[error("file cannot be read ({0})")]
    Failed(io::Error),
}

/// Where the kernel's files are looked for: `/`, or a copy of them.
#[derive(Debug, Clone)]
pub struct Root {
    folder: PathBuf,
    kernel: Arc<dyn Kernel>,
}

impl Default for Root {
    fn default() -> Self {
        Root::at("/")
    }
}

impl Root {
    /// Files below `folder`, written as they are.
    pub fn at(folder: impl AsRef<Path>) -> Self {
        Root::with(folder, Arc::new(Real))
    }

    /// Files below `folder`, written through `kernel`.
    pub fn with(folder: impl AsRef<Path>, kernel: Arc<dyn Kernel>) -> Self {
        Root {
            folder: folder.as_ref().to_owned(),
            kernel,
        }
    }

    /// The root that `--sysroot` names, else this machine's.
    pub fn from_option(sysroot: Option<&Path>) -> Self {
        sysroot.map_or_else(Root::default, Root::at)
    }

    /// Whether this is the machine itself and no copy: only then can it be watched, or asked.
    pub fn is_live(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// Where a path lies.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Content without the last line end, or why there is none.
    pub fn read(&self, path: &str) -> Result<String, NotRead> {
        let text = self.raw(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NotRead::Absent,
            _ => NotRead::Failed(error),
        })?;
        let text = text.trim_end_matches(['\n', '\0']);
        match text.trim().is_empty() {
            true => Err(NotRead::Empty),
            false => Ok(text.to_owned()),
        }
    }

    /// Content as it is.
    pub fn raw(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(self.path(path))
    }

    /// [`Root::read`] where the reason does not matter.
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// Content as a number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// Whether there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Names in a folder, sorted, a number at their end as a number; none when it is absent.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_by_cached_key(|name| {
            let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
            (word.to_owned(), name.len(), name.clone())
        });
        names
    }

    /// The same file by its own path, where `path` leads over links (CPUs that share a frequency
    /// policy); `path` itself when it leads nowhere.
    pub fn resolve(&self, path: &str) -> String {
        let resolve = || -> Option<String> {
            let folder = self.folder.canonicalize().ok()?;
            let file = self.path(path).canonicalize().ok()?;
            Some(file.strip_prefix(folder).ok()?.to_str()?.to_owned())
        };
        resolve().unwrap_or_else(|| path.to_owned())
    }

    /// Gives a value to a file of the kernel.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        self.kernel.write(&self.path(path), value.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_empty_and_refused_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("empty"), "\n").unwrap();
        std::fs::write(dir.path().join("full"), "schedutil\n").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let root = Root::at(dir.path());
        let why = |path: &str| root.read(path).unwrap_err().to_string();
        assert_eq!(why("none"), "file absent");
        assert_eq!(why("full/none"), "file absent");
        assert_eq!(why("empty"), "file empty");
        assert!(why("folder").starts_with("file cannot be read ("));
        assert_eq!(root.read("full").unwrap(), "schedutil");
        assert!(!root.is_live() && Root::default().is_live());
    }

    #[test]
    fn a_shorter_value_leaves_no_rest_and_a_missing_file_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("governor"), "schedutil\n").unwrap();
        let root = Root::at(dir.path());
        root.write("governor", "off\n").unwrap();
        assert_eq!(root.raw("governor").unwrap(), "off\n");
        assert!(root.write("none", "x").is_err());
        assert!(!root.exists("none"));
    }

    #[test]
    fn names_are_in_natural_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["10", "9", "zone10", "zone2"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(
            Root::at(dir.path()).names(""),
            ["9", "10", "zone2", "zone10"]
        );
    }

    #[test]
    fn links_lead_to_one_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("policy0")).unwrap();
        std::fs::write(dir.path().join("policy0/x"), "1\n").unwrap();
        std::os::unix::fs::symlink("policy0", dir.path().join("cpu1")).unwrap();
        let root = Root::at(dir.path());
        assert_eq!(root.resolve("cpu1/x"), "policy0/x");
        assert_eq!(root.resolve("cpu2/x"), "cpu2/x");
    }
}
