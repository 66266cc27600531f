//! The code of a null's reason, where it follows from the rest of the file: what a plan did not ask for, a
//! counter did not give or too few trials cannot tell is not for a file to choose.
//!
//! The texts are for people and may say more than the code; imports have reasons of their own, which are
//! derived again with them.

use super::facts::{text, Facts};
use super::finding::Findings;
use super::head::Head;
use super::shape::Form;
use crate::json::{escape_key, Value};

/// Checks the codes of a file of our own.
pub fn check(form: Form, value: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    if !facts.is_own() {
        return;
    }
    let file = File::of(form, value, head, facts);
    for (key, reason) in value.get("missing").map_or(&[][..], Value::members) {
        let pointer = key.decode();
        let found = text(reason, "code").unwrap_or_default();
        let expected = file.code(&pointer);
        if found != expected {
            f.error(
                format!("/missing/{}/code", escape_key(&pointer)),
                "the code of a reason follows from what is there",
                expected,
                found,
            );
        }
    }
}

/// What decides the codes of a file.
struct File<'a> {
    form: Form,
    keygen: bool,
    emulated: bool,
    /// Library of the file.
    library: String,
    /// Code of the head's reason.
    status: Option<&'a str>,
    perf: bool,
    /// Why there are no core cycles.
    no_counter: Option<String>,
    /// A counted attempt took no time by the clock.
    timeless: bool,
    /// All samples are missing because a trial is too short for one.
    below: bool,
}

impl<'a> File<'a> {
    fn of(form: Form, value: &Value, head: &'a Head, facts: &Facts) -> Self {
        let source = value.get("cycle_source").unwrap_or(&Value::Null);
        let library = value.get("library").and_then(|l| text(l, "kind"));
        let counted = counted(value);
        let number = |attempt: &Value, key: &str| attempt.get(key).and_then(Value::u64);
        let cost = value.at(&["plan", "cost_s"]).and_then(Value::f64);
        let below = |attempt: &&Value| {
            let (Some(batch), Some(cost)) = (number(attempt, "batch"), cost) else {
                return false;
            };
            let seconds = number(attempt, "nanoseconds").unwrap_or(0) as f64 / 1e9;
            number(attempt, "calls").is_some_and(|calls| batch > calls)
                && seconds < batch as f64 * cost
        };
        File {
            form,
            keygen: head.operation.as_deref() == Some("keygen"),
            emulated: facts.class == "emulated",
            library: library.unwrap_or_default(),
            status: head.reason.as_ref().map(|reason| reason.code.as_str()),
            perf: text(source, "kind").as_deref() == Some("perf"),
            no_counter: source.get("reason").and_then(|r| text(r, "code")),
            timeless: counted.iter().any(|a| number(a, "nanoseconds") == Some(0)),
            below: counted.iter().all(below),
        }
    }

    /// The code of the null at a pointer.
    fn code(&self, pointer: &str) -> &str {
        let key = pointer.rsplit('/').next().unwrap_or_default();
        let status = self.status.unwrap_or_else(|| usual(key));
        match self.form {
            Form::Timing => self.timing(pointer, key),
            Form::Study => self.study(pointer, key),
            Form::Calibrate if self.status.is_some() => status,
            Form::Calibrate if pointer == "/outputs" => usual(key),
            Form::Calibrate => "emulated",
            Form::Kat => match (pointer, self.library.as_str()) {
                ("/flips", "timed") => "not_recorded",
                ("/digests/*/expected", _) => "not_in_plan",
                _ => usual(key),
            },
            Form::Fit => match key {
                "model" => "too_few_trials",
                "signatures" => "not_in_plan",
                "throughput_mb_per_s" | "growing_above_90_bytes" | "low" | "high" => {
                    "below_resolution"
                }
                _ => usual(key),
            },
            Form::Memory if pointer == "/process" && self.emulated => "emulated",
            Form::Profile if pointer == "/derived/rejected_draws" => usual(key),
            Form::Profile if pointer.starts_with("/derived/") && self.emulated => "emulated",
            _ => status,
        }
    }

    fn timing(&self, pointer: &str, key: &str) -> &str {
        let counter = |key| self.no_counter.as_deref().unwrap_or_else(|| usual(key));
        match (pointer, key) {
            ("/derived/ci95" | "/derived/stability/trials_for_1_percent", _) => "too_few_trials",
            ("/derived/stability", _) => "not_in_plan",
            ("/derived/quantiles" | "/derived/mad_s" | "/derived/tukey", _) if self.below => {
                "below_resolution"
            }
            ("/derived/quantiles" | "/derived/mad_s" | "/derived/tukey", _) => "not_recorded",
            ("/derived", _) if self.timeless => "below_resolution",
            (_, "fixed_iterations") => "not_in_plan",
            (_, "migrations" | "steal") => "not_recorded",
            _ if key.ends_with("ticks") && self.perf => "not_in_plan",
            _ if is_count(key) && self.perf => "not_recorded",
            _ if is_count(key) || key.ends_with("ticks") => counter(key),
            _ if pointer.starts_with("/cycle_source/") => counter(key),
            _ if pointer.starts_with("/trials/*/attempts/*/") => "not_recorded",
            _ => self.status.unwrap_or_else(|| usual(key)),
        }
    }

    fn study(&self, pointer: &str, key: &str) -> &str {
        match pointer {
            "/chunk_bytes" => usual(key),
            "/library" => self.status.unwrap_or_else(|| usual(key)),
            "/study" => self.timing("/derived", "derived"),
            "/signature_sha256" | "/io/*/*/signature_sha256" | "/study/throughput_mb_per_s"
                if self.keygen =>
            {
                "not_in_plan"
            }
            "/signature_sha256" => self.status.unwrap_or_else(|| usual(key)),
            _ if pointer.starts_with("/io/") || pointer.starts_with("/study/") => usual(key),
            _ => self.timing(pointer, key),
        }
    }
}

/// Attempts that count.
fn counted<'v, 'a>(value: &'v Value<'a>) -> Vec<&'v Value<'a>> {
    let trials = value.get("trials").map_or(&[][..], Value::items);
    let attempt = |trial: &'v Value<'a>| {
        let counted = trial.get("counted")?.u64()?;
        let attempts = trial.get("attempts")?.items();
        let attempt = attempts.get(counted as usize)?;
        (attempt.get("calls")?.u64()? > 0).then_some(attempt)
    };
    trials.iter().filter_map(attempt).collect()
}

/// Fields that a counter of core cycles fills.
fn is_count(key: &str) -> bool {
    key.ends_with("cycles") || matches!(key, "instructions" | "time_enabled" | "time_running")
}

/// The code of a null under this key where nothing else decides it.
fn usual(key: &str) -> &'static str {
    match key {
        "counted" => "not_verified",
        "mean_less_overhead_s" => "below_resolution",
        "fixed_iterations" | "iterations" | "only" | "study" | "config_sha256" | "plan"
        | "outputs" | "flips" | "native" | "chunk_bytes" | "file" | "read_ns" | "hash_ns"
        | "read_s" | "hash_s" | "hash_share" => "not_in_plan",
        _ => "not_recorded",
    }
}
