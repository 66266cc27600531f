//! `campaign calibrate`: one phase; it measures what one call costs.

/// Arguments of `calibrate`.
pub type Args = super::options::PhaseArgs;
