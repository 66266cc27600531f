//! Synthetic datasets for tests and benchmarks: complete, deterministic, and measured by nobody.
//!
//! Values are drawn from a small generator with a fixed seed; derived values follow from them by
//! [`crate::stats`], as in a real record. Nothing here is used by a campaign.

pub mod sealed;

use crate::dataset::{Dataset, Entry, Key};
use crate::evidence::*;
use crate::identity::Identity;
use crate::stats::{derive_timing, TimingInput};
use protocol::{
    FlipCount, Flips, InputRule, MemoryRun, Operation, ProfilePasses, ProfileRow, ProfileRun, Rest,
    SourceKind,
};
use std::collections::BTreeMap;
use std::path::Path;

/// What a synthetic dataset holds.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// Id of the system.
    pub system: String,
    /// Its architecture.
    pub arch: String,
    /// Candidates with their labels, and for each label its codes and builds.
    pub candidates: Vec<SyntheticCandidate>,
    /// Where cycles or ticks come from.
    pub source: SourceKind,
    /// Trials of a record.
    pub trials: u32,
    /// Calls of a trial.
    pub calls: u64,
    /// Whether memory and profile evidence is there.
    pub all_phases: bool,
    /// Whether the host was fixed and no virtual machine.
    pub fixed_host: bool,
    /// Factor on all times: a faster or slower system.
    pub speed: f64,
}

/// A candidate of a synthetic dataset.
#[derive(Debug, Clone)]
pub struct SyntheticCandidate {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Labels with their security targets.
    pub labels: Vec<(String, u32)>,
    /// Code and build of each label.
    pub codes: Vec<(String, String)>,
}

impl SyntheticCandidate {
    /// A candidate with one code and build.
    pub fn new(id: &str, name: &str, labels: &[(&str, u32)]) -> Self {
        SyntheticCandidate {
            id: id.to_owned(),
            name: name.to_owned(),
            labels: labels.iter().map(|(l, s)| ((*l).to_owned(), *s)).collect(),
            codes: vec![("ref".to_owned(), "reference".to_owned())],
        }
    }

    /// The same candidate with these codes and builds.
    pub fn with_codes(mut self, codes: &[(&str, &str)]) -> Self {
        self.codes = codes
            .iter()
            .map(|(c, b)| ((*c).to_owned(), (*b).to_owned()))
            .collect();
        self
    }
}

impl Default for Synthetic {
    /// Two small candidates on a fixed host with a cycle counter, all phases.
    fn default() -> Self {
        Synthetic {
            system: "x86_1".to_owned(),
            arch: "x86_64".to_owned(),
            candidates: vec![
                SyntheticCandidate::new(
                    "sign-09",
                    "DOVE",
                    &[("dove_a_128", 128), ("dove_b_256", 256)],
                ),
                SyntheticCandidate::new("toy", "Toy scheme", &[("toy2", 128), ("toy10", 256)])
                    .with_codes(&[("clean", "reference"), ("avx2", "performance")]),
            ],
            source: SourceKind::Perf,
            trials: 5,
            calls: 21,
            all_phases: true,
            fixed_host: true,
            speed: 1.0,
        }
    }
}

impl Synthetic {
    /// A dataset of the public campaign's size, times `factor`: 119 candidates and 2748 records (its
    /// 2746, rounded up to three operations of each instance).
    pub fn public_campaign(factor: usize) -> Self {
        const CANDIDATES: usize = 119;
        const INSTANCES: usize = 2746usize.div_ceil(3);
        let candidates = (0..CANDIDATES)
            .map(|c| SyntheticCandidate {
                id: format!("cand-{c:03}"),
                name: format!("Candidate {c}"),
                labels: (0..INSTANCES * factor)
                    .filter(|instance| instance % CANDIDATES == c)
                    .map(|i| (format!("cand{c}_set_{i}"), [128, 192, 256][i % 3]))
                    .collect(),
                codes: vec![("ref".to_owned(), "reference".to_owned())],
            })
            .collect();
        Synthetic {
            candidates,
            ..Synthetic::default()
        }
    }

    /// The dataset, in memory.
    pub fn build(&self) -> Dataset {
        Builder {
            spec: self,
            random: Random(0x9e37_79b9_7f4a_7c15),
            dataset: self.empty(),
        }
        .build()
    }

    fn empty(&self) -> Dataset {
        Dataset {
            path: "synthetic".into(),
            id: format!("{}-guide-1", self.system),
            campaign: self.campaign(),
            campaign_sha256: crate::hash::sha256(b"campaign"),
            build: None,
            environments: vec![entry("environment/0.json".into(), self.environment())],
            kat: BTreeMap::new(),
            calibrate: BTreeMap::new(),
            timing: BTreeMap::new(),
            aa: Vec::new(),
            memory: BTreeMap::new(),
            profile: BTreeMap::new(),
            studies: Vec::new(),
            fits: BTreeMap::new(),
            cells: None,
            seal: Some(crate::hash::sha256(b"seal")),
            subsets: Vec::new(),
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let mut all = Vec::new();
        for candidate in &self.candidates {
            for (label, _) in &candidate.labels {
                for (code, build) in &candidate.codes {
                    all.push(Identity {
                        candidate: candidate.id.clone(),
                        label: label.clone(),
                        code: code.clone(),
                        build: build.clone(),
                    });
                }
            }
        }
        all.sort();
        all
    }

    fn campaign(&self) -> CampaignFile {
        let rows = self.identities().into_iter().map(|identity| RowInfo {
            identity,
            status: Status::Complete,
            reason: None,
        });
        CampaignFile {
            schema: SCHEMA.to_owned(),
            kind: Kind::Campaign,
            system: self.system.clone(),
            arch: self.arch.clone(),
            system_description: Some("one core, fixed clock".to_owned()),
            class: Class::Registered,
            study: None,
            plan: Some(self.plan()),
            config_sha256: Some(crate::hash::sha256(b"config")),
            only: None,
            cpus: vec![2],
            allow_unfixed_host: !self.fixed_host,
            tool: ToolInfo {
                name: "campaign".to_owned(),
                version: "0.0.0".to_owned(),
                source_digest: None,
                worker_sha256: None,
                runner: Vec::new(),
            },
            report_kind: "independent".to_owned(),
            title: "Synthetic candidates".to_owned(),
            reference_instance: self.identities().into_iter().next(),
            candidates: self.candidates.iter().map(candidate_info).collect(),
            rows: rows.collect(),
            started_utc: Some("2026-01-02T03:04:05.000000Z".to_owned()),
            ended_utc: Some("2026-01-03T03:04:05.000000Z".to_owned()),
            provenance: None,
            missing: BTreeMap::new(),
        }
    }

    fn plan(&self) -> PlanSettings {
        PlanSettings {
            name: "guide".to_owned(),
            trials: self.trials,
            target_s: 0.35,
            min_total: 100,
            max_iterations: 20000,
            budget_s: 900.0,
            repeats: 2,
            builds: "all".to_owned(),
            inputs: "fresh".to_owned(),
            iterations: None,
            cost_s: None,
            timeout_floor_s: 300.0,
            kat_timeout_s: 1800.0,
            defer: Vec::new(),
            disturbed: Disturbed {
                min_clock_ratio: 0.95,
                min_cpu_per_wall: 0.98,
                involuntary_switches_per_s: 60.0,
                steal_percent: 0.5,
                sibling_busy_percent: 10.0,
            },
            keys: 20,
            keys_expensive: 3,
            keys_limit_s: 10.0,
            verdicts: true,
        }
    }

    fn environment(&self) -> EnvironmentFile {
        let check = (!self.fixed_host).then(|| Finding {
            item: "governor".to_owned(),
            cpu: Some(2),
            advice: false,
            state: FindingState::Bad,
            value: "powersave".to_owned(),
            source: "cpufreq".to_owned(),
            remedy: Some("campaign tune".to_owned()),
        });
        let virtualization = if self.fixed_host { "none" } else { "kvm" };
        EnvironmentFile {
            schema: SCHEMA.to_owned(),
            kind: Kind::Environment,
            k: 0,
            started_utc: "2026-01-02T03:04:05.000000Z".to_owned(),
            host_token: Some("0123456789abcdef".to_owned()),
            stable: StableFacts {
                architecture: self.arch.clone(),
                cpu_model: Some("Synthetic 1000".to_owned()),
                logical_cpus_online: 8,
                cpus_allowed: (0..8).collect(),
                memory_total_kib: Some(32_551_112),
                os: Some("Example Linux 13".to_owned()),
                kernel: Some("6.12.0".to_owned()),
                compiler: Some("gcc 14.2.0".to_owned()),
                build_tool: Some("campaign 0.0.0".to_owned()),
                virtualization: Some(virtualization.to_owned()),
                ..StableFacts::default()
            },
            volatile: VolatileFacts {
                perf_event_paranoid: Some(2),
                smt_control: Some("off".to_owned()),
                intel_pstate_no_turbo: Some("1".to_owned()),
                ..VolatileFacts::default()
            },
            cpus: vec![CpuFacts {
                cpu: 2,
                governor: Some("performance".to_owned()),
                min_khz: Some(800_000),
                max_khz: Some(2_100_000),
                ..CpuFacts::default()
            }],
            check: check.into_iter().collect(),
            ready: self.fixed_host,
            layers: Vec::new(),
            probes: Vec::new(),
            missing: BTreeMap::new(),
        }
    }
}

fn candidate_info(candidate: &SyntheticCandidate) -> CandidateInfo {
    CandidateInfo {
        id: candidate.id.clone(),
        name: candidate.name.clone(),
        category: "public-key algorithm".to_owned(),
        function: "digital signature".to_owned(),
        origin: Origin::Independent,
        specification: None,
        links: BTreeMap::new(),
        instances: candidate
            .labels
            .iter()
            .map(|(label, bits)| InstanceInfo {
                label: label.clone(),
                security_bits: Some(*bits),
            })
            .collect(),
        kat_issues: Vec::new(),
        wrap_column: "pseudohash/XOF/sm3".to_owned(),
    }
}

fn entry<T: serde::Serialize>(file: String, value: T) -> Entry<T> {
    let digest = crate::hash::sha256(file.as_bytes());
    Entry {
        file,
        sha256: digest,
        value,
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough for values that only have to look measured.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Up to `part` above `base`, most often little.
    fn above(&mut self, base: u64, part: f64) -> u64 {
        let x = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        base + (base as f64 * part * x * x) as u64
    }
}

struct Builder<'a> {
    spec: &'a Synthetic,
    random: Random,
    dataset: Dataset,
}

impl Builder<'_> {
    fn build(mut self) -> Dataset {
        let mut rows = Vec::new();
        for (index, identity) in self.spec.identities().into_iter().enumerate() {
            rows.push(self.build_row(&identity));
            let kat = self.kat(&identity);
            let file = format!("kat/{}/{}.timed.json", identity.candidate, identity.stem());
            self.dataset
                .kat
                .insert((identity.clone(), LibraryKind::Timed), entry(file, kat));
            for operation in Operation::ALL {
                self.operation(&identity, operation, index as u64);
            }
        }
        let build = BuildFile {
            schema: SCHEMA.to_owned(),
            kind: Kind::Build,
            system: self.spec.system.clone(),
            rows,
            missing: BTreeMap::new(),
        };
        self.dataset.build = Some(entry("build.json".into(), build));
        self.second_timing();
        self.dataset
    }

    /// The cheapest verify a second time, for the noise floor.
    fn second_timing(&mut self) {
        let cost = |e: &Entry<TimingRecord>| e.value.plan.cost_s.unwrap_or(f64::INFINITY);
        let cheapest = self
            .dataset
            .timing
            .iter()
            .filter(|(key, _)| key.1 == Operation::Verify)
            .min_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))
            .map(|(key, e)| (key.clone(), e.value.trials[0].attempts[0].nanoseconds));
        let Some((key, nanoseconds)) = cheapest else {
            return;
        };
        let per_call = nanoseconds / self.spec.calls;
        let mut record = self.timing(&key.0, key.1, per_call);
        record.aa = true;
        let file = format!("records/{}", key.0.aa_file());
        self.dataset.aa.push(entry(file, record));
    }

    fn operation(&mut self, identity: &Identity, operation: Operation, index: u64) {
        let factor = match operation {
            Operation::Keygen => 40,
            Operation::Sign => 5,
            Operation::Verify => 1,
        };
        let decades = 10u64.pow((index % 5) as u32);
        let per_call = (13_000.0 * self.spec.speed) as u64 * factor * decades;
        let key: Key = (identity.clone(), operation);
        let path = identity.operation_file(operation);
        let timing = self.timing(identity, operation, per_call);
        self.dataset
            .timing
            .insert(key.clone(), entry(format!("records/{path}"), timing));
        if self.spec.all_phases {
            let memory = self.memory(identity, operation, index);
            self.dataset
                .memory
                .insert(key.clone(), entry(format!("memory/{path}"), memory));
            let profile = self.profile(identity, operation, index);
            self.dataset
                .profile
                .insert(key, entry(format!("profile/{path}"), profile));
        }
    }

    fn head(&self, kind: Kind, identity: &Identity) -> Head {
        Head {
            schema: SCHEMA.to_owned(),
            kind,
            identity: identity.clone(),
            origin: Origin::Independent,
            class: Class::Registered,
            system: self.spec.system.clone(),
            status: Status::Complete,
            reason: None,
            host_token: Some("0123456789abcdef".to_owned()),
            sessions: Vec::new(),
            missing: BTreeMap::new(),
        }
    }

    fn elf(&self) -> ElfFigures {
        ElfFigures {
            text: Some(20_000),
            rodata: Some(9_000),
            data: Some(120),
            bss: Some(80),
            headers_and_tables: Some(7_949),
            load_bytes: 37_149,
            needed: Some(vec!["libc.so.6".to_owned()]),
        }
    }

    fn build_row(&self, identity: &Identity) -> BuildRow {
        let digest = crate::hash::sha256(identity.to_string().as_bytes());
        BuildRow {
            identity: identity.clone(),
            status: Status::Complete,
            reason: None,
            compiler: "gcc".to_owned(),
            compiler_version: "gcc 14.2.0".to_owned(),
            flags: "-std=c99 -O2 -fPIC".to_owned(),
            link_flags: Some("-shared".to_owned()),
            flags_kind: FlagsKind::Guide,
            lto_removed: Some(identity.build == "performance"),
            warnings: Some(Vec::new()),
            source_sha256: Some(digest.clone()),
            source_files: Some(7),
            source_crates: Vec::new(),
            libraries: BTreeMap::from([(
                "timed".to_owned(),
                BuiltLibrary {
                    file: format!("lib/{digest}.so"),
                    sha256: digest,
                    bytes: Some(40_000),
                },
            )]),
            elf: Some(self.elf()),
            wrapped: Vec::new(),
            not_wrapped: Vec::new(),
            native: None,
            log: None,
        }
    }

    fn kat(&self, identity: &Identity) -> KatEvidence {
        let digest = crate::hash::sha256(b"kat");
        let tried = FlipCount {
            tried: 64,
            rejected: 64,
            exempt: 0,
        };
        KatEvidence {
            head: self.head(Kind::Kat, identity),
            library: LibraryRef {
                kind: LibraryKind::Timed,
                sha256: crate::hash::sha256(identity.to_string().as_bytes()),
            },
            flow: "iccs".to_owned(),
            result: KatResult::Pass,
            detail: None,
            digests: vec![KatDigestRecord {
                mode: "strict".to_owned(),
                expected: Some(digest.clone()),
                found: Some(digest.clone()),
                records: Some(10),
            }],
            manifest_sha256: Some(digest.clone()),
            text_bytes: Some(1_000_000),
            flips: Some(Flips {
                message: tried,
                signature: tried,
                key: tried,
            }),
            log: format!("kat/{}/{}.timed.log", identity.candidate, identity.stem()),
            log_sha256: digest,
            start: Some("2026-01-02T03:04:06.000000Z".to_owned()),
            end: Some("2026-01-02T03:04:07.000000Z".to_owned()),
        }
    }

    fn attempt(&mut self, per_call: u64) -> Attempt {
        let calls = self.spec.calls;
        let base = self.random.above(per_call, 0.01);
        let samples: Vec<u64> = (0..calls.min(512))
            .map(|_| self.random.above(base, 0.03))
            .collect();
        let nanoseconds = samples.iter().sum();
        let perf = self.spec.source == SourceKind::Perf;
        let clock = matches!(self.spec.source, SourceKind::Tsc | SourceKind::Cntvct);
        Attempt {
            session: 0,
            started_utc: Some("2026-01-02T03:05:00.000000Z".to_owned()),
            exit: Exit::Ok,
            detail: None,
            calls,
            nanoseconds,
            cycles: perf.then_some(nanoseconds * 21 / 10),
            ticks: clock.then_some(nanoseconds * 2),
            instructions: None,
            time_enabled: perf.then_some(nanoseconds),
            time_running: perf.then_some(nanoseconds),
            read_by: None,
            refused: None,
            batch: Some(1),
            samples,
            rest: Some(Rest { calls: 0, value: 0 }),
            user_ns: Some(nanoseconds),
            system_ns: Some(0),
            switches: None,
            faults: None,
            steal: Some(0),
            baseline_rss_bytes: Some(1_765_376),
            peak_rss_bytes: Some(2_330_624),
            cpu_before: Some(2),
            cpu_after: Some(2),
            flags: Vec::new(),
            stdout: None,
            stderr: None,
            command: Vec::new(),
        }
    }

    fn timing(&mut self, identity: &Identity, operation: Operation, per_call: u64) -> TimingRecord {
        let mut trials: Vec<Trial> = (0..self.spec.trials)
            .map(|_| Trial {
                attempts: vec![self.attempt(per_call)],
                counted: Some(0),
            })
            .collect();
        // One disturbed attempt, repeated, so that pages have one to show.
        if operation == Operation::Sign {
            if let Some(trial) = trials.last_mut() {
                let mut disturbed = self.attempt(per_call + per_call / 20);
                disturbed.flags = vec![Flag {
                    name: "steal_percent".to_owned(),
                    value: 2.5,
                    limit: 0.5,
                }];
                trial.attempts.insert(0, disturbed);
                trial.counted = Some(1);
            }
        }
        let input = TimingInput {
            verdicts: true,
            clock_hz: None,
            empty_call_s: None,
            cost_s: None,
        };
        let mut head = self.head(Kind::Timing, identity);
        let (derived, missing) = derive_timing(&trials, input).unzip();
        for (field, reason) in missing.unwrap_or_default() {
            head.missing.insert(format!("/derived/{field}"), reason);
        }
        TimingRecord {
            head,
            operation,
            aa: false,
            plan: PlanRecord {
                name: "guide".to_owned(),
                trials: self.spec.trials,
                iterations: self.spec.calls,
                warmups: 3,
                cost_s: Some(per_call as f64 / 1e9),
                preparation_s: Some(0.0),
                target_s: 0.35,
                min_total: 100,
                max_iterations: 20000,
                budget_s: 900.0,
                repeats: Some(2),
                fixed_iterations: None,
                timeout_s: 300.0,
            },
            kat: None,
            libraries: Libraries {
                timed: Some(crate::hash::sha256(identity.to_string().as_bytes())),
            },
            inputs: InputsRecord {
                message_bytes: Some(64),
                rule: Some(InputRule::Fresh),
                seeds: Vec::new(),
                keys: Some(1),
                messages: Some(64),
            },
            cycle_source: self.cycle_source(),
            cpu: Some(2),
            sizes: Some(SizesRecord {
                public_key_bytes: 1312,
                secret_key_bytes: 2528,
                signature_bytes: 2420,
            }),
            host_ready: Some(self.spec.fixed_host),
            stated_disturbed_retries: None,
            trials,
            derived,
        }
    }

    fn cycle_source(&self) -> CycleSourceRecord {
        let kind = self.spec.source;
        CycleSourceRecord {
            kind,
            reason: (kind != SourceKind::Perf).then(|| {
                Reason::new(
                    ReasonCode::NoCounterEnoent,
                    "the kernel offers no cycle counter: this is a virtual machine",
                )
            }),
            pmu: (kind == SourceKind::Perf).then(|| "cpu".to_owned()),
            event: (kind == SourceKind::Perf).then(|| "cycles".to_owned()),
            user_only: (kind == SourceKind::Perf).then_some(true),
            access: None,
            frequency_hz: (kind != SourceKind::Perf).then_some(2_000_000_000),
            resolution: None,
            read_cost_ns: Some(20),
            overhead: None,
            self_test: None,
        }
    }

    fn memory(&self, identity: &Identity, operation: Operation, index: u64) -> MemoryEvidence {
        let runs: Vec<MemoryRun> = (0..3)
            .map(|key| MemoryRun {
                key,
                message: 0,
                stack_peak_bytes: 4096 + 16 * u64::from(key) + 1024 * index,
                heap_peak_bytes: 65536 * (index + 1),
                allocations: 3,
                leaked_bytes: 0,
            })
            .collect();
        let worst = MemoryFigures {
            stack_peak_bytes: runs[2].stack_peak_bytes as f64,
            heap_peak_bytes: runs[2].heap_peak_bytes as f64,
        };
        let elf = self.elf();
        MemoryEvidence {
            head: self.head(Kind::Memory, identity),
            operation,
            library: LibraryRef {
                kind: LibraryKind::Memory,
                sha256: crate::hash::sha256(b"memory"),
            },
            interposed_sha256: None,
            lto_removed: identity.build == "performance",
            process: Some(ProcessMemory {
                baseline_rss_bytes: 1_765_376,
                peak_rss_bytes: 2_330_624,
            }),
            derived: Some(MemoryDerived {
                worst,
                median: worst,
                guide_total_bytes: elf.load_bytes
                    + runs[2].stack_peak_bytes
                    + runs[2].heap_peak_bytes,
            }),
            static_: elf,
            runs,
            empty: Some(EmptyMemory {
                stack_peak_bytes: 512,
            }),
        }
    }

    fn profile(&self, identity: &Identity, operation: Operation, index: u64) -> ProfileEvidence {
        let operations = 10;
        let total = 1_000_000;
        let hash_ticks = [190_000, 30_000, 700][index as usize % 3];
        let drng = operation == Operation::Keygen;
        let row = |function: &str, group: &str, calls, ticks| ProfileRow {
            function: function.to_owned(),
            group: group.to_owned(),
            in_bits: 144,
            out_bits: 18_768,
            calls,
            ticks,
        };
        let mut calls = vec![row("pseudoXOF", "hash", 140 * operations, hash_ticks)];
        let mut per_operation = BTreeMap::from([("pseudoXOF".to_owned(), 140.0)]);
        if drng {
            calls.push(row("drng", "drng", operations, 40));
            per_operation.insert("drng".to_owned(), 1.0);
        }
        let run = ProfileRun {
            calls: per_operation
                .iter()
                .map(|(name, calls)| (name.clone(), *calls as u64))
                .collect(),
            rejected_draws: 0,
        };
        let hash_share = hash_ticks as f64 / total as f64;
        let drng_share = if drng { 40.0 / total as f64 } else { 0.0 };
        ProfileEvidence {
            head: self.head(Kind::Profile, identity),
            operation,
            library: Some(LibraryRef {
                kind: LibraryKind::Profile,
                sha256: crate::hash::sha256(b"profile"),
            }),
            lto_removed: Some(identity.build == "performance"),
            wrapped: vec!["pseudoXOF".to_owned(), "drng".to_owned()],
            keys: Some(operations as u32),
            passes: vec![three_passes(total / operations); operations as usize],
            ticks: TicksRecord {
                source: SourceKind::Tsc,
                hz: Some(2_000_000_000),
            },
            wrapper_cost_ticks: Some(0),
            wrapper_inside_milliticks: Some(0),
            wrapper_around_milliticks: Some(0),
            total: ProfileTotal {
                operations,
                ticks: total,
            },
            calls,
            runs: vec![run; operations as usize],
            overflow_calls: 0,
            derived: Some(ProfileDerived {
                share: Some(BTreeMap::from([
                    ("pseudoXOF".to_owned(), hash_share),
                    ("drng".to_owned(), drng_share),
                ])),
                hash_share: Some(hash_share),
                drng_share: Some(drng_share),
                calls_per_operation: per_operation,
                rejected_draws: Some(0),
                verdict: "ICCS-only".to_owned(),
            }),
        }
    }
}

/// A key of a profile: the second of three passes counts, since the last one was disturbed.
fn three_passes(ticks: u64) -> ProfilePasses {
    ProfilePasses {
        ticks: vec![ticks + 1000, ticks, ticks - 500],
        disturbed: vec![2],
        other_calls: Vec::new(),
        counted: 1,
        wall_ns: 50_000,
        cpu_ns: 50_100,
        involuntary_switches: 0,
    }
}

/// Writes a dataset as a run directory, so that it can be read again.
pub fn write(dataset: &Dataset, folder: &Path) -> Result<(), store::StoreError> {
    let put = |file: &str, value: serde_json::Value| store::write_json(&folder.join(file), &value);
    let json = |value: Result<serde_json::Value, serde_json::Error>| {
        value.expect("evidence types serialise")
    };
    put(
        "campaign.json",
        json(serde_json::to_value(&dataset.campaign)),
    )?;
    if let Some(build) = &dataset.build {
        put(&build.file, json(serde_json::to_value(&build.value)))?;
    }
    for e in &dataset.environments {
        put(&e.file, json(serde_json::to_value(&e.value)))?;
    }
    for e in dataset.kat.values() {
        put(&e.file, json(serde_json::to_value(&e.value)))?;
    }
    for e in dataset.timing.values().chain(&dataset.aa) {
        put(&e.file, json(serde_json::to_value(&e.value)))?;
    }
    for e in dataset.memory.values() {
        put(&e.file, json(serde_json::to_value(&e.value)))?;
    }
    for e in dataset.profile.values() {
        put(&e.file, json(serde_json::to_value(&e.value)))?;
    }
    Ok(())
}

/// A hardware counter that a worker found and tested, read by `access`.
pub fn counter(access: &str, self_test: &str) -> protocol::CycleSource {
    protocol::CycleSource {
        kind: SourceKind::Perf,
        pmu: Some("cpu_core".to_owned()),
        event: "cycles".to_owned(),
        user_only: true,
        access: access.to_owned(),
        frequency_hz: None,
        resolution: None,
        read_cost_ns: 10,
        self_test: protocol::SelfTest {
            adds: 1,
            counted: 1,
            instructions: None,
            nanoseconds: 1,
            time_enabled_running: None,
            plausible: true,
            text: self_test.to_owned(),
        },
    }
}
