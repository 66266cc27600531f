//! What a worker answers.

use crate::{Operation, SourceKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line on the event descriptor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Token of the request; another one, or none, is a forgery and makes the attempt a CRASH.
    pub token: String,
    /// 0, 1, 2, ...: a gap makes the attempt a CRASH.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "event", content = "data")]
pub enum Body {
    /// First event: who answers, and which protections are on.
    Hello(Hello),
    /// The library is loaded.
    Loaded(Loaded),
    /// Progress of a long task: done of planned steps.
    Progress {
        /// Steps done.
        done: u64,
        /// Steps planned.
        planned: u64,
    },
    /// Answer to [`crate::Task::Probe`].
    Probe(Probe),
    /// Answer to [`crate::Task::Empty`].
    Empty(Overhead),
    /// Answer to [`crate::Task::Kat`].
    Kat(KatOutcome),
    /// Answer to [`crate::Task::Prepare`].
    Prepared(Prepared),
    /// Answer to [`crate::Task::Calibrate`].
    Calibrated(Calibrated),
    /// Answer to [`crate::Task::Measure`].
    Measured(Box<Measured>),
    /// Answer to [`crate::Task::Memory`].
    Memory(MemoryOutcome),
    /// Answer to [`crate::Task::Profile`].
    Profile(ProfileOutcome),
    /// Answer to [`crate::Task::Study`].
    Study(Box<StudyOutcome>),
    /// Answer to [`crate::Task::Message`].
    Message(MessageWritten),
    /// The task could not be carried out.
    Failed(Failure),
    /// Last event; a process that ends without it has crashed, whatever its exit status.
    Done,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// [`crate::VERSION`] of the worker.
    pub version: u32,
    /// [`crate::BUILD_ID`] of the worker.
    pub build_id: String,
    /// Architecture of the worker (`x86_64`, `aarch64`).
    pub arch: String,
    /// Process id.
    pub pid: u32,
    /// CPU found by `getcpu` after pinning; `None` when no pin was asked for.
    pub cpu: Option<u32>,
    /// Protections, each active or not; of a task without a library, all of them.
    pub layers: Vec<Layer>,
}

/// One protection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layer {
    /// `session`, `rlimits`, `capabilities`, `no_new_privs`, `landlock`, `seccomp`, `namespaces`, ...
    pub name: String,
    /// Whether it is in force.
    pub active: bool,
    /// What is in force (ABI level, limits), or why it is not.
    pub detail: String,
}

/// What a library says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loaded {
    /// Lines of `campaign_meta`.
    pub meta: Vec<(String, String)>,
    /// Claimed lengths, bytes.
    pub sizes: Sizes,
    /// Protections that are put on once the library is loaded: `open_files`, `processes`.
    pub layers: Vec<Layer>,
}

/// Lengths that the API claims, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sizes {
    /// Public key.
    pub pk: u64,
    /// Secret key.
    pub sk: u64,
    /// Signature.
    pub sn: u64,
}

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// One of the closed list below.
    pub code: FailureCode,
    /// What happened, where.
    pub text: String,
}

/// Classes of failure that a worker can see itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The request cannot be read or is of another version.
    BadRequest,
    /// The CPU is offline, outside the allowed set, or was taken away.
    Pin,
    /// The library does not load, misses a symbol, or is another file than the one named.
    LoadFail,
    /// A call returned an error.
    CallFailed,
    /// A signature did not verify, or a modified one did.
    NotVerified,
    /// A call wrote outside, or claimed more than, its buffer.
    Overflow,
    /// The dedicated stack was exhausted.
    StackExhausted,
    /// A cycle source failed its self test in the middle of the work.
    Counter,
    /// Time went backwards or the machine was suspended.
    Clock,
    /// A protection could not be installed although it was required.
    Isolation,
    /// Input or output of the worker itself failed.
    Io,
    /// Out of memory for inputs.
    Memory,
    /// The library behaves in a way that the API forbids (lengths that change, inputs changed, ...).
    Contract,
}

/// What a probe of counters and clocks found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe {
    /// Each source with its self test.
    pub sources: Vec<SourceProbe>,
    /// Core clock estimated by a dependent-add loop against CLOCK_MONOTONIC_RAW, hertz.
    pub core_clock_estimate_hz: Option<u64>,
    /// Lowest and highest of the estimates of the repetitions, hertz.
    pub core_clock_spread_hz: Option<(u64, u64)>,
    /// Overhead of the loop.
    pub overhead: Overhead,
    /// Soft and hard limits, capabilities, seccomp mode, allowed CPUs: name and value as text.
    pub facts: Vec<(String, String)>,
}

/// One source and whether it may be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceProbe {
    /// Which.
    pub kind: SourceKind,
    /// Details, when usable.
    pub source: Option<CycleSource>,
    /// Reason, when not, or when a kind that was asked for before this one is not: one of the record's
    /// reason codes and a sentence with the remedy.
    pub reason: Option<(String, String)>,
}

/// A usable counter, as recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CycleSource {
    /// Which.
    pub kind: SourceKind,
    /// Kernel name of the PMU (`cpu`, `cpu_core`, `armv8_pmuv3`); `None` for clocks.
    pub pmu: Option<String>,
    /// Event (`cycles`, config number), or register.
    pub event: String,
    /// Kernel and hypervisor excluded.
    pub user_only: bool,
    /// How it is read: `read`, `rdpmc`, `rdtscp`, `cntvct_el0`.
    pub access: String,
    /// Rate of a clock, hertz; `None` for cycles.
    pub frequency_hz: Option<u64>,
    /// Smallest step seen between different values, counter units.
    pub resolution: Option<u64>,
    /// Median cost of one read, nanoseconds, rounded up.
    pub read_cost_ns: u64,
    /// Dependent-add loop: additions, counted units, plausible or not.
    pub self_test: SelfTest,
}

/// Result of the loop of known length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfTest {
    /// Additions in the loop.
    pub adds: u64,
    /// Counter units it took.
    pub counted: u64,
    /// Instructions counted with it, where the group has them.
    pub instructions: Option<u64>,
    /// Nanoseconds it took.
    pub nanoseconds: u64,
    /// `time_enabled` and `time_running` of the group, nanoseconds.
    pub time_enabled_running: Option<(u64, u64)>,
    /// Within the bounds.
    pub plausible: bool,
    /// Bounds and verdict in words.
    pub text: String,
}

/// Cost of the loop itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overhead {
    /// Median cost of one clock read, nanoseconds times 1000 (picoseconds).
    pub clock_read_ps: u64,
    /// Cost of one empty operation in the loop, picoseconds.
    pub empty_call_ps: u64,
    /// Iterations that it was measured with.
    pub iterations: u64,
}

/// Result of a KAT run; the orchestrator compares digests with the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KatOutcome {
    /// One per mode asked for, in order.
    pub digests: Vec<KatDigest>,
    /// Records completed.
    pub records: u32,
    /// Bytes of text produced.
    pub text_bytes: u64,
    /// Flips tried and rejected; `None` when not asked for.
    pub flips: Option<Flips>,
    /// Lines of the log (what ran, sizes, digests, flips): the KAT evidence's `.log`.
    pub log: Vec<String>,
    /// First failure that makes the result other than a comparison of digests.
    pub failure: Option<Failure>,
}

/// One digest of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KatDigest {
    /// Word of the mode (`strict:3`).
    pub mode: String,
    /// SHA-256, 64 lower-case hex digits.
    pub sha256: String,
    /// Records in it.
    pub records: u32,
}

/// Bit flips of one signed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flips {
    /// Flips in the message.
    pub message: FlipCount,
    /// Flips in the signature.
    pub signature: FlipCount,
    /// Flips in the public key.
    pub key: FlipCount,
}

/// Count of flips of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlipCount {
    /// Flips tried.
    pub tried: u32,
    /// Flips that made verification fail.
    pub rejected: u32,
    /// Flips in bytes that are declared unauthenticated.
    pub exempt: u32,
}

/// A prepared key pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prepared {
    /// SHA-256 of the key file's bytes.
    pub sha256: String,
    /// Bytes written.
    pub bytes: u64,
    /// Time of the key generation, nanoseconds.
    pub keygen_ns: u64,
}

/// Calibrated cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibrated {
    /// Time of each timed call, nanoseconds.
    pub calls_ns: Vec<u64>,
    /// Time of one key generation (preparation of sign and verify), nanoseconds.
    pub key_ns: u64,
    /// Time of the rest of the preparation for a trial, nanoseconds.
    pub preparation_ns: u64,
    /// Digests of trial 0's outputs, when asked for.
    pub outputs: Option<Outputs>,
}

/// Digests of trial 0's outputs: equal for every code and architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outputs {
    /// SHA-256 of trial 0's public key.
    pub pk: String,
    /// SHA-256 of trial 0's secret key.
    pub sk: String,
    /// SHA-256 of trial 0's first four signatures, joined.
    pub signatures: String,
}

/// One finished attempt. `samples_ns` and `rest` add up to `nanoseconds` exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Timed calls.
    pub calls: u64,
    /// CLOCK_MONOTONIC_RAW over the timed calls, overhead included.
    pub nanoseconds: u64,
    /// Core cycles over the timed calls; only from `perf`.
    pub cycles: Option<u64>,
    /// Ticks of a clock over the timed calls; only from `tsc` or `cntvct`.
    pub ticks: Option<u64>,
    /// Instructions of the same group as the cycles.
    pub instructions: Option<u64>,
    /// `time_enabled` of the group, nanoseconds.
    pub time_enabled_ns: Option<u64>,
    /// `time_running` of the group, nanoseconds.
    pub time_running_ns: Option<u64>,
    /// Whether both ends of the count were read from user mode; otherwise both are the kernel's
    /// readings, which is so also where the right to read directly was withdrawn in between.
    pub read_directly: bool,
    /// Why the readings around the loop give no count, although the source works; the time is good.
    pub count_refused: Option<String>,
    /// What the counter of a refused count went on by all the same, in its own unit: evidence of the
    /// refusal, and no figure.
    pub refused_value: Option<u64>,
    /// The same of the instructions.
    pub refused_instructions: Option<u64>,
    /// Calls between two clock reads.
    pub batch: u64,
    /// The first `min(512, calls / batch)` batches, nanoseconds.
    pub samples_ns: Vec<u64>,
    /// The remaining calls.
    pub rest: Rest,
    /// Source of `cycles` or `ticks`, or why there is none.
    pub source: SourceProbe,
    /// Cost of the loop in this process.
    pub overhead: Overhead,
    /// What the process used over the timed calls.
    pub usage: Usage,
    /// VmRSS after loading and preparing, bytes; in the study before the message is brought up.
    pub baseline_rss_bytes: u64,
    /// VmHWM after the timed calls, bytes, same process.
    pub peak_rss_bytes: u64,
    /// CPU before and after the timed calls.
    pub cpu_before: u32,
    /// See `cpu_before`.
    pub cpu_after: u32,
    /// Distinct messages and keys used.
    pub messages: u64,
    /// Number of keys used.
    pub keys: u64,
    /// Seeds of the streams: role and 64 hex digits.
    pub seeds: Vec<(String, String)>,
    /// Claimed lengths, bytes.
    pub sizes: Sizes,
    /// Actual length of the last signature, bytes (0 for keygen).
    pub last_signature_bytes: u64,
    /// CLOCK_MONOTONIC_RAW against CLOCK_BOOTTIME over the timed calls, nanoseconds.
    pub boottime_ns: u64,
    /// Threads of the process after the timed calls; at least 2 where others than the calling one ran
    /// during them and have ended.
    pub threads: u32,
}

/// What is not in the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rest {
    /// Calls.
    pub calls: u64,
    /// Nanoseconds.
    pub value: u64,
}

/// Differences over the timed calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// User time, nanoseconds.
    pub user_ns: u64,
    /// System time, nanoseconds.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Migrations to another CPU, where the kernel tells.
    pub migrations: Option<u64>,
}

/// Isolated memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryOutcome {
    /// Operation.
    pub operation: Operation,
    /// VmRSS after loading and preparing, bytes.
    pub baseline_rss_bytes: u64,
    /// VmHWM after one operation of this process (before painting), bytes.
    pub peak_rss_bytes: u64,
    /// Stack use of the empty operation, bytes; already subtracted from `runs`.
    pub empty_stack_bytes: u64,
    /// One per key.
    pub runs: Vec<MemoryRun>,
}

/// One run of the memory phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRun {
    /// Number of the key.
    pub key: u32,
    /// Number of the message.
    pub message: u32,
    /// High-water mark of the painted stack, bytes, rounded up to 16, less the empty operation's.
    pub stack_peak_bytes: u64,
    /// Peak of live heap, bytes.
    pub heap_peak_bytes: u64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes not freed.
    pub leaked_bytes: u64,
}

/// Symmetric share, raw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileOutcome {
    /// Operation.
    pub operation: Operation,
    /// Clock of the ticks: `tsc` or `cntvct`.
    pub tick_source: SourceKind,
    /// Its rate, hertz.
    pub tick_hz: Option<u64>,
    /// Calibrated cost of one wrapper, whole ticks.
    pub wrapper_cost_ticks: u64,
    /// What one call adds to the ticks of its own row, thousandths of a tick.
    pub wrapper_inside_milliticks: u64,
    /// What one call adds to the time of the whole operation, thousandths of a tick.
    pub wrapper_around_milliticks: u64,
    /// Operations that count: one of each key.
    pub operations: u64,
    /// Ticks over these operations, wrappers included.
    pub total_ticks: u64,
    /// One per function and call shape of these operations.
    pub calls: Vec<ProfileRow>,
    /// Calls that found no slot; above 0 the profile is invalid.
    pub overflow_calls: u64,
    /// Draws rejected in these operations, counted by the candidate.
    pub rejected_draws: u64,
    /// One per key, in order.
    pub runs: Vec<ProfileRun>,
    /// One per key: how often its operation ran, and which time counts.
    pub passes: Vec<ProfilePasses>,
}

/// What one operation called. It follows from the inputs alone: key `n` has the same run on every
/// machine, in every plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileRun {
    /// Calls by function, reported names; without those that were not called.
    pub calls: BTreeMap<String, u64>,
    /// Draws rejected, counted by the candidate.
    pub rejected_draws: u64,
}

/// The passes of a profile over one key: the same operation on the same inputs, so that every pass
/// makes the same calls. Passes are numbered from 0.
///
/// A pass is *disturbed* when the process was switched out against its will more often than once in
/// 100 ms of it, or was off its CPU for more than 1% of it and more than 10 ms (some kernels account
/// CPU time by the tick). Of the undisturbed passes the one with the
/// fewest ticks counts, of disturbed ones only where there are no others; and it counts as a whole, so
/// that the shares of one operation add up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfilePasses {
    /// Ticks of each pass, wrappers included.
    pub ticks: Vec<u64>,
    /// Passes that were disturbed.
    pub disturbed: Vec<u32>,
    /// Passes whose calls were others than those of the first one. They never count.
    pub other_calls: Vec<u32>,
    /// The pass that counts.
    pub counted: u32,
    /// CLOCK_MONOTONIC_RAW over that pass, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the process over it, nanoseconds; read outside `wall_ns`, so it may be a little more.
    pub cpu_ns: u64,
    /// Involuntary context switches in it.
    pub involuntary_switches: u64,
}

impl ProfilePasses {
    /// Whether the pass that counts was disturbed: then there was no other.
    pub fn all_disturbed(&self) -> bool {
        self.disturbed.contains(&self.counted)
    }
}

/// One call shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileRow {
    /// Reported name.
    pub function: String,
    /// `hash`, `drng` or `other`.
    pub group: String,
    /// Input bits.
    pub in_bits: u64,
    /// Output bits.
    pub out_bits: u64,
    /// Calls.
    pub calls: u64,
    /// Ticks, wrapper included.
    pub ticks: u64,
}

/// One point of the message-size study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyOutcome {
    /// As in a campaign.
    pub measured: Measured,
    /// Bytes read from the file: within the timed calls (stream, prehash), in the preparation
    /// (buffer), none by a call (mmap).
    pub bytes_read: u64,
    /// Time of that reading, nanoseconds.
    pub read_ns: Option<u64>,
    /// Time of hashing within the timed calls, apart from reading, nanoseconds (stream, prehash).
    pub hash_ns: Option<u64>,
    /// SHA-256 of the first signature of the recorded randomness (sign), or of the verified one.
    pub signature_sha256: Option<String>,
    /// SHA-256 of the file, read again after the timed calls.
    pub file_sha256: String,
}

/// A generated message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageWritten {
    /// Bytes written.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
    /// Seed of the generator, 64 hex digits.
    pub seed: String,
}
