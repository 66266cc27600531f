//! What the orchestrator asks of a worker.

use serde::{Deserialize, Serialize};

/// One request: the whole standard input of a worker process, as one JSON document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// [`crate::VERSION`] of the sender.
    pub version: u32,
    /// Random text (32 hex digits) that every event must carry; unknown to the library.
    pub token: String,
    /// The library to load; `None` only for [`Task::Probe`] and [`Task::Empty`].
    pub library: Option<LibraryFile>,
    /// CPU to pin to before anything is loaded; the worker verifies it and fails otherwise.
    pub cpu: Option<u32>,
    /// Size of the dedicated stack of every timed call, bytes (64 MiB).
    pub stack_bytes: u64,
    /// Which protections to install, and the limits that go with them.
    pub isolation: Isolation,
    /// What to do.
    pub task: Task,
}

/// A file named by path and digest: it is opened once, hashed through the descriptor, and used
/// through that descriptor only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LibraryFile {
    /// Path, with bytes that are not UTF-8 escaped as `\xNN` (see [`path_to_text`]).
    pub path: String,
    /// Expected SHA-256 of the content, 64 lower-case hex digits.
    pub sha256: String,
}

/// Protections of a worker. Each is tried where asked for and reported as active or not, with the
/// reason ([`crate::Layer`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Isolation {
    /// `no_new_privs`, all capabilities dropped.
    pub drop_privileges: bool,
    /// Landlock: read the library and its inputs, write nothing.
    pub landlock: bool,
    /// Seccomp filter: no new processes, ptrace, mount, clock setting, sockets.
    pub seccomp: bool,
    /// User and network namespaces.
    pub namespaces: bool,
    /// Address-space limit, bytes.
    pub address_space_bytes: Option<u64>,
    /// CPU-time limit, seconds.
    pub cpu_seconds: Option<u64>,
    /// Largest file the process may write, bytes.
    pub file_bytes: Option<u64>,
}

impl Isolation {
    /// No protection: for tests that compare with and without.
    pub const NONE: Isolation = Isolation {
        drop_privileges: false,
        landlock: false,
        seccomp: false,
        namespaces: false,
        address_space_bytes: None,
        cpu_seconds: None,
        file_bytes: None,
    };
}

/// A core operation. Signatures only so far; the names of the others are reserved by the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Key generation.
    Keygen,
    /// Signing.
    Sign,
    /// Verification.
    Verify,
}

impl Operation {
    /// All operations of a signature candidate, in page order.
    pub const ALL: [Operation; 3] = [Operation::Keygen, Operation::Sign, Operation::Verify];

    /// The word used in keys, file names and pages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Keygen => "keygen",
            Operation::Sign => "sign",
            Operation::Verify => "verify",
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How inputs are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inputs {
    /// `<candidate>/<label>`, part of every seed.
    pub subject: String,
    /// `fresh` (a new message for each call) or `fixed` (the public campaign's way).
    pub rule: InputRule,
    /// Bytes of a message (64).
    pub message_bytes: u32,
    /// Trial number that enters the seed; see `TRIAL_*` for the phases that are no trials.
    pub trial: u32,
    /// Trial whose key is used: `trial`, or 0 where the instance says `key_per = "run"`.
    pub key_trial: u32,
    /// A prepared key pair of `key_trial`, made by [`Task::Prepare`] for [`Operation::Sign`]: one key
    /// file a library, whose seed is signing's whichever operation uses it.
    pub prepared_key: Option<LibraryFile>,
}

/// How the inputs of timed calls are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InputRule {
    /// A fresh message for each call, from the recorded stream.
    Fresh,
    /// DRNG seeded with bytes 00..2f, one message: comparable with the public campaign.
    Fixed,
}

/// Pairs of message and signature that a verify trial uses in turn, at most.
pub const VERIFY_PAIRS: u64 = 64;
/// Pairs that calibrating a verification uses in turn: a tenth of a second for each of many pairs of a
/// slow signer would cost more than what they are for.
pub const CALIBRATE_PAIRS: u64 = 8;

/// Trial number in the seeds of the calibrate phase.
pub const TRIAL_CALIBRATE: u32 = u32::MAX;
/// Trial number in the seeds of the memory phase.
pub const TRIAL_MEMORY: u32 = u32::MAX - 1;
/// Trial number in the seeds of the profile phase.
pub const TRIAL_PROFILE: u32 = u32::MAX - 2;

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Task {
    /// Report on counters, clocks and limits; loads nothing.
    Probe {
        /// Length of the dependent-add loop used for plausibility, additions.
        loop_adds: u64,
    },
    /// Run the loop around an empty operation only: overhead and read cost.
    Empty {
        /// Iterations of the loop.
        iterations: u64,
    },
    /// Load the library, report its meta text, sizes and missing symbols.
    Load,
    /// Run a KAT flow as a stream.
    Kat(KatTask),
    /// Make one key pair and write it to the descriptor of the environment's `KEY_FD`.
    Prepare {
        /// Operation in whose seed the key belongs: signing, for a key that others use too.
        operation: Operation,
        /// Seeds.
        inputs: Inputs,
    },
    /// Cost of one call, by the rule of the calibrate phase, and the digests of trial 0's outputs.
    Calibrate {
        /// Operation to calibrate.
        operation: Operation,
        /// Seeds (trial [`TRIAL_CALIBRATE`]).
        inputs: Inputs,
        /// Also compute the digests of trial 0's outputs (once per library): the key pair of
        /// signing's trial 0 (the prepared one if it is given with `key_trial` 0, for key generation
        /// too), and its first four signatures, whatever `operation` is calibrated.
        outputs: bool,
    },
    /// One attempt of a trial: warm-ups, then `iterations` timed calls.
    Measure(MeasureTask),
    /// Isolated memory of calls, with the memory library.
    Memory {
        /// Operation to run.
        operation: Operation,
        /// Seeds (trial [`TRIAL_MEMORY`]).
        inputs: Inputs,
        /// Number of keys; each key has one message.
        keys: u32,
        /// For a library that counts nothing itself: the library that the worker was started with
        /// (`LD_PRELOAD`), which counts the allocations of the whole process.
        interposed: Option<LibraryFile>,
    },
    /// Symmetric share, with the profile library.
    Profile {
        /// Operation to run.
        operation: Operation,
        /// Seeds (trial [`TRIAL_PROFILE`]).
        inputs: Inputs,
        /// Number of keys; each key has one message.
        keys: u32,
    },
    /// One point of the message-size study.
    Study(StudyTask),
    /// Write the generated message of a study to the descriptor of `FILE_FD`; loads nothing.
    Message {
        /// Takes the place of `candidate/label` in the seed, whose operation is signing, whose trial is
        /// 0 and whose role is `message`.
        subject: String,
        /// Length, bytes. A longer message of the same subject begins with a shorter one.
        bytes: u64,
    },
}

/// Most keys that signing attempts of a study use in turn.
pub const STUDY_KEYS: u64 = 16;

/// Bytes that each request to the generator gives of a study's message (the last may give fewer):
/// 2^19 bits, the most that one request may ask for (SP 800-90A, table 2).
pub const MESSAGE_DRAW: usize = 1 << 16;

/// A KAT run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KatTask {
    /// `iccs` or `nist`.
    pub flow: KatFlow,
    /// Name that heads an `rsp` stream (`# <name>`), for the NIST flow.
    pub name: String,
    /// Streams to hash; each is one digest in the answer.
    pub modes: Vec<KatMode>,
    /// Stop after this many vectors (1 for profile and memory libraries).
    pub vectors: Option<u32>,
    /// Try the bit flips of record 0 (timed library only).
    pub flips: bool,
    /// Signature bytes that the candidate declares unauthenticated.
    pub unauthenticated_signature_bytes: Vec<(u64, u64)>,
    /// Write the text to the descriptor of the environment's `TEXT_FD`.
    pub keep_text: bool,
}

/// Which generation flow makes the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KatFlow {
    /// The ICCS signature flow: 10 records, helper DRNG.
    Iccs,
    /// NIST PQCsignKAT: 100 vectors, AES-256-CTR DRBG.
    Nist,
}

/// One stream to hash, by the word of the manifest line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KatMode {
    /// `strict`, `nolen`, `nistkat`, `rsp` or `all`.
    pub mode: String,
    /// Only the first N records (`:N` of the manifest).
    pub first: Option<u32>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureTask {
    /// Operation to time.
    pub operation: Operation,
    /// Seeds.
    pub inputs: Inputs,
    /// Timed calls.
    pub iterations: u64,
    /// Untimed calls before them; they draw first from the streams.
    pub warmups: u32,
    /// Calibrated cost of one call, nanoseconds: decides the batch size.
    pub cost_ns: u64,
    /// Cycle sources to try, in order.
    pub sources: Vec<SourceKind>,
}

/// Where a counter value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// User-mode core cycles of a hardware counter.
    Perf,
    /// Invariant time-stamp counter of x86: a clock, not cycles.
    Tsc,
    /// Virtual counter of AArch64: a clock, not cycles.
    Cntvct,
    /// No counter.
    None,
}

impl SourceKind {
    /// The word used in records.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Perf => "perf",
            SourceKind::Tsc => "tsc",
            SourceKind::Cntvct => "cntvct",
            SourceKind::None => "none",
        }
    }
}

/// One point of the message-size study: one attempt on a file given as descriptor `FILE_FD`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyTask {
    /// As in a campaign; `inputs.message_bytes` is ignored.
    pub measure: MeasureTask,
    /// How the message reaches the library.
    pub mode: StudyMode,
    /// Size of the message file, bytes.
    pub size_bytes: u64,
    /// SHA-256 of the file as planned.
    pub file_sha256: String,
    /// Chunk of stream mode, bytes.
    pub chunk_bytes: u64,
}

/// How a message reaches the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StudyMode {
    /// Whole message read into memory.
    Buffer,
    /// Message mapped from the file.
    Mmap,
    /// Link-time hooked absorb, in chunks.
    Stream,
    /// Pure signature over the SHA-256 of the file.
    PrehashSha256,
    /// Pure signature over the SHA3-512 of the file.
    PrehashSha3,
}

impl StudyMode {
    /// The word used in file names and pages.
    pub fn name(self) -> &'static str {
        match self {
            StudyMode::Buffer => "buffer",
            StudyMode::Mmap => "mmap",
            StudyMode::Stream => "stream",
            StudyMode::PrehashSha256 => "prehash-sha256",
            StudyMode::PrehashSha3 => "prehash-sha3",
        }
    }
}

/// Environment variable that holds the number of the private event descriptor.
pub const EVENT_FD: &str = "CAMPAIGN_EVENT_FD";
/// Environment variable that holds the number of the descriptor for KAT text.
pub const TEXT_FD: &str = "CAMPAIGN_TEXT_FD";
/// Environment variable that holds the number of the descriptor for a prepared key.
pub const KEY_FD: &str = "CAMPAIGN_KEY_FD";
/// Environment variable that holds the number of the descriptor of a study's message file.
pub const FILE_FD: &str = "CAMPAIGN_FILE_FD";

/// Path as UTF-8 text, reversible: bytes that are not part of valid UTF-8, and backslashes, become
/// `\xNN`.
pub fn path_to_text(path: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\x5c"),
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Inverse of [`path_to_text`]; `None` when an escape is malformed.
pub fn text_to_path(text: &str) -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            path.push(bytes[at]);
            at += 1;
            continue;
        }
        if bytes.get(at + 1) != Some(&b'x') {
            return None;
        }
        let digits = text.get(at + 2..at + 4)?;
        path.push(u8::from_str_radix(digits, 16).ok()?);
        at += 4;
    }
    Some(std::ffi::OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn any_path_survives_the_trip_through_text() {
        for bytes in [
            &b"/a b/c"[..],
            b"/\xff\xfe/x",
            b"/back\\x41slash",
            "/µ".as_bytes(),
        ] {
            let path = std::path::PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
            assert_eq!(text_to_path(&path_to_text(&path)), Some(path));
        }
        assert_eq!(text_to_path("\\q"), None);
        assert_eq!(text_to_path("\\x4"), None);
    }
}
