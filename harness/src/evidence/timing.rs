//! The timing record: one operation of one identity, `records/`.

use super::{Head, Reason};
use protocol::{InputRule, Operation, Overhead, Rest, SelfTest, SourceKind, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One operation of one identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimingRecord {
    /// Common head, `kind` = `timing`.
    #[serde(flatten)]
    pub head: Head,
    /// What was timed.
    pub operation: Operation,
    /// Whether this is the second timing of the noise floor.
    pub aa: bool,
    /// What was planned, and from what.
    pub plan: PlanRecord,
    /// KAT evidence of the timed library.
    pub kat: Option<KatRef>,
    /// The timed library.
    pub libraries: Libraries,
    /// How inputs were made.
    pub inputs: InputsRecord,
    /// Where cycles or ticks come from.
    pub cycle_source: CycleSourceRecord,
    /// The CPU pinned.
    pub cpu: Option<u32>,
    /// Claimed sizes, bytes.
    pub sizes: Option<SizesRecord>,
    /// Whether the host was ready by its checks.
    pub host_ready: Option<bool>,
    /// In an import: how often its source says that it repeated a disturbed process. What it repeated it
    /// did not keep, and the attempts here carry no flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_disturbed_retries: Option<u64>,
    /// One per planned slot.
    pub trials: Vec<Trial>,
    /// Values that follow from the counted attempts.
    pub derived: Option<DerivedTiming>,
}

/// Planned numbers and the inputs of the plan formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// `quick`, `guide`, `public`, or the user's.
    pub name: String,
    /// Planned trials.
    pub trials: u32,
    /// Timed calls of a trial.
    pub iterations: u64,
    /// Untimed calls before them.
    pub warmups: u32,
    /// Calibrated cost of one call, seconds; null where it was not recorded or not needed.
    pub cost_s: Option<f64>,
    /// Preparation of a trial, seconds.
    pub preparation_s: Option<f64>,
    /// Time aimed at for one trial, seconds.
    pub target_s: f64,
    /// Least number of calls over all trials.
    pub min_total: u64,
    /// Most calls of a trial.
    pub max_iterations: u64,
    /// Most seconds over all trials.
    pub budget_s: f64,
    /// Repeats of a disturbed trial; null where it was not recorded.
    pub repeats: Option<u32>,
    /// Fixed number of iterations, instead of calibration.
    pub fixed_iterations: Option<u64>,
    /// Time limit of a worker, seconds.
    pub timeout_s: f64,
}

/// KAT evidence that a record rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KatRef {
    /// Path below the run directory.
    pub file: String,
    /// SHA-256 of that file.
    pub sha256: String,
    /// Result word.
    pub result: super::KatResult,
}

/// Libraries of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Libraries {
    /// SHA-256 of the timed library.
    pub timed: Option<String>,
}

/// How inputs were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputsRecord {
    /// Bytes of each message; null where it was not recorded.
    pub message_bytes: Option<u32>,
    /// The rule.
    pub rule: Option<InputRule>,
    /// Seeds of each trial's streams.
    pub seeds: Vec<SeedRecord>,
    /// Keys of a trial.
    pub keys: Option<u64>,
    /// Messages of a trial.
    pub messages: Option<u64>,
}

/// One seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedRecord {
    /// Trial.
    pub trial: u32,
    /// `key`, `message` or `random`.
    pub role: String,
    /// 64 hex digits.
    pub seed: String,
}

/// The cycle source of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CycleSourceRecord {
    /// Which; `none` comes with a reason.
    pub kind: SourceKind,
    /// Why core cycles are missing (kind other than `perf`).
    pub reason: Option<Reason>,
    /// Kernel name of the PMU.
    pub pmu: Option<String>,
    /// Event or register.
    pub event: Option<String>,
    /// Kernel and hypervisor excluded.
    pub user_only: Option<bool>,
    /// How it is read.
    pub access: Option<String>,
    /// Rate of a clock, hertz.
    pub frequency_hz: Option<u64>,
    /// Smallest step seen, counter units.
    pub resolution: Option<u64>,
    /// Cost of one read, nanoseconds.
    pub read_cost_ns: Option<u64>,
    /// Cost of the loop around the empty operation.
    pub overhead: Option<Overhead>,
    /// Loop of known length.
    pub self_test: Option<SelfTest>,
}

/// One planned slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Fresh worker processes for it, in order.
    pub attempts: Vec<Attempt>,
    /// Index of the attempt that counts.
    pub counted: Option<u32>,
}

impl Trial {
    /// The attempt that counts.
    pub fn counted_attempt(&self) -> Option<&Attempt> {
        self.attempts.get(self.counted? as usize)
    }
}

/// One fresh worker process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Session that ran it.
    pub session: u32,
    /// When it started, UTC, RFC 3339 with microseconds.
    pub started_utc: Option<String>,
    /// How it ended.
    pub exit: Exit,
    /// More about an exit other than `ok`.
    pub detail: Option<String>,
    /// Timed calls.
    pub calls: u64,
    /// CLOCK_MONOTONIC_RAW over the timed calls.
    pub nanoseconds: u64,
    /// Core cycles, only if the source is `perf`.
    pub cycles: Option<u64>,
    /// Ticks, only if the source is `tsc` or `cntvct`.
    pub ticks: Option<u64>,
    /// Instructions of the same group.
    pub instructions: Option<u64>,
    /// Group time enabled, nanoseconds.
    pub time_enabled: Option<u64>,
    /// Group time running, nanoseconds.
    pub time_running: Option<u64>,
    /// How the counter was read where that is not the `access` of the record's source: the right to
    /// read it from user mode came or went between attempts or within this one, which then was read by
    /// the kernel at both ends. Left out where it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<String>,
    /// What was counted and refused; left out where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedCount>,
    /// Calls between two clock reads.
    pub batch: Option<u64>,
    /// First batches, nanoseconds each.
    pub samples: Vec<u64>,
    /// The remaining calls.
    pub rest: Option<Rest>,
    /// User time over the timed calls, nanoseconds.
    pub user_ns: Option<u64>,
    /// System time over the timed calls, nanoseconds.
    pub system_ns: Option<u64>,
    /// Context switches and migrations.
    pub switches: Option<Switches>,
    /// Page faults.
    pub faults: Option<Faults>,
    /// Steal time of the pinned CPU over the attempt, clock ticks of /proc/stat.
    pub steal: Option<u64>,
    /// VmRSS after loading and preparing, bytes.
    pub baseline_rss_bytes: Option<u64>,
    /// VmHWM after the timed calls, bytes.
    pub peak_rss_bytes: Option<u64>,
    /// CPU before the timed calls.
    pub cpu_before: Option<u32>,
    /// CPU after the timed calls.
    pub cpu_after: Option<u32>,
    /// What disturbed it, with limits; empty when nothing did.
    pub flags: Vec<Flag>,
    /// Captured standard output.
    pub stdout: Option<Captured>,
    /// Captured standard error.
    pub stderr: Option<Captured>,
    /// Command, paths relative to the run directory.
    pub command: Vec<String>,
}

/// Raw differences of a count that is refused (`detail` says why): evidence, and no figure. What was not
/// read, or went backwards, is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedCount {
    /// Of the counter, in the unit of the record's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Instructions of the same group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Group time enabled, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_enabled: Option<u64>,
    /// Group time running, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_running: Option<u64>,
}

impl Attempt {
    /// An attempt without figures.
    pub fn empty(exit: Exit) -> Self {
        Attempt {
            session: 0,
            started_utc: None,
            exit,
            detail: None,
            calls: 0,
            nanoseconds: 0,
            cycles: None,
            ticks: None,
            instructions: None,
            time_enabled: None,
            time_running: None,
            read_by: None,
            refused: None,
            batch: None,
            samples: Vec::new(),
            rest: None,
            user_ns: None,
            system_ns: None,
            switches: None,
            faults: None,
            steal: None,
            baseline_rss_bytes: None,
            peak_rss_bytes: None,
            cpu_before: None,
            cpu_after: None,
            flags: Vec::new(),
            stdout: None,
            stderr: None,
            command: Vec::new(),
        }
    }

    /// Seconds as the double that every derived value starts from.
    pub fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }

    /// Mean time of one call, seconds.
    pub fn mean_s(&self) -> f64 {
        self.seconds() / self.calls as f64
    }
}

/// How an attempt ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// All calls done and verified.
    Ok,
    /// Killed at its time limit.
    Timeout,
    /// Ended by a signal, without `done`, or with forged events.
    Crash,
    /// A call returned an error.
    CallFailed,
    /// The last outputs did not verify.
    NotVerified,
    /// Cut off by the end of the orchestrator.
    Interrupted,
}

/// Context switches over the timed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Switches {
    /// Voluntary.
    pub voluntary: u64,
    /// Involuntary.
    pub involuntary: u64,
    /// Migrations, where known.
    pub migrations: Option<u64>,
}

/// Page faults over the timed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Faults {
    /// Minor.
    pub minor: u64,
    /// Major.
    pub major: u64,
}

impl From<Usage> for Faults {
    fn from(usage: Usage) -> Self {
        Faults {
            minor: usage.minor_faults,
            major: usage.major_faults,
        }
    }
}

impl From<Usage> for Switches {
    fn from(usage: Usage) -> Self {
        Switches {
            voluntary: usage.voluntary_switches,
            involuntary: usage.involuntary_switches,
            migrations: usage.migrations,
        }
    }
}

/// One disturbance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    /// Name of the threshold (`involuntary_switches_per_s`).
    pub name: String,
    /// Value seen.
    pub value: f64,
    /// Limit of `campaign.toml`.
    pub limit: f64,
}

impl Flag {
    /// Name of the flag of a library that ran more than one thread.
    pub const THREADS: &str = "threads";

    /// Whether it says that the library ran more than one thread: its nature, and no reason to repeat.
    pub fn is_threads(&self) -> bool {
        self.name == Flag::THREADS
    }
}

/// Output of a library, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// Bytes seen in all.
    pub bytes: u64,
    /// SHA-256 of all bytes.
    pub sha256: String,
    /// First bytes, as text with escapes.
    pub head: String,
}

/// Sizes claimed by the API, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizesRecord {
    /// Public key.
    pub public_key_bytes: u64,
    /// Secret key.
    pub secret_key_bytes: u64,
    /// Signature.
    pub signature_bytes: u64,
}

/// Values that follow from the counted attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedTiming {
    /// Timed calls.
    pub n: u64,
    /// Exactly rounded sum of the attempts' seconds.
    pub total_s: f64,
    /// Mean time of a call, seconds.
    pub mean_s: f64,
    /// Calls per second.
    pub ops_per_s: f64,
    /// Mean core cycles of a call.
    pub mean_cycles: Option<f64>,
    /// Mean ticks of a call.
    pub mean_ticks: Option<f64>,
    /// Over the trial means, seconds.
    pub median_trial_s: f64,
    /// Over the trial means, seconds.
    pub min_trial_s: f64,
    /// Over the trial means, seconds.
    pub max_trial_s: f64,
    /// Over the trial means, core cycles.
    pub median_trial_cycles: Option<f64>,
    /// Over the trial means, core cycles.
    pub min_trial_cycles: Option<f64>,
    /// Over the trial means, core cycles.
    pub max_trial_cycles: Option<f64>,
    /// Over the trial means, ticks.
    pub median_trial_ticks: Option<f64>,
    /// Over the trial means, ticks.
    pub min_trial_ticks: Option<f64>,
    /// Over the trial means, ticks.
    pub max_trial_ticks: Option<f64>,
    /// 95% interval of the mean over the trial means.
    pub ci95: Option<Interval>,
    /// Quantiles of the samples, seconds per call.
    pub quantiles: Option<Quantiles>,
    /// Median absolute deviation of the samples from P50, seconds per call.
    pub mad_s: Option<f64>,
    /// Outliers of the samples.
    pub tukey: Option<Tukey>,
    /// Verdict over the trial means; null under a plan without verdicts.
    pub stability: Option<Stability>,
    /// Cost of the timing loop itself; null where it was not measured.
    pub loop_overhead: Option<LoopOverhead>,
}

/// The loop around an empty operation, held against the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopOverhead {
    /// Cost of one empty call in the loop, seconds (median over the counted attempts).
    pub empty_call_s: f64,
    /// Its share of `mean_s`.
    pub share: f64,
    /// `mean_s` less the cost, only where the share is above 0.1%; both are kept.
    pub mean_less_overhead_s: Option<f64>,
}

/// Student interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end, seconds.
    pub low: f64,
    /// Upper end, seconds.
    pub high: f64,
    /// Quantile t(0.975, k-1).
    pub t: f64,
    /// Number of trials.
    pub k: u32,
}

/// Type-7 quantiles, seconds per call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)] // the names are the percentiles
pub struct Quantiles {
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    pub p99: f64,
    /// Calls of one sample: above 1 the quantiles are of batches.
    pub batch: u64,
    /// Number of samples.
    pub samples: u64,
}

/// Tukey outliers, counted, never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tukey {
    /// Beyond 1.5 and up to 3 interquartile ranges.
    pub mild: u64,
    /// Beyond 3 interquartile ranges.
    pub severe: u64,
}

/// How steady the trials were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stability {
    /// The word.
    pub verdict: Verdict,
    /// (max - min) / median of the trial means.
    pub spread: f64,
    /// Why it is not `stable`.
    pub reasons: Vec<String>,
    /// Trials that would give an interval of ±1%.
    pub trials_for_1_percent: Option<u64>,
}

/// Stability verdicts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within 2%.
    Stable,
    /// Above 2%.
    Noisy,
    /// Above 10%, or impossible clocks.
    Unusable,
}
