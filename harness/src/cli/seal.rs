//! `campaign seal`: one phase; it closes a run: manifest, journal and seal. With `--sign` it signs the
//! seal of a sealed run with the user's SSH key.

use super::exit::{Failure, Outcome};
use super::options::{Global, PhaseArgs};
use super::output;
use crate::phases::pipeline::Phase;
use crate::signature::{self, SignatureError};
use std::path::PathBuf;

/// Arguments of `seal`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which campaign.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// Sign the seal of the sealed run that --run names (any sealed dataset) with this SSH key
    #[arg(long, value_name = "KEY", requires = "run")]
    pub sign: Option<PathBuf>,
}

/// A seal that is not there, or not signed, is found; a key that does not work is not our doing.
impl From<SignatureError> for Failure {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::NotSealed(_) => Failure::request(error),
            SignatureError::NotSigned(_) => Failure::found(error),
            _ => Failure::could_not(error),
        }
    }
}

/// Carries the phase out, after what it needs of the earlier ones; or signs what is sealed.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let (Some(key), Some(dir)) = (&args.sign, &args.phase.selection.run) else {
        return super::carry::phase(&args.phase.selection, Phase::Seal, global);
    };
    let path = signature::sign(dir, key)?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(Outcome::Done)
}
