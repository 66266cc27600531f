//! Takes back what a packed campaign has measured: the runs of an archive, or of a folder.
//!
//! Nothing of it is believed. A run is taken when its journal is whole and sealed, the seal beside it is
//! that of the journal, and each file has the digest of the sealed manifest. Only those files are copied:
//! pages are rendered here again, and libraries, keys and the salt of the host stay behind. An archive
//! is unpacked into a folder of our own first; an entry that is no plain file below it is refused.

use crate::evidence::journal::{JournalError, JOURNAL};
use crate::evidence::seal::{self, NotClosed, SealError, MANIFEST};
use crate::evidence::store::{self, StoreError};
use crate::hash;
use crate::report::{self, ReportError};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// How deep below the given folder runs are looked for: `pack-x/runs/x-guide-1`.
const DEPTH: u32 = 4;

/// One run that was taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// Where it is now.
    pub run: PathBuf,
    /// Its seal.
    pub seal: String,
    /// Files of its manifest.
    pub files: usize,
    /// It was here already, with the same seal.
    pub was_here: bool,
}

/// Runs cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Nothing there.
    #[error("`{}` holds no run: name the archive or folder that came back (the folder `runs` of the pack)", .0.display())]
    NoRun(PathBuf),
    /// Not an archive.
    #[error("`{}` cannot be read as a tar archive; if it is compressed, unpack it first", .path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An entry that has no place in an archive of runs.
    #[error("the entry `{entry}` of the archive is refused: {why}; nothing was taken over")]
    Refused {
        /// Its name.
        entry: String,
        /// Why.
        why: &'static str,
    },
    /// The run goes on.
    #[error("`{run}` is not sealed: finish it where it was begun (`./campaign run --pack .`)")]
    NotSealed {
        /// The run.
        run: String,
    },
    /// The seal is not the journal's.
    #[error("`{run}`: the seal beside it ({run}.seal) is missing or not that of its journal: carry both, or the run was changed after it was sealed")]
    Seal {
        /// The run.
        run: String,
    },
    /// A file is not as it was sealed.
    #[error("`{run}`: {}: {why}; nothing was taken over", .file)]
    Changed {
        /// The run.
        run: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The journal is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The manifest is damaged, or a file cannot be in one.
    #[error(transparent)]
    Manifest(#[from] SealError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder cannot be made.
    #[error("`{}` cannot be {action}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The pages.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Takes the runs of `from` over into `runs`, all of them or none.
pub fn collect(from: &Path, runs: &Path) -> Result<Vec<Collected>, CollectError> {
    std::fs::create_dir_all(runs).map_err(io_error(runs, "made"))?;
    let workshop = tempfile::Builder::new()
        .prefix(store::TEMPORARY)
        .tempdir_in(runs)
        .map_err(io_error(runs, "written to"))?;
    let folder = match from.is_dir() {
        true => from.to_owned(),
        false => {
            let folder = workshop.path().join("archive");
            unpack(from, &folder)?;
            folder
        }
    };
    let mut found = Vec::new();
    look_for(&folder, DEPTH, &mut found)?;
    if found.is_empty() {
        return Err(CollectError::NoRun(from.to_owned()));
    }
    found.sort();
    let mut checked = Vec::new();
    for (number, run) in found.iter().enumerate() {
        let draft = workshop.path().join(format!("run-{number}"));
        checked.push((run, copy_checked(run, &draft)?, draft));
    }
    store::flush_all(workshop.path())?;
    checked
        .into_iter()
        .map(|(run, (seal, files), draft)| settle(run, &draft, runs, seal, files))
        .collect()
}

fn io_error(path: &Path, action: &'static str) -> impl Fn(io::Error) -> CollectError {
    let path = path.to_owned();
    move |source| CollectError::Io {
        path: path.clone(),
        action,
        source,
    }
}

/// Unpacks plain files and folders below `folder`, which is made; anything else is refused.
fn unpack(archive: &Path, folder: &Path) -> Result<(), CollectError> {
    let unreadable = |source| CollectError::Archive {
        path: archive.to_owned(),
        source,
    };
    std::fs::create_dir(folder).map_err(io_error(folder, "made"))?;
    let file = File::open(archive).map_err(unreadable)?;
    let mut tar = tar::Archive::new(io::BufReader::new(file));
    for entry in tar.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let refuse = |why| CollectError::Refused {
            entry: name.clone(),
            why,
        };
        let below = plain(Path::new(&name)).ok_or_else(|| refuse("its path leads elsewhere"))?;
        let place = folder.join(&below);
        match entry.header().entry_type() {
            tar::EntryType::Directory => {
                std::fs::create_dir_all(&place).map_err(io_error(&place, "made"))?;
            }
            tar::EntryType::Regular => {
                let parent = place.parent().unwrap_or(folder);
                std::fs::create_dir_all(parent).map_err(io_error(parent, "made"))?;
                let mut file = match File::create_new(&place) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(refuse("it is there twice"))
                    }
                    Err(error) => return Err(io_error(&place, "written")(error)),
                };
                io::copy(&mut entry, &mut file).map_err(unreadable)?;
            }
            _ => return Err(refuse("it is neither a file nor a folder")),
        }
    }
    Ok(())
}

/// The path without `.`; `None` where it is absolute, has `..`, or is no UTF-8 that we could have made.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) if !name.to_string_lossy().contains('\u{fffd}') => {
                plain.push(name);
            }
            _ => return None,
        }
    }
    Some(plain)
}

/// Folders with a journal. Links are not followed, and nothing is looked for inside a run. Datasets that
/// were published, as a checkout holds them, are no runs that came back.
fn look_for(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), CollectError> {
    if folder.ends_with("performance/data") {
        return Ok(());
    }
    if folder.join(JOURNAL).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let read = io_error(folder, "read");
    for entry in std::fs::read_dir(folder).map_err(&read)? {
        let entry = entry.map_err(&read)?;
        if depth > 0 && entry.file_type().map_err(&read)?.is_dir() {
            look_for(&entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}

/// Copies the sealed files of a run, whose bytes must be those that were sealed; its seal, and how many
/// files its manifest has.
fn copy_checked(run: &Path, draft: &Path) -> Result<(String, usize), CollectError> {
    let name = name_of(run)?;
    let changed = |file: &str, why: &str| CollectError::Changed {
        run: name.clone(),
        file: file.to_owned(),
        why: why.to_owned(),
    };
    let closed = seal::closed(run).map_err(|why| match why {
        NotClosed::Journal(error) => error.into(),
        NotClosed::Open => CollectError::NotSealed { run: name.clone() },
        NotClosed::Seal => CollectError::Seal { run: name.clone() },
        NotClosed::Manifest(why) => changed(MANIFEST, &why),
        NotClosed::Malformed(error) => error.into(),
    })?;
    let listed: BTreeSet<&str> = closed
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    let there: BTreeSet<String> = seal::covered(run)?.into_iter().collect();
    if let Some(file) = there.iter().find(|file| !listed.contains(file.as_str())) {
        return Err(changed(file, "it was not there when the run was sealed"));
    }
    for entry in &closed.entries {
        if !there.contains(&entry.path) {
            return Err(changed(&entry.path, "it is missing"));
        }
        let bytes = read(&run.join(&entry.path))?;
        if hash::sha256(&bytes) != entry.sha256 {
            return Err(changed(
                &entry.path,
                "it was changed after the run was sealed",
            ));
        }
        store::write_unflushed(&draft.join(&entry.path), &bytes)?;
    }
    store::write_unflushed(&draft.join(MANIFEST), &closed.manifest)?;
    store::write_unflushed(&draft.join(JOURNAL), &closed.journal)?;
    Ok((closed.seal, closed.entries.len()))
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|source| StoreError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Name of a run's folder.
fn name_of(run: &Path) -> Result<String, CollectError> {
    let full = run.canonicalize().map_err(io_error(run, "read"))?;
    let name = full.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

/// Gives a checked run its place, its seal and its pages.
fn settle(
    from: &Path,
    draft: &Path,
    runs: &Path,
    seal: String,
    files: usize,
) -> Result<Collected, CollectError> {
    let collected = |run, was_here| Collected {
        run,
        seal: seal.clone(),
        files,
        was_here,
    };
    let name = name_of(from)?;
    for run in places(runs, &name) {
        if run.exists() {
            if seal::read_seal(&run).as_ref() == Some(&seal) {
                return Ok(collected(run, true));
            }
            continue;
        }
        private(draft)?;
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            draft,
            rustix::fs::CWD,
            &run,
            rustix::fs::RenameFlags::NOREPLACE,
        )
        .map_err(|error| io_error(&run, "made")(error.into()))?;
        seal::write_seal(&run, &seal)?;
        report::render_run(&run, &run.join("pages"))?;
        return Ok(collected(run, false));
    }
    unreachable!("there is always another number")
}

/// `x-guide-1` where that is free, else with the next numbers.
fn places(runs: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let (stem, first) = match name.rsplit_once('-') {
        Some((stem, number)) => (stem.to_owned(), number.parse::<u64>().ok()),
        None => (name.to_owned(), None),
    };
    let (runs, own) = (runs.to_owned(), runs.join(name));
    let from = first.unwrap_or(1);
    let stem = if first.is_some() {
        stem
    } else {
        name.to_owned()
    };
    let next = (from.saturating_add(1)..).map(move |number| runs.join(format!("{stem}-{number}")));
    std::iter::once(own).chain(next)
}

/// A run is its owner's alone.
fn private(run: &Path) -> Result<(), CollectError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(run, std::fs::Permissions::from_mode(0o700))
        .map_err(io_error(run, "written"))
}
