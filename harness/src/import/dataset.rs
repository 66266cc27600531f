//! Writing an imported dataset, and its place.
//!
//! The journal of an import carries the time at which the source's campaign ended: an import is a
//! function of its source, and two imports of one source have one seal.

use super::context::Context;
use super::derive::{self, SOURCE};
use super::read::{self, Evidence};
use super::ImportError;
use crate::audit::{text, Severity};
use crate::clock::Stamp;
use crate::config::model::Campaign;
use crate::evidence::journal::{self, JournalEvent, JOURNAL};
use crate::evidence::seal::{self, MANIFEST};
use crate::evidence::store::{self, StoreError};
use crate::hash;
use crate::place::Place;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// The dataset.
    pub path: PathBuf,
    /// Its seal.
    pub seal: String,
    /// Its files, the manifest and the journal apart.
    pub files: usize,
    /// How often the host name was dropped.
    pub dropped: u64,
    /// Files of the source that do not belong to its format and were left out.
    pub left_out: Vec<String>,
}

/// Imports a directory of schema 2 for a system. Without an id the dataset is `public-<year>`.
pub fn import(
    config: &Campaign,
    dir: &Path,
    system: &str,
    id: Option<&str>,
    current: bool,
) -> Result<Imported, ImportError> {
    // The name of the dataset may depend on the source, so the workshop is made for any.
    let workshop = Place::new(&config.root, system, "any")?.workshop()?;
    let written = Mutex::new(Vec::new());
    let write = |path: &str, bytes: &[u8]| {
        let entry = put(workshop.path(), path, bytes)?;
        let mut written = written.lock().unwrap_or_else(|e| e.into_inner());
        written.push(entry);
        Ok::<(), StoreError>(())
    };
    let keep = |path: &str, bytes: &[u8]| {
        write(&format!("{SOURCE}/{path}"), bytes).map_err(|error| error.to_string())
    };
    let (evidence, findings) = read::read(dir, &keep);
    let sound = !findings.iter().any(|f| f.severity == Severity::Error);
    let evidence = evidence
        .filter(|_| sound)
        .ok_or_else(|| ImportError::Unsound {
            dir: dir.to_owned(),
            findings,
        })?;
    if evidence.campaign.system_id != system {
        return Err(ImportError::System {
            asked: system.to_owned(),
            found: evidence.campaign.system_id,
        });
    }
    let context = Context::of(config, system, &evidence);
    derive::each(&evidence, &context, &|(path, bytes)| {
        Ok(write(&path, &bytes)?)
    })?;
    let entries = written.into_inner().unwrap_or_else(|e| e.into_inner());
    let count = entries.len();
    let seal = close(workshop.path(), entries, derive::TEXT, stamp(&evidence))?;
    let id = id.map_or_else(|| public(&evidence.campaign.started_utc), str::to_owned);
    Ok(Imported {
        path: Place::new(&config.root, system, &id)?.install(workshop, &seal, current)?,
        seal,
        files: count,
        dropped: evidence.dropped,
        left_out: evidence.unknown,
    })
}

/// `public-<year>`
pub(super) fn public(utc: &str) -> String {
    format!("public-{}", utc.chars().take(4).collect::<String>())
}

fn stamp(evidence: &Evidence) -> Stamp {
    let end = text::utc_ns(&evidence.campaign.ended_utc).unwrap_or_default();
    Stamp {
        utc_us: i64::try_from(end / 1000).unwrap_or_default(),
        monotonic_ns: 0,
    }
}

/// Writes manifest and journal of an import, whose files are there already. Returns the seal.
pub(super) fn close(
    dir: &Path,
    mut entries: Vec<seal::Entry>,
    text: &str,
    stamp: Stamp,
) -> Result<String, ImportError> {
    entries.sort();
    let manifest = seal::manifest_text(&entries);
    put(dir, MANIFEST, manifest.as_bytes())?;
    let mut events = vec![JournalEvent::Imported {
        text: text.to_owned(),
    }];
    events.extend(entries.into_iter().map(|entry| JournalEvent::Written {
        path: entry.path,
        sha256: entry.sha256,
    }));
    events.push(JournalEvent::Sealed {
        manifest_sha256: hash::sha256(manifest.as_bytes()),
    });
    let (journal, seal) = journal::compose(events.into_iter().map(|event| (stamp, event)));
    put(dir, JOURNAL, journal.as_bytes())?;
    Ok(seal)
}

/// Writes one file, and returns its line of the manifest; the whole is flushed when it is put in its place.
pub(super) fn put(dir: &Path, below: &str, bytes: &[u8]) -> Result<seal::Entry, StoreError> {
    store::write_unflushed(&dir.join(below), bytes)?;
    Ok(seal::Entry {
        path: below.to_owned(),
        sha256: hash::sha256(bytes),
    })
}
