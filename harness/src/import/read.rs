//! Reading a directory of the public campaign's evidence, and checking it.

use super::schema2::{Build, Campaign, Instance, Log, Profile, Record};
use crate::audit::{files, schema2 as rules, text, Finding, Findings};
use crate::hash;
use crate::json;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The key that an import drops, wherever it stands.
pub const DROPPED: &str = "hostname";

/// All evidence of one directory.
#[derive(Debug)]
pub struct Evidence {
    /// `campaign.json`
    pub campaign: Campaign,
    /// `campaign.json` without host names, as it was.
    pub campaign_value: serde_json::Value,
    /// `build.json`
    pub build: Build,
    /// `records/`, by path.
    pub records: Vec<(String, Record)>,
    /// `profile/`, by path.
    pub profiles: Vec<(String, Profile)>,
    /// `kat/`, by path.
    pub logs: BTreeMap<String, Log>,
    /// How often the dropped key was there.
    pub dropped: u64,
    /// Files that do not belong to the format.
    pub unknown: Vec<String>,
}

impl Evidence {
    /// The instance of a candidate and label.
    pub fn instance(&self, candidate: &str, label: &str) -> Option<&Instance> {
        self.build.instances.get(&format!("{candidate}/{label}"))
    }
}

/// What a file is, by its path.
enum Kind {
    Campaign,
    Build,
    Record,
    Profile,
    Log,
    Unknown,
}

fn kind(path: &str) -> Kind {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["campaign.json"] => Kind::Campaign,
        ["build.json"] => Kind::Build,
        ["records", _, name] if name.ends_with(".json") => Kind::Record,
        ["profile", _, name] if name.ends_with(".json") => Kind::Profile,
        ["kat", _, name] if name.ends_with(".log") => Kind::Log,
        _ => Kind::Unknown,
    }
}

enum Parsed {
    Campaign(Box<Campaign>, serde_json::Value),
    Build(Build),
    Record(String, Box<Record>),
    Profile(String, Box<Profile>),
    Log(Log),
    Unknown(String),
    Broken(Vec<Finding>),
}

/// Takes a file as an import keeps it: path below the evidence, and bytes.
pub type Keep<'a> = &'a (dyn Fn(&str, &[u8]) -> Result<(), String> + Sync);

/// Reads and checks a directory. `keep` is given every file as an import keeps it: the JSON without
/// host names, the logs as they are. `None` when a file is missing or cannot be understood.
pub fn read(dir: &Path, keep: Keep) -> (Option<Evidence>, Vec<Finding>) {
    let listing = files::list(dir, &[]);
    let dropped = AtomicU64::new(0);
    let paths: Vec<&String> = listing.files.keys().collect();
    let parsed: Vec<Parsed> = paths
        .par_iter()
        .map(|path| one(dir, path, keep, &dropped))
        .collect();
    whole(parsed, dropped.into_inner(), listing.findings)
}

/// [`read`] of files that are in memory already, by path, for the fuzz targets.
pub fn read_memory(files: &BTreeMap<String, Vec<u8>>) -> (Option<Evidence>, Vec<Finding>) {
    let dropped = AtomicU64::new(0);
    let parsed = files
        .iter()
        .map(|(path, bytes)| parse(path, bytes, &|_, _| Ok(()), &dropped))
        .collect();
    whole(parsed, dropped.into_inner(), Vec::new())
}

/// All files together; `findings` are those of the listing.
fn whole(
    parsed: Vec<Parsed>,
    dropped: u64,
    mut findings: Vec<Finding>,
) -> (Option<Evidence>, Vec<Finding>) {
    let (mut campaign, mut build) = (None, None);
    let (mut records, mut profiles) = (Vec::new(), Vec::new());
    let (mut logs, mut unknown) = (BTreeMap::new(), Vec::new());
    let mut broken = Vec::new();
    for item in parsed {
        match item {
            Parsed::Campaign(typed, value) => campaign = Some((*typed, value)),
            Parsed::Build(typed) => build = Some(typed),
            Parsed::Record(path, typed) => records.push((path, *typed)),
            Parsed::Profile(path, typed) => profiles.push((path, *typed)),
            Parsed::Log(log) => {
                logs.insert(log.file.clone(), log);
            }
            Parsed::Unknown(path) => unknown.push(path),
            Parsed::Broken(mut list) => broken.append(&mut list),
        }
    }
    let said = |file: &str| broken.iter().any(|finding: &Finding| finding.file == file);
    for (file, there) in [
        ("campaign.json", campaign.is_some() || said("campaign.json")),
        ("build.json", build.is_some() || said("build.json")),
        ("records", !records.is_empty()),
    ] {
        if !there {
            let mut f = Findings::of(file);
            f.error("", "the evidence is whole", "a file", "none");
            findings.append(&mut f.list);
        }
    }
    findings.append(&mut broken);
    let (Some((campaign, campaign_value)), Some(build)) = (campaign, build) else {
        return (None, findings);
    };
    let evidence = Evidence {
        campaign,
        campaign_value,
        build,
        records,
        profiles,
        logs,
        dropped,
        unknown,
    };
    findings.append(&mut check(&evidence));
    (Some(evidence), findings)
}

fn one(dir: &Path, path: &str, keep: Keep, dropped: &AtomicU64) -> Parsed {
    if let Kind::Unknown = kind(path) {
        return Parsed::Unknown(path.to_owned());
    }
    match files::read(dir, path, files::LARGEST) {
        Ok(bytes) => parse(path, &bytes, keep, dropped),
        Err(error) => {
            let mut findings = Findings::of(path);
            findings.error("", "a file can be read", "", error);
            Parsed::Broken(findings.list)
        }
    }
}

fn parse(path: &str, bytes: &[u8], keep: Keep, dropped: &AtomicU64) -> Parsed {
    let mut findings = Findings::of(path);
    let result = match kind(path) {
        Kind::Unknown => return Parsed::Unknown(path.to_owned()),
        Kind::Log => {
            log(path, bytes, &mut findings).inspect(|_| kept(path, bytes, keep, &mut findings))
        }
        kind => stripped(bytes, dropped, &mut findings).and_then(|text| {
            kept(path, text.as_bytes(), keep, &mut findings);
            typed(kind, path, &text, &mut findings)
        }),
    };
    match (result, findings.list.is_empty()) {
        (Some(parsed), true) => parsed,
        _ => Parsed::Broken(findings.list),
    }
}

fn kept(path: &str, bytes: &[u8], keep: Keep, findings: &mut Findings) {
    if let Err(error) = keep(path, bytes) {
        findings.error("", "the source is kept", "", error);
    }
}

/// The JSON without the dropped key, indented as the format is.
fn stripped(bytes: &[u8], dropped: &AtomicU64, findings: &mut Findings) -> Option<String> {
    match json::parse(bytes) {
        Ok(value) => {
            let mut count = 0;
            let text = value.text_without(DROPPED, 1, &mut count);
            dropped.fetch_add(count, Ordering::Relaxed);
            if let Some(path) = text::local_path_in(&value) {
                findings.error(path.0, "no file holds a path of a machine", "", path.1);
            }
            Some(text)
        }
        Err(error) => {
            findings.error(error.pointer.clone(), "a file is strict JSON", "", error);
            None
        }
    }
}

fn typed(kind: Kind, path: &str, text: &str, findings: &mut Findings) -> Option<Parsed> {
    fn from<T: DeserializeOwned>(text: &str, findings: &mut Findings) -> Option<T> {
        serde_json::from_str(text)
            .map_err(|error| findings.error("", "a file has the shape of its format", "", error))
            .ok()
    }
    Some(match kind {
        Kind::Campaign => Parsed::Campaign(from(text, findings)?, from(text, findings)?),
        Kind::Build => Parsed::Build(from(text, findings)?),
        Kind::Record => Parsed::Record(path.to_owned(), from(text, findings)?),
        _ => Parsed::Profile(path.to_owned(), from(text, findings)?),
    })
}

fn log(path: &str, bytes: &[u8], findings: &mut Findings) -> Option<Parsed> {
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|error| findings.error("", "a log is UTF-8", "", error))
        .ok()?;
    if let Some(word) = text::local_path(&text) {
        findings.error("", "no file holds a path of a machine", "", word);
    }
    Some(Parsed::Log(Log {
        file: path.to_owned(),
        sha256: hash::sha256(bytes),
        text,
    }))
}

/// All rules of the format.
fn check(evidence: &Evidence) -> Vec<Finding> {
    let campaign = &evidence.campaign;
    let mut findings = rules::campaign("campaign.json", campaign).list;
    for (key, instance) in &evidence.build.instances {
        let log = evidence.logs.get(&instance.kat_log);
        findings.append(&mut rules::instance(key, instance, log).list);
    }
    for path in evidence.logs.keys() {
        if !evidence
            .build
            .instances
            .values()
            .any(|i| i.kat_log == *path)
        {
            let mut f = Findings::of(path);
            f.error(
                "",
                "a KAT log belongs to an instance of build.json",
                "",
                "none",
            );
            findings.append(&mut f.list);
        }
    }
    findings.par_extend(evidence.records.par_iter().flat_map_iter(|(file, record)| {
        let instance = evidence.instance(&record.candidate, &record.label);
        let mut list = rules::record(file, record, instance, campaign).list;
        if let Some(log) = instance.and_then(|i| evidence.logs.get(&i.kat_log)) {
            list.append(&mut rules::sizes(file, record, log).list);
        }
        list
    }));
    findings.par_extend(
        evidence
            .profiles
            .par_iter()
            .flat_map_iter(|(file, profile)| {
                let instance = evidence.instance(&profile.candidate, &profile.label);
                rules::profile(file, profile, instance).list
            }),
    );
    findings
}
