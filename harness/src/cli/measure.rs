//! `campaign measure`: one phase; it times the operations.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use crate::phases::pipeline::Phase;

/// Arguments of `measure`.
pub type Args = PhaseArgs;

/// Carries the phase out, after what it needs of the earlier ones.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    super::carry::phase(&args.selection, Phase::Measure, global)
}
