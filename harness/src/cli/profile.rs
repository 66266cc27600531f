//! `campaign profile`: one phase; it measures the share of hashing and of the DRNG.

/// Arguments of `profile`.
pub type Args = super::options::PhaseArgs;
