//! `audit`: recomputes every published number from the raw evidence, with code of its own.
//!
//! Nothing here uses what measures or plans: not [`crate::stats`], not [`crate::plan`], not
//! [`crate::dataset`]. The evidence is read as plain JSON ([`crate::json`]), so that a mistake in the
//! types of the evidence cannot hide itself; the types serve to say what shape a file must have.
//!
//! | file | checks |
//! |---|---|
//! | `chain.rs` | journal, manifest, seal |
//! | `files.rs` | what may lie in a dataset |
//! | `shape.rs` | schema, form, reasons of nulls |
//! | `facts.rs` | campaign, builds, sessions: what others are held against |
//! | `head.rs` | the common head |
//! | `timing.rs` | timing records |
//! | `codes.rs` | why something is missing, where that follows |
//! | `asked.rs` | requests and inputs of timing records |
//! | `kat.rs` | KAT: result, log, manifest, the libraries of an identity |
//! | `other.rs` | calibration, memory, profile; what KAT evidence has in common with them |
//! | `study.rs` | points and models of the message-size study |
//! | `cross.rs` | what several files say of one thing |
//! | `course.rs` | the course of a run: its journal against rows, records and moments |
//! | `imported.rs` | imports: derived again from their source |
//! | `schema2.rs` | the rules of the public campaign's format |
//! | `pages.rs` | the pages, rendered again |

mod asked;
mod chain;
mod codes;
mod course;
mod cross;
mod facts;
pub mod files;
mod finding;
mod head;
mod imported;
mod kat;
pub mod number;
mod other;
pub mod pages;
pub mod schema2;
mod shape;
mod study;
pub mod text;
mod timing;

pub use finding::{printable, Finding, Findings, Severity};

use crate::json::Value;
use cross::Evidence;
use facts::Facts;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use shape::Form;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The size catalogue below the root of a campaign.
const CATALOGUE: &str = "performance/external_sizes.csv";

/// The configuration in the root of a campaign.
const CONFIGURATION: &str = "campaign.toml";

/// What an audit found.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    /// The dataset.
    pub dataset: PathBuf,
    /// Its seal; null where there is none.
    pub seal: Option<String>,
    /// Whether its numbers could be recomputed: cells without trials cannot.
    pub auditable: bool,
    /// Allowed signer of the seal, where a signature was asked for and holds.
    pub signer: Option<String>,
    /// Files examined.
    pub files: usize,
    /// In order of file and place.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether a finding refutes the evidence.
    pub fn is_refuted(&self) -> bool {
        cross::refuted(&self.findings)
    }
}

/// Audits a run or a dataset; pages are not looked at.
pub fn audit(path: &Path) -> Report {
    let listing = files::list(path, &chain::NOT_COVERED);
    let mut findings = listing.findings;
    let journal = chain::journal(path, &mut findings);
    let manifest = chain::manifest(path, &journal, &mut findings);
    let seal = chain::seal(path, &journal, &mut findings);
    chain::coverage(&listing.files, &manifest, &journal, &mut findings);
    let mut audit = Audit {
        root: path,
        manifest: &manifest,
        facts: Facts {
            sizes: above(path, CATALOGUE).map_or_else(BTreeMap::new, |text| facts::sizes(&text)),
            systems: above(path, CONFIGURATION)
                .map_or_else(BTreeMap::new, |text| facts::systems(&text)),
            manifests: kat::manifests(path),
            jumped_ns: journal.jumped_ns,
            ..Facts::default()
        },
    };
    audit.first(&listing.files, &mut findings);
    let evidence = audit.rest(&listing.files, &mut findings);
    findings.append(&mut cross::check(&evidence, &audit.facts, &journal));
    let auditable = audit.facts.class != "aggregate";
    imported::check(path, &audit.facts.class, &mut findings);
    findings.sort_by(|a, b| (&a.file, &a.pointer).cmp(&(&b.file, &b.pointer)));
    Report {
        dataset: path.to_owned(),
        seal,
        signer: None,
        auditable,
        files: listing.files.len(),
        findings,
    }
}

/// What an audit finds in one file, by itself and by its place: all that does not need other files.
pub fn file(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let audit = Audit {
        root: Path::new(""),
        manifest: &BTreeMap::new(),
        facts: Facts::default(),
    };
    let mut f = Findings::of(path);
    match Form::of(path) {
        form @ (Form::Campaign | Form::Build | Form::Environment) => {
            if let Some(value) = shape::check(form, bytes, &mut f) {
                Facts::default().take(form, path, &value, &mut f);
            }
        }
        form => {
            audit.examine(form, path, bytes, &mut f);
        }
    }
    f.list
}

/// What an audit finds in the bytes of a journal.
pub fn journal(bytes: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    chain::journal_from(bytes, &mut findings);
    findings
}

/// Paths and digests of a manifest, and what an audit finds in its bytes.
pub fn manifest(bytes: &[u8]) -> (BTreeMap<String, String>, Vec<Finding>) {
    let (mut entries, mut f) = (BTreeMap::new(), Findings::of(chain::MANIFEST));
    chain::parse_manifest(bytes, &mut entries, &mut f);
    (entries, f.list)
}

/// A file of the nearest folder above the dataset that has it.
fn above(path: &Path, file: &str) -> Option<String> {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    absolute
        .ancestors()
        .find_map(|folder| std::fs::read_to_string(folder.join(file)).ok())
}

struct Audit<'a> {
    root: &'a Path,
    manifest: &'a BTreeMap<String, String>,
    facts: Facts,
}

/// What is kept of a file when its bytes are gone.
struct Seen {
    path: String,
    sha256: String,
    findings: Vec<Finding>,
    what: What,
}

enum What {
    Kat(head::Head, other::Kat, Span),
    Calibrate(head::Head, other::Calibration),
    Timing(head::Head, timing::Record),
    Study(head::Head, timing::Record, study::Point),
    Fit(head::Head, study::Fit),
    Memory(head::Head, Option<u64>),
    Profile(head::Head, Option<u64>),
    Nothing,
}

/// First and last moment of something, nanoseconds since the epoch.
type Span = (Option<i128>, Option<i128>);

fn span(value: &Value) -> Span {
    let at = |key: &str| text::utc_ns(&value.get(key)?.str()?);
    (at("start"), at("end"))
}

/// The runs of memory evidence are of one key and one message each, numbered; their number.
fn numbered(value: &Value, facts: &Facts, f: &mut Findings) -> Option<u64> {
    let runs = value.get("runs")?.items();
    for (index, run) in (0..).zip(runs).filter(|_| facts.is_own()) {
        let of = ["key", "message"].map(|key| run.get(key).and_then(Value::u64));
        if of != [Some(index); 2] {
            let rule = "each run is of a key and a message of its own";
            f.error(format!("/runs/{index}"), rule, index, format!("{of:?}"));
        }
    }
    Some(runs.len() as u64)
}

/// Functions are of the group that they were wrapped in.
fn groups(value: &Value, head: &head::Head, facts: &Facts, f: &mut Findings) {
    let Some(built) = facts.builds.get(&head.identity).filter(|_| facts.is_own()) else {
        return;
    };
    let calls = value.get("calls").map_or(&[][..], Value::items);
    for (index, call) in calls.iter().enumerate() {
        let name = facts::text(call, "function").unwrap_or_default();
        let (known, found) = (built.groups.get(&name), facts::text(call, "group"));
        if known != found.as_ref() {
            let (known, found) = (format!("{known:?}"), format!("{found:?}"));
            let pointer = format!("/calls/{index}/group");
            f.error(
                pointer,
                "a function is of the group of build.json",
                known,
                found,
            );
        }
    }
}

/// Memory and profile evidence repeat what the build did with link-time optimisation.
fn lto_removed(value: &Value, head: &head::Head, facts: &Facts, f: &mut Findings) {
    let built = facts.builds.get(&head.identity).and_then(|b| b.lto_removed);
    let found = value.get("lto_removed").and_then(Value::bool);
    if facts.is_own() && found.unwrap_or(false) != built.unwrap_or(false) {
        let (built, found) = (format!("{built:?}"), format!("{found:?}"));
        f.error(
            "/lto_removed",
            "the library is the one of build.json",
            built,
            found,
        );
    }
}

impl Audit<'_> {
    /// Reads a file and holds its digest against the manifest.
    fn read(&self, path: &str, f: &mut Findings) -> Option<(Vec<u8>, String)> {
        match files::read(self.root, path, files::LARGEST) {
            Ok(bytes) => {
                let digest = const_hex::encode(Sha256::digest(&bytes));
                if let Some(expected) = self.manifest.get(path).filter(|d| **d != digest) {
                    f.error(
                        "",
                        "the digest of a file is that of the manifest",
                        expected,
                        &digest,
                    );
                }
                Some((bytes, digest))
            }
            Err(error) => {
                f.error("", "a file can be read", "", error);
                None
            }
        }
    }

    /// The files that others are held against.
    fn first(&mut self, there: &BTreeMap<String, u64>, findings: &mut Vec<Finding>) {
        let mut paths = vec!["campaign.json".to_owned(), "build.json".to_owned()];
        paths.extend(
            there
                .keys()
                .filter(|path| Form::of(path) == Form::Environment)
                .cloned(),
        );
        for path in paths {
            let mut f = Findings::of(&path);
            if !there.contains_key(&path) {
                let needed = path == "campaign.json" || self.facts.class != "aggregate";
                if needed {
                    f.error("", "a dataset has this file", "a file", "none");
                }
            } else if let Some((bytes, digest)) = self.read(&path, &mut f) {
                self.facts.digests.insert(path.clone(), digest);
                let form = Form::of(&path);
                if let Some(value) = shape::check(form, &bytes, &mut f) {
                    self.facts.take(form, &path, &value, &mut f);
                }
            }
            findings.append(&mut f.list);
        }
    }

    /// All other files, on all CPUs.
    fn rest(&mut self, there: &BTreeMap<String, u64>, findings: &mut Vec<Finding>) -> Evidence {
        let first = [Form::Campaign, Form::Build, Form::Environment];
        let paths: Vec<&String> = there
            .keys()
            .filter(|path| !first.contains(&Form::of(path)))
            .collect();
        let seen: Vec<Seen> = paths.par_iter().map(|path| self.one(path)).collect();
        let mut evidence = Evidence::default();
        for file in seen {
            findings.extend(file.findings);
            self.facts.digests.insert(file.path.clone(), file.sha256);
            let key = |head: &head::Head| {
                (
                    head.identity.clone(),
                    head.operation.clone().unwrap_or_default(),
                )
            };
            match file.what {
                What::Kat(head, kat, span) => {
                    evidence.spans.insert(file.path.clone(), span);
                    evidence.kat.insert(file.path, (head, kat));
                }
                What::Calibrate(head, calibration) => {
                    let place = (file.path, head.clone(), calibration);
                    evidence.calibrate.insert(key(&head), place);
                }
                What::Timing(head, record) => {
                    evidence.timing.insert(file.path, (head, record));
                }
                What::Study(head, record, point) => {
                    evidence.points.entry(key(&head)).or_default().push(point);
                    evidence.timing.insert(file.path, (head, record));
                }
                What::Fit(head, fit) => {
                    evidence.fits.insert(key(&head), (file.path, fit));
                }
                What::Memory(head, keys) => {
                    evidence.memory.insert(key(&head), (head, keys));
                }
                What::Profile(head, keys) => {
                    evidence.profile.insert(key(&head), (head, keys));
                }
                What::Nothing => {}
            }
        }
        evidence
    }

    fn one(&self, path: &str) -> Seen {
        let mut f = Findings::of(path);
        let read = self.read(path, &mut f);
        let form = Form::of(path);
        let (what, sha256) = match read {
            None => (What::Nothing, String::new()),
            Some((bytes, digest)) => (self.examine(form, path, &bytes, &mut f), digest),
        };
        Seen {
            path: path.to_owned(),
            sha256,
            findings: f.list,
            what,
        }
    }

    fn examine(&self, form: Form, path: &str, bytes: &[u8], f: &mut Findings) -> What {
        match form {
            Form::Unknown => {
                f.error("", "a dataset holds evidence only", "a known place", path);
                return What::Nothing;
            }
            Form::Source => return What::Nothing,
            Form::Log => {
                self.log(bytes, f);
                return What::Nothing;
            }
            _ => {}
        }
        let Some(value) = shape::check(form, bytes, f) else {
            return What::Nothing;
        };
        if form == Form::Cells {
            return What::Nothing;
        }
        let head = head::check(form, path, &value, &self.facts, f);
        codes::check(form, &value, &head, &self.facts, f);
        match form {
            Form::Kat => {
                let log = value.get("log").and_then(Value::str).unwrap_or_default();
                let log = files::read(self.root, &log, files::LARGEST).ok();
                let kat = other::kat(&value, &head, &self.facts, log.as_deref(), f);
                What::Kat(head, kat, span(&value))
            }
            Form::Calibrate => {
                let calibration = other::calibrate(&value, &head, &self.facts, f);
                What::Calibrate(head, calibration)
            }
            Form::Timing => {
                let record = timing::check(&value, &head, &self.facts, f);
                What::Timing(head, record)
            }
            Form::Study => {
                let record = timing::check(&value, &head, &self.facts, f);
                let point = study::check(&value, &head, &self.facts, f);
                What::Study(head, record, point)
            }
            Form::Fit => What::Fit(head, study::fit(&value)),
            Form::Memory => {
                other::memory(&value, &head, &self.facts, f);
                lto_removed(&value, &head, &self.facts, f);
                let keys = numbered(&value, &self.facts, f);
                What::Memory(head, keys)
            }
            Form::Profile => {
                other::profile(&value, &head, &self.facts, f);
                lto_removed(&value, &head, &self.facts, f);
                groups(&value, &head, &self.facts, f);
                What::Profile(head, value.get("keys").and_then(Value::u64))
            }
            _ => What::Nothing,
        }
    }

    fn log(&self, bytes: &[u8], f: &mut Findings) {
        match std::str::from_utf8(bytes) {
            Ok(log) => {
                if let Some(word) = text::local_path(log) {
                    f.error("", "no file holds a path of a machine", "", word);
                }
            }
            Err(error) => f.error("", "a log is UTF-8", "", error),
        }
    }
}
