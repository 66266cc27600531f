//! `campaign plan`: what would be measured, how often and how long; measures nothing.

/// Arguments of `plan`.
pub type Args = super::options::PhaseArgs;
