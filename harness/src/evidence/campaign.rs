//! `campaign.json`: what the campaign is, and all that a page needs to know about its candidates.

use super::{Class, Kind, Origin, Reason, Status, StudySettings};
use crate::identity::Identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `campaign.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignFile {
    /// Always [`super::SCHEMA`].
    pub schema: String,
    /// `campaign`.
    pub kind: Kind,
    /// Id of the system, or `local`.
    pub system: String,
    /// Architecture of the system (`x86_64`, `aarch64`).
    pub arch: String,
    /// Description of the system from the configuration.
    pub system_description: Option<String>,
    /// What the machine was to the campaign.
    pub class: Class,
    /// What was studied; null for a campaign.
    pub study: Option<StudySettings>,
    /// The plan, complete; null for imports without one.
    pub plan: Option<PlanSettings>,
    /// SHA-256 of the configuration.
    pub config_sha256: Option<String>,
    /// `--only`.
    pub only: Option<String>,
    /// `--cpu`, or the CPUs chosen.
    pub cpus: Vec<u32>,
    /// `--allow-unfixed-host`.
    pub allow_unfixed_host: bool,
    /// Tool and worker.
    pub tool: ToolInfo,
    /// `independent` or `self-assessment`.
    pub report_kind: String,
    /// Title of the pages.
    pub title: String,
    /// Reference instance of ratios (`candidate/label/code/build`).
    pub reference_instance: Option<Identity>,
    /// Candidates in page order.
    pub candidates: Vec<CandidateInfo>,
    /// Every identity of the configuration that the campaign knows, measured or not.
    pub rows: Vec<RowInfo>,
    /// Start, UTC.
    pub started_utc: Option<String>,
    /// End, UTC; null while unfinished.
    pub ended_utc: Option<String>,
    /// Where an imported dataset comes from, and what was changed.
    pub provenance: Option<Provenance>,
    /// Reason of each `null` of this file, as in the common head.
    pub missing: BTreeMap<String, Reason>,
}

/// Settings of a plan as used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSettings {
    /// Name.
    pub name: String,
    /// Trials.
    pub trials: u32,
    /// Seconds aimed at for one trial.
    pub target_s: f64,
    /// Least number of calls over all trials.
    pub min_total: u64,
    /// Most calls of a trial.
    pub max_iterations: u64,
    /// Most seconds over all trials of an operation.
    pub budget_s: f64,
    /// Repeats of a disturbed trial.
    pub repeats: u32,
    /// `first` or `all`.
    pub builds: String,
    /// `fresh` or `fixed`.
    pub inputs: String,
    /// Fixed iterations instead of calibration.
    pub iterations: Option<u64>,
    /// Cost that warm-ups and batches are reckoned from instead of the calibrated one, seconds; left
    /// out where the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_s: Option<f64>,
    /// Floor of a worker's time limit, seconds.
    pub timeout_floor_s: f64,
    /// Time limit of a KAT, seconds.
    pub kat_timeout_s: f64,
    /// Measured last, skippable.
    pub defer: Vec<String>,
    /// Thresholds of a disturbed attempt.
    pub disturbed: Disturbed,
    /// Keys of the memory and profile phases.
    pub keys: u32,
    /// Keys where one costs more than `keys_limit_s`.
    pub keys_expensive: u32,
    /// See `keys_expensive`, seconds.
    pub keys_limit_s: f64,
    /// Whether stability verdicts are given.
    pub verdicts: bool,
}

/// Thresholds of a disturbed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbed {
    /// Cycles per second over the fixed clock, least.
    pub min_clock_ratio: f64,
    /// (user + system) / wall, least.
    pub min_cpu_per_wall: f64,
    /// Involuntary switches per second, most.
    pub involuntary_switches_per_s: f64,
    /// Steal, percent of the attempt, most.
    pub steal_percent: f64,
    /// Use of the other threads of the measured core, percent of the attempt, most.
    pub sibling_busy_percent: f64,
}

/// Versions of what measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// `campaign`, or the name of the other tool.
    pub name: String,
    /// Version.
    pub version: String,
    /// Build id: digest of the sources that decide what a worker does.
    pub source_digest: Option<String>,
    /// SHA-256 of the worker binary.
    pub worker_sha256: Option<String>,
    /// Command that ran the worker on another architecture, without folders; empty where it ran as it
    /// is, and left out then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runner: Vec<String>,
}

/// What pages say of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateInfo {
    /// `sign-09`.
    pub id: String,
    /// `DOVE`.
    pub name: String,
    /// `public-key algorithm`.
    pub category: String,
    /// `digital signature`.
    pub function: String,
    /// Whose code.
    pub origin: Origin,
    /// Where the algorithm is specified.
    pub specification: Option<String>,
    /// Name to address.
    pub links: BTreeMap<String, String>,
    /// Labels with what is known of them.
    pub instances: Vec<InstanceInfo>,
    /// KAT deviations that are allowed for.
    pub kat_issues: Vec<KatIssueInfo>,
    /// What is wrapped, for column names (`pseudohash/XOF/sm3`, `SHAKE`).
    pub wrap_column: String,
}

/// What pages say of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceInfo {
    /// Label.
    pub label: String,
    /// Classical security target, bits.
    pub security_bits: Option<u32>,
}

/// An allowed deviation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KatIssueInfo {
    /// Label.
    pub instance: String,
    /// Result word that is allowed.
    pub result: String,
    /// Why.
    pub reason: String,
}

/// One identity and whether it takes part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowInfo {
    /// Which.
    pub identity: Identity,
    /// `complete` = measured as planned; `partial` while the run is unfinished.
    pub status: Status,
    /// Why not.
    pub reason: Option<Reason>,
}

/// Where an imported dataset comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// What it is, in a sentence.
    pub text: String,
    /// Format of the source (`schema 2`, `table of cells`).
    pub format: String,
    /// Keys that were dropped, with the number of places.
    pub dropped: BTreeMap<String, u64>,
    /// Everything the source's `campaign.json` holds beside what has a place here.
    pub source: serde_json::Value,
}
