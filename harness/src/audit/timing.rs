//! The timing record: everything that follows from its attempts and its plan, computed again.

use super::asked;
use super::facts::{text, Facts, Plan};
use super::finding::Findings;
use super::head::Head;
use super::number::{mean_deviation, middle, ordered, sum, t_975, type7};
use super::text::utc_ns;
use crate::json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What other files are held against.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// Second timing of the noise floor.
    pub aa: bool,
    /// Claimed sizes.
    pub sizes: Option<[u64; 3]>,
    /// Timed library.
    pub library: Option<String>,
    /// KAT evidence: file, digest, result.
    pub kat: Option<(String, String, String)>,
    /// Calibrated cost and preparation, seconds.
    pub cost: (Option<f64>, Option<f64>),
    /// CPU.
    pub cpu: Option<u64>,
    /// Attempts of each trial.
    pub attempts: Vec<Vec<Tried>>,
    /// `host_ready`.
    pub host_ready: Option<bool>,
    /// Bytes of each message.
    pub message_bytes: Option<u64>,
}

/// One attempt, as far as the journal saw it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tried {
    /// Session that ran it.
    pub session: u64,
    /// When it started, nanoseconds since the epoch.
    pub started: Option<i128>,
    /// Whether it ended well.
    pub ok: bool,
    /// Names of its flags.
    pub flags: Vec<String>,
}

/// One attempt, as far as anything follows from it.
#[derive(Debug, Clone, Default)]
struct Attempt {
    ok: bool,
    interrupted: bool,
    disturbed: bool,
    calls: u64,
    nanoseconds: u64,
    cycles: Option<u64>,
    ticks: Option<u64>,
    batch: Option<u64>,
    samples: Vec<u64>,
    tried: Tried,
}

impl Attempt {
    fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// Where the values of attempts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Perf,
    Clock,
    None,
}

/// Checks a record and returns what other files are held against.
pub fn check(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) -> Record {
    let source = match text(value.get("cycle_source").unwrap_or(&Value::Null), "kind").as_deref() {
        Some("perf") => Source::Perf,
        Some("tsc" | "cntvct") => Source::Clock,
        _ => Source::None,
    };
    source_reason(value, source, f);
    let plan = value.get("plan").unwrap_or(&Value::Null);
    check_plan(plan, head, facts, f);
    let cpu = value.get("cpu").and_then(Value::u64);
    let mut trials = Vec::new();
    for (index, trial) in value
        .get("trials")
        .map_or(&[][..], Value::items)
        .iter()
        .enumerate()
    {
        let place = format!("/trials/{index}");
        trials.push(check_trial(trial, &place, value, source, facts, f));
    }
    slots(value, head, &trials, f);
    let counted: Vec<&Attempt> = trials
        .iter()
        .filter_map(|(attempts, counted)| attempts.get((*counted)? as usize))
        .filter(|a| a.calls > 0)
        .collect();
    let derived = value.get("derived").unwrap_or(&Value::Null);
    let clock = clock(facts, head, cpu);
    let verdicts = facts.plan.as_ref().is_none_or(|p| p.verdicts);
    let empty = value
        .at(&["cycle_source", "overhead", "empty_call_ps"])
        .and_then(Value::u64);
    // A record that failed has no derived values; one that goes on has those of its trials so far.
    let expected = match head.status.as_str() {
        "failed" | "skipped" => None,
        _ => derive(
            &counted,
            verdicts,
            clock,
            empty,
            recorded_t(derived, counted.len()),
        ),
    };
    compare(derived, expected.as_ref(), f);
    asked::check(value, head, facts, f);
    if cpu.is_some_and(|cpu| !facts.cpus.contains(&cpu)) {
        f.error(
            "/cpu",
            "the CPU is one of the campaign's",
            format!("{:?}", facts.cpus),
            format!("{cpu:?}"),
        );
    }
    Record {
        aa: value.get("aa").and_then(Value::bool).unwrap_or(false),
        sizes: sizes(value),
        library: value.get("libraries").and_then(|l| text(l, "timed")),
        kat: value
            .get("kat")
            .and_then(|k| Some((text(k, "file")?, text(k, "sha256")?, text(k, "result")?))),
        cost: (
            plan.get("cost_s").and_then(Value::f64),
            plan.get("preparation_s").and_then(Value::f64),
        ),
        cpu,
        attempts: trials
            .into_iter()
            .map(|(attempts, _)| attempts.into_iter().map(|a| a.tried).collect())
            .collect(),
        host_ready: value.get("host_ready").and_then(Value::bool),
        message_bytes: value.at(&["inputs", "message_bytes"]).and_then(Value::u64),
    }
}

fn sizes(value: &Value) -> Option<[u64; 3]> {
    let size = |key: &str| value.at(&["sizes", key]).and_then(Value::u64);
    Some([
        size("public_key_bytes")?,
        size("secret_key_bytes")?,
        size("signature_bytes")?,
    ])
}

fn source_reason(value: &Value, source: Source, f: &mut Findings) {
    let reason = value
        .at(&["cycle_source", "reason"])
        .is_some_and(|r| !r.is_null());
    if (source == Source::Perf) == reason {
        let rule = "a source other than perf says why there are no core cycles";
        f.error("/cycle_source/reason", rule, source != Source::Perf, reason);
    }
    let says = |path: &[&str]| value.at(path).and_then(Value::bool);
    if source == Source::Perf && says(&["cycle_source", "user_only"]) == Some(false) {
        let rule = "core cycles are those of user mode";
        f.error("/cycle_source/user_only", rule, true, false);
    }
    if source != Source::None && says(&["cycle_source", "self_test", "plausible"]) == Some(false) {
        let rule = "a source that failed its self-test is not counted with";
        f.error("/cycle_source/self_test/plausible", rule, true, false);
    }
}

/// Clock of the record's CPU in its last session, where it is held.
fn clock(facts: &Facts, head: &Head, cpu: Option<u64>) -> Option<f64> {
    let session = facts.sessions.get(head.sessions.last()?)?;
    session.clocks.get(&cpu?).copied()
}

fn check_plan(plan: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    let number = |key: &str| plan.get(key).and_then(Value::u64);
    let real = |key: &str| plan.get(key).and_then(Value::f64);
    let Some(known) = &facts.plan else {
        return; // an import's plan is derived again from its source
    };
    let mut same = |key: &str, expected: f64, found: Option<f64>| {
        if found != Some(expected) {
            f.error(
                format!("/plan/{key}"),
                "a record repeats the campaign's plan",
                expected,
                format!("{found:?}"),
            );
        }
    };
    same("trials", known.trials as f64, real("trials"));
    same("target_s", known.target_s, real("target_s"));
    same("min_total", known.min_total as f64, real("min_total"));
    same(
        "max_iterations",
        known.max_iterations as f64,
        real("max_iterations"),
    );
    same("budget_s", known.budget_s, real("budget_s"));
    same("repeats", known.repeats as f64, real("repeats"));
    if number("fixed_iterations") != known.iterations {
        let found = format!("{:?}", number("fixed_iterations"));
        f.error(
            "/plan/fixed_iterations",
            "a record repeats the campaign's plan",
            format!("{:?}", known.iterations),
            found,
        );
    }
    let name = text(plan, "name").unwrap_or_default();
    if name != known.name {
        f.error(
            "/plan/name",
            "a record repeats the campaign's plan",
            &known.name,
            name,
        );
    }
    match real("cost_s") {
        Some(cost) => {
            let keygen = head.operation.as_deref() == Some("keygen");
            let warmups = match facts.study && !keygen {
                // The signature of the preparation has warmed up what long messages need.
                true => u64::from(cost < 0.02),
                false => warmups(cost),
            };
            formula(plan, known, cost, warmups, f);
        }
        None if head.status == "complete" => {
            f.error(
                "/plan/cost_s",
                "what was measured was calibrated",
                "a cost",
                "null",
            );
        }
        None => {}
    }
}

/// Untimed calls of a campaign.
fn warmups(cost: f64) -> u64 {
    let cost = cost.max(1e-9);
    if cost < 0.05 {
        3
    } else {
        u64::from(cost < 10.0)
    }
}

/// Iterations, warm-ups and time limit from the calibrated cost.
fn formula(plan: &Value, known: &Plan, cost: f64, warmups: u64, f: &mut Findings) {
    let cost = cost.max(1e-9);
    let trials = known.trials.max(1);
    let iterations = match known.iterations {
        Some(fixed) => fixed.max(1),
        None => {
            let aimed = (known.target_s / cost).ceil().min(1e18) as u64;
            let least = known.min_total.div_ceil(trials);
            let paid = (known.budget_s / (trials as f64 * cost)).floor().min(1e18) as u64;
            let most = known.max_iterations.min(paid.max(1)).max(1);
            aimed.max(least).max(1).min(most)
        }
    };
    for (key, expected) in [("iterations", iterations), ("warmups", warmups)] {
        let found = plan.get(key).and_then(Value::u64);
        if found != Some(expected) {
            f.error(
                format!("/plan/{key}"),
                "the plan formula gives it from the calibrated cost",
                expected,
                format!("{found:?}"),
            );
        }
    }
    let preparation = plan
        .get("preparation_s")
        .and_then(Value::f64)
        .unwrap_or(0.0);
    let limit = known.timeout_floor_s
        + 3.0 * (iterations as f64 + warmups as f64) * cost
        + 3.0 * preparation;
    let found = plan.get("timeout_s").and_then(Value::f64);
    if found != Some(limit) {
        f.error(
            "/plan/timeout_s",
            "the time limit follows from the plan",
            limit,
            format!("{found:?}"),
        );
    }
}

type CheckedTrial = (Vec<Attempt>, Option<u64>);

fn check_trial(
    trial: &Value,
    place: &str,
    record: &Value,
    source: Source,
    facts: &Facts,
    f: &mut Findings,
) -> CheckedTrial {
    let mut attempts = Vec::new();
    for (index, attempt) in trial
        .get("attempts")
        .map_or(&[][..], Value::items)
        .iter()
        .enumerate()
    {
        let place = format!("{place}/attempts/{index}");
        attempts.push(check_attempt(attempt, &place, record, source, facts, f));
    }
    let good = |a: &&Attempt| a.ok;
    let expected = attempts
        .iter()
        .position(|a| good(&a) && !a.disturbed)
        .or_else(|| attempts.iter().rposition(|a| good(&a)))
        .map(|index| index as u64);
    let counted = trial.get("counted").and_then(Value::u64);
    if counted != expected {
        let rule =
            "the first undisturbed attempt that ended well counts, else the last that ended well";
        f.error(
            format!("{place}/counted"),
            rule,
            format!("{expected:?}"),
            format!("{counted:?}"),
        );
    }
    if let Some(plan) = &facts.plan {
        let real = attempts.iter().filter(|a| !a.interrupted).count() as u64;
        if real > plan.repeats + 1 {
            f.error(
                format!("{place}/attempts"),
                "no more attempts than the plan repeats",
                plan.repeats + 1,
                real,
            );
        }
    }
    (attempts, counted)
}

fn check_attempt(
    value: &Value,
    place: &str,
    record: &Value,
    source: Source,
    facts: &Facts,
    f: &mut Findings,
) -> Attempt {
    let number = |key: &str| value.get(key).and_then(Value::u64);
    let exit = text(value, "exit").unwrap_or_default();
    let flags = value.get("flags").map_or(&[][..], Value::items);
    let attempt = Attempt {
        ok: exit == "ok",
        interrupted: exit == "interrupted",
        // Threads are the library's nature, and no reason to repeat.
        disturbed: flags
            .iter()
            .any(|flag| text(flag, "name").as_deref() != Some("threads")),
        calls: number("calls").unwrap_or(0),
        nanoseconds: number("nanoseconds").unwrap_or(0),
        cycles: number("cycles"),
        ticks: number("ticks"),
        batch: number("batch"),
        samples: value
            .get("samples")
            .map_or(&[][..], Value::items)
            .iter()
            .filter_map(Value::u64)
            .collect(),
        tried: Tried {
            session: number("session").unwrap_or(u64::MAX),
            started: text(value, "started_utc").and_then(|t| utc_ns(&t)),
            ok: exit == "ok",
            flags: flags.iter().filter_map(|flag| text(flag, "name")).collect(),
        },
    };
    if attempt.ok {
        let planned = record.at(&["plan", "iterations"]).and_then(Value::u64);
        if planned != Some(attempt.calls) {
            f.error(
                format!("{place}/calls"),
                "an attempt makes the planned calls",
                format!("{planned:?}"),
                attempt.calls,
            );
        }
        // An attempt says in its detail why its count was refused, and a flag that the library has threads.
        let uncounted = !value.get("detail").is_none_or(Value::is_null)
            || flags
                .iter()
                .any(|flag| text(flag, "name").as_deref() == Some("threads"));
        counters(&attempt, uncounted, place, source, f);
        access(value, place, record, f);
        batches(&attempt, value, place, f);
        cpus(value, place, record, f);
        check_flags(&attempt, value, place, record, facts, f);
    } else if attempt.calls > 0 && !attempt.interrupted {
        f.error(
            format!("{place}/calls"),
            "an attempt that did not end well has no figures",
            0,
            attempt.calls,
        );
    }
    times(value, place, facts, f);
    let session = number("session").unwrap_or(u64::MAX);
    let known = record.get("sessions").map_or(&[][..], Value::items);
    if !known
        .iter()
        .any(|s| s.get("k").and_then(Value::u64) == Some(session))
    {
        f.error(
            format!("{place}/session"),
            "an attempt is of a session of its record",
            "",
            session,
        );
    }
    for stream in ["stdout", "stderr"] {
        captured(value.get(stream), &format!("{place}/{stream}"), f);
    }
    attempt
}

/// Cycles from perf alone, ticks from clocks alone: sources are never mixed.
fn counters(attempt: &Attempt, uncounted: bool, place: &str, source: Source, f: &mut Findings) {
    for (key, there, expected) in [
        ("cycles", attempt.cycles.is_some(), source == Source::Perf),
        ("ticks", attempt.ticks.is_some(), source == Source::Clock),
    ] {
        if there != expected && (there || !uncounted) {
            let rule = "one cycle source in a record: cycles from perf, ticks from a clock, neither from none";
            f.error(format!("{place}/{key}"), rule, expected, there);
        }
    }
}

/// An attempt tells how its counter was read only where that is not its record's way, and only a
/// hardware counter has two.
fn access(value: &Value, place: &str, record: &Value, f: &mut Findings) {
    let Some(found) = text(value, "read_by") else {
        return;
    };
    let usual = record
        .get("cycle_source")
        .and_then(|source| text(source, "access"));
    let expected = match usual.as_deref() {
        Some("rdpmc") => "read",
        Some("read") => "rdpmc",
        _ => "",
    };
    if found != expected {
        f.error(
            format!("{place}/read_by"),
            "an attempt says how its counter was read where that is the other way than its record's",
            expected,
            found,
        );
    }
}

/// Samples and rest are the whole attempt.
fn batches(attempt: &Attempt, value: &Value, place: &str, f: &mut Findings) {
    let Some(batch) = attempt.batch else {
        return; // imports have no samples
    };
    if batch == 0 {
        f.error(format!("{place}/batch"), "a batch has a call", 1, 0);
        return;
    }
    const MOST: u64 = 512;
    let samples = attempt.samples.len() as u64;
    let expected = MOST.min(attempt.calls / batch);
    if samples != expected {
        f.error(
            format!("{place}/samples"),
            "the first 512 batches are samples",
            expected,
            samples,
        );
    }
    let rest = |key: &str| value.at(&["rest", key]).and_then(Value::u64).unwrap_or(0);
    let calls = attempt.calls.checked_sub(samples.saturating_mul(batch));
    if calls != Some(rest("calls")) {
        f.error(
            format!("{place}/rest/calls"),
            "samples and rest are all calls",
            format!("{calls:?}"),
            rest("calls"),
        );
    }
    let total: u128 = attempt
        .samples
        .iter()
        .map(|&ns| u128::from(ns))
        .sum::<u128>()
        + u128::from(rest("value"));
    if total != u128::from(attempt.nanoseconds) {
        f.error(
            format!("{place}/nanoseconds"),
            "samples and rest add up to the attempt",
            total,
            attempt.nanoseconds,
        );
    }
}

fn cpus(value: &Value, place: &str, record: &Value, f: &mut Findings) {
    let pinned = record.get("cpu").and_then(Value::u64);
    let moved = value
        .get("flags")
        .map_or(&[][..], Value::items)
        .iter()
        .any(|flag| text(flag, "name").as_deref() == Some("migrations"));
    for key in ["cpu_before", "cpu_after"] {
        let found = value.get(key).and_then(Value::u64);
        if found.is_some() && found != pinned && !moved {
            f.error(
                format!("{place}/{key}"),
                "one CPU in a record",
                format!("{pinned:?}"),
                format!("{found:?}"),
            );
        }
    }
    let rss = |key: &str| value.get(key).and_then(Value::u64);
    if let (Some(baseline), Some(peak)) = (rss("baseline_rss_bytes"), rss("peak_rss_bytes")) {
        if peak < baseline {
            f.error(
                format!("{place}/peak_rss_bytes"),
                "a peak is not below the baseline of its process",
                baseline,
                peak,
            );
        }
    }
    let time = |key: &str| value.get(key).and_then(Value::u64);
    if let (Some(enabled), Some(running)) = (time("time_enabled"), time("time_running")) {
        if running != enabled {
            f.error(
                format!("{place}/time_running"),
                "a counter that was off part of the time is not used",
                enabled,
                running,
            );
        }
    }
}

/// What disturbed an attempt by its own figures is flagged with the plan's limits, and no flag is
/// there without its cause.
fn check_flags(
    attempt: &Attempt,
    value: &Value,
    place: &str,
    record: &Value,
    facts: &Facts,
    f: &mut Findings,
) {
    let Some(plan) = &facts.plan else {
        return;
    };
    let mut flags = BTreeMap::new();
    for flag in value.get("flags").map_or(&[][..], Value::items) {
        let real = |key: &str| flag.get(key).and_then(Value::f64).unwrap_or(f64::NAN);
        flags.insert(
            text(flag, "name").unwrap_or_default(),
            (real("value"), real("limit")),
        );
    }
    let number = |path: &[&str]| value.at(path).and_then(Value::u64);
    let seconds = attempt.seconds();
    let moved = number(&["cpu_before"]) != number(&["cpu_after"]);
    let session = facts.sessions.get(&attempt.tried.session);
    let clock = session
        .zip(record.get("cpu").and_then(Value::u64))
        .and_then(|(session, cpu)| session.clocks.get(&cpu).copied());
    let mut expected: Vec<(&str, Option<f64>, f64, bool)> = vec![
        (
            "involuntary_switches_per_s",
            number(&["switches", "involuntary"]).map(|n| n as f64 / seconds.max(1e-9)),
            plan.involuntary_switches_per_s,
            true,
        ),
        (
            "page_faults_major",
            number(&["faults", "major"]).map(|n| n as f64),
            0.0,
            true,
        ),
        (
            "migrations",
            number(&["switches", "migrations"])
                .or_else(|| value.get("switches").map(|_| 0))
                .map(|n| n.max(u64::from(moved)) as f64),
            0.0,
            true,
        ),
        (
            "min_clock_ratio",
            attempt
                .cycles
                .zip(clock)
                .map(|(cycles, clock)| cycles as f64 / seconds / clock),
            plan.min_clock_ratio,
            false,
        ),
        (
            "min_cpu_per_wall",
            number(&["user_ns"])
                .zip(number(&["system_ns"]))
                .map(|(user, system)| (user + system) as f64 / attempt.nanoseconds.max(1) as f64),
            plan.min_cpu_per_wall,
            false,
        ),
    ];
    // The duration of the process is not recorded, so of shares of it only the limit is known.
    let limits = [
        ("steal_percent", plan.steal_percent),
        ("sibling_busy_percent", plan.sibling_busy_percent),
        ("min_clock_ratio", plan.min_clock_ratio),
    ];
    for (name, (seen, limit)) in &flags {
        let wrong = limits
            .iter()
            .any(|(of, known)| of == name && known != limit);
        let below = name.starts_with("min_");
        let broken = if below { seen < limit } else { seen > limit };
        if wrong || !broken {
            let rule = "a flag is a limit of the plan that was broken";
            f.error(
                format!("{place}/flags"),
                rule,
                format!("{name} {limit}"),
                seen,
            );
        }
    }
    for (name, seen, limit, above) in expected.drain(..) {
        let Some(seen) = seen else { continue };
        let broken = if above { seen > limit } else { seen < limit };
        let found = flags.get(name);
        if broken != found.is_some() || found.is_some_and(|found| *found != (seen, limit)) {
            let rule = "an attempt is flagged by its own figures";
            let expected = if broken {
                format!("{name} {seen} of {limit}")
            } else {
                format!("no {name}")
            };
            f.error(
                format!("{place}/flags"),
                rule,
                expected,
                format!("{found:?}"),
            );
        }
    }
}

fn times(value: &Value, place: &str, facts: &Facts, f: &mut Findings) {
    let Some(started) = value.get("started_utc").and_then(Value::str) else {
        return;
    };
    if !facts.is_inside(utc_ns(&started)) {
        f.error(
            format!("{place}/started_utc"),
            "attempts lie inside the campaign",
            "",
            started,
        );
    }
}

/// What a library printed, as far as it was kept.
fn captured(value: Option<&Value>, place: &str, f: &mut Findings) {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return;
    };
    let bytes = value.get("bytes").and_then(Value::u64).unwrap_or(0);
    let (digest, head) = (
        text(value, "sha256").unwrap_or_default(),
        text(value, "head").unwrap_or_default(),
    );
    // A head with escapes or cut off cannot be hashed again.
    let whole = head.len() as u64 == bytes && head.chars().all(|c| c != '\\');
    let expected = const_hex::encode(Sha256::digest(head.as_bytes()));
    if (whole || bytes == 0) && digest != expected {
        f.error(
            format!("{place}/sha256"),
            "the digest is that of the output",
            expected,
            digest,
        );
    }
}

/// Number of slots, and what they make of the record.
fn slots(value: &Value, head: &Head, trials: &[CheckedTrial], f: &mut Findings) {
    let planned = value
        .at(&["plan", "trials"])
        .and_then(Value::u64)
        .unwrap_or(0);
    let emulated = head.reason.as_ref().is_some_and(|r| r.code == "emulated");
    if !emulated && trials.len() as u64 != planned {
        f.error(
            "/trials",
            "one slot for each planned trial",
            planned,
            trials.len(),
        );
    }
    let all = trials.iter().all(|(_, counted)| counted.is_some());
    if head.status == "complete" && (!all || trials.is_empty()) {
        f.error(
            "/status",
            "a complete record has an attempt that counts in every slot",
            "failed or partial",
            "complete",
        );
    }
    if head.status != "complete" && all && !trials.is_empty() {
        f.error(
            "/status",
            "a record with an attempt in every slot is complete",
            "complete",
            &head.status,
        );
    }
}

/// Derived values by pointer below `/derived`; a value is a number, a null, or a word.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Real(f64),
    Count(u64),
    Word(String),
    Words(Vec<String>),
    Null,
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expected::Real(value) => write!(f, "{value}"),
            Expected::Count(value) => write!(f, "{value}"),
            Expected::Word(word) => f.write_str(word),
            Expected::Words(words) => write!(f, "{words:?}"),
            Expected::Null => f.write_str("null"),
        }
    }
}

/// What is there, for a finding.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Number(text)) => (*text).to_owned(),
        Some(other) => other
            .str()
            .map_or_else(|| format!("{other:?}"), |s| s.into_owned()),
    }
}

type Derived = Vec<(&'static str, Expected)>;

fn real(value: Option<f64>) -> Expected {
    value.map_or(Expected::Null, Expected::Real)
}

/// Student's t of `k` trials. It is recorded to 14 significant digits; the recorded one is taken where
/// it is the rounded true one, so that what follows from it can be compared to the last digit.
fn recorded_t(derived: &Value, k: usize) -> Option<f64> {
    if k < 3 {
        return None;
    }
    let expected = t_975(k as u32 - 1);
    let found = derived.at(&["ci95", "t"]).and_then(Value::f64);
    let unit = 10f64.powi(libm::log10(expected).floor() as i32 - 13);
    Some(match found {
        Some(found) if (found - expected).abs() <= 0.55 * unit => found,
        _ => expected,
    })
}

fn derive(
    counted: &[&Attempt],
    verdicts: bool,
    clock: Option<f64>,
    empty_ps: Option<u64>,
    t: Option<f64>,
) -> Option<Derived> {
    // A trial without duration says nothing, and neither does a mean with it.
    if counted.is_empty() || counted.iter().any(|a| a.nanoseconds == 0) {
        return None;
    }
    let n: u64 = counted.iter().map(|a| a.calls).sum();
    let total = sum(counted.iter().map(|a| a.seconds()));
    let mean = total / n as f64;
    let means: Vec<f64> = counted
        .iter()
        .map(|a| a.seconds() / a.calls as f64)
        .collect();
    let in_order = ordered(means.clone());
    let mut derived = vec![
        ("/n", Expected::Count(n)),
        ("/total_s", Expected::Real(total)),
        ("/mean_s", Expected::Real(mean)),
        ("/ops_per_s", Expected::Real(n as f64 / total)),
        ("/median_trial_s", real(middle(&in_order))),
        ("/min_trial_s", real(in_order.first().copied())),
        ("/max_trial_s", real(in_order.last().copied())),
    ];
    let names = [
        [
            "/mean_cycles",
            "/median_trial_cycles",
            "/min_trial_cycles",
            "/max_trial_cycles",
        ],
        [
            "/mean_ticks",
            "/median_trial_ticks",
            "/min_trial_ticks",
            "/max_trial_ticks",
        ],
    ];
    for (names, value) in names
        .iter()
        .zip([(|a| a.cycles) as fn(&Attempt) -> Option<u64>, |a| a.ticks])
    {
        let figures = counter(counted, n, value);
        derived.extend(
            names
                .iter()
                .zip(figures)
                .map(|(name, figure)| (*name, real(figure))),
        );
    }
    interval(&means, t, &mut derived);
    spread(counted, &mut derived);
    if verdicts {
        stability(&means, &in_order, counted, clock, t, &mut derived);
    } else {
        derived.push(("/stability", Expected::Null));
    }
    overhead(empty_ps, mean, &mut derived);
    Some(derived)
}

/// Mean, median, least and greatest of a counter; nothing where a counted attempt lacks it.
fn counter(counted: &[&Attempt], n: u64, value: fn(&Attempt) -> Option<u64>) -> [Option<f64>; 4] {
    let Some(all) = counted
        .iter()
        .map(|a| Some((value(a)?, a.calls)))
        .collect::<Option<Vec<_>>>()
    else {
        return [None; 4];
    };
    let total: u128 = all.iter().map(|(v, _)| u128::from(*v)).sum();
    let means = ordered(
        all.iter()
            .map(|(v, calls)| *v as f64 / *calls as f64)
            .collect(),
    );
    [
        Some(total as f64 / n as f64),
        middle(&means),
        means.first().copied(),
        means.last().copied(),
    ]
}

fn interval(means: &[f64], t: Option<f64>, derived: &mut Derived) {
    let Some(t) = t else {
        derived.push(("/ci95", Expected::Null));
        return;
    };
    let k = means.len();
    let (mean, deviation) = mean_deviation(means);
    let half = t * deviation / (k as f64).sqrt();
    derived.extend([
        ("/ci95/low", Expected::Real(mean - half)),
        ("/ci95/high", Expected::Real(mean + half)),
        ("/ci95/t", Expected::Real(t)),
        ("/ci95/k", Expected::Count(k as u64)),
    ]);
}

fn spread(counted: &[&Attempt], derived: &mut Derived) {
    let per_call = |a: &&Attempt| {
        let batch = a.batch.unwrap_or(1) as f64;
        a.samples
            .iter()
            .map(move |&ns| ns as f64 / 1e9 / batch)
            .collect::<Vec<f64>>()
    };
    let samples = ordered(counted.iter().flat_map(per_call).collect());
    let (Some(p25), Some(p50), Some(p75)) = (
        type7(&samples, 0.25),
        type7(&samples, 0.5),
        type7(&samples, 0.75),
    ) else {
        derived.extend([
            ("/quantiles", Expected::Null),
            ("/mad_s", Expected::Null),
            ("/tukey", Expected::Null),
        ]);
        return;
    };
    let batch = counted.iter().filter_map(|a| a.batch).max().unwrap_or(1);
    let deviations = ordered(samples.iter().map(|x| (x - p50).abs()).collect());
    let range = p75 - p25;
    let beyond = |factor: f64| {
        let (low, high) = (p25 - factor * range, p75 + factor * range);
        samples.iter().filter(|&&x| x < low || x > high).count() as u64
    };
    derived.extend([
        ("/quantiles/p5", real(type7(&samples, 0.05))),
        ("/quantiles/p25", Expected::Real(p25)),
        ("/quantiles/p50", Expected::Real(p50)),
        ("/quantiles/p75", Expected::Real(p75)),
        ("/quantiles/p95", real(type7(&samples, 0.95))),
        ("/quantiles/p99", real(type7(&samples, 0.99))),
        ("/quantiles/batch", Expected::Count(batch)),
        ("/quantiles/samples", Expected::Count(samples.len() as u64)),
        ("/mad_s", real(middle(&deviations))),
        ("/tukey/mild", Expected::Count(beyond(1.5) - beyond(3.0))),
        ("/tukey/severe", Expected::Count(beyond(3.0))),
    ]);
}

fn stability(
    means: &[f64],
    in_order: &[f64],
    counted: &[&Attempt],
    clock: Option<f64>,
    t: Option<f64>,
    derived: &mut Derived,
) {
    let (least, most) = (in_order[0], in_order[in_order.len() - 1]);
    let spread = (most - least) / middle(in_order).unwrap_or(f64::NAN);
    let wide = |limit: u32| {
        format!(
            "trial means spread over {:.1}% (limit {limit}%)",
            spread * 100.0
        )
    };
    let (by_spread, reason) = match spread {
        s if s > 0.10 => ("unusable", Some(wide(10))),
        s if s > 0.02 => ("noisy", Some(wide(2))),
        _ => ("stable", None),
    };
    let impossible = |a: &&Attempt| {
        let rate = a.cycles? as f64 / a.seconds();
        let odd = clock.is_some_and(|clock| !(0.2..=2.0).contains(&(rate / clock)));
        match a.cycles {
            Some(0) => Some("a trial counted no cycles".to_owned()),
            _ if odd => Some(format!(
                "{:.3} GHz counted, outside 0.2 to 2 times the clock",
                rate / 1e9
            )),
            _ => None,
        }
    };
    let impossible: Vec<String> = counted.iter().filter_map(impossible).collect();
    let verdict = if impossible.is_empty() {
        by_spread
    } else {
        "unusable"
    };
    let reasons = reason.into_iter().chain(impossible).collect();
    let trials = t.map(|t| {
        let (mean, deviation) = mean_deviation(means);
        (t * deviation / (0.01 * mean)).powi(2).ceil() as u64
    });
    derived.extend([
        ("/stability/verdict", Expected::Word(verdict.to_owned())),
        ("/stability/spread", Expected::Real(spread)),
        ("/stability/reasons", Expected::Words(reasons)),
        (
            "/stability/trials_for_1_percent",
            trials.map_or(Expected::Null, Expected::Count),
        ),
    ]);
}

fn overhead(empty_ps: Option<u64>, mean: f64, derived: &mut Derived) {
    let Some(empty) = empty_ps.map(|ps| ps as f64 / 1e12) else {
        derived.push(("/loop_overhead", Expected::Null));
        return;
    };
    let share = empty / mean;
    derived.extend([
        ("/loop_overhead/empty_call_s", Expected::Real(empty)),
        ("/loop_overhead/share", Expected::Real(share)),
        (
            "/loop_overhead/mean_less_overhead_s",
            real((share > 0.001).then_some(mean - empty)),
        ),
    ]);
}

fn compare(derived: &Value, expected: Option<&Derived>, f: &mut Findings) {
    let Some(expected) = expected else {
        if !derived.is_null() {
            f.error(
                "/derived",
                "nothing follows from no counted attempt",
                "null",
                "values",
            );
        }
        return;
    };
    let rule = "derived values follow from the counted attempts";
    for (pointer, expected) in expected {
        let keys: Vec<&str> = pointer[1..].split('/').collect();
        let found = derived.at(&keys);
        let agrees = match expected {
            Expected::Real(e) => found.and_then(Value::f64) == Some(*e),
            Expected::Count(e) => found.and_then(Value::u64) == Some(*e),
            Expected::Word(e) => found.and_then(Value::str).is_some_and(|x| x == *e),
            Expected::Words(e) => found.is_some_and(|x| {
                matches!(x, Value::Array(_))
                    && x.items()
                        .iter()
                        .map(Value::str)
                        .eq(e.iter().map(|e| Some(e.as_str().into())))
            }),
            Expected::Null => found.is_some_and(Value::is_null),
        };
        if !agrees {
            f.error(format!("/derived{pointer}"), rule, expected, shown(found));
        }
    }
}
