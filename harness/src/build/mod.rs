//! The build phase: from the sources that the configuration names to the libraries of a run.
//!
//! [`build_all`] gives each identity its libraries, made from the same objects: `timed`, `profile` (with
//! wrappers around hash functions and DRNG), `memory` (with a counted allocator) and, for the file-size
//! study, `stream`. The flags are the configured ones; what else is passed (`-fPIC`, include folders,
//! path maps) is recorded with them. An identity that does not build becomes a row with its log, one
//! that the CPU cannot run becomes a row with its reason, and the rest goes on.
//!
//! | file | owns |
//! |---|---|
//! | `phase.rs` | all identities, in parallel, into the run directory |
//! | `row.rs` | one identity: attempts, libraries, its row |
//! | `workshop.rs` | one compile, one link, through the cache |
//! | `cache.rs`, `preprocessed.rs` | products by content; what a source is made of |
//! | `toolchain.rs`, `flags.rs`, `features.rs` | the compiler, its flags, the CPU they need |
//! | `sources.rs`, `crates.rs`, `names.rs` | files, registry crates, names in place of paths |
//! | `wrap.rs`, `prototype.rs` | what a profile library wraps |
//! | `elf.rs` | symbols and static memory |
//! | `abi.rs` | the C that this program brings along |
//!
//! Whether a library is right is the business of the KAT phase.

mod abi;
mod cache;
mod crates;
mod elf;
mod error;
mod features;
mod flags;
mod names;
mod phase;
mod preprocessed;
mod prototype;
mod row;
mod sources;
mod toolchain;
mod workshop;
mod wrap;

pub use cache::{folder as cache_folder, VARIABLE as CACHE_VARIABLE};
pub use crates::CratesError;
pub use elf::{figures as elf_figures, machine as elf_machine, ElfError};
pub use error::{BuildError, RowError};
pub use features::{cpu_model, Features, EMULATED};
pub use phase::{
    build_all, explain_rows, features_for, refuses, skipped, Context, Failed, Progress, NAME,
};
pub use row::INTERPOSE;
pub use wrap::WrapError;
