//! `performance/data/<system>/<id>/`: where published datasets lie, and how one gets there whole.
//!
//! A dataset is filled under a temporary name in the same folder, flushed, and renamed; where one of
//! that id is there already, the two change places in one step. The seal beside it follows at once: a
//! crash between the two leaves a dataset without its seal, which an audit says and a repetition mends.

use crate::evidence::seal;
use crate::evidence::store::{self, StoreError};
use rustix::fs::{RenameFlags, CWD};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of the published datasets, below the root of the campaign.
pub const DATA: &str = "performance/data";

/// File that names a system's current dataset.
pub const CURRENT: &str = "current";

/// A dataset cannot be put in its place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A name that is no plain folder name.
    #[error("`{0}` cannot be the id of a dataset or system: use letters, digits, `.`, `_` and `-`, and begin with a letter or digit")]
    Name(String),
    /// The file system refuses.
    #[error("`{}` cannot be {action}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A small file beside the dataset.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A dataset's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `performance/data/<system>`
    folder: PathBuf,
    id: String,
}

impl Place {
    /// The place of a dataset below the root of a campaign.
    pub fn new(root: &Path, system: &str, id: &str) -> Result<Self, PlaceError> {
        for name in [system, id] {
            if !is_name(name) || name == CURRENT {
                return Err(PlaceError::Name(name.to_owned()));
            }
        }
        Ok(Place {
            folder: root.join(DATA).join(system),
            id: id.to_owned(),
        })
    }

    /// The dataset's directory.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.id)
    }

    /// An empty directory beside the place, to be filled. It vanishes when it is dropped.
    pub fn workshop(&self) -> Result<tempfile::TempDir, PlaceError> {
        std::fs::create_dir_all(&self.folder)
            .and_then(|()| {
                tempfile::Builder::new()
                    .prefix(store::TEMPORARY)
                    .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
                    .tempdir_in(&self.folder)
            })
            .map_err(|source| PlaceError::Io {
                path: self.folder.clone(),
                action: "written to",
                source,
            })
    }

    /// Puts a filled workshop in place of what may be there, writes the seal, and on request names the
    /// dataset as the system's current one.
    pub fn install(
        &self,
        workshop: tempfile::TempDir,
        seal: &str,
        current: bool,
    ) -> Result<PathBuf, PlaceError> {
        let path = self.path();
        store::flush_all(workshop.path())?;
        let failed = |source: rustix::io::Errno| PlaceError::Io {
            path: path.clone(),
            action: "replaced",
            source: source.into(),
        };
        match path.exists() {
            true => {
                rustix::fs::renameat_with(CWD, workshop.path(), CWD, &path, RenameFlags::EXCHANGE)
                    .map_err(failed)?;
                // The old dataset is in the workshop now and goes with it.
                drop(workshop);
            }
            false => rustix::fs::rename(workshop.keep(), &path).map_err(failed)?,
        }
        flush(&self.folder)?;
        seal::write_seal(&path, seal)?;
        if current {
            let text = format!("{}\n", self.id);
            store::write_atomic(&self.folder.join(CURRENT), text.as_bytes())?;
        }
        Ok(path)
    }
}

/// Whether a text may name a system or a dataset.
fn is_name(name: &str) -> bool {
    name.len() <= 100
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with(".seal")
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Waits until a folder's entries are on the disk.
fn flush(path: &Path) -> Result<(), PlaceError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| PlaceError::Io {
            path: path.to_owned(),
            action: "flushed",
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_replaced_in_one_step_with_its_seal() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::new(root.path(), "arm_1", "public-2026").unwrap();
        for (content, current) in [("old", true), ("new", false)] {
            let workshop = place.workshop().unwrap();
            std::fs::write(workshop.path().join("file"), content).unwrap();
            std::fs::write(workshop.path().join(content), "").unwrap();
            place.install(workshop, content, current).unwrap();
        }
        let read = |path: &str| std::fs::read_to_string(root.path().join(DATA).join(path)).unwrap();
        assert_eq!(read("arm_1/public-2026/file"), "new");
        assert_eq!(read("arm_1/public-2026.seal"), "new\n");
        assert_eq!(read("arm_1/current"), "public-2026\n");
        assert!(!place.path().join("old").exists());
        let left = std::fs::read_dir(root.path().join(DATA).join("arm_1")).unwrap();
        assert_eq!(left.count(), 3);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let root = Path::new("/");
        for name in ["..", ".", "", "a/b", ".x", "current", "a b", "x.seal"] {
            assert!(Place::new(root, "arm_1", name).is_err(), "{name:?}");
        }
    }
}
