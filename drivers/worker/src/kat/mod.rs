//! Known-answer tests, run as a stream: one record of keys and signature in memory at a time.
//!
//! [`Flow`] makes the inputs and the text of a vector (`iccs`, `nist`), [`streams`] hashes the text
//! in the forms that a manifest names, [`flips`] tries what a verifier must reject, [`run`] drives
//! them. Which digest is the right one is the orchestrator's to say.

pub mod canonical;
mod flips;
mod flow;
mod iccs;
mod nist;
mod run;
pub mod streams;

pub use flow::{Flow, Vector};
pub use iccs::Iccs;
pub use nist::Nist;
pub use run::run;
