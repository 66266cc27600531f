//! The machine: what it is, what state it is in, which CPUs may be used.
//!
//! | file | owns |
//! |---|---|
//! | `root.rs` | the way to the kernel's files, and what takes a value written to one |
//! | `facts.rs`, `cpuinfo.rs`, `parts.rs`, `virtualization.rs` | what is read, judged by nobody |
//! | `affinity.rs` | which CPUs are measured on, and keeping away from them |

pub mod affinity;
pub mod check;
mod cpuinfo;
pub mod facts;
pub mod parts;
pub mod root;
mod virtualization;

pub use root::Root;
