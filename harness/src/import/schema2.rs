//! The public campaign's evidence, its schema 2, as types: what its files may hold and nothing else.
//!
//! Only shapes are here. What must follow from what is checked by [`crate::audit::schema2`], what our
//! records are made of it by [`super::derive`].

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The `schema` of these files.
pub const VERSION: u64 = 2;

/// Facts of the machine, by key; values are texts, numbers, truth values or null.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, Value>);

impl Environment {
    /// A text.
    pub fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(str::to_owned)
    }

    /// A number; some are written as texts.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// `records/<candidate>/<label>__<operation>.json`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, non_snake_case)] // the keys of the format; their meaning is in FORMAT.md
pub struct Record {
    pub schema: u64,
    pub status: String,
    pub candidate: String,
    pub label: String,
    pub instance: String,
    pub variant: String,
    pub flags: String,
    pub operation: String,
    pub input_bytes: u64,
    pub plan: Plan,
    pub kat: String,
    pub kat_not_passed: bool,
    pub disturbed_retries: u64,
    pub library: String,
    pub library_sha256: String,
    pub kat_log: String,
    pub kat_log_sha256: String,
    pub started_utc: String,
    pub ended_utc: String,
    pub load_average_start: Vec<f64>,
    pub load_average_end: Vec<f64>,
    pub environment: Environment,
    pub processes: Vec<Process>,
    pub trials: Vec<Trial>,
    pub measurements: u64,
    pub guide_100_measurements_met: bool,
    pub mean_seconds: f64,
    pub median_trial_seconds: f64,
    pub min_trial_seconds: f64,
    pub max_trial_seconds: f64,
    pub mean_cycles: Option<f64>,
    pub median_trial_cycles: Option<f64>,
    pub operations_per_second: f64,
    pub throughput_MB_per_second: Option<f64>,
    pub sizes: Sizes,
    pub kex: Value,
    pub build_flags: String,
    pub baseline_rss_bytes: u64,
    pub peak_rss_bytes: u64,
    pub timing_scope: String,
}

/// `plan` of a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Plan {
    pub iterations_per_trial: u64,
    pub warmups: u32,
    pub trials: u32,
    pub separate_processes: bool,
    pub estimated_s: f64,
    pub timeout_per_process_s: f64,
}

/// One timed process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Process {
    pub status: String,
    pub exit_code: i64,
    pub meta: BTreeMap<String, String>,
    pub trials: Vec<Trial>,
    pub stderr: String,
    pub command: Vec<String>,
    pub wall_s: f64,
    pub disturbed_retries: u64,
}

impl Process {
    /// A number among its facts.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.meta.get(key)?.parse().ok()
    }
}

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Trial {
    pub measurements: u64,
    pub seconds: f64,
    pub cycles: Option<u64>,
}

impl Trial {
    /// The time in nanoseconds, where that is exactly what the seconds say.
    pub fn nanoseconds(&self) -> Option<u64> {
        let rounded = (self.seconds * 1e9).round();
        let exact = (0.0..9e15).contains(&rounded) && rounded / 1e9 == self.seconds;
        exact.then_some(rounded as u64)
    }
}

/// `sizes` of a record, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Sizes {
    pub input_bytes: u64,
    pub pk_bytes: u64,
    pub sk_bytes: u64,
    pub ct_bytes: u64,
    pub ss_bytes: u64,
    pub signature_bytes: u64,
    pub digest_bytes: u64,
}

/// `profile/<candidate>/<label>__<operation>.json`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Profile {
    pub schema: u64,
    pub candidate: String,
    pub label: String,
    pub operation: String,
    pub input_bytes: u64,
    pub status: String,
    pub command: Vec<String>,
    pub stderr: String,
    pub meta: BTreeMap<String, String>,
    pub total: Total,
    pub calls: Vec<Calls>,
    pub share: BTreeMap<String, f64>,
    pub hash_share: f64,
}

/// `total` of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Total {
    pub operations: u64,
    pub ticks: u64,
}

/// One call shape.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Calls {
    #[serde(rename = "fn")]
    pub function: String,
    pub in_bits: u64,
    pub out_bits: u64,
    pub calls: u64,
    pub ticks: u64,
}

/// `build.json`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// By `<candidate>/<label>`.
    pub instances: BTreeMap<String, Instance>,
}

/// One instance of `build.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Instance {
    pub candidate: String,
    pub label: String,
    pub instance: String,
    pub variant: String,
    pub flags: String,
    pub kat: String,
    pub library: String,
    pub library_sha256: String,
    pub elf_load_bytes: u64,
    pub kat_log: String,
    pub kat_log_sha256: String,
}

/// `campaign.json`; what has no field here is in `rest`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs)]
pub struct Campaign {
    pub system_id: String,
    pub started_utc: String,
    pub ended_utc: String,
    pub environment_at_start: Environment,
    pub environment_at_end: Environment,
    pub host_checks: Vec<HostCheck>,
    pub host_problems: Vec<String>,
    pub planning: Planning,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// One look at the host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct HostCheck {
    pub phase: String,
    pub cpu: u32,
    pub utc: String,
    pub problems: Vec<String>,
    #[serde(default)]
    pub shard: Option<String>,
}

/// Inputs of the plan formula.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Planning {
    pub trials: u32,
    pub trial_target_s: f64,
    pub min_total: u64,
    pub max_iters_per_trial: u64,
    pub op_budget_s: f64,
    pub separate_process_setup_s: f64,
}

/// A KAT log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Path below the evidence.
    pub file: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

impl Log {
    /// Value of the first line `key = value`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim())
        })
    }

    /// The last `RESULT <candidate> <label> <word>` line: candidate, label, word.
    pub fn result(&self) -> Option<(&str, &str, &str)> {
        let line = self.text.lines().rev().find(|l| l.starts_with("RESULT "))?;
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    }

    /// Digest and mode of the manifest line that the text was compared with.
    pub fn manifest(&self) -> Option<(&str, &str)> {
        let mut words = self
            .text
            .lines()
            .find(|l| l.starts_with("manifest "))?
            .split_whitespace();
        let digest = words.nth(1)?;
        Some((digest, words.next()?))
    }

    /// Bytes of the text that was compared.
    pub fn text_bytes(&self) -> Option<u64> {
        let line = self.text.lines().find(|l| l.starts_with("wrote "))?;
        let (_, rest) = line.split_once('(')?;
        rest.split_once(" bytes")?.0.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_exact_or_nothing() {
        let trial = |seconds| Trial {
            measurements: 1,
            seconds,
            cycles: None,
        };
        assert_eq!(trial(0.715875781).nanoseconds(), Some(715_875_781));
        assert_eq!(trial(67.413144194).nanoseconds(), Some(67_413_144_194));
        assert_eq!(trial(0.0).nanoseconds(), Some(0));
        assert_eq!(trial(0.7158757815).nanoseconds(), None);
        assert_eq!(trial(-1.0).nanoseconds(), None);
        assert_eq!(trial(1e300).nanoseconds(), None);
    }

    #[test]
    fn the_last_result_line_of_a_log_counts() {
        let log = Log {
            file: String::new(),
            sha256: String::new(),
            text: "pk_len = 7\nwrote a.txt (12 bytes)\nmanifest ab strict a.txt\nRESULT c l MISMATCH\nRESULT c l PASS \n".into(),
        };
        assert_eq!(log.result(), Some(("c", "l", "PASS")));
        assert_eq!(log.value("pk_len"), Some("7"));
        assert_eq!(log.manifest(), Some(("ab", "strict")));
        assert_eq!(log.text_bytes(), Some(12));
    }
}
