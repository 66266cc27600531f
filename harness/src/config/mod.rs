//! `campaign.toml`: from typed text to a checked campaign.
//!
//! [`model`] is what the rest of the program sees: everything is validated, defaults are filled in,
//! and paths are relative to [`model::Campaign::root`]. Reading, and reporting all mistakes of a
//! file together, is the business of the other files here.

pub mod model;

pub use model::*;
