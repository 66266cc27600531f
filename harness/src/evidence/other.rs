//! Evidence of the phases beside timing: KAT, calibrate, memory, profile.

use super::Head;
use protocol::{
    Flips, MemoryRun, Operation, Outputs, ProfilePasses, ProfileRow, ProfileRun, SourceKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which of an identity's libraries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LibraryKind {
    /// The one that is timed.
    Timed,
    /// With wrappers around hash functions and DRNG.
    Profile,
    /// With wrappers around the allocator.
    Memory,
    /// With the hooked absorb of the message-size study.
    Stream,
}

impl LibraryKind {
    /// The word used in file names.
    pub fn name(self) -> &'static str {
        match self {
            LibraryKind::Timed => "timed",
            LibraryKind::Profile => "profile",
            LibraryKind::Memory => "memory",
            LibraryKind::Stream => "stream",
        }
    }
}

/// A library by kind and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LibraryRef {
    /// Which.
    pub kind: LibraryKind,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// KAT evidence of one library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KatEvidence {
    /// Common head, `kind` = `kat`.
    #[serde(flatten)]
    pub head: Head,
    /// The library.
    pub library: LibraryRef,
    /// `iccs` or `nist`.
    pub flow: String,
    /// The word.
    pub result: KatResult,
    /// More about a result other than PASS.
    pub detail: Option<String>,
    /// One per stream.
    pub digests: Vec<KatDigestRecord>,
    /// SHA-256 of the manifest file.
    pub manifest_sha256: Option<String>,
    /// Bytes of text produced; null where it was not recorded.
    pub text_bytes: Option<u64>,
    /// Bit flips, timed library only.
    pub flips: Option<Flips>,
    /// The log, a path below the run directory.
    pub log: String,
    /// Its SHA-256.
    pub log_sha256: String,
    /// Start, UTC; null where it was not recorded.
    pub start: Option<String>,
    /// End, UTC; null where it was not recorded.
    pub end: Option<String>,
}

/// One stream: a line of the manifest and what was found, or the stream of the first vector, by which
/// the other libraries of an identity are held against the timed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KatDigestRecord {
    /// `strict`, `nolen`, `nistkat`, `rsp`, `all`, with `:N`.
    pub mode: String,
    /// Digest of the manifest, or that of the timed library; null where the manifest has none and the
    /// library is the timed one.
    pub expected: Option<String>,
    /// Digest found; null when the run did not get so far.
    pub found: Option<String>,
    /// Records in it; null where it was not recorded.
    pub records: Option<u32>,
}

/// Result words of a KAT check.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)] // words of the field; meanings in the KAT chapter of the format document
pub enum KatResult {
    Pass,
    Mismatch,
    Nokat,
    Partial,
    Cryptofail,
    Overflow,
    Loadfail,
    Timeout,
    Crash,
}

impl KatResult {
    /// The word on pages.
    pub fn word(self) -> &'static str {
        match self {
            KatResult::Pass => "PASS",
            KatResult::Mismatch => "MISMATCH",
            KatResult::Nokat => "NOKAT",
            KatResult::Partial => "PARTIAL",
            KatResult::Cryptofail => "CRYPTOFAIL",
            KatResult::Overflow => "OVERFLOW",
            KatResult::Loadfail => "LOADFAIL",
            KatResult::Timeout => "TIMEOUT",
            KatResult::Crash => "CRASH",
        }
    }
}

/// Calibrated cost of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrateEvidence {
    /// Common head, `kind` = `calibrate`.
    #[serde(flatten)]
    pub head: Head,
    /// Which.
    pub operation: Operation,
    /// Timed library.
    pub library: LibraryRef,
    /// Each timed call, nanoseconds.
    pub calls_ns: Vec<u64>,
    /// Their median, at least 1 ns, seconds; null when it failed and under emulation.
    pub c_s: Option<f64>,
    /// Key generation, seconds; null likewise.
    pub key_s: Option<f64>,
    /// Preparation of a trial, seconds; null likewise.
    pub preparation_s: Option<f64>,
    /// Digests of trial 0's outputs, once per library (in its keygen file).
    pub outputs: Option<Outputs>,
}

/// Symmetric share of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileEvidence {
    /// Common head, `kind` = `profile`.
    #[serde(flatten)]
    pub head: Head,
    /// Which.
    pub operation: Operation,
    /// Profile library; null where it was not recorded.
    pub library: Option<LibraryRef>,
    /// Built without `-flto`, which the timed library has; null where it was not recorded.
    pub lto_removed: Option<bool>,
    /// Functions wrapped, reported names.
    pub wrapped: Vec<String>,
    /// Keys and messages used; null where it was not recorded.
    pub keys: Option<u32>,
    /// One per key: how often its operation ran, and which pass counts; absent from an import. The
    /// totals and the calls below are those of the passes that count, one of each key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<ProfilePasses>,
    /// Clock of the ticks.
    pub ticks: TicksRecord,
    /// Cost of one wrapper, ticks; null where it was not measured (the shares then contain it).
    pub wrapper_cost_ticks: Option<u64>,
    /// What one call adds to the ticks of its own row, thousandths of a tick; null likewise.
    pub wrapper_inside_milliticks: Option<u64>,
    /// What one call adds to the time of the whole operation, thousandths of a tick; null likewise.
    pub wrapper_around_milliticks: Option<u64>,
    /// All operations.
    pub total: ProfileTotal,
    /// Every call shape.
    pub calls: Vec<ProfileRow>,
    /// Calls of each key's operation by itself, in order: key `n` has the same on every machine, in
    /// every plan with the same inputs. Left out where it was not recorded (imports).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ProfileRun>,
    /// Calls without a slot.
    pub overflow_calls: u64,
    /// Null when the profile is invalid or emulated (then only call counts are given).
    pub derived: Option<ProfileDerived>,
}

/// Clock of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TicksRecord {
    /// `tsc` or `cntvct`.
    pub source: SourceKind,
    /// Rate, hertz.
    pub hz: Option<u64>,
}

/// Totals of a profile, over the passes that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileTotal {
    /// Operations.
    pub operations: u64,
    /// Ticks, wrappers included.
    pub ticks: u64,
}

/// What follows from a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileDerived {
    /// Share of each function, wrapper cost subtracted; null under emulation.
    pub share: Option<BTreeMap<String, f64>>,
    /// Everything but `drng`.
    pub hash_share: Option<f64>,
    /// The DRNG.
    pub drng_share: Option<f64>,
    /// Calls per operation, by function.
    pub calls_per_operation: BTreeMap<String, f64>,
    /// Draws rejected over all operations, counted by the candidate; null where it does not count.
    pub rejected_draws: Option<u64>,
    /// `ICCS-only`, `own primitives`, `mixed`, `none wrapped`.
    pub verdict: String,
}

/// Isolated memory of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryEvidence {
    /// Common head, `kind` = `memory`.
    #[serde(flatten)]
    pub head: Head,
    /// Which.
    pub operation: Operation,
    /// Memory library; the timed one where it comes already built.
    pub library: LibraryRef,
    /// SHA-256 of the allocator that was interposed for a library that comes already built: it counts
    /// the whole process, the C library's own allocations included. Absent where the memory library counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interposed_sha256: Option<String>,
    /// Built without `-flto`, which the timed library has.
    pub lto_removed: bool,
    /// From the timed library's file.
    #[serde(rename = "static")]
    pub static_: super::ElfFigures,
    /// Proxies of one process.
    pub process: Option<ProcessMemory>,
    /// One per key.
    pub runs: Vec<MemoryRun>,
    /// The empty operation.
    pub empty: Option<EmptyMemory>,
    /// Null when nothing ran.
    pub derived: Option<MemoryDerived>,
}

/// Resident set of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessMemory {
    /// After loading and preparing, bytes.
    pub baseline_rss_bytes: u64,
    /// VmHWM after the operation, bytes.
    pub peak_rss_bytes: u64,
}

/// The empty operation's own use, subtracted from `runs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyMemory {
    /// Stack, bytes.
    pub stack_peak_bytes: u64,
}

/// What follows from the memory runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryDerived {
    /// Worst over the runs.
    pub worst: MemoryFigures,
    /// Median over the runs.
    pub median: MemoryFigures,
    /// Static load bytes plus the worst stack plus the worst heap, bytes: the guide's peak memory.
    pub guide_total_bytes: u64,
}

/// Stack and heap, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFigures {
    /// Peak of the stack.
    pub stack_peak_bytes: f64,
    /// Peak of live heap.
    pub heap_peak_bytes: f64,
}
