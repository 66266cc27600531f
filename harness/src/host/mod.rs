//! The machine: what it is, what state it is in, which CPUs may be used.
//!
//! | file | owns |
//! |---|---|
//! | `root.rs` | the way to the kernel's files, and what takes a value written to one |
//! | `facts.rs`, `cpuinfo.rs`, `parts.rs`, `virtualization.rs` | what is read, judged by nobody |
//! | `readiness/` | the judgement: one finding an item |
//! | `look.rs` | all of it in one go, with what a worker and the siblings say |
//! | `cross.rs` | the tools for a system of another architecture |
//! | `tune/` | fixing the machine for measuring, and restoring it |
//! | `affinity.rs` | which CPUs are measured on, and keeping away from them |

pub mod affinity;
mod cpuinfo;
pub mod cross;
pub mod facts;
pub mod look;
pub mod parts;
pub mod readiness;
pub mod root;
pub mod tune;
mod virtualization;

pub use root::Root;
