//! A run or a dataset, read as a whole: what `report`, `compare` and `export` work from.
//!
//! Reading is tolerant of unfinished runs (a phase that has not begun has no files), but not of
//! damage: a file that does not parse is an error with its path. `audit` does not use this module; this
//! one uses its careful way to open files, because a dataset may be anybody's.

use crate::audit::files;
use crate::evidence::seal;
use crate::evidence::store::{self, StoreError};
use crate::evidence::{
    BuildFile, BuildRow, CalibrateEvidence, CampaignFile, CellsFile, EnvironmentFile, FitEvidence,
    Head, KatEvidence, KatIssueInfo, LibraryKind, MemoryEvidence, ProfileEvidence, StudyRecord,
    TimingRecord, BUILD_FILE, CAMPAIGN_FILE,
};
use crate::identity::Identity;
use protocol::Operation;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that a run or a dataset holds, typed.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The directory.
    pub path: PathBuf,
    /// Its name.
    pub id: String,
    /// `campaign.json`.
    pub campaign: CampaignFile,
    /// SHA-256 of its bytes.
    pub campaign_sha256: String,
    /// `build.json`.
    pub build: Option<Entry<BuildFile>>,
    /// `environment/<k>.json`, in order.
    pub environments: Vec<Entry<EnvironmentFile>>,
    /// `kat/`, by identity and library.
    pub kat: BTreeMap<(Identity, LibraryKind), Entry<KatEvidence>>,
    /// `calibrate/`.
    pub calibrate: BTreeMap<Key, Entry<CalibrateEvidence>>,
    /// `records/`, without the second timings of the noise floor.
    pub timing: BTreeMap<Key, Entry<TimingRecord>>,
    /// Second timings of the noise floor.
    pub aa: Vec<Entry<TimingRecord>>,
    /// `memory/`.
    pub memory: BTreeMap<Key, Entry<MemoryEvidence>>,
    /// `profile/`.
    pub profile: BTreeMap<Key, Entry<ProfileEvidence>>,
    /// `study/message-size/`, records only.
    pub studies: Vec<Entry<StudyRecord>>,
    /// `study/message-size/`, fitted models.
    pub fits: BTreeMap<Key, Entry<FitEvidence>>,
    /// `cells.json`, of an aggregate.
    pub cells: Option<Entry<CellsFile>>,
    /// The seal of the seal file beside the directory.
    pub seal: Option<String>,
    /// Where it is a published part of a run: seal of the whole and expression of what was taken.
    pub subsets: Vec<(String, String)>,
}

/// What a record is about.
pub type Key = (Identity, Operation);

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    /// Path below the directory.
    pub file: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its content.
    pub value: T,
}

/// A dataset that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// No `campaign.json`: the directory is something else.
    #[error("`{}` is no run and no dataset: it has no campaign.json", .0.display())]
    NotADataset(PathBuf),
    /// Another version wrote it.
    #[error("`{}` has the schema `{found}`; this version reads `{known}`", .path.display(), known = crate::evidence::SCHEMA)]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// A file that cannot be read or understood.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file that is no evidence: a link, a pipe, or larger than evidence can be.
    #[error("`{}` is no file of a dataset: {why}", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// It has a seal, and is not what was sealed.
    #[error(transparent)]
    Seal(#[from] seal::SealError),
    /// A folder that cannot be listed.
    #[error("cannot list `{}`", .path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Dataset {
    /// Reads the run or dataset in `path`, on all CPUs. What has a seal must be what was sealed: a page
    /// would show the seal beside other numbers.
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let campaign_path = path.join(CAMPAIGN_FILE);
        if !campaign_path.is_file() {
            return Err(DatasetError::NotADataset(path.to_owned()));
        }
        let campaign: Entry<CampaignFile> = read_entry(path, CAMPAIGN_FILE, |_| Ok(()))?;
        if campaign.value.schema != crate::evidence::SCHEMA {
            return Err(DatasetError::Version {
                path: campaign_path,
                found: campaign.value.schema,
            });
        }
        let real = path.canonicalize().ok();
        let seal = real.as_deref().and_then(seal::read_seal);
        let files = Files::of(path, seal.is_some())?;
        files.compare(CAMPAIGN_FILE, &campaign.sha256)?;
        let timings = files.folder::<TimingRecord>("records")?;
        let (aa, timing): (Vec<_>, Vec<_>) = timings.into_iter().partition(|e| e.value.aa);
        let mut environments = files.folder::<EnvironmentFile>("environment")?;
        environments.sort_by_key(|e| e.value.k);
        let dataset = Dataset {
            id: real
                .as_deref()
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            path: path.to_owned(),
            campaign: campaign.value,
            campaign_sha256: campaign.sha256,
            build: files.optional(BUILD_FILE)?,
            environments,
            kat: files
                .folder::<KatEvidence>("kat")?
                .into_iter()
                .map(|e| ((e.value.head.identity.clone(), e.value.library.kind), e))
                .collect(),
            calibrate: keyed(files.folder("calibrate")?, |v: &CalibrateEvidence| {
                (&v.head, v.operation)
            }),
            timing: keyed(timing, |v| (&v.head, v.operation)),
            aa,
            memory: keyed(files.folder("memory")?, |v: &MemoryEvidence| {
                (&v.head, v.operation)
            }),
            profile: keyed(files.folder("profile")?, |v: &ProfileEvidence| {
                (&v.head, v.operation)
            }),
            studies: files.matching("study", |name| !name.ends_with(".fit.json"))?,
            fits: keyed(
                files.matching("study", |name| name.ends_with(".fit.json"))?,
                |v: &FitEvidence| (&v.head, v.operation),
            ),
            cells: files.optional("cells.json")?,
            seal,
            subsets: files.subsets.clone(),
        };
        files.compare_rest()?;
        Ok(dataset)
    }

    /// Row of `build.json` for an identity.
    pub fn build_row(&self, identity: &Identity) -> Option<&BuildRow> {
        let rows = &self.build.as_ref()?.value.rows;
        rows.iter().find(|row| row.identity == *identity)
    }

    /// The known answers of an identity's timed library: the one that figures are of.
    pub fn kat_of(&self, identity: &Identity) -> Option<&Entry<KatEvidence>> {
        self.kat.get(&(identity.clone(), LibraryKind::Timed))
    }

    /// The deviation from the known answers that the configuration knows of an identity, if that result
    /// word is it.
    pub fn known_deviation(&self, identity: &Identity, word: &str) -> Option<&KatIssueInfo> {
        let candidates = self.campaign.candidates.iter();
        candidates
            .filter(|candidate| candidate.id == identity.candidate)
            .flat_map(|candidate| &candidate.kat_issues)
            .find(|issue| issue.instance == identity.label && issue.result == word)
    }

    /// The last session's environment.
    pub fn environment(&self) -> Option<&EnvironmentFile> {
        self.environments.last().map(|e| &e.value)
    }

    /// Identities of a candidate, in page order.
    pub fn identities(&self, candidate: &str) -> Vec<&Identity> {
        let mut all: Vec<&Identity> = self
            .campaign
            .rows
            .iter()
            .map(|row| &row.identity)
            .filter(|identity| identity.candidate == candidate)
            .collect();
        all.sort();
        all
    }
}

/// Datasets for a command that shows some of them in several places: each is read once.
#[derive(Debug, Default)]
pub struct Shelf {
    read: BTreeMap<PathBuf, Rc<Dataset>>,
}

impl Shelf {
    /// The run or dataset in `path`.
    pub fn take(&mut self, path: &Path) -> Result<Rc<Dataset>, DatasetError> {
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(dataset) = self.read.get(&place) {
            return Ok(Rc::clone(dataset));
        }
        let dataset = Rc::new(Dataset::read(path)?);
        self.read.insert(place, Rc::clone(&dataset));
        Ok(dataset)
    }
}

/// The files of a run or dataset, each read once; those of a sealed one are what was sealed, or an error.
struct Files<'a> {
    root: &'a Path,
    /// What is sealed, by path; `None` for an open run.
    sealed: Option<BTreeMap<String, Sealed>>,
    /// Where it is a part of a run, of which.
    subsets: Vec<(String, String)>,
}

/// A file of a manifest.
struct Sealed {
    sha256: String,
    /// Whether what is there was compared with it.
    compared: AtomicBool,
}

impl<'a> Files<'a> {
    fn of(root: &'a Path, sealed: bool) -> Result<Self, DatasetError> {
        let mut files = Files {
            root,
            sealed: None,
            subsets: Vec::new(),
        };
        if sealed {
            let closed = seal::closed(root).map_err(|why| files.broken(why.to_string()))?;
            let sealed = closed.entries.into_iter().map(|entry| {
                let file = Sealed {
                    sha256: entry.sha256,
                    compared: AtomicBool::new(false),
                };
                (entry.path, file)
            });
            let sealed: BTreeMap<_, _> = sealed.collect();
            let there = BTreeSet::from_iter(seal::covered(root)?);
            let listed = sealed.keys().cloned().collect();
            if let Some(path) = there.symmetric_difference(&listed).next() {
                return Err(files.broken(format!("{path} was added or removed")));
            }
            files.sealed = Some(sealed);
            files.subsets = closed.subsets;
        }
        Ok(files)
    }

    fn broken(&self, what: String) -> DatasetError {
        let path = self.root.to_owned();
        seal::SealError::Broken { path, what }.into()
    }

    /// Compares the digest of what was read with that of what was sealed.
    fn compare(&self, file: &str, sha256: &str) -> Result<(), DatasetError> {
        let Some(files) = &self.sealed else {
            return Ok(());
        };
        match files.get(file) {
            Some(sealed) if sealed.sha256 == sha256 => {
                sealed.compared.store(true, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(self.broken(format!("{file} was changed"))),
        }
    }

    /// Compares the sealed files that nobody asked for: logs, sources.
    fn compare_rest(&self) -> Result<(), DatasetError> {
        let files = self.sealed.iter().flatten();
        let rest = files.filter(|(_, sealed)| !sealed.compared.load(Ordering::Relaxed));
        let rest: Vec<&String> = rest.map(|(file, _)| file).collect();
        rest.into_par_iter().try_for_each(|file| {
            let path = self.root.join(file);
            match crate::hash::sha256_file(&path) {
                Ok(sha256) => self.compare(file, &sha256),
                Err(source) => Err(StoreError::Read { path, source }.into()),
            }
        })
    }

    fn entry<T: DeserializeOwned>(&self, file: &str) -> Result<Entry<T>, DatasetError> {
        read_entry(self.root, file, |sha256| self.compare(file, sha256))
    }

    fn optional<T: DeserializeOwned>(&self, file: &str) -> Result<Option<Entry<T>>, DatasetError> {
        match self.root.join(file).is_file() {
            true => self.entry(file).map(Some),
            false => Ok(None),
        }
    }

    fn folder<T: DeserializeOwned + Send>(
        &self,
        name: &str,
    ) -> Result<Vec<Entry<T>>, DatasetError> {
        self.matching(name, |_| true)
    }

    /// All JSON files below a folder whose name `wanted` accepts, in order of path.
    fn matching<T: DeserializeOwned + Send>(
        &self,
        folder: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Entry<T>>, DatasetError> {
        let mut files = Vec::new();
        if self.root.join(folder).is_dir() {
            list(self.root, Path::new(folder), &mut files)?;
        }
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".json") && !store::is_temporary(&name) && wanted(&name)
        });
        files.sort();
        files
            .into_par_iter()
            .map(|file| self.entry(&file.to_string_lossy()))
            .collect()
    }
}

/// Reads one file, whose digest `compare` accepts.
fn read_entry<T: DeserializeOwned>(
    root: &Path,
    file: &str,
    compare: impl FnOnce(&str) -> Result<(), DatasetError>,
) -> Result<Entry<T>, DatasetError> {
    let path = root.join(file);
    let bytes = files::read(root, file, files::LARGEST).map_err(|why| DatasetError::Foreign {
        path: path.clone(),
        why,
    })?;
    let sha256 = crate::hash::sha256(&bytes);
    compare(&sha256)?;
    let value =
        serde_json::from_slice(&bytes).map_err(|source| StoreError::Parse { path, source })?;
    Ok(Entry {
        file: file.to_owned(),
        sha256,
        value,
    })
}

fn list(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<(), DatasetError> {
    let path = root.join(below);
    let wrap = |source| DatasetError::List {
        path: path.clone(),
        source,
    };
    for item in std::fs::read_dir(&path).map_err(wrap)? {
        let item = item.map_err(wrap)?;
        let file = below.join(item.file_name());
        if item.file_type().map_err(wrap)?.is_dir() {
            list(root, &file, files)?;
        } else {
            files.push(file);
        }
    }
    Ok(())
}

fn keyed<T>(
    entries: Vec<Entry<T>>,
    key: impl Fn(&T) -> (&Head, Operation),
) -> BTreeMap<Key, Entry<T>> {
    entries
        .into_iter()
        .map(|entry| {
            let (head, operation) = key(&entry.value);
            ((head.identity.clone(), operation), entry)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{sealed, Synthetic};

    const LOG: &str = "notes.txt";

    /// A sealed run, with a file that no page shows.
    fn run() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("x86_1-guide-1");
        sealed::write(&Synthetic::default(), &dir).unwrap();
        std::fs::write(dir.join(LOG), "a log").unwrap();
        sealed::reseal(&dir).unwrap();
        (home, dir)
    }

    #[test]
    fn a_file_that_changes_after_the_seal_was_read_is_not_shown() {
        let (_home, dir) = run();
        let files = Files::of(&dir, true).unwrap();
        let records: Vec<Entry<TimingRecord>> = files.folder("records").unwrap();
        let record = dir.join(&records[0].file);
        let text = std::fs::read_to_string(&record).unwrap();
        std::fs::write(&record, text.trim_end()).unwrap();
        let again = files.folder::<TimingRecord>("records").unwrap_err();
        assert!(matches!(again, DatasetError::Seal(_)), "{again}");
    }

    #[test]
    fn files_that_no_page_shows_are_compared_as_well() {
        let (_home, dir) = run();
        assert_eq!(Dataset::read(&dir).unwrap().seal, seal::read_seal(&dir));
        std::fs::write(dir.join(LOG), "another log").unwrap();
        let error = Dataset::read(&dir).unwrap_err();
        assert!(error.to_string().contains(LOG), "{error}");
    }

    #[test]
    fn a_dataset_is_read_once_however_it_is_named() {
        let (home, dir) = run();
        let mut shelf = Shelf::default();
        let first = shelf.take(&dir).unwrap();
        let again = shelf.take(&home.path().join(".").join("x86_1-guide-1"));
        assert!(Rc::ptr_eq(&first, &again.unwrap()));
    }
}
