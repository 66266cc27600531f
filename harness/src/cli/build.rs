//! `campaign build`: one phase; it compiles every library of the campaign.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use crate::phases::pipeline::Phase;

/// Arguments of `build`.
pub type Args = PhaseArgs;

/// Carries the phase out, after what it needs of the earlier ones.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    super::carry::phase(&args.selection, Phase::Build, global)
}
