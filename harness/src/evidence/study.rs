//! Evidence of the message-size study: its settings, one record a point, one fit an operation.

use super::{Head, LibraryRef, TimingRecord};
use crate::values::Size;
use protocol::{Operation, StudyMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the study, in files and in `campaign.json`.
pub const MESSAGE_SIZE: &str = "message-size";

/// What a study was asked to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudySettings {
    /// Always [`MESSAGE_SIZE`].
    pub name: String,
    /// Plan that the limits, repeats and verdicts are taken from.
    pub plan: String,
    /// Sizes of the messages, bytes, ascending.
    pub sizes: Vec<u64>,
    /// How messages reach the library.
    pub modes: Vec<StudyMode>,
    /// Trials of each point.
    pub trials: u32,
    /// Chunk of stream mode, bytes.
    pub chunk_bytes: u64,
    /// Most memory that a message may take, bytes.
    pub memory_guard_bytes: u64,
    /// The user's file that is the message; null where messages are generated.
    pub file: Option<StudyFile>,
}

impl StudySettings {
    /// Modes in which an operation is measured. Key generation takes no message: it is measured once, with
    /// the file mapped and untouched.
    pub fn modes_of(&self, operation: Operation) -> Vec<StudyMode> {
        match operation {
            Operation::Keygen => vec![StudyMode::Mmap],
            _ => self.modes.clone(),
        }
    }

    /// What tells two studies apart, in a line.
    pub fn describe(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(|&s| Size(s).to_string()).collect();
        let modes: Vec<&str> = self.modes.iter().map(|mode| mode.name()).collect();
        let file = match &self.file {
            Some(file) => format!("the file with SHA-256 {}", file.sha256),
            None => "generated messages".to_owned(),
        };
        format!(
            "{} of {file}, {}, modes {}, {} trials, chunks of {}, guard {}, plan {}",
            self.name,
            sizes.join(", "),
            modes.join(", "),
            self.trials,
            Size(self.chunk_bytes),
            Size(self.memory_guard_bytes),
            self.plan
        )
    }
}

/// A file that a user names as the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyFile {
    /// Its SHA-256.
    pub sha256: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// Whether it has holes: parts that take no space on its disk and are read as zeros.
    pub sparse: bool,
}

/// One point of the message-size study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyRecord {
    /// All of a timing record, `kind` = `study`.
    #[serde(flatten)]
    pub timing: TimingRecord,
    /// How the message reaches the library.
    pub mode: StudyMode,
    /// The library that was called: the timed one, or in stream mode the one with the hooked absorb.
    pub library: Option<LibraryRef>,
    /// Bytes of the message.
    pub size_bytes: u64,
    /// SHA-256 of the message file.
    pub file_sha256: String,
    /// Chunk of stream mode, bytes.
    pub chunk_bytes: Option<u64>,
    /// State of the page cache (`warm`: the file had been written or read in whole, and each attempt
    /// had read it before its timed calls).
    pub page_cache: String,
    /// CPUs online: what percents of all cores are of.
    pub online_cpus: u32,
    /// Per trial and attempt: what the file cost.
    pub io: Vec<Vec<StudyIo>>,
    /// SHA-256 of trial 0's first signature.
    pub signature_sha256: Option<String>,
    /// Null when no attempt counted.
    pub study: Option<StudyDerived>,
}

/// What an attempt read, and what it signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyIo {
    /// Bytes read: within the timed calls (stream, prehash), before them (buffer), none (mmap).
    pub bytes_read: u64,
    /// Time of that reading, nanoseconds.
    pub read_ns: Option<u64>,
    /// Time of hashing within the timed calls, apart from reading, nanoseconds (stream, prehash).
    pub hash_ns: Option<u64>,
    /// SHA-256 of the first signature of the attempt's recorded randomness.
    pub signature_sha256: Option<String>,
}

/// What follows from a study record beyond a timing record's values, over the counted attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyDerived {
    /// Message bytes per second of the mean, 10^6 bytes; null for key generation.
    pub throughput_mb_per_s: Option<f64>,
    /// (user + system) / wall, percent of one core.
    pub cpu_percent_one: f64,
    /// The same, percent of all cores online.
    pub cpu_percent_all: f64,
    /// User time of a call, seconds.
    pub user_s: f64,
    /// System time of a call, seconds.
    pub system_s: f64,
    /// Largest resident set before the message was brought up, bytes.
    pub baseline_rss_bytes: u64,
    /// Largest peak of the resident set after the timed calls, bytes.
    pub peak_rss_bytes: u64,
    /// Reading the file: within a call (stream, prehash), or once before the calls (buffer), seconds.
    pub read_s: Option<f64>,
    /// Hashing the file within a call, seconds (stream, prehash).
    pub hash_s: Option<f64>,
    /// Its share of the call.
    pub hash_share: Option<f64>,
}

/// Models fitted to one operation of one identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitEvidence {
    /// Common head, `kind` = `fit`.
    #[serde(flatten)]
    pub head: Head,
    /// Which operation.
    pub operation: Operation,
    /// One per mode that was measured, in the order of the settings.
    pub modes: Vec<ModeFit>,
    /// Signatures of buffer, mmap and stream under the same randomness; null for key generation.
    pub signatures: Option<SameSignatures>,
}

/// How often signatures of different modes were held against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameSignatures {
    /// Sizes and trials with a signature of at least two of the modes.
    pub compared: u64,
    /// Those where all of them are the same.
    pub identical: u64,
}

/// One mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeFit {
    /// Which.
    pub mode: StudyMode,
    /// What the model is fitted to: sizes with a complete record, ascending.
    pub points: Vec<FitPoint>,
    /// `time = fixed + bytes / throughput`; null with fewer than three sizes.
    pub model: Option<FitModel>,
    /// Smallest measured size from which on more than 90% of the time is hashing of the message, by the
    /// share measured within the calls (stream, prehash); null where no size is.
    pub hash_above_90_bytes: Option<u64>,
}

/// A point of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitPoint {
    /// Bytes of the message.
    pub size_bytes: u64,
    /// Mean over the trial means, seconds.
    pub mean_s: f64,
}

/// Least squares with weights 1/mean², that is, of relative deviations; intervals are Student's with
/// two degrees of freedom less than there are sizes, so that a model that does not fit has wide ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitModel {
    /// Time of an operation on no bytes, seconds.
    pub fixed_s: FitValue,
    /// Time of one byte more, seconds.
    pub s_per_byte: FitValue,
    /// Its inverse, 10^6 bytes per second; null where the time does not grow with the size.
    pub throughput_mb_per_s: Option<FitValue>,
    /// Largest |measured / model - 1|.
    pub worst_relative_residual: f64,
    /// Student's t(0.975, sizes - 2).
    pub t: f64,
    /// Size from which on the growing part is more than 90% of the model: 9 fixed / s_per_byte, bytes,
    /// with the ends that the intervals allow; null where either is not positive.
    pub growing_above_90_bytes: Option<FitValue>,
}

/// A fitted value with the ends of its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitValue {
    /// Value.
    pub value: f64,
    /// Lower end; null where it is beyond all bounds.
    pub low: Option<f64>,
    /// Upper end; likewise.
    pub high: Option<f64>,
}
