//! `publish`: a sealed, complete run becomes a dataset below `performance/data/`, whole or not at all.
//!
//! What leaves the lab is looked at once more, file by file, while it is copied: its digest is that of
//! the manifest, and it names no path, host or user of the machine. A stated part of a run gets a new
//! manifest, and its journal says of which whole it is a part.

use crate::audit::{files, text};
use crate::evidence::journal::{Journal, JournalError, JournalEvent, JOURNAL};
use crate::evidence::seal::{self, Closed, NotClosed, SealError, MANIFEST};
use crate::evidence::store::{self, StoreError};
use crate::evidence::{
    CampaignFile, Class, EnvironmentFile, Finding, ReasonCode, Status, CAMPAIGN_FILE,
};
use crate::hash;
use crate::host::readiness;
use crate::identity::Identity;
use crate::json::{self, Value};
use crate::place::{Place, PlaceError};
use crate::signature;
use protocol::Operation;
use rayon::prelude::*;
use regex::Regex;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Folder of the configuration.
    pub root: &'a Path,
    /// The run.
    pub run: &'a Path,
    /// Id of the dataset; without one it is the run's name less its system.
    pub id: Option<&'a str>,
    /// Make it the system's current dataset.
    pub current: bool,
    /// Only what matches, in `candidate/label/code/build/operation`.
    pub partial: Option<&'a Regex>,
    /// Publish although the host was not fixed.
    pub allow_unfixed_host: bool,
    /// Host and user names that must not leave the lab.
    pub names: &'a BTreeSet<String>,
}

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Published {
    /// The dataset.
    pub path: PathBuf,
    /// Its seal.
    pub seal: String,
    /// Its files, manifest and journal apart.
    pub files: usize,
}

/// A run cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// No sealing line at the end of its journal.
    #[error("{}: the run is not sealed; `campaign run --run {}` finishes and seals it", .0.display(), .0.display())]
    NotSealed(PathBuf),
    /// The seal file does not say what the journal says.
    #[error("{}: the seal beside the run is missing or not that of its journal: the run was changed after it was sealed", .0.display())]
    Seal(PathBuf),
    /// A class that never leaves the lab.
    #[error("{}: a run of class {class} is never published: {why}", .path.display())]
    Class {
        /// The run.
        path: PathBuf,
        /// Its class.
        class: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A study has no candidate pages, which a system's current dataset is asked for.
    #[error("{}: a study does not become the current dataset of its system: leave --current out", .0.display())]
    Study(PathBuf),
    /// Something is not done.
    #[error("{}: the run is incomplete, so nothing was published; finish it, or publish a part of it with --partial:{}", .path.display(), list(.what))]
    Incomplete {
        /// The run.
        path: PathBuf,
        /// What is not done.
        what: Vec<String>,
    },
    /// The machine could change its speed.
    #[error("{}: the host was not fixed, so nothing was published; measure on a fixed host (`campaign check`), or say --allow-unfixed-host:{}", .path.display(), list(.what))]
    UnfixedHost {
        /// The run.
        path: PathBuf,
        /// What was not as it should be.
        what: Vec<String>,
    },
    /// A file is not the one that was sealed.
    #[error("{}: files were changed after the run was sealed:{}", .path.display(), list(.what))]
    Changed {
        /// The run.
        path: PathBuf,
        /// Which, and how.
        what: Vec<String>,
    },
    /// Something that must not leave the lab.
    #[error("{}: it would publish names of the machine, so nothing was published:{}", .path.display(), list(.what))]
    Private {
        /// The run.
        path: PathBuf,
        /// File, place and text.
        what: Vec<String>,
    },
    /// Nothing matches.
    #[error("`{0}` matches nothing in the run: it is compared with candidate/label/code/build/operation")]
    Nothing(String),
    /// The journal cannot be read, or is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] SealError),
    /// A file of the run cannot be read, or one of the dataset not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dataset cannot be put in its place.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

fn list(what: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text: String = what
        .iter()
        .take(SHOWN)
        .map(|w| format!("\n  {w}"))
        .collect();
    if what.len() > SHOWN {
        text += &format!("\n  and {} more", what.len() - SHOWN);
    }
    text
}

/// Publishes a run.
pub fn publish(request: &Request) -> Result<Published, PublishError> {
    let whole = seal::closed(request.run).map_err(|why| not_closed(request.run, why))?;
    let campaign: CampaignFile = sealed_json(request, &whole.entries, CAMPAIGN_FILE)?;
    allowed(request, &campaign)?;
    let part = Part::of(request, &whole.entries)?;
    complete(request, &campaign, &part)?;
    fixed(request, &part)?;
    let id = request
        .id
        .map_or_else(|| default_id(request.run, &campaign.system), str::to_owned);
    let place = Place::new(request.root, &campaign.system, &id)?;
    let workshop = place.workshop()?;
    copy(request, &whole, &part, workshop.path())?;
    let seal = close(request, &whole, &part, workshop.path())?;
    let path = place.install(workshop, &seal, request.current)?;
    carry_signature(request, &part, &path)?;
    Ok(Published {
        path,
        seal,
        files: part.entries.len(),
    })
}

/// The whole has the seal of its run, and the signature of that with it; a part has neither.
fn carry_signature(request: &Request, part: &Part, to: &Path) -> Result<(), StoreError> {
    let (from, to) = (signature::path(request.run), signature::path(to));
    match std::fs::read(&from) {
        Ok(bytes) if !part.subset => store::write_atomic(&to, &bytes),
        // An older dataset of the same id may have left one.
        _ => match std::fs::remove_file(&to) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::Write { path: to, source })
            }
            _ => Ok(()),
        },
    }
}

/// `runs/x86_1-guide-3` is the dataset `guide-3` of `x86_1`.
fn default_id(run: &Path, system: &str) -> String {
    let absolute = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let name = absolute
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match name
        .strip_prefix(system)
        .and_then(|rest| rest.strip_prefix('-'))
    {
        Some(rest) => rest.to_owned(),
        None => name,
    }
}

/// What that means for a publication.
fn not_closed(run: &Path, why: NotClosed) -> PublishError {
    let path = run.to_owned();
    match why {
        NotClosed::Journal(error) => error.into(),
        NotClosed::Open => PublishError::NotSealed(path),
        NotClosed::Seal => PublishError::Seal(path),
        NotClosed::Manifest(_) => PublishError::Changed {
            path,
            what: vec![why.to_string()],
        },
        NotClosed::Malformed(error) => error.into(),
    }
}

/// The bytes of a file as they were sealed; what is wrong with it otherwise.
fn sealed_bytes(run: &Path, entry: &seal::Entry) -> Result<Vec<u8>, String> {
    let wrong = |what: String| format!("{}: {what}", entry.path);
    let bytes = files::read(run, &entry.path, files::LARGEST).map_err(wrong)?;
    match hash::sha256(&bytes) == entry.sha256 {
        true => Ok(bytes),
        false => Err(wrong("its digest is not that of the manifest".to_owned())),
    }
}

/// A sealed file of the run, understood.
fn sealed_json<T: DeserializeOwned>(
    request: &Request,
    entries: &[seal::Entry],
    file: &str,
) -> Result<T, PublishError> {
    let entry = entries.iter().find(|entry| entry.path == file);
    let bytes = entry
        .ok_or_else(|| format!("{file}: it was not sealed"))
        .and_then(|entry| sealed_bytes(request.run, entry))
        .map_err(|what| PublishError::Changed {
            path: request.run.to_owned(),
            what: vec![what],
        })?;
    let path = request.run.join(file);
    Ok(serde_json::from_slice(&bytes).map_err(|source| StoreError::Parse { path, source })?)
}

fn allowed(request: &Request, campaign: &CampaignFile) -> Result<(), PublishError> {
    let refuse = |class, why| {
        Err(PublishError::Class {
            path: request.run.to_owned(),
            class,
            why,
        })
    };
    if request.current && campaign.study.is_some() {
        return Err(PublishError::Study(request.run.to_owned()));
    }
    match campaign.class {
        Class::Local => refuse(
            "local",
            "its machine is not registered; add a [[system]] to campaign.toml and measure as that",
        ),
        Class::Emulated => refuse(
            "emulated",
            "it ran on another architecture than the system's and shows functions only",
        ),
        Class::Published | Class::Aggregate => refuse("published", "it has no evidence of its own"),
        Class::Registered | Class::Imported => Ok(()),
    }
}

/// What of a run is published.
struct Part {
    entries: Vec<seal::Entry>,
    /// Whether something was left out.
    subset: bool,
}

impl Part {
    fn of(request: &Request, manifest: &[seal::Entry]) -> Result<Self, PublishError> {
        let Some(regex) = request.partial else {
            return Ok(Part {
                entries: manifest.to_vec(),
                subset: false,
            });
        };
        let subjects: Vec<Option<Subject>> = manifest.iter().map(|e| subject(&e.path)).collect();
        let keys: BTreeSet<&Identity> = subjects
            .iter()
            .flatten()
            .filter(|s| {
                s.operation
                    .is_some_and(|o| regex.is_match(&s.identity.operation_key(o)))
            })
            .map(|s| &s.identity)
            .collect();
        if keys.is_empty() {
            return Err(PublishError::Nothing(regex.to_string()));
        }
        let wanted = |subject: &Option<Subject>| match subject {
            None => true,
            Some(Subject {
                identity,
                operation: Some(operation),
            }) => regex.is_match(&identity.operation_key(*operation)),
            Some(Subject {
                identity,
                operation: None,
            }) => keys.contains(identity),
        };
        let kept = manifest.iter().zip(&subjects).filter(|(_, s)| wanted(s));
        Ok(Part {
            entries: kept.map(|(entry, _)| entry.clone()).collect(),
            subset: true,
        })
    }

    fn has(&self, path: &str) -> bool {
        self.entries
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .is_ok()
    }
}

/// What a file of a run is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The identity.
    pub identity: Identity,
    /// The operation; `None` for KAT evidence and fits over all operations.
    pub operation: Option<Operation>,
}

/// What the file at `path` is about, by its name; `None` for files about the campaign as a whole.
pub fn subject(path: &str) -> Option<Subject> {
    let parts: Vec<&str> = path.split('/').collect();
    let (candidate, name) = match parts[..] {
        ["calibrate" | "kat" | "memory" | "profile" | "records", candidate, name] => {
            (candidate, name)
        }
        ["study", _, candidate, name] => (candidate, name),
        _ => return None,
    };
    let (stem, rest) = match name.split_once("__") {
        Some((stem, rest)) => (stem, rest),
        // kat: <label>.<code>.<build>.<library>.<ending>
        None => (name.rsplitn(3, '.').nth(2)?, ""),
    };
    let mut parts = stem.rsplitn(3, '.');
    let (build, code, label) = (parts.next()?, parts.next()?, parts.next()?);
    let word = rest.split(['.', '_']).next().unwrap_or_default();
    Some(Subject {
        identity: Identity::new(candidate, label, code, build).ok()?,
        operation: Operation::ALL.into_iter().find(|o| o.name() == word),
    })
}

/// Whether everything that the part is to hold is there and done.
fn complete(request: &Request, campaign: &CampaignFile, part: &Part) -> Result<(), PublishError> {
    let mut what = Vec::new();
    if !part.subset && campaign.ended_utc.is_none() {
        what.push("campaign.json: the campaign has no end".to_owned());
    }
    let wanted = |key: &str| request.partial.is_none_or(|regex| regex.is_match(key));
    for row in &campaign.rows {
        let keys = Operation::ALL.map(|o| (o, row.identity.operation_key(o)));
        let keys: Vec<_> = keys.iter().filter(|(_, key)| wanted(key)).collect();
        if keys.is_empty() {
            continue;
        }
        match (row.status, &row.reason) {
            (Status::Complete, _) if campaign.study.is_some() => {}
            (Status::Complete, _) => {
                let files = keys
                    .iter()
                    .map(|(o, _)| format!("records/{}", row.identity.operation_file(*o)));
                what.extend(
                    files
                        .filter(|f| !part.has(f))
                        .map(|f| format!("{f}: not measured")),
                );
            }
            (Status::Skipped, Some(reason)) if planned(reason.code) => {}
            (status, reason) => what.push(format!(
                "{}: {}",
                row.identity,
                reason
                    .as_ref()
                    .map_or(format!("{status:?}").to_lowercase(), |r| r.text.clone())
            )),
        }
    }
    match what.is_empty() {
        true => Ok(()),
        false => Err(PublishError::Incomplete {
            path: request.run.to_owned(),
            what,
        }),
    }
}

/// Reasons to skip a row that belong to what was asked for.
fn planned(code: ReasonCode) -> bool {
    matches!(
        code,
        ReasonCode::CpuFeature
            | ReasonCode::NotInPlan
            | ReasonCode::OverBudget
            | ReasonCode::Deferred
    )
}

fn fixed(request: &Request, part: &Part) -> Result<(), PublishError> {
    if request.allow_unfixed_host {
        return Ok(());
    }
    let mut what = Vec::new();
    for entry in part
        .entries
        .iter()
        .filter(|e| e.path.starts_with("environment/"))
    {
        let environment: EnvironmentFile = sealed_json(request, &part.entries, &entry.path)?;
        if !environment.ready {
            let items = unready(&environment.check).join(", ");
            what.push(format!("{}: {items}", entry.path));
        }
    }
    match what.is_empty() {
        true => Ok(()),
        false => Err(PublishError::UnfixedHost {
            path: request.run.to_owned(),
            what,
        }),
    }
}

/// Items that stand against measuring, each once: what does not apply, and advice, do not.
fn unready(check: &[Finding]) -> Vec<&str> {
    let against = check.iter().filter(|f| readiness::stands_against(f));
    let items: BTreeSet<&str> = against.map(|f| f.item.as_str()).collect();
    items.into_iter().collect()
}

/// Copies the part, each file checked against its digest and for names of the machine.
fn copy(request: &Request, whole: &Closed, part: &Part, to: &Path) -> Result<(), PublishError> {
    let checked: Vec<Result<Look, StoreError>> = part
        .entries
        .par_iter()
        .map(|entry| copy_one(request, entry, to))
        .collect();
    let (mut changed, mut private) = (Vec::new(), Vec::new());
    for look in checked {
        match look? {
            Look::Clean => {}
            Look::Changed(what) => changed.push(what),
            Look::Private(what) => private.push(what),
        }
    }
    let lines = whole.journal.split(|&b| b == b'\n');
    private.extend(lines.filter_map(|line| private_text(JOURNAL, line, request.names)));
    let path = request.run.to_owned();
    match (changed.is_empty(), private.is_empty()) {
        (false, _) => Err(PublishError::Changed {
            path,
            what: changed,
        }),
        (_, false) => Err(PublishError::Private {
            path,
            what: private,
        }),
        _ => Ok(store::write_unflushed(&to.join(JOURNAL), &whole.journal)?),
    }
}

enum Look {
    Clean,
    Changed(String),
    Private(String),
}

fn copy_one(request: &Request, entry: &seal::Entry, to: &Path) -> Result<Look, StoreError> {
    let bytes = match sealed_bytes(request.run, entry) {
        Ok(bytes) => bytes,
        Err(what) => return Ok(Look::Changed(what)),
    };
    if let Some(what) = private_text(&entry.path, &bytes, request.names) {
        return Ok(Look::Private(what));
    }
    store::write_unflushed(&to.join(&entry.path), &bytes)?;
    Ok(Look::Clean)
}

/// The first name or path of a machine in a file: in the strings of a JSON text, or in the words of
/// any other.
fn private_text(file: &str, bytes: &[u8], names: &BTreeSet<String>) -> Option<String> {
    let found = match json::parse(bytes) {
        Ok(value) => private_value(&value, names),
        Err(_) => {
            let text = String::from_utf8_lossy(bytes);
            let words = || text.split_whitespace().filter(|word| is_name(word, names));
            let path = text::local_path(&text).map(str::to_owned);
            path.or_else(|| words().next().map(str::to_owned))
                .map(|word| (String::new(), word))
        }
    };
    found.map(|(pointer, word)| format!("{file} {pointer}: {word}"))
}

fn private_value(value: &Value, names: &BTreeSet<String>) -> Option<(String, String)> {
    match value {
        Value::String(text) => {
            let text = text.decode();
            let path = text::local_path(&text).map(str::to_owned);
            path.or_else(|| is_name(&text, names).then(|| text.into_owned()))
                .map(|w| (String::new(), w))
        }
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            private_value(item, names).map(|(below, word)| (format!("/{index}{below}"), word))
        }),
        Value::Object(members) => members.iter().find_map(|(key, item)| {
            let key = key.decode();
            private_value(item, names)
                .map(|(below, word)| (format!("/{}{below}", json::escape_key(&key)), word))
        }),
        _ => None,
    }
}

/// Whether a text is one of the names, or a path with one of them as a part. A name inside a longer
/// word is none: `kiwi` is part of a product's name.
fn is_name(text: &str, names: &BTreeSet<String>) -> bool {
    names.contains(text) || (text.contains('/') && text.split('/').any(|part| names.contains(part)))
}

/// Manifest and journal of the dataset; returns its seal.
fn close(
    request: &Request,
    whole: &Closed,
    part: &Part,
    to: &Path,
) -> Result<String, PublishError> {
    let text = seal::manifest_text(&part.entries);
    store::write_unflushed(&to.join(MANIFEST), text.as_bytes())?;
    let Some(regex) = request.partial else {
        return Ok(whole.seal.clone());
    };
    let (mut journal, _) = Journal::resume(&to.join(JOURNAL))?;
    journal.append(JournalEvent::Subset {
        parent_seal: whole.seal.clone(),
        regex: regex.to_string(),
    })?;
    journal.append(JournalEvent::Sealed {
        manifest_sha256: hash::sha256(text.as_bytes()),
    })?;
    Ok(journal.last_sha256().to_owned())
}

/// Names of this machine and of its user: host name, its first part, login names, home folder.
pub fn local_names(run: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    names.extend(host.split('.').next().map(str::to_owned));
    names.insert(host);
    for variable in ["USER", "LOGNAME", "SUDO_USER"] {
        names.extend(std::env::var(variable));
    }
    if let Some(home) = std::env::var_os("HOME") {
        let last = Path::new(&home)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        names.extend(last);
    }
    names.extend(owner(run));
    // An empty name matches empty texts; `localhost` names no machine.
    names.remove("");
    names.remove("localhost");
    names
}

/// Login name of the owner of a folder.
fn owner(run: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata(run).ok()?.uid();
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok()??;
    Some(user.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::FindingState;

    #[test]
    fn only_what_stands_against_measuring_is_named_and_once() {
        let finding = |item: &str, state, advice| Finding {
            item: item.into(),
            cpu: None,
            advice,
            state,
            value: String::new(),
            source: String::new(),
            remedy: None,
        };
        let check = [
            finding("turbo", FindingState::Unknown, false),
            finding("governor", FindingState::Bad, false),
            finding("governor", FindingState::Bad, false),
            finding("smt", FindingState::NotApplicable, false),
            finding("load", FindingState::Bad, true),
            finding("swap", FindingState::Ok, false),
        ];
        assert_eq!(unready(&check), ["governor", "turbo"]);
    }

    #[test]
    fn a_files_name_says_what_it_is_about() {
        let identity = Identity::new("c", "a.b_1", "ref", "reference").unwrap();
        for (path, operation) in [
            (
                "records/c/a.b_1.ref.reference__sign.json",
                Some(Operation::Sign),
            ),
            (
                "records/c/a.b_1.ref.reference__verify.aa.json",
                Some(Operation::Verify),
            ),
            ("kat/c/a.b_1.ref.reference.timed.json", None),
            ("kat/c/a.b_1.ref.reference.timed.log", None),
            (
                "study/message-size/c/a.b_1.ref.reference__sign__mmap__1000.json",
                Some(Operation::Sign),
            ),
        ] {
            let expected = Subject {
                identity: identity.clone(),
                operation,
            };
            assert_eq!(subject(path), Some(expected), "{path}");
        }
        for path in [
            "campaign.json",
            "build.json",
            "environment/0.json",
            "records/x.json",
        ] {
            assert_eq!(subject(path), None, "{path}");
        }
    }

    #[test]
    fn names_are_whole_values_and_parts_of_paths() {
        let names = BTreeSet::from(["kiwi".to_owned(), "ada".to_owned()]);
        for (text, private) in [
            (r#"{"a":["kiwi"]}"#, Some("f /a/0: kiwi")),
            (r#"{"a":"runs/ada/x"}"#, Some("f /a: runs/ada/x")),
            (r#"{"a":"Kiwibook kiwi"}"#, None),
            (r#"{"kiwi":"x"}"#, None),
            (r#"{"a/b":"/home/x/y"}"#, Some("f /a~1b: /home/x/y")),
            ("log of ada here", Some("f : ada")),
            ("log of adamant", None),
            ("wrote /tmp/x/y", Some("f : /tmp/x/y")),
        ] {
            let found = private_text("f", text.as_bytes(), &names);
            assert_eq!(found.as_deref(), private, "{text}");
        }
    }

    #[test]
    fn an_id_is_the_runs_name_less_its_system() {
        assert_eq!(
            default_id(Path::new("runs/x86_1-guide-3"), "x86_1"),
            "guide-3"
        );
        assert_eq!(default_id(Path::new("runs/mine/"), "x86_1"), "mine");
    }
}
