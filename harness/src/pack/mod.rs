//! A campaign for a machine without a build environment: one tar that holds all that a run needs.
//!
//! [`make`] writes it where there are compilers, [`open`] checks an unpacked one before a run takes its
//! libraries from it ([`crate::phases::packed`]), and what the run left comes back through
//! [`crate::collect`]. [`needs`] says what a program asks of the machine that it is carried to.
//!
//! ```text
//! pack-<system>/
//!   campaign  worker                 for the system's architecture
//!   campaign.toml                    the configuration, byte for byte
//!   pack.json                        what the pack is for ([`PackFile`])
//!   build.json  lib/                 the libraries of each identity, named by digest
//!   performance/...                  KAT manifests and the size catalogue, at their places
//!   templates/                       words of the pages
//!   README.txt
//!   DIGESTS.sha256                   all of these, for `sha256sum -c`
//! ```

pub mod make;
pub mod needs;

use crate::config;
use crate::evidence::seal::{self, SealError};
use crate::evidence::store::{self, StoreError};
use crate::evidence::BUILD_FILE;
use crate::hash;
use needs::Needs;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the pack is for.
pub const FILE: &str = "pack.json";
/// Digests of all files of a pack.
pub const DIGESTS: &str = "DIGESTS.sha256";
/// The program in a pack.
pub const PROGRAM: &str = "campaign";
/// The worker in a pack.
pub const WORKER: &str = "worker";
/// Version of the layout.
const VERSION: u32 = 1;

/// `pack.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackFile {
    /// Version of the layout.
    pub version: u32,
    /// Id of the system, or `local`.
    pub system: String,
    /// Its architecture.
    pub arch: String,
    /// `--plan` of the pack: the plan of a run that names none.
    pub plan: Option<String>,
    /// `--only` of the pack: the selection of a run that names none.
    pub only: Option<String>,
    /// Version of the program.
    pub tool_version: String,
    /// Its build id, which the worker's is equal to.
    pub build_id: String,
    /// What the programs and libraries need of the machine.
    pub needs: Needs,
}

/// A pack cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is none in the folder.
    #[error("`{}` is no unpacked campaign: it has no {FILE}; unpack the archive of `campaign pack` and name its folder", .0.display())]
    NoPack(PathBuf),
    /// Its layout is another one.
    #[error("the pack has the layout {theirs}, and this program knows {VERSION}: use the `campaign` that is in the pack")]
    Layout {
        /// The pack's.
        theirs: u32,
    },
    /// Another program made it.
    #[error("the pack was made by another version of this program (build id {theirs}, this is {ours}): use the `campaign` that is in the pack", ours = protocol::BUILD_ID)]
    AnotherVersion {
        /// Build id of the pack.
        theirs: String,
    },
    /// It is for another system.
    #[error("the pack was made for the system {theirs}, and this run is of {ours}; make one for it with `campaign pack --system {ours}`")]
    AnotherSystem {
        /// The pack's.
        theirs: String,
        /// The run's.
        ours: String,
    },
    /// A file of it is not what the list of digests says.
    #[error("`{file}` of the pack was changed since it was packed; unpack it again")]
    Changed {
        /// The file, below the pack.
        file: String,
    },
    /// What is to be measured is not in it.
    #[error("the pack has no library of {identity}: it was made with other --plan or --only; make another pack, or leave both out")]
    Absent {
        /// The identity.
        identity: String,
    },
    /// The list of digests is malformed.
    #[error("the pack's list of digests cannot be read")]
    Digests(#[source] SealError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A program would not run there.
    #[error("`{program}` cannot be shipped: {why}")]
    Unfit {
        /// The program.
        program: String,
        /// Why not.
        why: String,
    },
    /// A file that the pack must hold lies outside of the campaign.
    #[error("`{0}` leads out of the folder of campaign.toml, so a pack cannot hold it at its place: move it below")]
    Outside(PathBuf),
    /// What is at the place of the archive is no file.
    #[error("`{}` is there and is no regular file, so no archive takes its place; name another place with --out", .0.display())]
    Special(PathBuf),
    /// The archive cannot be written.
    #[error("{path}: the archive cannot be written; name another place with --out", path = path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Reads and checks the unpacked campaign in `dir`: every listed file is there with its digest, and
/// this program is the pack's own version.
pub fn open(dir: &Path) -> Result<PackFile, PackError> {
    let path = dir.join(FILE);
    if !path.is_file() {
        return Err(PackError::NoPack(dir.to_owned()));
    }
    let file: PackFile = store::read_json(&path)?;
    if file.version != VERSION {
        let theirs = file.version;
        return Err(PackError::Layout { theirs });
    }
    if file.build_id != protocol::BUILD_ID {
        let theirs = file.build_id;
        return Err(PackError::AnotherVersion { theirs });
    }
    for entry in digests(dir)? {
        let changed = hash::sha256_file(&dir.join(&entry.path)).map_or(true, |d| d != entry.sha256);
        if changed {
            return Err(PackError::Changed { file: entry.path });
        }
    }
    Ok(file)
}

/// The list of digests; what a run takes from a pack must be in it.
pub fn digests(dir: &Path) -> Result<Vec<seal::Entry>, PackError> {
    let path = dir.join(DIGESTS);
    let text =
        std::fs::read_to_string(&path).map_err(|source| StoreError::Read { path, source })?;
    let entries = seal::parse_manifest(&text).map_err(PackError::Digests)?;
    for needed in [FILE, WORKER, config::FILE, BUILD_FILE] {
        if !entries.iter().any(|entry| entry.path == needed) {
            let file = needed.to_owned();
            return Err(PackError::Changed { file });
        }
    }
    Ok(entries)
}
