//! The timing record: everything that follows from its attempts and its plan, computed again.

mod attempt;
mod derived;
mod plan;

pub use attempt::Tried;

use crate::audit::asked;
use crate::audit::facts::{text, Facts};
use crate::audit::finding::Findings;
use crate::audit::head::Head;
use crate::json::Value;
use attempt::{check_trial, Attempt, CheckedTrial};
use derived::{compare, derive, recorded_t};
use plan::check_plan;

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
