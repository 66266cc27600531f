//! `campaign seal`: one phase; it closes a run: manifest, journal and seal.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use crate::phases::pipeline::Phase;

/// Arguments of `seal`.
pub type Args = PhaseArgs;

/// Carries the phase out, after what it needs of the earlier ones.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    super::carry::phase(&args.selection, Phase::Seal, global)
}
