//! `build.json`: what was built, from what, with what, and what came out.

use super::{Reason, Status};
use crate::identity::Identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `build.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildFile {
    /// Always [`super::SCHEMA`].
    pub schema: String,
    /// `build`.
    pub kind: super::Kind,
    /// Id of the system.
    pub system: String,
    /// One per identity, in page order.
    pub rows: Vec<BuildRow>,
    /// Reason of each `null` of this file, as in the common head.
    pub missing: BTreeMap<String, Reason>,
}

/// One identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRow {
    /// Which.
    pub identity: Identity,
    /// `complete`, `failed` or `skipped`.
    pub status: Status,
    /// Why not `complete`.
    pub reason: Option<Reason>,
    /// Compiler command, without a path.
    pub compiler: String,
    /// First line of its `--version`.
    pub compiler_version: String,
    /// Flags of the compile, one string, as given (paths relative to the project).
    pub flags: String,
    /// Flags of the link; null where they were not recorded.
    pub link_flags: Option<String>,
    /// Whose flags they are.
    pub flags_kind: FlagsKind,
    /// The profile and memory libraries were built without `-flto`; null where it was not recorded.
    pub lto_removed: Option<bool>,
    /// Warnings of the compiler, lines; null where they were not recorded.
    pub warnings: Option<Vec<String>>,
    /// SHA-256 over one line `<sha256>  <name>` + LF for each file that the timed library was compiled
    /// from, sources and headers, system headers left out, in byte order of the names: what
    /// `sha256sum` prints for the sorted names. Null where it was not recorded.
    pub source_sha256: Option<String>,
    /// Number of these files; null where it was not recorded.
    pub source_files: Option<u32>,
    /// Registry crates the sources come from: name, version, checksum of the lock file.
    pub source_crates: Vec<SourceCrate>,
    /// Libraries by kind (`timed`, `profile`, `memory`, `stream`).
    pub libraries: BTreeMap<String, BuiltLibrary>,
    /// Figures of the timed library's file.
    pub elf: Option<ElfFigures>,
    /// Functions wrapped in the profile library, reported names with their symbols.
    pub wrapped: Vec<Wrapped>,
    /// Functions that the configuration lists for wrapping and that no call between two objects
    /// reaches: they are not counted, which is not the same as zero calls.
    pub not_wrapped: Vec<String>,
    /// What `native` among the flags meant; the libraries are for that machine alone.
    pub native: Option<NativeTarget>,
    /// Log of a build that failed, bounded; with fallback flags, of the guide's build.
    pub log: Option<String>,
}

/// The machine that `-march=native` and its like stood for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NativeTarget {
    /// The options, as given.
    pub options: Vec<String>,
    /// What the compiler made of them (`-march=skylake`, `-mtune=skylake`); empty where it does not tell.
    pub resolved: Vec<String>,
    /// Name of the CPU that compiled.
    pub cpu: Option<String>,
    /// Instruction sets of the CPU that compiled, as the kernel names them; left out where they were not
    /// recorded. A machine that lacks one of them must not run the libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// Whose flags an identity was built with.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FlagsKind {
    /// The guide's, exactly (plus `-fPIC` and what the table of the candidate adds).
    Guide,
    /// The candidate's fallback, because it does not build with the guide's.
    HarnessDefault,
}

/// A registry crate as a source of C.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCrate {
    /// Name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// Checksum in the committed lock file.
    pub checksum: String,
}

/// One built library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuiltLibrary {
    /// Path below the run directory (`lib/<sha256>.so`).
    pub file: String,
    /// SHA-256.
    pub sha256: String,
    /// Bytes; null where they were not recorded.
    pub bytes: Option<u64>,
}

/// A wrapped function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wrapped {
    /// Linker symbol.
    pub symbol: String,
    /// Reported name.
    pub name: String,
    /// `hash`, `drng` or `other`.
    pub group: String,
}

/// Static memory, from the ELF file itself, bytes. An import may know `load_bytes` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElfFigures {
    /// Executable sections.
    pub text: Option<u64>,
    /// Read-only data sections.
    pub rodata: Option<u64>,
    /// Initialised writable data.
    pub data: Option<u64>,
    /// Zero-initialised data.
    pub bss: Option<u64>,
    /// Other loaded sections and headers: dynamic tables, relocations, unwind tables.
    pub headers_and_tables: Option<u64>,
    /// Sum of p_memsz of the PT_LOAD segments: the table's figure.
    pub load_bytes: u64,
    /// DT_NEEDED names.
    pub needed: Option<Vec<String>>,
}
