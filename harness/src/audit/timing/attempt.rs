//! The attempts of a trial: their counts, samples, flags, and which of them counts.

use super::Source;
use crate::audit::facts::{text, Facts};
use crate::audit::finding::Findings;
use crate::audit::text::utc_ns;
use crate::json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

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
pub(super) struct Attempt {
    pub(super) ok: bool,
    pub(super) interrupted: bool,
    pub(super) disturbed: bool,
    pub(super) calls: u64,
    pub(super) nanoseconds: u64,
    pub(super) cycles: Option<u64>,
    pub(super) ticks: Option<u64>,
    pub(super) batch: Option<u64>,
    pub(super) samples: Vec<u64>,
    pub(super) tried: Tried,
}

impl Attempt {
    pub(super) fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

pub(super) type CheckedTrial = (Vec<Attempt>, Option<u64>);

pub(super) fn check_trial(
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
