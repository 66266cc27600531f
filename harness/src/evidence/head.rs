//! What every evidence JSON begins with, and the closed lists of words.

use crate::identity::Identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema string of every evidence file of this version.
pub const SCHEMA: &str = "campaign/1";

/// Common head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What the file is.
    pub kind: Kind,
    /// What was measured.
    pub identity: Identity,
    /// Whose code it is.
    pub origin: Origin,
    /// What the machine was to the campaign.
    pub class: Class,
    /// Id of the system, or `local`.
    pub system: String,
    /// How far the evidence goes.
    pub status: Status,
    /// Why the status is not `complete`.
    pub reason: Option<Reason>,
    /// First 16 hex digits of the salted host digest; says that records share a machine.
    pub host_token: Option<String>,
    /// Sessions that contributed.
    pub sessions: Vec<SessionRef>,
    /// Reason of each `null` of this file, by JSON pointer; `*` stands for any array index.
    pub missing: BTreeMap<String, Reason>,
}

/// Kinds of evidence.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `campaign.json`
    Campaign,
    /// `build.json`
    Build,
    /// `environment/<k>.json`
    Environment,
    /// `kat/`
    Kat,
    /// `calibrate/`
    Calibrate,
    /// `records/`
    Timing,
    /// `memory/`
    Memory,
    /// `profile/`
    Profile,
    /// `study/`
    Study,
    /// `study/` fitted models
    Fit,
    /// `cells.json` of an aggregate
    Cells,
}

/// Whose code was measured.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The submitters' own source.
    Submission,
    /// A maintained library.
    Upstream,
    /// Our own implementation of the public specification.
    Independent,
}

impl Origin {
    /// The word on pages.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Submission => "submission",
            Origin::Upstream => "upstream",
            Origin::Independent => "independent",
        }
    }
}

/// What the machine was to the campaign.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The machine is not registered.
    Local,
    /// The machine matches its registered system.
    Registered,
    /// Another architecture than the system's, run under its runner: functional only.
    Emulated,
    /// Evidence of another tool, imported.
    Imported,
    /// Published cells without trials.
    Aggregate,
    /// Figures quoted from a document.
    Published,
}

/// How far a file's evidence goes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything planned is there.
    Complete,
    /// More is to come.
    Partial,
    /// It was tried and did not work.
    Failed,
    /// It was not tried.
    Skipped,
}

/// Why something is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// One of the closed list.
    pub code: ReasonCode,
    /// What happened and what to do, for a person.
    pub text: String,
}

impl Reason {
    /// A reason from its parts.
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Self {
        Reason {
            code,
            text: text.into(),
        }
    }
}

impl Reason {
    /// A reason as a worker words it; a code that is not of the list becomes `not_recorded`.
    pub fn of_worker(code: &str, text: &str) -> Self {
        let known = serde_json::from_value(serde_json::Value::String(code.to_owned()));
        Reason::new(known.unwrap_or(ReasonCode::NotRecorded), text)
    }
}

/// The closed list of reasons.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the documentation; spec: the closed list of the record format
pub enum ReasonCode {
    BuildFailed,
    KatMismatch,
    KatNokat,
    KatPartial,
    KatCryptofail,
    KatOverflow,
    KatLoadfail,
    KatTimeout,
    KatCrash,
    CpuFeature,
    NotInPlan,
    Deferred,
    OverBudget,
    Timeout,
    Crash,
    CallFailed,
    NotVerified,
    Emulated,
    NoCounterEnoent,
    NoCounterEnosys,
    NoCounterEacces,
    NoCounterEperm,
    NoCounterEopnotsupp,
    BelowResolution,
    NotRecorded,
    Interrupted,
    Aggregate,
    NoNoiseFloor,
    TooFewTrials,
    NoVariance,
}

impl ReasonCode {
    /// The word used in files.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            _ => unreachable!("a unit variant serialises as a string"),
        }
    }
}

/// One session of a run: a start or a resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRef {
    /// Number of the session, from 0.
    pub k: u32,
    /// SHA-256 of `environment/<k>.json`.
    pub environment_sha256: String,
}
