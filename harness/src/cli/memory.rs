//! `campaign memory`: one phase; it measures stack and heap of one operation.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use crate::phases::pipeline::Phase;

/// Arguments of `memory`.
pub type Args = PhaseArgs;

/// Carries the phase out, after what it needs of the earlier ones.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    super::carry::phase(&args.selection, Phase::Memory, global)
}
