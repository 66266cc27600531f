//! `campaign memory`: one phase; it measures stack and heap of one operation.

/// Arguments of `memory`.
pub type Args = super::options::PhaseArgs;
