//! What workers were asked for: the request in each attempt's command against the record, and the inputs of
//! the record against plan and requests.
//!
//! A record says its CPU, library, calls and inputs once for all attempts; each attempt has kept the request
//! that its worker was given, without the token. Imports have no requests and are derived again instead.

use super::facts::{text, Facts};
use super::finding::Findings;
use super::head::Head;
use crate::json::{self, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Bytes of every message of a campaign.
const MESSAGE_BYTES: u64 = 64;
/// Pairs of message and signature that a verification uses in turn, at most.
const PAIRS: u64 = 64;
/// Keys that the signatures of a study use in turn, at most.
const STUDY_KEYS: u64 = 16;

/// Checks requests and inputs of a record of our own.
pub fn check(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    let Some(plan) = facts.plan.as_ref().filter(|_| facts.is_own()) else {
        return;
    };
    let record = Record {
        value,
        head,
        study: facts.study,
        rule: &plan.inputs,
        runner: facts.runner,
    };
    let mut keys = BTreeMap::new();
    for (trial, slot) in (0..).zip(value.get("trials").map_or(&[][..], Value::items)) {
        let attempts = slot.get("attempts").map_or(&[][..], Value::items);
        for (number, attempt) in attempts.iter().enumerate() {
            let place = format!("/trials/{trial}/attempts/{number}/command");
            let key = record.request(attempt, trial, &place, f);
            if text(attempt, "exit").as_deref() == Some("ok") {
                keys.insert(trial, key.unwrap_or(Key::Own));
            }
        }
    }
    // A functional pass has no trial, and is made with the inputs of the first.
    let emulated = facts.class == "emulated" && head.status == "skipped";
    if emulated {
        keys.insert(0, Key::Unknown);
    }
    record.inputs(&keys, f);
}

/// Whose key a trial used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Its own.
    Own,
    /// That of a trial, made for the operation.
    Of(u64),
    /// That of a trial, prepared for signing.
    Prepared(u64),
    /// There is no request that says it.
    Unknown,
}

struct Record<'a> {
    value: &'a Value<'a>,
    head: &'a Head,
    study: bool,
    rule: &'a str,
    runner: usize,
}

impl Record<'_> {
    fn operation(&self) -> &str {
        self.head.operation.as_deref().unwrap_or_default()
    }

    fn number(&self, path: &[&str]) -> Option<u64> {
        self.value.at(path).and_then(Value::u64)
    }

    /// Digest of the library that is called: in stream mode of a study the one with the hooked absorb.
    fn library(&self) -> Option<String> {
        match self.study {
            true => self.value.get("library").and_then(|l| text(l, "sha256")),
            false => self.value.get("libraries").and_then(|l| text(l, "timed")),
        }
    }

    /// Checks the request of an attempt, and says whose key it asked for.
    fn request(&self, attempt: &Value, trial: u64, place: &str, f: &mut Findings) -> Option<Key> {
        let command = attempt.get("command").map_or(&[][..], Value::items);
        let Some(last) = command.last().and_then(Value::str) else {
            // What the end of the orchestrator cut off has left no command.
            if text(attempt, "exit").as_deref() != Some("interrupted") {
                f.error(place, "an attempt has its command", "a command", "none");
            }
            return None;
        };
        let request = match json::parse(last.as_bytes()) {
            Ok(request) => request,
            Err(error) => {
                f.error(place, "the last word of a command is a request", "", error);
                return None;
            }
        };
        let task = request.get("task").unwrap_or(&Value::Null);
        let measure = match self.study {
            true => task.get("measure").unwrap_or(&Value::Null),
            false => task,
        };
        if command.len() != self.runner + 2 {
            let rule = "a command is the runner, the worker and a request";
            f.error(place, rule, self.runner + 2, command.len());
        }
        self.agrees(&request, task, measure, trial, place, f);
        let inputs = measure.get("inputs")?;
        let of = inputs.get("key_trial").and_then(Value::u64)?;
        Some(
            match inputs.get("prepared_key").is_some_and(|k| !k.is_null()) {
                true => Key::Prepared(of),
                false => Key::Of(of),
            },
        )
    }

    fn agrees(
        &self,
        request: &Value,
        task: &Value,
        measure: &Value,
        trial: u64,
        place: &str,
        f: &mut Findings,
    ) {
        let kind = if self.study { "study" } else { "measure" };
        let words = [
            ("task", text(task, "kind"), Some(kind.to_owned())),
            (
                "operation",
                text(measure, "operation"),
                self.head.operation.clone(),
            ),
            (
                "library",
                request.get("library").and_then(|l| text(l, "sha256")),
                self.library(),
            ),
            (
                "subject",
                measure.get("inputs").and_then(|i| text(i, "subject")),
                Some(self.head.subject.clone()),
            ),
            (
                "rule",
                measure.get("inputs").and_then(|i| text(i, "rule")),
                Some(self.rule.to_owned()),
            ),
            (
                "mode",
                text(task, "mode"),
                text(self.value, "mode").filter(|_| self.study),
            ),
            (
                "file",
                text(task, "file_sha256"),
                text(self.value, "file_sha256").filter(|_| self.study),
            ),
        ];
        as_recorded(words, place, f);
        let number = |value: &Value, path: &[&str]| value.at(path).and_then(Value::u64);
        // Batches are reckoned from the cost in whole nanoseconds.
        let cost = self.value.at(&["plan", "cost_s"]).and_then(Value::f64);
        let cost = cost.map(|cost| (cost * 1e9).ceil() as u64);
        let bytes = match self.study {
            true => number(measure, &["inputs", "message_bytes"]),
            false => self.number(&["inputs", "message_bytes"]),
        };
        let numbers = [
            ("cpu", number(request, &["cpu"]), self.number(&["cpu"])),
            ("trial", number(measure, &["inputs", "trial"]), Some(trial)),
            (
                "iterations",
                number(measure, &["iterations"]),
                self.number(&["plan", "iterations"]),
            ),
            (
                "warmups",
                number(measure, &["warmups"]),
                self.number(&["plan", "warmups"]),
            ),
            (
                "cost_ns",
                number(measure, &["cost_ns"]),
                cost.or_else(|| number(measure, &["cost_ns"])),
            ),
            (
                "message_bytes",
                number(measure, &["inputs", "message_bytes"]),
                bytes,
            ),
            (
                "size_bytes",
                number(task, &["size_bytes"]),
                self.number(&["size_bytes"]).filter(|_| self.study),
            ),
        ];
        as_recorded(numbers, place, f);
    }

    /// The inputs of a record follow from the plan, and their seeds from what they are for.
    fn inputs(&self, keys: &BTreeMap<u64, Key>, f: &mut Findings) {
        let inputs = self.value.get("inputs").unwrap_or(&Value::Null);
        let rule = text(inputs, "rule");
        if rule.as_deref() != Some(self.rule) {
            f.error(
                "/inputs/rule",
                "inputs are made by the rule of the plan",
                self.rule,
                format!("{rule:?}"),
            );
        }
        let bytes = self.number(&["inputs", "message_bytes"]);
        // The size of a point of a study is held against the study.
        if !self.study && bytes != Some(MESSAGE_BYTES) {
            f.error(
                "/inputs/message_bytes",
                "messages of a campaign have one length",
                MESSAGE_BYTES,
                format!("{bytes:?}"),
            );
        }
        let (expected_keys, messages) = self.counts(keys);
        for (key, expected) in [("keys", expected_keys), ("messages", messages)] {
            let expected = expected.filter(|_| !keys.is_empty());
            let found = inputs.get(key).and_then(Value::u64);
            if found != expected {
                f.error(
                    format!("/inputs/{key}"),
                    "keys and messages of a trial follow from its calls",
                    format!("{expected:?}"),
                    format!("{found:?}"),
                );
            }
        }
        self.seeds(inputs, keys, f);
    }

    /// Keys and messages of a trial.
    fn counts(&self, keys: &BTreeMap<u64, Key>) -> (Option<u64>, Option<u64>) {
        let plan = |key: &str| self.number(&["plan", key]);
        let total = plan("iterations").zip(plan("warmups")).map(|(i, w)| i + w);
        let prepared = keys.values().any(|key| matches!(key, Key::Prepared(_)));
        match (self.operation(), self.study) {
            ("keygen", _) => (Some(0), Some(0)),
            ("sign", true) if prepared => (Some(1), Some(1)),
            ("sign", true) => (total.map(|n| n.min(STUDY_KEYS)), Some(1)),
            (_, true) => (Some(1), Some(1)),
            _ if self.rule != "fresh" => (Some(1), Some(1)),
            ("sign", _) => (Some(1), total),
            _ => (Some(1), total.map(|n| n.min(PAIRS))),
        }
    }

    /// Each trial that went well has the seeds of its streams, and nothing else has.
    fn seeds(&self, inputs: &Value, keys: &BTreeMap<u64, Key>, f: &mut Findings) {
        let roles: &[&str] = match (self.operation(), self.study) {
            ("keygen", _) => &["key"],
            (_, true) => &["key", "random"],
            _ => &["key", "message", "random"],
        };
        let expected: Vec<(u64, &str)> = keys
            .keys()
            .flat_map(|&trial| roles.iter().map(move |&role| (trial, role)))
            .collect();
        let found = inputs.get("seeds").map_or(&[][..], Value::items);
        let of = |seed: &Value| {
            let trial = seed.get("trial").and_then(Value::u64).unwrap_or(u64::MAX);
            (trial, text(seed, "role").unwrap_or_default())
        };
        let there: Vec<(u64, String)> = found.iter().map(of).collect();
        if !there
            .iter()
            .map(|(t, role)| (*t, role.as_str()))
            .eq(expected.iter().copied())
        {
            f.error(
                "/inputs/seeds",
                "each trial has the seed of each of its streams",
                format!("{expected:?}"),
                format!("{there:?}"),
            );
            return;
        }
        for (index, (seed, (trial, role))) in found.iter().zip(there).enumerate() {
            let found = text(seed, "seed").unwrap_or_default();
            let expected = self.seed(trial, &role, keys[&trial]);
            if !expected.contains(&found) {
                f.error(
                    format!("/inputs/seeds/{index}/seed"),
                    "a seed is the hash of its purpose",
                    &expected[0],
                    found,
                );
            }
        }
    }

    /// The seed of a stream; several where no request says whose key it was.
    fn seed(&self, trial: u64, role: &str, key: Key) -> Vec<String> {
        if self.rule != "fresh" {
            let bytes: Vec<u8> = (0..48).collect();
            return vec![const_hex::encode(bytes)];
        }
        let operation = self.operation();
        let of = |operation: &str, trial: u64| {
            let mut hash = Sha256::new();
            hash.update(format!("campaign/1\0{}\0{operation}\0", self.head.subject));
            hash.update((trial as u32).to_le_bytes());
            hash.update(role);
            const_hex::encode(hash.finalize())
        };
        match (role, operation, key) {
            ("key", "sign" | "verify", Key::Prepared(trial)) => vec![of("sign", trial)],
            ("key", "sign" | "verify", Key::Of(trial)) => vec![of(operation, trial)],
            ("key", "sign" | "verify", Key::Unknown) => {
                vec![of(operation, trial), of("sign", 0), of(operation, 0)]
            }
            _ => vec![of(operation, trial)],
        }
    }
}

/// What a worker was asked for is what the record says: name, asked, recorded.
fn as_recorded<T: PartialEq + Debug, const N: usize>(
    pairs: [(&str, Option<T>, Option<T>); N],
    place: &str,
    f: &mut Findings,
) {
    for (what, asked, recorded) in pairs {
        if asked != recorded {
            let rule = format!("a worker was asked for what the record says ({what})");
            f.error(place, rule, format!("{recorded:?}"), format!("{asked:?}"));
        }
    }
}
