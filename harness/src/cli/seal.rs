//! `campaign seal`: one phase; it closes a run: manifest, journal and seal.

/// Arguments of `seal`.
pub type Args = super::options::PhaseArgs;
