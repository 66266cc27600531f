//! `campaign build`: one phase; it compiles every library of the campaign.

/// Arguments of `build`.
pub type Args = super::options::PhaseArgs;
