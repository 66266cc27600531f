//! `audit`: recomputes every published number from the raw evidence, with code of its own.
//!
//! Nothing here uses what measures or plans: not [`crate::stats`], not [`crate::plan`], not
//! [`crate::dataset`]. The evidence is read as plain JSON ([`crate::json`]), so that a mistake in the
//! types of the evidence cannot hide itself.

pub mod files;
mod finding;
pub mod number;
pub mod schema2;
pub mod text;

pub use finding::{Finding, Findings, Severity};
