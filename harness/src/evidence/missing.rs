//! The reasons of what is missing: every `null` of an evidence file has one, under its JSON pointer.
//!
//! A phase inserts the reasons that it knows; [`explain`], called right before a file is written, gives
//! the rest one from what the fields mean. `audit` checks the result with code of its own.

use super::{
    BuildFile, CalibrateEvidence, CampaignFile, EnvironmentFile, FitEvidence, Head, KatEvidence,
    MemoryEvidence, ProfileEvidence, Reason, ReasonCode, StudyRecord, TimingRecord,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys whose `null` says that there is nothing to say, not that something is missing.
pub const PLAIN_NULLS: [&str; 4] = ["reason", "detail", "quantity", "native"];

/// What another format says is kept as it is, its nulls included.
pub const FOREIGN: &str = "/provenance/source";

/// An evidence file that lists why its nulls are null.
pub trait Explained: Serialize {
    /// Reason by JSON pointer; `*` stands for any array index.
    fn missing(&mut self) -> &mut BTreeMap<String, Reason>;
}

macro_rules! explained {
    ($($type:ty: $($path:ident).+;)*) => {$(
        impl Explained for $type {
            fn missing(&mut self) -> &mut BTreeMap<String, Reason> {
                &mut self.$($path).+
            }
        }
    )*};
}

explained! {
    BuildFile: missing;
    CampaignFile: missing;
    EnvironmentFile: missing;
    CalibrateEvidence: head.missing;
    KatEvidence: head.missing;
    MemoryEvidence: head.missing;
    ProfileEvidence: head.missing;
    StudyRecord: timing.head.missing;
    FitEvidence: head.missing;
    TimingRecord: head.missing;
}

impl Explained for Head {
    fn missing(&mut self) -> &mut BTreeMap<String, Reason> {
        &mut self.missing
    }
}

/// Gives every `null` of `file` that has no reason yet the one that belongs to its key.
pub fn explain<T: Explained>(file: &mut T) {
    explain_by(file, usual);
}

/// Gives every `null` of `file` that has no reason yet the one that `usual` has for its key.
pub fn explain_by<T: Explained>(file: &mut T, usual: impl Fn(&str) -> Reason) {
    let Ok(mut value) = serde_json::to_value(&*file) else {
        return; // writing it will say what is wrong with it
    };
    if let Some(object) = value.as_object_mut() {
        object.remove("missing");
    }
    let mut nulls = Vec::new();
    find_nulls(&value, &mut Place::default(), &mut nulls);
    let missing = file.missing();
    for (pointer, pattern) in nulls {
        // Nearly every null has a neighbour of the same pattern; only the first asks all keys.
        let known = missing.contains_key(&pattern);
        if !known && !missing.keys().any(|key| covers(key, &pointer)) {
            let key = pattern.rsplit('/').next().unwrap_or_default();
            missing.insert(pattern.clone(), usual(key));
        }
    }
}

/// [`explain`] from the start, with `better` asked for a reason first, by JSON pointer.
pub fn explain_with<T: Explained>(file: &mut T, better: impl Fn(&str) -> Option<Reason>) {
    file.missing().clear();
    explain(file);
    for (pointer, reason) in file.missing() {
        if let Some(better) = better(pointer) {
            *reason = better;
        }
    }
}

/// Where a value stands: its JSON pointer, and the same with `*` for array indices.
#[derive(Debug, Default)]
struct Place {
    pointer: String,
    pattern: String,
}

impl Place {
    /// Does `with` at a place one step below.
    fn below(&mut self, step: &str, pattern: &str, with: impl FnOnce(&mut Self)) {
        let (pointer_len, pattern_len) = (self.pointer.len(), self.pattern.len());
        self.pointer.extend(["/", step]);
        self.pattern.extend(["/", pattern]);
        with(self);
        self.pointer.truncate(pointer_len);
        self.pattern.truncate(pattern_len);
    }
}

/// Every null below `value`: its pointer and its pattern.
fn find_nulls(value: &Value, place: &mut Place, found: &mut Vec<(String, String)>) {
    match value {
        _ if place.pointer == FOREIGN => {}
        Value::Null => {
            let key = place.pointer.rsplit('/').next().unwrap_or_default();
            if !PLAIN_NULLS.contains(&key) {
                found.push((place.pointer.clone(), place.pattern.clone()));
            }
        }
        Value::Array(items) => {
            let may_hold_nulls =
                |item: &&Value| matches!(item, Value::Null | Value::Array(_) | Value::Object(_));
            for (index, item) in items.iter().enumerate().filter(|(_, i)| may_hold_nulls(i)) {
                place.below(&index.to_string(), "*", |at| find_nulls(item, at, found));
            }
        }
        Value::Object(members) => {
            for (key, item) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                place.below(&key, &key, |at| find_nulls(item, at, found));
            }
        }
        _ => {}
    }
}

/// Whether a key of `missing` is about the value at `pointer`.
pub fn covers(key: &str, pointer: &str) -> bool {
    let (mut parts, mut steps) = (key.split('/'), pointer.split('/'));
    loop {
        match (parts.next(), steps.next()) {
            (None, None) => return true,
            (Some(part), Some(step)) if part == step => {}
            (Some("*"), Some(step)) if step.bytes().all(|b| b.is_ascii_digit()) => {}
            _ => return false,
        }
    }
}

/// What a null under this key means where no phase has said more.
fn usual(key: &str) -> Reason {
    let (code, text) = match key {
        "counted" => (
            ReasonCode::NotVerified,
            "no attempt of this trial ended well",
        ),
        "cycles" | "instructions" | "time_enabled" | "time_running" => {
            (ReasonCode::NotRecorded, "the cycle source is not perf")
        }
        "ticks" => (ReasonCode::NotRecorded, "the cycle source is no clock"),
        key if key.ends_with("_cycles") => (
            ReasonCode::NotRecorded,
            "a counted attempt has no core cycles",
        ),
        key if key.ends_with("_ticks") => {
            (ReasonCode::NotRecorded, "a counted attempt has no ticks")
        }
        "frequency_hz" | "hz" => (ReasonCode::NotRecorded, "the counter has no fixed rate"),
        "pmu" => (
            ReasonCode::NotRecorded,
            "the source is no counter of the kernel",
        ),
        "cpu" => (ReasonCode::NotRecorded, "it is about no single CPU"),
        "mean_less_overhead_s" => (
            ReasonCode::BelowResolution,
            "the loop costs at most 0.1% of a call",
        ),
        "fixed_iterations" | "iterations" => {
            (ReasonCode::NotInPlan, "the plan calibrates its iterations")
        }
        "only" | "study" | "config_sha256" | "plan" => (ReasonCode::NotInPlan, "not asked for"),
        "ended_utc" => (ReasonCode::NotRecorded, "not ended yet"),
        "provenance" => (ReasonCode::NotRecorded, "measured by this program itself"),
        "outputs" => (
            ReasonCode::NotInPlan,
            "in the keygen file of the identity, once per library",
        ),
        "flips" => (ReasonCode::NotInPlan, "tried on the timed library only"),
        "native" => (
            ReasonCode::NotInPlan,
            "no flag stands for the machine that compiles",
        ),
        "log" => (ReasonCode::NotRecorded, "the build left nothing to explain"),
        "rejected_draws" => (ReasonCode::NotRecorded, "the candidate does not count them"),
        "remedy" => (ReasonCode::NotRecorded, "nothing is to be done"),
        "security_bits" => (ReasonCode::NotRecorded, "the configuration states none"),
        "chunk_bytes" => (ReasonCode::NotInPlan, "this mode reads no chunks"),
        "file" => (ReasonCode::NotInPlan, "the messages are generated"),
        "read_ns" | "hash_ns" | "read_s" | "hash_s" | "hash_share" => {
            (ReasonCode::NotInPlan, "this mode does not do that apart")
        }
        "governor" | "driver" | "min_khz" | "max_khz" | "hardware_max_khz" => (
            ReasonCode::NotRecorded,
            "the kernel has no frequency driver for this CPU (no cpufreq folder, or not this file in it)",
        ),
        "core_type" => (
            ReasonCode::NotRecorded,
            "the kernel tells no kinds of cores apart here",
        ),
        "cpufreq_boost" | "intel_pstate_no_turbo" => (
            ReasonCode::NotRecorded,
            "the kernel has no such switch here",
        ),
        "machine" => (
            ReasonCode::NotRecorded,
            "neither firmware nor device tree names the machine",
        ),
        "midr" => (
            ReasonCode::NotRecorded,
            "a register of AArch64; elsewhere, or hidden by the kernel, it is missing",
        ),
        "build_tool" => (
            ReasonCode::NotRecorded,
            "nothing but the compiler builds the libraries",
        ),
        "source" => (
            ReasonCode::NotRecorded,
            "it cannot be used here; the reason stands beside it",
        ),
        "time_enabled_running" => (
            ReasonCode::NotRecorded,
            "the source is no counter group of the kernel",
        ),
        _ => (ReasonCode::NotRecorded, "not recorded"),
    };
    Reason::new(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Kind, SCHEMA};

    #[test]
    fn every_null_gets_a_reason_and_a_given_one_stays() {
        let mut file = EnvironmentFile {
            schema: SCHEMA.into(),
            kind: Kind::Environment,
            k: 0,
            started_utc: String::new(),
            host_token: None,
            stable: Default::default(),
            volatile: Default::default(),
            cpus: vec![Default::default(), Default::default()],
            check: vec![],
            ready: true,
            layers: vec![],
            probes: vec![],
            missing: BTreeMap::new(),
        };
        let given = Reason::new(ReasonCode::Emulated, "under the runner");
        file.missing.insert("/cpus/1/driver".into(), given.clone());
        explain(&mut file);
        assert_eq!(file.missing["/cpus/1/driver"], given);
        assert_eq!(file.missing["/cpus/*/driver"].code, ReasonCode::NotRecorded);
        let value = serde_json::to_value(&file).unwrap();
        let mut nulls = Vec::new();
        find_nulls(&value, &mut Place::default(), &mut nulls);
        assert!(nulls.len() > 20);
        for (pointer, _) in nulls {
            assert!(
                file.missing.keys().any(|key| covers(key, &pointer)),
                "{pointer}"
            );
        }
    }

    #[test]
    fn a_star_stands_for_an_index_and_nothing_else() {
        for (key, pointer, covered) in [
            ("/a/*/b", "/a/0/b", true),
            ("/a/*/b", "/a/12/b", true),
            ("/a/*/b", "/a/x/b", false),
            ("/a/*", "/a/0/b", false),
            ("/a/1/b", "/a/1/b", true),
            ("/a", "/b", false),
        ] {
            assert_eq!(covers(key, pointer), covered, "{key} {pointer}");
        }
    }
}
