//! `campaign collect`: takes back what a packed campaign has measured.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::{output, prepare};
use crate::collect::{self, CollectError};
use crate::config::Sources;
use crate::run::directory::RUNS;
use std::path::PathBuf;

/// Arguments of `collect`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The archive or folder that came back
    #[arg(value_name = "TAR|DIR")]
    pub from: PathBuf,
}

/// Checks the runs, copies them into `runs/`, and says where they are.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let campaign = prepare::campaign(global, Sources::Absent)?;
    let collected = collect::collect(&args.from, &campaign.root.join(RUNS))?;
    if global.json {
        output::print_json(&collected)?;
        return Ok(Outcome::Done);
    }
    for run in &collected {
        let (path, seal) = (run.run.display(), &run.seal);
        output::print(&match run.was_here {
            true => format!("{path} is here already, with the same seal\n"),
            false => format!(
                "{path}\n  {} files as they were sealed, seal {seal}\n  \
                 is that the seal that the machine printed? then: campaign audit {path}\n",
                run.files
            ),
        })?;
    }
    Ok(Outcome::Done)
}

/// What is wrong with a run is a finding; naming no run is a wrong request.
impl From<CollectError> for Failure {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Refused { .. }
            | CollectError::Seal { .. }
            | CollectError::Changed { .. }
            | CollectError::Journal(_)
            | CollectError::Manifest(_) => Failure::found(error),
            CollectError::NoRun(_)
            | CollectError::NotSealed { .. }
            | CollectError::Archive { .. } => Failure::request(error),
            CollectError::Store(_) | CollectError::Io { .. } | CollectError::Report(_) => {
                Failure::could_not(error)
            }
        }
    }
}
