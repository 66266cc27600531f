//! What one file says and others are held against: campaign, builds, sessions, sizes.

use super::finding::Findings;
use super::shape::Form;
use super::text::utc_ns;
use crate::json::Value;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Facts of the whole dataset.
#[derive(Debug, Default)]
pub struct Facts {
    /// Id of the system.
    pub system: String,
    /// What the machine was to the campaign.
    pub class: String,
    /// Whether it is a study.
    pub study: bool,
    /// What was studied.
    pub study_settings: Option<Study>,
    /// First and last moment, nanoseconds since the epoch.
    pub period: Option<(i128, i128)>,
    /// How far the clock jumped by the journal, nanoseconds: moments lie that much outside at most.
    pub jumped_ns: i128,
    /// Architecture of the system.
    pub arch: String,
    /// Whether the campaign describes the system.
    pub described: bool,
    /// Words of the command that runs the worker on another architecture.
    pub runner: usize,
    /// Whether an import says where it comes from.
    pub provenance: bool,
    /// What of the request `campaign.json` repeats.
    pub stated: Stated,
    /// The plan; none in imports.
    pub plan: Option<Plan>,
    /// `--only`, where it can be read.
    pub only: Option<Regex>,
    /// Measured CPUs.
    pub cpus: Vec<u64>,
    /// Whose code each candidate is.
    pub origins: BTreeMap<String, String>,
    /// `candidate/label` of every instance.
    pub subjects: BTreeSet<String>,
    /// KAT results that are allowed for, by `candidate/label`.
    pub issues: Vec<(String, String)>,
    /// What became of each identity.
    pub rows: BTreeMap<String, Row>,
    /// Identities in the order of their rows.
    pub order: Vec<String>,
    /// What was built, by identity.
    pub builds: BTreeMap<String, Build>,
    /// Sessions by number.
    pub sessions: BTreeMap<u64, Session>,
    /// Whether the campaign was allowed to run on a host that is not ready.
    pub allow_unfixed_host: bool,
    /// Registered systems of the project that the dataset lies in, by id; none outside of one.
    pub systems: BTreeMap<String, System>,
    /// Published sizes by `candidate/label`.
    pub sizes: BTreeMap<String, Sizes>,
    /// Published known answers of the project, by the digest of the manifest.
    pub manifests: BTreeMap<String, super::kat::Published>,
    /// SHA-256 of every file as it is.
    pub digests: BTreeMap<String, String>,
}

/// What of the request `campaign.json` repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// Digest of the configuration.
    pub config_sha256: Option<String>,
    /// `--only`.
    pub only: Option<String>,
    /// What is studied, as written.
    pub study: Option<String>,
}

/// A row of `campaign.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// `complete`, `partial`, `failed`, `skipped`.
    pub status: String,
    /// Why it is not complete.
    pub reason: Option<Reason>,
}

/// Why something is not complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// One of the closed list.
    pub code: String,
    /// In words.
    pub text: String,
}

impl Reason {
    /// The reason of a value that has one.
    pub fn of(value: &Value) -> Option<Self> {
        let reason = value.get("reason")?;
        Some(Reason {
            code: text(reason, "code")?,
            text: text(reason, "text").unwrap_or_default(),
        })
    }
}

/// The plan of the campaign.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)] // the keys of `plan` in campaign.json
pub struct Plan {
    pub name: String,
    pub trials: u64,
    pub target_s: f64,
    pub min_total: u64,
    pub max_iterations: u64,
    pub budget_s: f64,
    pub repeats: u64,
    pub iterations: Option<u64>,
    pub cost_s: Option<f64>,
    pub timeout_floor_s: f64,
    pub verdicts: bool,
    pub keys: u64,
    pub keys_expensive: u64,
    pub keys_limit_s: f64,
    pub min_clock_ratio: f64,
    pub min_cpu_per_wall: f64,
    pub involuntary_switches_per_s: f64,
    pub steal_percent: f64,
    pub sibling_busy_percent: f64,
    pub builds: String,
    pub inputs: String,
    pub defer: Vec<String>,
}

/// What a study was asked to measure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Study {
    /// Sizes, bytes.
    pub sizes: Vec<u64>,
    /// Modes, in order.
    pub modes: Vec<String>,
    /// Chunk of the modes that read in chunks, bytes.
    pub chunk: u64,
    /// Digest and length of the user's file.
    pub file: Option<(String, u64)>,
}

impl Study {
    /// Modes of an operation: key generation takes no message and is measured once.
    pub fn modes_of(&self, keygen: bool) -> Vec<String> {
        match keygen {
            true => vec!["mmap".to_owned()],
            false => self.modes.clone(),
        }
    }
}

/// One identity of `build.json`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Build {
    /// `complete`, `failed`, `skipped`.
    pub status: String,
    /// SHA-256 of its libraries by kind.
    pub libraries: BTreeMap<String, String>,
    /// `elf` as written, for equality.
    pub elf: Option<Vec<(String, Option<u64>)>>,
    /// Symbol and reported name of the wrapped functions.
    pub wrapped: Vec<(String, String)>,
    /// Group of each function, by reported name.
    pub groups: BTreeMap<String, String>,
    /// Why it is not complete.
    pub reason: Option<Reason>,
    /// Flags of the compiler.
    pub flags: String,
    /// Whether the profile and memory libraries lack `-flto`.
    pub lto_removed: Option<bool>,
}

/// One session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// SHA-256 of its file.
    pub sha256: String,
    /// The machine, salted.
    pub host_token: Option<String>,
    /// Clock of the CPUs whose frequency is held, hertz.
    pub clocks: BTreeMap<u64, f64>,
    /// Whether the host was as it should be.
    pub ready: bool,
    /// CPUs online.
    pub online: u64,
    /// Start, nanoseconds since the epoch.
    pub started: Option<i128>,
    /// Architecture of the machine.
    pub arch: String,
    /// Name of its processor.
    pub cpu_model: Option<String>,
    /// Features that builds may require.
    pub features: Vec<String>,
}

/// A registered system.
#[derive(Debug, Clone)]
pub struct System {
    /// Its architecture.
    pub arch: String,
    /// What the name of its processor matches.
    pub cpu_model: Regex,
}

/// A row of the size catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Public key, bytes.
    pub public_key: Option<u64>,
    /// Signature, bytes.
    pub signature: Option<u64>,
    /// `encoded`, `maximum-variable`, `nominal-variable`.
    pub basis: String,
}

/// Text of a member.
pub fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.str().map(|s| s.into_owned())
}

impl Facts {
    /// Takes a file that others are held against.
    pub fn take(&mut self, form: Form, path: &str, value: &Value, f: &mut Findings) {
        match form {
            Form::Campaign => self.campaign(value, f),
            Form::Build => self.build(value, f),
            _ => self.session(path, value, f),
        }
    }

    /// Whether the campaign was run by this program: its journal tells what happened.
    pub fn is_own(&self) -> bool {
        !matches!(self.class.as_str(), "imported" | "aggregate" | "published")
    }

    /// Whether a moment lies inside the campaign, but for what the clock jumped.
    pub fn is_inside(&self, at: Option<i128>) -> bool {
        let jumped = self.jumped_ns;
        at.zip(self.period)
            .is_some_and(|(at, (start, end))| (start - jumped..=end + jumped).contains(&at))
    }

    /// Takes `campaign.json`.
    pub fn campaign(&mut self, value: &Value, f: &mut Findings) {
        self.system = text(value, "system").unwrap_or_default();
        self.class = text(value, "class").unwrap_or_default();
        self.study = value.get("study").is_some_and(|s| !s.is_null());
        self.study_settings = value.get("study").and_then(study);
        self.cpus = value
            .get("cpus")
            .map_or(&[][..], Value::items)
            .iter()
            .filter_map(Value::u64)
            .collect();
        self.plan = value.get("plan").and_then(plan);
        if self.is_own() && self.plan.is_none() {
            f.error("/plan", "a campaign has its plan", "a plan", "none");
        }
        self.arch = text(value, "arch").unwrap_or_default();
        self.described = text(value, "system_description").is_some();
        let runner = value.at(&["tool", "runner"]).map_or(&[][..], Value::items);
        self.runner = runner.len();
        self.words(value, f);
        self.allow_unfixed_host = value
            .get("allow_unfixed_host")
            .and_then(Value::bool)
            .unwrap_or(false);
        self.provenance = value.get("provenance").is_some_and(|p| !p.is_null());
        self.stated = Stated {
            config_sha256: text(value, "config_sha256"),
            only: text(value, "only"),
            study: value
                .get("study")
                .filter(|study| !study.is_null())
                .map(|study| format!("{study:?}")),
        };
        if let Some(pattern) = text(value, "only") {
            self.only = Regex::new(&pattern)
                .map_err(|error| {
                    f.error("/only", "the selection is a regular expression", "", error)
                })
                .ok();
        }
        let time = |key: &str| value.get(key).and_then(Value::str).and_then(|t| utc_ns(&t));
        match (time("started_utc"), time("ended_utc")) {
            (Some(start), Some(end)) if start <= end + self.jumped_ns => {
                self.period = Some((start, end));
            }
            (start, end) => f.error(
                "/ended_utc",
                "a campaign has a start and ends after it",
                format!("after {start:?}"),
                format!("{end:?}"),
            ),
        }
        for candidate in value.get("candidates").map_or(&[][..], Value::items) {
            self.candidate(candidate);
        }
        for (index, row) in value
            .get("rows")
            .map_or(&[][..], Value::items)
            .iter()
            .enumerate()
        {
            self.row(index, row, f);
        }
    }

    /// Words of closed lists that no type holds.
    fn words(&self, value: &Value, f: &mut Findings) {
        let own = self.is_own();
        for (path, known, due) in [
            (&["plan", "builds"][..], &["all", "first"][..], own),
            (&["plan", "inputs"], &["fresh", "fixed"], own),
            (&["report_kind"], &["independent", "self-assessment"], true),
            (&["tool", "name"], &["campaign"], own),
        ] {
            let found = value.at(path).and_then(Value::str).unwrap_or_default();
            if due && !known.iter().any(|word| found == *word) {
                let pointer = format!("/{}", path.join("/"));
                f.error(
                    pointer,
                    "a word is one of its list",
                    known.join(" or "),
                    found,
                );
            }
        }
    }

    fn candidate(&mut self, candidate: &Value) {
        let id = text(candidate, "id").unwrap_or_default();
        for issue in candidate.get("kat_issues").map_or(&[][..], Value::items) {
            let label = text(issue, "instance").unwrap_or_default();
            let result = text(issue, "result").unwrap_or_default();
            self.issues.push((format!("{id}/{label}"), result));
        }
        for instance in candidate.get("instances").map_or(&[][..], Value::items) {
            let label = text(instance, "label").unwrap_or_default();
            self.subjects.insert(format!("{id}/{label}"));
        }
        self.origins
            .insert(id, text(candidate, "origin").unwrap_or_default());
    }

    fn row(&mut self, index: usize, row: &Value, f: &mut Findings) {
        let identity = text(row, "identity").unwrap_or_default();
        let status = text(row, "status").unwrap_or_default();
        let reason = Reason::of(row);
        if (status == "complete") != reason.is_none() {
            f.error(
                format!("/rows/{index}/reason"),
                "what is not complete has a reason",
                &status,
                format!("{reason:?}"),
            );
        }
        let subject: Vec<&str> = identity.split('/').take(2).collect();
        if !self.subjects.contains(&subject.join("/")) {
            f.error(
                format!("/rows/{index}/identity"),
                "a row is of an instance of a candidate of the campaign",
                "",
                &identity,
            );
        }
        self.order.push(identity.clone());
        let row = Row { status, reason };
        if self.rows.insert(identity.clone(), row).is_some() {
            f.error(
                format!("/rows/{index}/identity"),
                "an identity is there once",
                "",
                identity,
            );
        }
    }

    /// Takes `build.json`.
    pub fn build(&mut self, value: &Value, f: &mut Findings) {
        for (index, row) in value
            .get("rows")
            .map_or(&[][..], Value::items)
            .iter()
            .enumerate()
        {
            let identity = text(row, "identity").unwrap_or_default();
            if !self.rows.contains_key(&identity) {
                f.error(
                    format!("/rows/{index}/identity"),
                    "what was built is a row of campaign.json",
                    "",
                    &identity,
                );
            }
            let build = build_row(index, row, self.is_own(), f);
            if self.builds.insert(identity.clone(), build).is_some() {
                f.error(
                    format!("/rows/{index}/identity"),
                    "an identity is there once",
                    "",
                    identity,
                );
            }
        }
        let system = text(value, "system").unwrap_or_default();
        if system != self.system {
            f.error("/system", "one system in a dataset", &self.system, system);
        }
    }

    /// Takes `environment/<k>.json`.
    pub fn session(&mut self, path: &str, value: &Value, f: &mut Findings) {
        let number = value.get("k").and_then(Value::u64).unwrap_or_default();
        if path != format!("environment/{number}.json") {
            f.error("/k", "a session's file has its number", path, number);
        }
        let clock = |cpu: &Value| {
            let khz = |key: &str| cpu.get(key).and_then(Value::u64);
            let (low, high) = (khz("min_khz")?, khz("max_khz")?);
            (low == high).then_some((cpu.get("cpu")?.u64()?, high as f64 * 1e3))
        };
        let started = value
            .get("started_utc")
            .and_then(Value::str)
            .and_then(|t| utc_ns(&t));
        if started.is_none() {
            f.error("/started_utc", "a session has its start", "a time", "none");
        }
        self.session_in_time(started, f);
        let fact = |key: &str| Some(value.at(&["stable", key])?.str()?.into_owned());
        let mut cpus: Vec<u64> = value
            .get("cpus")
            .map_or(&[][..], Value::items)
            .iter()
            .filter_map(|cpu| cpu.get("cpu")?.u64())
            .collect();
        let mut measured = self.cpus.clone();
        cpus.sort_unstable();
        measured.sort_unstable();
        if self.is_own() && self.class != "emulated" && cpus != measured {
            f.error(
                "/cpus",
                "a session looks at the measured CPUs",
                format!("{measured:?}"),
                format!("{cpus:?}"),
            );
        }
        let facts = Session {
            sha256: self.digests.get(path).cloned().unwrap_or_default(),
            host_token: text(value, "host_token"),
            clocks: value
                .get("cpus")
                .map_or(&[][..], Value::items)
                .iter()
                .filter_map(clock)
                .collect(),
            ready: value.get("ready").and_then(Value::bool).unwrap_or(false),
            online: value
                .at(&["stable", "logical_cpus_online"])
                .and_then(Value::u64)
                .unwrap_or(0),
            started,
            arch: fact("architecture").unwrap_or_default(),
            cpu_model: fact("cpu_model"),
            features: value
                .at(&["stable", "cpu_features"])
                .map_or(&[][..], Value::items)
                .iter()
                .filter_map(|feature| Some(feature.str()?.into_owned()))
                .collect(),
        };
        readiness(value, facts.ready, self.is_own(), f);
        self.sessions.insert(number, facts);
    }

    fn session_in_time(&self, started: Option<i128>, f: &mut Findings) {
        // A session looks at the machine a moment before the campaign notes its start.
        const MINUTE: i128 = 60_000_000_000;
        if let Some(((start, end), at)) = self.period.zip(started) {
            if at < start - 10 * MINUTE - self.jumped_ns || at > end + self.jumped_ns {
                f.error(
                    "/started_utc",
                    "a session begins inside the campaign",
                    start,
                    at,
                );
            }
        }
    }
}

fn readiness(value: &Value, ready: bool, own: bool, f: &mut Findings) {
    let checks = value.get("check").map_or(&[][..], Value::items);
    let bad = checks
        .iter()
        // What only advises stands against nothing.
        .filter(|check| check.get("advice").and_then(Value::bool) != Some(true))
        .filter_map(|check| text(check, "state"))
        .any(|state| matches!(state.as_str(), "bad" | "unknown"));
    if ready == bad && (ready || own) {
        f.error(
            "/ready",
            "a host is ready when no item of its check is bad or unknown",
            !bad,
            ready,
        );
    }
}

fn study(value: &Value) -> Option<Study> {
    let list = |key: &str| value.get(key).map(Value::items);
    let file = value.get("file").filter(|file| !file.is_null());
    Some(Study {
        sizes: list("sizes")?.iter().filter_map(Value::u64).collect(),
        modes: list("modes")?
            .iter()
            .filter_map(|mode| Some(mode.str()?.into_owned()))
            .collect(),
        chunk: value.get("chunk_bytes")?.u64()?,
        file: file.and_then(|file| Some((text(file, "sha256")?, file.get("bytes")?.u64()?))),
    })
}

fn plan(value: &Value) -> Option<Plan> {
    let number = |key: &str| value.get(key).and_then(Value::u64);
    let real = |key: &str| value.get(key).and_then(Value::f64);
    let limit = |key: &str| value.at(&["disturbed", key]).and_then(Value::f64);
    Some(Plan {
        name: text(value, "name")?,
        trials: number("trials")?,
        target_s: real("target_s")?,
        min_total: number("min_total")?,
        max_iterations: number("max_iterations")?,
        budget_s: real("budget_s")?,
        repeats: number("repeats")?,
        iterations: number("iterations"),
        cost_s: real("cost_s"),
        timeout_floor_s: real("timeout_floor_s")?,
        verdicts: value.get("verdicts")?.bool()?,
        keys: number("keys")?,
        keys_expensive: number("keys_expensive")?,
        keys_limit_s: real("keys_limit_s")?,
        min_clock_ratio: limit("min_clock_ratio")?,
        min_cpu_per_wall: limit("min_cpu_per_wall")?,
        involuntary_switches_per_s: limit("involuntary_switches_per_s")?,
        steal_percent: limit("steal_percent")?,
        sibling_busy_percent: limit("sibling_busy_percent")?,
        builds: text(value, "builds")?,
        inputs: text(value, "inputs")?,
        defer: value
            .get("defer")?
            .items()
            .iter()
            .filter_map(|pattern| Some(pattern.str()?.into_owned()))
            .collect(),
    })
}

fn build_row(index: usize, row: &Value, own: bool, f: &mut Findings) -> Build {
    let libraries: BTreeMap<String, String> = row
        .get("libraries")
        .map_or(&[][..], Value::members)
        .iter()
        .filter_map(|(kind, library)| Some((kind.decode().into_owned(), text(library, "sha256")?)))
        .collect();
    let status = text(row, "status").unwrap_or_default();
    let reason = row.get("reason").is_some_and(|r| !r.is_null());
    if (status == "complete") == reason {
        f.error(
            format!("/rows/{index}/reason"),
            "what is not complete has a reason",
            &status,
            reason,
        );
    }
    if status == "complete" && !libraries.contains_key("timed") {
        f.error(
            format!("/rows/{index}/libraries"),
            "a build has its timed library",
            "timed",
            "none",
        );
    }
    for (kind, library) in row.get("libraries").map_or(&[][..], Value::members) {
        let kind = kind.decode();
        let named = text(library, "sha256").map(|digest| format!("lib/{digest}.so"));
        let file = text(library, "file");
        if own && file != named {
            f.error(
                format!("/rows/{index}/libraries/{kind}/file"),
                "a library is named by its digest",
                format!("{named:?}"),
                format!("{file:?}"),
            );
        }
    }
    for (kind, digest) in &libraries {
        if !super::text::is_digest(digest) {
            f.error(
                format!("/rows/{index}/libraries/{kind}/sha256"),
                "a digest is a SHA-256",
                "",
                digest,
            );
        }
    }
    let flags = text(row, "flags").unwrap_or_default();
    let lto_removed = row.get("lto_removed").and_then(Value::bool);
    if lto_removed.is_some_and(|removed| removed != has_lto(&flags)) {
        f.error(
            format!("/rows/{index}/lto_removed"),
            "link-time optimisation is taken out where the flags have it",
            has_lto(&flags),
            !has_lto(&flags),
        );
    }
    let elf = row.get("elf").filter(|elf| !elf.is_null()).map(elf);
    if let Some(elf) = &elf {
        sections(index, elf, f);
    }
    let wrapped = row.get("wrapped").map_or(&[][..], Value::items).iter();
    let group = |w: &Value| text(w, "name").zip(text(w, "group"));
    Build {
        groups: wrapped.clone().filter_map(group).collect(),
        status,
        reason: Reason::of(row),
        flags,
        libraries,
        elf,
        wrapped: wrapped
            .filter_map(|w| text(w, "symbol").zip(text(w, "name")))
            .collect(),
        lto_removed,
    }
}

/// Whether flags ask for link-time optimisation: the last word about it decides.
fn has_lto(flags: &str) -> bool {
    let about = |flag: &&str| matches!(*flag, "-flto" | "-fno-lto") || flag.starts_with("-flto=");
    flags
        .split_whitespace()
        .rfind(about)
        .is_some_and(|flag| flag != "-fno-lto")
}

/// Figures of an ELF file by name, and the libraries that it needs.
pub fn elf(value: &Value) -> Vec<(String, Option<u64>)> {
    let mut all = Vec::new();
    for (key, figure) in value.members() {
        let key = key.decode();
        for library in figure.items().iter().filter_map(Value::str) {
            all.push((format!("{key} {library}"), None));
        }
        all.push((key.into_owned(), figure.u64()));
    }
    all
}

/// All parts of a loaded image add up to it.
fn sections(index: usize, elf: &[(String, Option<u64>)], f: &mut Findings) {
    let figure = |name: &str| {
        elf.iter()
            .find(|(key, _)| key == name)
            .and_then(|(_, value)| *value)
    };
    let parts = ["text", "rodata", "data", "bss", "headers_and_tables"].map(figure);
    let sum: Option<u64> = parts.into_iter().sum();
    if let (Some(sum), Some(load)) = (sum, figure("load_bytes")) {
        if sum != load {
            f.error(
                format!("/rows/{index}/elf/load_bytes"),
                "the parts of an image add up to it",
                sum,
                load,
            );
        }
    }
}

/// Reads the systems of a configuration: `[[system]]` with `id`, `arch` and `cpu_model`.
pub fn systems(text: &str) -> BTreeMap<String, System> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let all = table.get("system").and_then(toml::Value::as_array);
    let system = |system: &toml::Value| {
        let word = |key: &str| system.get(key)?.as_str().map(str::to_owned);
        let cpu_model = Regex::new(&word("cpu_model")?).ok()?;
        let arch = word("arch")?;
        Some((word("id")?, System { arch, cpu_model }))
    };
    all.into_iter().flatten().filter_map(system).collect()
}

/// Reads the size catalogue: `ID;Instance;PublicKeyBytes;CiphertextBytes;SignatureBytes;Basis`.
pub fn sizes(text: &str) -> BTreeMap<String, Sizes> {
    let rows = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("ID;"));
    rows.filter_map(|line| {
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        let [id, label, public_key, _, signature, basis] = cells[..] else {
            return None;
        };
        let sizes = Sizes {
            public_key: public_key.parse().ok(),
            signature: signature.parse().ok(),
            basis: basis.to_owned(),
        };
        Some((format!("{id}/{label}"), sizes))
    })
    .collect()
}
