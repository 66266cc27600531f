//! `campaign measure`: one phase; it times the operations.

/// Arguments of `measure`.
pub type Args = super::options::PhaseArgs;
