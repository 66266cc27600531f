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
    Head, KatEvidence, LibraryKind, MemoryEvidence, ProfileEvidence, StudyRecord, TimingRecord,
};
use crate::identity::Identity;
use protocol::Operation;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
}

/// What was planned and how far it came.
pub const CAMPAIGN_FILE: &str = "campaign.json";

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
        let Entry {
            value: campaign,
            sha256: campaign_sha256,
            ..
        } = entry::<CampaignFile>(path, CAMPAIGN_FILE.into())?;
        if campaign.schema != crate::evidence::SCHEMA {
            return Err(DatasetError::Version {
                path: campaign_path,
                found: campaign.schema,
            });
        }
        let seal = path
            .canonicalize()
            .ok()
            .and_then(|dir| seal::read_seal(&dir));
        if let Some(seal) = &seal {
            seal::verify(path, seal)?;
        }
        let timings = folder::<TimingRecord>(path, "records")?;
        let (aa, timing): (Vec<_>, Vec<_>) = timings.into_iter().partition(|e| e.value.aa);
        let mut environments = folder::<EnvironmentFile>(path, "environment")?;
        environments.sort_by_key(|e| e.value.k);
        Ok(Dataset {
            id: path
                .canonicalize()
                .ok()
                .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()))
                .unwrap_or_default(),
            path: path.to_owned(),
            campaign,
            campaign_sha256,
            build: optional(path, "build.json")?,
            environments,
            kat: folder::<KatEvidence>(path, "kat")?
                .into_iter()
                .map(|e| ((e.value.head.identity.clone(), e.value.library.kind), e))
                .collect(),
            calibrate: keyed(folder(path, "calibrate")?, |v: &CalibrateEvidence| {
                (&v.head, v.operation)
            }),
            timing: keyed(timing, |v| (&v.head, v.operation)),
            aa,
            memory: keyed(folder(path, "memory")?, |v: &MemoryEvidence| {
                (&v.head, v.operation)
            }),
            profile: keyed(folder(path, "profile")?, |v: &ProfileEvidence| {
                (&v.head, v.operation)
            }),
            studies: folder_matching(path, "study", |name| !name.ends_with(".fit.json"))?,
            fits: keyed(
                folder_matching(path, "study", |name| name.ends_with(".fit.json"))?,
                |v: &FitEvidence| (&v.head, v.operation),
            ),
            cells: optional(path, "cells.json")?,
            seal,
        })
    }

    /// Row of `build.json` for an identity.
    pub fn build_row(&self, identity: &Identity) -> Option<&BuildRow> {
        let rows = &self.build.as_ref()?.value.rows;
        rows.iter().find(|row| row.identity == *identity)
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

fn optional<T: DeserializeOwned>(
    root: &Path,
    file: &str,
) -> Result<Option<Entry<T>>, DatasetError> {
    if root.join(file).is_file() {
        entry(root, PathBuf::from(file)).map(Some)
    } else {
        Ok(None)
    }
}

fn entry<T: DeserializeOwned>(root: &Path, file: PathBuf) -> Result<Entry<T>, DatasetError> {
    let path = root.join(&file);
    let below = file.to_string_lossy();
    let bytes = files::read(root, &below, files::LARGEST).map_err(|why| DatasetError::Foreign {
        path: path.clone(),
        why,
    })?;
    let value =
        serde_json::from_slice(&bytes).map_err(|source| StoreError::Parse { path, source })?;
    Ok(Entry {
        file: below.into_owned(),
        sha256: crate::hash::sha256(&bytes),
        value,
    })
}

fn folder<T: DeserializeOwned + Send>(
    root: &Path,
    name: &str,
) -> Result<Vec<Entry<T>>, DatasetError> {
    folder_matching(root, name, |_| true)
}

/// All JSON files below a folder whose name `wanted` accepts, in order of path.
fn folder_matching<T: DeserializeOwned + Send>(
    root: &Path,
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Entry<T>>, DatasetError> {
    let mut files = Vec::new();
    if root.join(name).is_dir() {
        list(root, Path::new(name), &mut files)?;
    }
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json") && !name.starts_with(store::TEMPORARY) && wanted(&name)
    });
    files.sort();
    files
        .into_par_iter()
        .map(|file| entry(root, file))
        .collect()
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
