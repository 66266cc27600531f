//! Our files from the public campaign's evidence: a pure function of the evidence and of what is
//! stated about its candidates. No figure is changed; what the source lacks is null.

use super::context::Context;
use super::read::Evidence;
use super::schema2::{Calls, Environment, HostCheck, Instance, Process, Profile, Record};
use super::ImportError;
use crate::audit::text;
use crate::evidence::*;
use crate::hash;
use crate::identity::Identity;
use crate::stats::{derive_timing, TimingInput};
use protocol::{Operation, ProfileRow, SourceKind};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Source of every identity: the public campaign measured the submitters' reference code.
const CODE: &str = "ref";

/// Folder of the source files below a dataset.
pub const SOURCE: &str = "source";

/// What an import says of itself on every page.
pub const TEXT: &str = "Evidence of the public NGCC performance campaign (its schema 2), imported: no figure was \
    changed, host names were taken out. The source files are kept under source/, and every record here is derived from them.";

/// A file of the dataset: path, and bytes.
pub type DerivedFile = (String, Vec<u8>);

/// All files of the dataset but the source, the manifest and the journal, in the order of their paths.
pub fn files(evidence: &Evidence, context: &Context) -> Result<Vec<DerivedFile>, ImportError> {
    let files = Mutex::new(Vec::new());
    each(evidence, context, &|file| {
        files.lock().unwrap_or_else(|e| e.into_inner()).push(file);
        Ok(())
    })?;
    let mut files = files.into_inner().unwrap_or_else(|e| e.into_inner());
    files.sort();
    Ok(files)
}

/// Gives each of these files to `take` as it is made, on all CPUs and in no order, so that a large
/// dataset is never in memory as a whole.
pub fn each(evidence: &Evidence, context: &Context, take: &Take) -> Result<(), ImportError> {
    let maker = Maker::new(evidence)?;
    take(file(CAMPAIGN_FILE, campaign(evidence, context, &maker)?)?)?;
    take(file(BUILD_FILE, build(evidence, &maker)?)?)?;
    take((ENVIRONMENT.to_owned(), maker.environment.clone()))?;
    for instance in evidence.build.instances.values() {
        take(kat(evidence, instance, &maker)?)?;
    }
    let records = evidence.records.par_iter();
    records.try_for_each(|(path, r)| take(record(evidence, path, r, &maker)?))?;
    let profiles = evidence.profiles.par_iter();
    profiles.try_for_each(|(path, p)| take(profile(evidence, path, p, &maker)?))
}

/// What becomes of a file.
pub type Take<'a> = dyn Fn(DerivedFile) -> Result<(), ImportError> + Sync + 'a;

/// The only session.
const ENVIRONMENT: &str = "environment/0.json";

/// What several files need.
struct Maker {
    system: String,
    environment: Vec<u8>,
    environment_sha256: String,
    /// By `<candidate>/<label>`: path and digest of the KAT evidence.
    kat: BTreeMap<String, KatRef>,
}

impl Maker {
    fn new(evidence: &Evidence) -> Result<Self, ImportError> {
        let (_, environment) = file(ENVIRONMENT, environment(evidence))?;
        let mut maker = Maker {
            system: evidence.campaign.system_id.clone(),
            environment_sha256: hash::sha256(&environment),
            environment,
            kat: BTreeMap::new(),
        };
        for (key, instance) in &evidence.build.instances {
            let (file, bytes) = kat(evidence, instance, &maker)?;
            let reference = KatRef {
                file,
                sha256: hash::sha256(&bytes),
                result: kat_result(instance)?,
            };
            maker.kat.insert(key.clone(), reference);
        }
        Ok(maker)
    }

    fn head(&self, kind: Kind, instance: &Instance) -> Result<Head, ImportError> {
        Ok(Head {
            schema: SCHEMA.to_owned(),
            kind,
            identity: identity(instance)?,
            origin: Origin::Submission,
            class: Class::Imported,
            system: self.system.clone(),
            status: Status::Complete,
            reason: None,
            host_token: None,
            sessions: vec![SessionRef {
                k: 0,
                environment_sha256: self.environment_sha256.clone(),
            }],
            missing: BTreeMap::new(),
        })
    }
}

/// A file as we write it, every null with its reason.
fn file<T: Explained>(path: &str, mut value: T) -> Result<DerivedFile, ImportError> {
    explain_by(&mut value, |key| {
        Reason::new(ReasonCode::NotRecorded, lacking(key))
    });
    plain(path, &value)
}

/// Why a key is null, by what it is: what the public campaign has no such thing for, or what it had and
/// did not write down.
fn lacking(key: &str) -> &'static str {
    match key {
        "frequency_hz" => "core cycles have no fixed rate",
        "ticks" | "mean_ticks" | "median_trial_ticks" | "min_trial_ticks" | "max_trial_ticks" => {
            "the source times with cycles and seconds, not with ticks"
        }
        "self_test" | "host_token" | "flips" | "study" | "only" | "fixed_iterations"
        | "rejected_draws" => "the tool of the source has no such thing",
        "intel_pstate_no_turbo" | "cpufreq_boost" | "smt_control" | "machine" => {
            "the source states null: the machine did not tell"
        }
        "wrapper_cost_ticks" | "wrapper_inside_milliticks" | "wrapper_around_milliticks" => {
            "the source did not measure what a wrapper costs"
        }
        "samples" | "batch" => "the source keeps totals of its trials, not single calls",
        _ => "the source does not record it",
    }
}

pub(super) fn plain<T: Serialize>(path: &str, value: &T) -> Result<DerivedFile, ImportError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| foreign(path, format!("it cannot be written as JSON: {error}")))?;
    bytes.push(b'\n');
    Ok((path.to_owned(), bytes))
}

fn foreign(file: &str, what: impl Into<String>) -> ImportError {
    ImportError::Foreign {
        file: file.to_owned(),
        what: what.into(),
    }
}

fn identity(instance: &Instance) -> Result<Identity, ImportError> {
    Identity::new(
        &instance.candidate,
        &instance.label,
        CODE,
        &instance.variant,
    )
    .map_err(|error| foreign("build.json", error.to_string()))
}

fn instance<'a>(
    evidence: &'a Evidence,
    path: &str,
    candidate: &str,
    label: &str,
) -> Result<&'a Instance, ImportError> {
    evidence
        .instance(candidate, label)
        .ok_or_else(|| foreign(path, "its instance is not in build.json"))
}

fn operation(path: &str, name: &str, input_bytes: u64) -> Result<Operation, ImportError> {
    Operation::ALL
        .into_iter()
        .find(|o| o.name() == name && input_bytes == 0)
        .ok_or_else(|| foreign(path, format!("`{name}` with {input_bytes} input bytes is no operation of this version: only signature candidates are read")))
}

fn kat_result(instance: &Instance) -> Result<KatResult, ImportError> {
    serde_json::from_value(Value::String(instance.kat.clone())).map_err(|_| {
        foreign(
            "build.json",
            format!("`{}` is no result of a KAT", instance.kat),
        )
    })
}

/// Measured CPUs in order.
fn cpus(evidence: &Evidence) -> Vec<u32> {
    let mut cpus: Vec<u32> = evidence
        .records
        .iter()
        .filter_map(|(_, r)| cpu(r))
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn cpu(record: &Record) -> Option<u32> {
    u32::try_from(record.environment.number("cpu_number")?).ok()
}

fn campaign(
    evidence: &Evidence,
    context: &Context,
    maker: &Maker,
) -> Result<CampaignFile, ImportError> {
    let source = &evidence.campaign;
    let mut rows = Vec::new();
    for instance in evidence.build.instances.values() {
        rows.push(RowInfo {
            identity: identity(instance)?,
            status: Status::Complete,
            reason: None,
        });
    }
    rows.sort_by(|a, b| a.identity.cmp(&b.identity));
    Ok(CampaignFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Campaign,
        system: maker.system.clone(),
        arch: source
            .environment_at_end
            .text("architecture")
            .unwrap_or_default(),
        system_description: context.system_description.clone(),
        class: Class::Imported,
        study: None,
        plan: None,
        config_sha256: None,
        only: None,
        cpus: cpus(evidence),
        allow_unfixed_host: false,
        tool: ToolInfo {
            name: "evidence schema".to_owned(),
            version: super::schema2::VERSION.to_string(),
            source_digest: None,
            worker_sha256: None,
            runner: Vec::new(),
        },
        report_kind: context.report_kind.clone(),
        title: context.title.clone(),
        reference_instance: context.reference_instance.clone(),
        candidates: context.candidates.clone(),
        rows,
        started_utc: Some(source.started_utc.clone()),
        ended_utc: Some(source.ended_utc.clone()),
        provenance: Some(Provenance {
            text: TEXT.to_owned(),
            format: "schema 2".to_owned(),
            dropped: context.dropped.clone(),
            source: evidence.campaign_value.clone(),
        }),
        missing: BTreeMap::new(),
    })
}

/// The machine as the campaign found it at its end; each measured CPU as its first record found it.
fn environment(evidence: &Evidence) -> EnvironmentFile {
    let source = &evidence.campaign;
    let facts = &source.environment_at_end;
    let text = |key: &str| facts.text(key);
    EnvironmentFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Environment,
        k: 0,
        started_utc: source.started_utc.clone(),
        host_token: None,
        stable: StableFacts {
            architecture: text("architecture").unwrap_or_default(),
            cpu_model: text("cpu_model"),
            machine: text("machine"),
            logical_cpus_online: text("logical_cpus_online").map_or(0, |list| count(&list)),
            memory_total_kib: facts.number("memory_total_kib"),
            os: text("os"),
            kernel: text("kernel"),
            compiler: text("compiler"),
            build_tool: text("cmake"),
            virtualization: match facts.0.get("virtualized") {
                Some(Value::Bool(false)) => Some("none".to_owned()),
                _ => None,
            },
            ..StableFacts::default()
        },
        volatile: VolatileFacts {
            perf_event_paranoid: facts
                .number("perf_event_paranoid")
                .and_then(|n| i64::try_from(n).ok()),
            smt_control: text("smt_control"),
            intel_pstate_no_turbo: text("intel_pstate_no_turbo"),
            cpufreq_boost: text("cpufreq_boost"),
            other: text("python")
                .map(|version| ("python".to_owned(), version))
                .into_iter()
                .collect(),
            ..VolatileFacts::default()
        },
        cpus: cpus(evidence)
            .into_iter()
            .filter_map(|number| {
                let (_, first) = evidence
                    .records
                    .iter()
                    .find(|(_, r)| cpu(r) == Some(number))?;
                Some(cpu_facts(number, &first.environment))
            })
            .collect(),
        check: source
            .host_problems
            .iter()
            .map(|problem| host_problem(problem))
            .collect(),
        ready: source.host_problems.is_empty(),
        layers: Vec::new(),
        probes: Vec::new(),
        missing: BTreeMap::new(),
    }
}

/// CPUs in a list of the kernel (`0-11`).
fn count(list: &str) -> u32 {
    list.parse::<crate::values::CpuList>()
        .map_or(0, |cpus| cpus.0.len() as u32)
}

fn cpu_facts(cpu: u32, environment: &Environment) -> CpuFacts {
    CpuFacts {
        cpu,
        driver: environment.text("cpufreq_driver"),
        governor: environment.text("cpufreq_governor"),
        min_khz: environment.number("cpufreq_min_khz"),
        max_khz: environment.number("cpufreq_max_khz"),
        measured_clock_hz: environment.number("core_clock_hz"),
        ..CpuFacts::default()
    }
}

fn host_problem(problem: &str) -> Finding {
    Finding {
        item: "host".to_owned(),
        cpu: None,
        advice: false,
        state: FindingState::Bad,
        value: problem.to_owned(),
        source: "host_problems of the source".to_owned(),
        remedy: None,
    }
}

fn build(evidence: &Evidence, maker: &Maker) -> Result<BuildFile, ImportError> {
    let mut rows = Vec::new();
    for instance in evidence.build.instances.values() {
        rows.push(build_row(evidence, instance)?);
    }
    rows.sort_by(|a, b| a.identity.cmp(&b.identity));
    Ok(BuildFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Build,
        system: maker.system.clone(),
        rows,
        missing: BTreeMap::new(),
    })
}

fn build_row(evidence: &Evidence, instance: &Instance) -> Result<BuildRow, ImportError> {
    let version = evidence
        .campaign
        .environment_at_end
        .text("compiler")
        .unwrap_or_default();
    let (_, first) = evidence
        .records
        .iter()
        .find(|(_, r)| r.candidate == instance.candidate && r.label == instance.label)
        .ok_or_else(|| foreign("build.json", format!("`{}` has no record", instance.label)))?;
    let kind = instance.flags.clone();
    Ok(BuildRow {
        identity: identity(instance)?,
        status: Status::Complete,
        reason: None,
        compiler: version.split(' ').next().unwrap_or_default().to_owned(),
        compiler_version: version,
        flags: first.build_flags.trim().to_owned(),
        link_flags: None,
        flags_kind: serde_json::from_value(Value::String(kind)).map_err(|_| {
            foreign(
                "build.json",
                format!("`{}` is no kind of flags", instance.flags),
            )
        })?,
        lto_removed: None,
        warnings: None,
        source_sha256: None,
        source_files: None,
        source_crates: Vec::new(),
        libraries: BTreeMap::from([(
            LibraryKind::Timed.name().to_owned(),
            BuiltLibrary {
                file: instance.library.clone(),
                sha256: instance.library_sha256.clone(),
                bytes: None,
            },
        )]),
        elf: Some(ElfFigures {
            text: None,
            rodata: None,
            data: None,
            bss: None,
            headers_and_tables: None,
            load_bytes: instance.elf_load_bytes,
            needed: None,
        }),
        wrapped: Vec::new(),
        not_wrapped: Vec::new(),
        native: None,
        log: None,
    })
}

/// `kat/`: the log stays where the source has it; the result is its last RESULT line.
fn kat(
    evidence: &Evidence,
    instance: &Instance,
    maker: &Maker,
) -> Result<DerivedFile, ImportError> {
    let log = evidence
        .logs
        .get(&instance.kat_log)
        .ok_or_else(|| foreign(&instance.kat_log, "the KAT log is missing"))?;
    let identity = identity(instance)?;
    let path = format!("kat/{}/{}.timed.json", identity.candidate, identity.stem());
    let head = maker.head(Kind::Kat, instance)?;
    let expected = log.manifest().map(|(digest, mode)| KatDigestRecord {
        mode: mode.to_owned(),
        expected: Some(digest.to_owned()),
        found: None,
        records: None,
    });
    let kat = KatEvidence {
        head,
        library: LibraryRef {
            kind: LibraryKind::Timed,
            sha256: instance.library_sha256.clone(),
        },
        flow: "iccs".to_owned(),
        result: kat_result(instance)?,
        detail: None,
        digests: expected.into_iter().collect(),
        manifest_sha256: None,
        text_bytes: log.text_bytes(),
        flips: None,
        log: format!("{SOURCE}/{}", log.file),
        log_sha256: log.sha256.clone(),
        start: None,
        end: None,
    };
    file(&path, kat)
}

fn record(
    evidence: &Evidence,
    path: &str,
    source: &Record,
    maker: &Maker,
) -> Result<DerivedFile, ImportError> {
    let instance = instance(evidence, path, &source.candidate, &source.label)?;
    let operation = operation(path, &source.operation, source.input_bytes)?;
    let mut head = maker.head(Kind::Timing, instance)?;
    if source.status != "complete" {
        head.status = Status::Failed;
        head.reason = Some(Reason::new(
            ReasonCode::NotRecorded,
            format!("the source says {}", source.status),
        ));
    }
    let planning = &evidence.campaign.planning;
    let mut trials = Vec::new();
    for process in &source.processes {
        trials.push(trial(path, process)?);
    }
    let input = TimingInput {
        verdicts: true,
        clock_hz: fixed_clock(&source.environment),
        empty_call_s: None,
        cost_s: None,
    };
    let derived = derive_timing(&trials, input).map(|(derived, missing)| {
        for (field, reason) in missing {
            head.missing.insert(format!("/derived/{field}"), reason);
        }
        derived
    });
    let file_path = format!("records/{}", head.identity.operation_file(operation));
    let timing = TimingRecord {
        head,
        operation,
        aa: false,
        plan: PlanRecord {
            name: "schema 2".to_owned(),
            trials: source.plan.trials,
            iterations: source.plan.iterations_per_trial,
            warmups: source.plan.warmups,
            cost_s: None,
            preparation_s: None,
            target_s: planning.trial_target_s,
            min_total: planning.min_total,
            max_iterations: planning.max_iters_per_trial,
            budget_s: planning.op_budget_s,
            repeats: None,
            fixed_iterations: None,
            timeout_s: source.plan.timeout_per_process_s,
        },
        kat: maker
            .kat
            .get(&format!("{}/{}", source.candidate, source.label))
            .cloned(),
        libraries: Libraries {
            timed: Some(source.library_sha256.clone()),
        },
        inputs: InputsRecord {
            message_bytes: None,
            rule: None,
            seeds: Vec::new(),
            keys: None,
            messages: None,
        },
        cycle_source: cycle_source(source),
        cpu: cpu(source),
        sizes: Some(SizesRecord {
            public_key_bytes: source.sizes.pk_bytes,
            secret_key_bytes: source.sizes.sk_bytes,
            signature_bytes: source.sizes.signature_bytes,
        }),
        host_ready: host_ready(&evidence.campaign.host_checks, source),
        stated_disturbed_retries: Some(source.disturbed_retries),
        trials,
        derived,
    };
    file(&file_path, timing)
}

/// Cycles are core cycles of perf where every process says that it had them.
fn cycle_source(source: &Record) -> CycleSourceRecord {
    let available = |p: &Process| {
        p.meta
            .get("cpu_cycles_available")
            .is_some_and(|v| v == "yes")
    };
    let perf = source.processes.iter().all(available) && !source.processes.is_empty();
    CycleSourceRecord {
        kind: if perf {
            SourceKind::Perf
        } else {
            SourceKind::None
        },
        reason: (!perf)
            .then(|| Reason::new(ReasonCode::NotRecorded, "the source counted no cycles")),
        pmu: None,
        event: None,
        user_only: None,
        access: None,
        frequency_hz: None,
        resolution: None,
        read_cost_ns: None,
        overhead: None,
        self_test: None,
    }
}

/// Hertz, where the frequency was held by its limits.
fn fixed_clock(environment: &Environment) -> Option<f64> {
    let (min, max) = (
        environment.number("cpufreq_min_khz")?,
        environment.number("cpufreq_max_khz")?,
    );
    (min == max).then_some(max as f64 * 1e3)
}

/// The last look at the CPU before the record, in the measuring phase.
fn host_ready(checks: &[HostCheck], source: &Record) -> Option<bool> {
    let (cpu, start) = (cpu(source)?, text::utc_ns(&source.started_utc)?);
    checks
        .iter()
        .filter(|check| check.phase == "measure" && check.cpu == cpu)
        .filter_map(|check| Some((text::utc_ns(&check.utc)?, check.problems.is_empty())))
        .filter(|(at, _)| *at <= start)
        .max()
        .map(|(_, ready)| ready)
}

/// One process is one trial with one attempt.
fn trial(path: &str, process: &Process) -> Result<Trial, ImportError> {
    let [timed] = process.trials[..] else {
        return Err(foreign(
            path,
            "a process with other than one trial cannot be told apart from its neighbours",
        ));
    };
    let nanoseconds = timed.nanoseconds().ok_or_else(|| {
        foreign(
            path,
            format!("{} s are no whole number of nanoseconds", timed.seconds),
        )
    })?;
    let exit = match process.exit_code {
        0 => Exit::Ok,
        _ => Exit::Crash,
    };
    let attempt = Attempt {
        calls: timed.measurements,
        nanoseconds,
        cycles: timed.cycles,
        baseline_rss_bytes: process.number("baseline_rss_bytes"),
        peak_rss_bytes: process.number("peak_rss_bytes"),
        stderr: Some(captured(&process.stderr)),
        command: process.command.clone(),
        ..Attempt::empty(exit)
    };
    Ok(Trial {
        attempts: vec![attempt],
        counted: (exit == Exit::Ok).then_some(0),
    })
}

fn captured(text: &str) -> Captured {
    const HEAD: usize = 1024;
    Captured {
        bytes: text.len() as u64,
        sha256: hash::sha256(text.as_bytes()),
        head: text.chars().take(HEAD).collect(),
    }
}

/// Reported name of the generator of random numbers.
pub(crate) const DRNG: &str = "drng";

/// Helper functions of the programme, by their reported names.
pub(crate) const HELPERS: [&str; 4] = [DRNG, "pseudoXOF", "pseudohash", "sm3hash"];

fn profile(
    evidence: &Evidence,
    path: &str,
    source: &Profile,
    maker: &Maker,
) -> Result<DerivedFile, ImportError> {
    let instance = instance(evidence, path, &source.candidate, &source.label)?;
    let operation = operation(path, &source.operation, source.input_bytes)?;
    let head = maker.head(Kind::Profile, instance)?;
    let file_path = format!("profile/{}", head.identity.operation_file(operation));
    let mut wrapped: Vec<String> = source.calls.iter().map(|c| c.function.clone()).collect();
    wrapped.sort();
    wrapped.dedup();
    let profile = ProfileEvidence {
        head,
        operation,
        library: None,
        lto_removed: None,
        wrapped,
        keys: None,
        passes: Vec::new(),
        ticks: TicksRecord {
            source: tick_source(path, source)?,
            hz: source.meta.get("tick_hz").and_then(|hz| hz.parse().ok()),
        },
        wrapper_cost_ticks: None,
        wrapper_inside_milliticks: None,
        wrapper_around_milliticks: None,
        total: ProfileTotal {
            operations: source.total.operations,
            ticks: source.total.ticks,
        },
        calls: source.calls.iter().map(row).collect(),
        runs: Vec::new(),
        overflow_calls: 0,
        derived: Some(shares(source)),
    };
    file(&file_path, profile)
}

fn tick_source(path: &str, source: &Profile) -> Result<SourceKind, ImportError> {
    match source.meta.get("tick_source").map(String::as_str) {
        Some("cntvct_el0") => Ok(SourceKind::Cntvct),
        Some(name) if name.contains("tsc") => Ok(SourceKind::Tsc),
        other => Err(foreign(
            path,
            format!("{other:?} is no clock that profiles are measured with"),
        )),
    }
}

fn row(calls: &Calls) -> ProfileRow {
    let group = if calls.function == DRNG { DRNG } else { "hash" };
    ProfileRow {
        function: calls.function.clone(),
        group: group.to_owned(),
        in_bits: calls.in_bits,
        out_bits: calls.out_bits,
        calls: calls.calls,
        ticks: calls.ticks,
    }
}

/// Shares as the source states them: the cost of its wrappers was not measured and is in them.
fn shares(source: &Profile) -> ProfileDerived {
    let mut calls = BTreeMap::<String, u64>::new();
    for row in &source.calls {
        *calls.entry(row.function.clone()).or_default() += row.calls;
    }
    let drng_share = source.share.get(DRNG).copied().unwrap_or(0.0);
    let helpers = calls
        .keys()
        .filter(|name| HELPERS.contains(&name.as_str()))
        .count();
    let verdict = match (calls.len(), helpers) {
        (0, _) => "none wrapped",
        (all, helpers) if all == helpers => "ICCS-only",
        (_, 0) => "own primitives",
        _ => "mixed",
    };
    ProfileDerived {
        share: Some(source.share.clone()),
        hash_share: Some(source.hash_share),
        drng_share: Some(drng_share),
        calls_per_operation: calls
            .into_iter()
            .map(|(name, n)| (name, n as f64 / source.total.operations as f64))
            .collect(),
        rejected_draws: None,
        verdict: verdict.to_owned(),
    }
}
