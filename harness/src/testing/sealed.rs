//! Synthetic runs as they lie on the disk: every file, the journal, the manifest and the seal, such that
//! an audit finds nothing. What tests change and benchmarks measure.

use super::Synthetic;
use crate::clock::Stamp;
use crate::dataset::Dataset;
use crate::evidence::journal::{self, JournalEvent, JOURNAL};
use crate::evidence::seal::{self, MANIFEST};
use crate::evidence::*;
use crate::hash;
use crate::identity::Identity;
use protocol::{
    InputRule, Inputs, Isolation, LibraryFile, MeasureTask, Operation, Outputs, Request,
    SourceKind, Task,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Start of the campaign, microseconds since the epoch (2026-01-02T03:04:05Z).
const START_US: i64 = 1_767_323_045_000_000;
/// Time between two lines of the journal, microseconds.
const STEP_US: i64 = 10_000;

/// Writes the run into `dir`, which may not exist, and its seal beside it; returns the seal.
pub fn write(spec: &Synthetic, dir: &Path) -> io::Result<String> {
    let mut writer = Writer {
        dir,
        events: Vec::new(),
        entries: Vec::new(),
    };
    let mut dataset = spec.build();
    let environment = writer.environment(&mut dataset)?;
    let builds = writer.phase("build", |w| w.build(&mut dataset))?;
    let kat = writer.phase("kat", |w| w.kat(&mut dataset, &environment, &builds))?;
    writer.phase("calibrate", |w| {
        w.calibrate(&dataset, &environment, &builds)
    })?;
    writer.phase("measure", |w| {
        w.timing(&mut dataset, &environment, &builds, &kat)
    })?;
    writer.phase("memory", |w| w.memory(&mut dataset, &environment, &builds))?;
    writer.phase("profile", |w| {
        w.profile(&mut dataset, &environment, &builds)
    })?;
    writer.campaign(&mut dataset)?;
    writer.close(&dataset)
}

struct Writer<'a> {
    dir: &'a Path,
    events: Vec<JournalEvent>,
    entries: Vec<seal::Entry>,
}

/// Digests of an identity's libraries by kind.
type Libraries = BTreeMap<String, String>;

impl Writer<'_> {
    fn phase<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let phase = name.to_owned();
        self.events.push(JournalEvent::PhaseBegun {
            phase: phase.clone(),
        });
        let done = work(self)?;
        self.events.push(JournalEvent::PhaseEnded { phase });
        Ok(done)
    }

    fn file<T: Explained>(&mut self, path: &str, mut value: T) -> io::Result<String> {
        explain(&mut value);
        self.json(path, &value)
    }

    fn json<T: Serialize>(&mut self, path: &str, value: &T) -> io::Result<String> {
        let mut bytes = serde_json::to_vec_pretty(value)?;
        bytes.push(b'\n');
        self.bytes(path, &bytes)
    }

    fn bytes(&mut self, path: &str, bytes: &[u8]) -> io::Result<String> {
        let sha256 = hash::sha256(bytes);
        self.events.push(JournalEvent::Written {
            path: path.to_owned(),
            sha256: sha256.clone(),
        });
        self.entries.push(seal::Entry {
            path: path.to_owned(),
            sha256: sha256.clone(),
        });
        put(self.dir, path, bytes)?;
        Ok(sha256)
    }

    fn environment(&mut self, dataset: &mut Dataset) -> io::Result<SessionRef> {
        let mut environment = dataset.environments.remove(0).value;
        // Processors that the project's own systems match.
        let model = match dataset.campaign.system.as_str() {
            "x86_1" => Some("12th Gen Intel(R) Core(TM) i7-12700"),
            "arm_1" => Some("Qualcomm Oryon"),
            _ => None,
        };
        if let Some(model) = model {
            environment.stable.cpu_model = Some(model.to_owned());
        }
        Ok(SessionRef {
            k: 0,
            environment_sha256: self.file("environment/0.json", environment)?,
        })
    }

    fn build(&mut self, dataset: &mut Dataset) -> io::Result<BTreeMap<Identity, Libraries>> {
        let mut build = dataset.build.take().expect("it was built").value;
        let mut all = BTreeMap::new();
        for row in &mut build.rows {
            let mut libraries = Libraries::new();
            for kind in ["timed", "profile", "memory"] {
                let sha256 = match row.libraries.get(kind) {
                    Some(known) => known.sha256.clone(),
                    None => hash::sha256(format!("{} {kind}", row.identity).as_bytes()),
                };
                libraries.insert(kind.to_owned(), sha256.clone());
                row.libraries.insert(
                    kind.to_owned(),
                    BuiltLibrary {
                        file: format!("lib/{sha256}.so"),
                        sha256,
                        bytes: Some(40_000),
                    },
                );
            }
            if row.lto_removed == Some(true) {
                row.flags += " -flto";
            }
            row.wrapped = [
                ("pseudoXOF", "pseudoXOF", "hash"),
                ("get_random_number", "drng", "drng"),
            ]
            .map(|(symbol, name, group)| Wrapped {
                symbol: symbol.to_owned(),
                name: name.to_owned(),
                group: group.to_owned(),
            })
            .into();
            all.insert(row.identity.clone(), libraries);
        }
        self.file("build.json", build)?;
        Ok(all)
    }

    fn kat(
        &mut self,
        dataset: &mut Dataset,
        environment: &SessionRef,
        builds: &BTreeMap<Identity, Libraries>,
    ) -> io::Result<BTreeMap<Identity, KatRef>> {
        let mut references = BTreeMap::new();
        let sizes: BTreeMap<Identity, Option<SizesRecord>> = dataset
            .timing
            .iter()
            .map(|((identity, _), entry)| (identity.clone(), entry.value.sizes))
            .collect();
        for ((identity, _), entry) in std::mem::take(&mut dataset.kat) {
            let mut kat = entry.value;
            kat.head.sessions = vec![environment.clone()];
            let all = |tried| protocol::FlipCount {
                tried,
                rejected: tried,
                exempt: 0,
            };
            kat.flips = Some(protocol::Flips {
                message: all(16),
                signature: all(32),
                key: all(64),
            });
            let first = hash::sha256(format!("{} first vector", identity.subject()).as_bytes());
            kat.digests.push(KatDigestRecord {
                mode: "strict:1".to_owned(),
                expected: None,
                found: Some(first.clone()),
                records: Some(1),
            });
            let sizes = sizes.get(&identity).copied().flatten();
            for kind in [
                LibraryKind::Timed,
                LibraryKind::Profile,
                LibraryKind::Memory,
            ] {
                kat.library = LibraryRef {
                    kind,
                    sha256: builds[&identity][kind.name()].clone(),
                };
                if kind != LibraryKind::Timed {
                    kat.flips = None;
                    kat.digests.retain(|digest| digest.mode == "strict:1");
                    kat.digests[0].expected = Some(first.clone());
                }
                kat.start = Some(self.now());
                kat.log = kat_log(&identity, kind);
                let log = kat_lines(&identity, &kat, sizes.as_ref());
                kat.log_sha256 = self.bytes(&kat.log, log.as_bytes())?;
                kat.end = Some(self.now());
                let file = kat_file(&identity, kind);
                explain_with(&mut kat, |pointer| {
                    (pointer == "/digests/*/expected").then(|| {
                        let text =
                            "the manifest does not hold it; other libraries are compared with it";
                        Reason::new(ReasonCode::NotInPlan, text)
                    })
                });
                let (result, sha256) = (kat.result, self.json(&file, &kat)?);
                if kind == LibraryKind::Timed {
                    let reference = KatRef {
                        file,
                        sha256,
                        result,
                    };
                    references.insert(identity.clone(), reference);
                }
            }
        }
        Ok(references)
    }

    fn calibrate(
        &mut self,
        dataset: &Dataset,
        environment: &SessionRef,
        builds: &BTreeMap<Identity, Libraries>,
    ) -> io::Result<()> {
        for ((identity, operation), entry) in &dataset.timing {
            let record = &entry.value;
            let cost = record.plan.cost_s.unwrap_or(1e-3);
            let calls_ns = vec![(cost * 1e9).round() as u64; 3];
            let outputs = (*operation == Operation::Keygen).then(|| {
                let of =
                    |what: &str| hash::sha256(format!("{} {what}", identity.subject()).as_bytes());
                Outputs {
                    pk: of("pk"),
                    sk: of("sk"),
                    signatures: of("signatures"),
                }
            });
            let evidence = CalibrateEvidence {
                head: Head {
                    kind: Kind::Calibrate,
                    sessions: vec![environment.clone()],
                    missing: BTreeMap::new(),
                    ..record.head.clone()
                },
                operation: *operation,
                library: LibraryRef {
                    kind: LibraryKind::Timed,
                    sha256: builds[identity]["timed"].clone(),
                },
                c_s: Some(calls_ns[0] as f64 / 1e9),
                key_s: Some(calls_ns[0] as f64 / 1e9),
                preparation_s: Some(0.0),
                calls_ns,
                outputs,
            };
            self.file(&calibrate_file(identity, *operation), evidence)?;
        }
        Ok(())
    }

    fn timing(
        &mut self,
        dataset: &mut Dataset,
        environment: &SessionRef,
        builds: &BTreeMap<Identity, Libraries>,
        kat: &BTreeMap<Identity, KatRef>,
    ) -> io::Result<()> {
        let records = std::mem::take(&mut dataset.timing);
        let costs: BTreeMap<Identity, Option<f64>> = records
            .iter()
            .filter(|((_, operation), _)| *operation == Operation::Verify)
            .map(|((identity, _), entry)| (identity.clone(), entry.value.plan.cost_s))
            .collect();
        let mut open = Vec::new();
        for entry in records.into_values().chain(std::mem::take(&mut dataset.aa)) {
            let (path, mut record) = (entry.file, entry.value);
            let identity = record.head.identity.clone();
            record.head.sessions = vec![environment.clone()];
            record.kat = Some(kat[&identity].clone());
            record.libraries.timed = Some(builds[&identity]["timed"].clone());
            if record.aa {
                record.plan.cost_s = costs[&identity];
            }
            plan(&mut record.plan);
            inputs(&mut record);
            uncounted(&mut record);
            open.push((path, record));
        }
        for (trial, item) in schedule(&open) {
            let (path, record) = &mut open[item];
            self.trial(path, record, trial)?;
        }
        Ok(())
    }

    /// One trial: each attempt begins and is written down; the last one of a record leaves its file.
    fn trial(&mut self, path: &str, record: &mut TimingRecord, trial: u32) -> io::Result<()> {
        let asked = serde_json::to_string(&request(record, trial))?;
        let last = trial + 1 == record.plan.trials;
        let attempts = record.trials[trial as usize].attempts.len();
        for attempt in 0..attempts {
            if let Some(before) = attempt.checked_sub(1) {
                let flags = &record.trials[trial as usize].attempts[before].flags;
                self.events.push(JournalEvent::Retry {
                    record: path.to_owned(),
                    trial,
                    flags: flags.iter().map(|flag| flag.name.clone()).collect(),
                });
            }
            self.events.push(JournalEvent::AttemptBegun {
                record: path.to_owned(),
                trial,
                attempt: attempt as u32,
            });
            let one = &mut record.trials[trial as usize].attempts[attempt];
            one.started_utc = Some(self.now());
            one.command = vec!["worker".to_owned(), asked.clone()];
            match last && attempt + 1 == attempts {
                true => self.file(path, record.clone()).map(|_| ())?,
                false => self.events.push(JournalEvent::Written {
                    path: path.to_owned(),
                    sha256: hash::sha256(format!("{path} {trial} {attempt}").as_bytes()),
                }),
            }
        }
        Ok(())
    }

    fn memory(
        &mut self,
        dataset: &mut Dataset,
        environment: &SessionRef,
        builds: &BTreeMap<Identity, Libraries>,
    ) -> io::Result<()> {
        for ((identity, _), entry) in std::mem::take(&mut dataset.memory) {
            let (path, mut memory) = (entry.file, entry.value);
            memory.head.sessions = vec![environment.clone()];
            memory.library.sha256 = builds[&identity]["memory"].clone();
            // As many keys as a profile has: the peaks of three of them, over and over.
            memory.runs = (0..KEYS)
                .map(|key| protocol::MemoryRun {
                    key,
                    message: key,
                    ..memory.runs[key as usize % 3].clone()
                })
                .collect();
            if let Some(derived) = &mut memory.derived {
                // The median is the middle one.
                derived.median = MemoryFigures {
                    stack_peak_bytes: memory.runs[1].stack_peak_bytes as f64,
                    heap_peak_bytes: memory.runs[1].heap_peak_bytes as f64,
                };
            }
            self.file(&path, memory)?;
        }
        Ok(())
    }

    fn profile(
        &mut self,
        dataset: &mut Dataset,
        environment: &SessionRef,
        builds: &BTreeMap<Identity, Libraries>,
    ) -> io::Result<()> {
        for ((identity, _), entry) in std::mem::take(&mut dataset.profile) {
            let (path, mut profile) = (entry.file, entry.value);
            profile.head.sessions = vec![environment.clone()];
            if let Some(library) = &mut profile.library {
                library.sha256 = builds[&identity]["profile"].clone();
            }
            self.file(&path, profile)?;
        }
        Ok(())
    }

    fn campaign(&mut self, dataset: &mut Dataset) -> io::Result<()> {
        let calls = dataset.campaign.plan.as_mut().expect("it has a plan");
        (calls.iterations, calls.keys) = (Some(FIXED), KEYS);
        // Written at the end, so that everything lies inside the campaign.
        dataset.campaign.started_utc = Some(crate::clock::utc_text(START_US + STEP_US));
        dataset.campaign.ended_utc = Some(self.now());
        let mut campaign = dataset.campaign.clone();
        explain(&mut campaign);
        self.json(CAMPAIGN_FILE, &campaign)?;
        Ok(())
    }

    /// UTC of the line that is written next: the two first lines come before all others.
    fn now(&self) -> String {
        crate::clock::utc_text(START_US + STEP_US * (self.events.len() as i64 + 2))
    }

    fn close(mut self, dataset: &Dataset) -> io::Result<String> {
        self.entries.sort();
        let manifest = seal::manifest_text(&self.entries);
        put(self.dir, MANIFEST, manifest.as_bytes())?;
        let campaign = &dataset.campaign;
        let first = [
            JournalEvent::RunBegun {
                system: campaign.system.clone(),
                plan: campaign
                    .plan
                    .as_ref()
                    .map(|p| p.name.clone())
                    .unwrap_or_default(),
                config_sha256: campaign.config_sha256.clone().unwrap_or_default(),
                only: None,
                cpus: None,
                order_seed: order_seed(),
                study: campaign.study.clone().map(Box::new),
            },
            JournalEvent::SessionBegun {
                session: 0,
                host_token: "0123456789abcdef".to_owned(),
            },
        ];
        let last = JournalEvent::Sealed {
            manifest_sha256: hash::sha256(manifest.as_bytes()),
        };
        let events = first.into_iter().chain(self.events).chain([last]);
        let stamped = (0..).zip(events).map(|(n, event): (i64, _)| {
            let stamp = Stamp {
                utc_us: START_US + STEP_US * n,
                monotonic_ns: n as u64 * STEP_US as u64 * 1000,
            };
            (stamp, event)
        });
        let (text, seal) = journal::compose(stamped);
        put(self.dir, JOURNAL, text.as_bytes())?;
        std::fs::write(seal::seal_path(self.dir), format!("{seal}\n"))?;
        Ok(seal)
    }
}

/// Keys of memory and profiles.
const KEYS: u32 = 10;

/// The log of a KAT that passed, as orchestrator and worker write it.
fn kat_lines(identity: &Identity, kat: &KatEvidence, sizes: Option<&SizesRecord>) -> String {
    let records = kat.digests.iter().filter_map(|digest| digest.records);
    let made = records.max().unwrap_or(0);
    let lengths = sizes.map_or("-".to_owned(), |sizes| {
        format!(
            "public key {}, secret key {}, signature {}",
            sizes.public_key_bytes, sizes.secret_key_bytes, sizes.signature_bytes
        )
    });
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut lines = vec![
        format!("identity {identity}"),
        format!("library {} {}", kat.library.kind.name(), kat.library.sha256),
        format!("manifest {}", word(&kat.manifest_sha256)),
        "machine x86_64, little-endian, 64-bit words".to_owned(),
        format!("flow Iccs, {made} of 10 vectors"),
        format!("claimed lengths: {lengths} bytes"),
    ];
    for vector in 0..made {
        let message = 56 + 8 * vector;
        lines.push(format!(
            "vector {vector}: message {message} bytes, {lengths}"
        ));
    }
    if let Some(flips) = &kat.flips {
        for (part, count) in [
            ("message", flips.message),
            ("signature", flips.signature),
            ("key", flips.key),
        ] {
            lines.push(format!(
                "flips of the {part}: {} tried, {} rejected, {} exempt",
                count.tried, count.rejected, count.exempt
            ));
        }
        lines.push("the same seed again: equal outputs".to_owned());
    }
    for digest in &kat.digests {
        lines.push(format!(
            "{} {} over {} records",
            word(&digest.found),
            digest.mode,
            digest.records.unwrap_or(0)
        ));
    }
    lines.push(format!("text {} bytes", kat.text_bytes.unwrap_or(0)));
    for digest in &kat.digests {
        lines.push(format!(
            "digest {} expected {} found {} records {}",
            digest.mode,
            word(&digest.expected),
            word(&digest.found),
            digest.records.unwrap_or(0)
        ));
    }
    lines.push(format!("RESULT {}\n", kat.result.word()));
    lines.join("\n")
}

/// Calls of every trial: the synthetic plan fixes them.
const FIXED: u64 = 21;

fn plan(plan: &mut PlanRecord) {
    let cost = plan.cost_s.unwrap_or(1e-3);
    plan.fixed_iterations = Some(FIXED);
    plan.warmups = match cost {
        c if c < 0.05 => 3,
        c if c < 10.0 => 1,
        _ => 0,
    };
    plan.timeout_s =
        300.0 + 3.0 * (plan.iterations as f64 + f64::from(plan.warmups)) * cost + 3.0 * 0.0;
}

/// Seed of the order of trials.
fn order_seed() -> String {
    "0".repeat(32)
}

/// Trials of the records in the order of a run: round by round, by the digest of seed, round and key.
fn schedule(records: &[(String, TimingRecord)]) -> Vec<(u32, usize)> {
    let mut places = Vec::new();
    for (item, (_, record)) in records.iter().enumerate() {
        let mut key = record.head.identity.operation_key(record.operation);
        if record.aa {
            key += ".aa";
        }
        for trial in 0..record.plan.trials {
            let mut hash = Sha256::new();
            hash.update(format!("{}\0", order_seed()));
            hash.update(trial.to_le_bytes());
            hash.update(&key);
            places.push((trial, hash.finalize(), item));
        }
    }
    places.sort();
    places
        .into_iter()
        .map(|(trial, _, item)| (trial, item))
        .collect()
}

/// Roles of the streams of an operation.
fn roles(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::Keygen => &["key"],
        Operation::Sign | Operation::Verify => &["key", "message", "random"],
    }
}

/// Keys, messages and seeds of a record with a plan.
fn inputs(record: &mut TimingRecord) {
    let total = record.plan.iterations + u64::from(record.plan.warmups);
    let (keys, messages) = match record.operation {
        Operation::Keygen => (0, 0),
        Operation::Sign => (1, total),
        Operation::Verify => (1, total.min(protocol::VERIFY_PAIRS)),
    };
    let (subject, operation) = (record.head.identity.subject(), record.operation);
    let seed = |trial: u32, role: &str| {
        let mut hash = Sha256::new();
        hash.update(format!("campaign/1\0{subject}\0{operation}\0"));
        hash.update(trial.to_le_bytes());
        hash.update(role);
        SeedRecord {
            trial,
            role: role.to_owned(),
            seed: const_hex::encode(hash.finalize()),
        }
    };
    let inputs = &mut record.inputs;
    (inputs.keys, inputs.messages) = (Some(keys), Some(messages));
    inputs.seeds = (0..record.plan.trials)
        .flat_map(|trial| roles(operation).iter().map(move |role| (trial, *role)))
        .map(|(trial, role)| seed(trial, role))
        .collect();
}

/// Why attempts that count cycles have no ticks.
fn uncounted(record: &mut TimingRecord) {
    if record.cycle_source.kind != SourceKind::Perf {
        return;
    }
    let text = "the source counts core cycles, and no clock beside them";
    let derived = ["mean", "median_trial", "min_trial", "max_trial"];
    let derived = derived.map(|of| format!("/derived/{of}_ticks"));
    for pointer in derived
        .into_iter()
        .chain(["/trials/*/attempts/*/ticks".to_owned()])
    {
        let reason = Reason::new(ReasonCode::NotInPlan, text);
        record.head.missing.insert(pointer, reason);
    }
}

/// What the worker of an attempt was asked for, as its command keeps it.
fn request(record: &TimingRecord, trial: u32) -> Request {
    let plan = &record.plan;
    Request {
        version: protocol::VERSION,
        token: String::new(),
        library: record.libraries.timed.clone().map(|sha256| LibraryFile {
            path: format!("lib/{sha256}.so"),
            sha256,
        }),
        cpu: record.cpu,
        stack_bytes: 64 << 20,
        isolation: Isolation::NONE,
        task: Task::Measure(MeasureTask {
            operation: record.operation,
            inputs: Inputs {
                subject: record.head.identity.subject(),
                rule: InputRule::Fresh,
                message_bytes: 64,
                trial,
                key_trial: trial,
                prepared_key: None,
            },
            iterations: plan.iterations,
            warmups: plan.warmups,
            cost_ns: (plan.cost_s.unwrap_or(0.0) * 1e9).ceil() as u64,
            sources: vec![record.cycle_source.kind],
        }),
    }
}

fn put(dir: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
    std::fs::write(path, bytes)
}

/// Writes manifest, journal and seal of a run anew after its files were changed: what a forger would
/// do. Announcements of files that are gone are taken out of the journal, new files are announced.
pub fn reseal(dir: &Path) -> io::Result<()> {
    let entries = seal::entries(dir).map_err(io::Error::other)?;
    let manifest = seal::manifest_text(&entries);
    put(dir, MANIFEST, manifest.as_bytes())?;
    let digests: BTreeMap<String, String> =
        entries.into_iter().map(|e| (e.path, e.sha256)).collect();
    let text = std::fs::read_to_string(dir.join(JOURNAL))?;
    let mut lines = Vec::new();
    for line in text.lines() {
        let line: journal::JournalLine = serde_json::from_str(line)?;
        let event = match line.event {
            JournalEvent::Written { path, .. } => match digests.get(&path) {
                Some(sha256) => JournalEvent::Written {
                    sha256: sha256.clone(),
                    path,
                },
                None => continue,
            },
            JournalEvent::Sealed { .. } => JournalEvent::Sealed {
                manifest_sha256: hash::sha256(manifest.as_bytes()),
            },
            other => other,
        };
        let stamp = Stamp {
            utc_us: line
                .utc
                .parse::<jiff::Timestamp>()
                .map_err(io::Error::other)?
                .as_microsecond(),
            monotonic_ns: line.monotonic_ns,
        };
        lines.push((stamp, event));
    }
    let (text, seal) = journal::compose(lines);
    put(dir, JOURNAL, text.as_bytes())?;
    std::fs::write(seal::seal_path(dir), format!("{seal}\n"))
}

/// Copies the public campaign's evidence in `from` under other names until there are so many instances,
/// each with its records and profiles: evidence of any size in the format of an import.
pub fn copies(from: &Path, to: &Path, instances: usize, candidates: usize) -> io::Result<()> {
    let build: serde_json::Value =
        serde_json::from_slice(&std::fs::read(from.join("build.json"))?)?;
    let known: Vec<&serde_json::Value> = build["instances"]
        .as_object()
        .into_iter()
        .flat_map(|o| o.values())
        .collect();
    let mut made = serde_json::Map::new();
    for index in 0..instances {
        let of = known[index % known.len()];
        let name = Renamed {
            candidate: (
                of["candidate"].as_str().unwrap_or_default(),
                format!("cand-{:03}", index % candidates),
            ),
            label: (
                of["label"].as_str().unwrap_or_default(),
                format!("set_{index}"),
            ),
        };
        let log = name.text(&std::fs::read_to_string(
            from.join(of["kat_log"].as_str().unwrap_or_default()),
        )?);
        let digests = (
            of["kat_log_sha256"].as_str().unwrap_or_default(),
            hash::sha256(log.as_bytes()),
        );
        let rename = |text: &str| name.text(text).replace(digests.0, &digests.1);
        put(
            to,
            &name.text(of["kat_log"].as_str().unwrap_or_default()),
            log.as_bytes(),
        )?;
        for folder in ["records", "profile"] {
            for operation in ["keygen", "sign", "verify"] {
                let path = format!(
                    "{folder}/{}/{}__{operation}.json",
                    name.candidate.0, name.label.0
                );
                let text = std::fs::read_to_string(from.join(&path))?;
                put(to, &name.text(&path), rename(&text).as_bytes())?;
            }
        }
        let instance: serde_json::Value = serde_json::from_str(&rename(&of.to_string()))?;
        made.insert(format!("{}/{}", name.candidate.1, name.label.1), instance);
    }
    let build = serde_json::json!({ "instances": made });
    put(to, "build.json", &serde_json::to_vec_pretty(&build)?)?;
    put(
        to,
        "campaign.json",
        &std::fs::read(from.join("campaign.json"))?,
    )
}

/// Old and new names of an instance.
struct Renamed<'a> {
    candidate: (&'a str, String),
    label: (&'a str, String),
}

impl Renamed<'_> {
    fn text(&self, text: &str) -> String {
        text.replace(self.candidate.0, &self.candidate.1)
            .replace(self.label.0, &self.label.1)
    }
}
