//! `campaign profile`: one phase; it measures the share of hashing and of the DRNG.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use crate::phases::pipeline::Phase;

/// Arguments of `profile`.
pub type Args = PhaseArgs;

/// Carries the phase out, after what it needs of the earlier ones.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    super::carry::phase(&args.selection, Phase::Profile, global)
}
