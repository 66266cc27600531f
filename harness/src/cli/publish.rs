//! `campaign publish`: copies a sealed run into `performance/data/`.

use super::exit::{Failure, Outcome};
use super::options::{Global, HostOptions};
use super::output;
use crate::config::Sources;
use crate::place::PlaceError;
use crate::publish::{self, PublishError};
use regex::Regex;
use std::path::PathBuf;

/// Arguments of `publish`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The sealed run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Id of the dataset [default: from the run]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Make it the system's current dataset
    #[arg(long)]
    pub current: bool,
    /// Publish only what matches, in candidate/label/code/build/operation
    #[arg(long, value_name = "REGEX", value_parser = super::options::pattern())]
    pub partial: Option<Regex>,
    /// See [`HostOptions`].
    #[command(flatten)]
    pub host: HostOptions,
}

/// What is wrong with the run is a finding; a run that can never be published is a wrong request.
impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Seal(_)
            | PublishError::Incomplete { .. }
            | PublishError::UnfixedHost { .. }
            | PublishError::Changed { .. }
            | PublishError::Private { .. }
            | PublishError::Journal(crate::evidence::journal::JournalError::Damaged { .. })
            | PublishError::Manifest(_) => Failure::found(error),
            PublishError::NotSealed(_)
            | PublishError::Class { .. }
            | PublishError::Study(_)
            | PublishError::Nothing(_)
            | PublishError::Place(PlaceError::Name(_)) => Failure::request(error),
            PublishError::Journal(_) | PublishError::Store(_) | PublishError::Place(_) => {
                Failure::could_not(error)
            }
        }
    }
}

/// Publishes and says where.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let config = super::prepare::campaign(global, Sources::Absent)?;
    let published = publish::publish(&publish::Request {
        root: &config.root,
        run: &args.run,
        id: args.id.as_deref(),
        current: args.current,
        partial: args.partial.as_ref(),
        allow_unfixed_host: args.host.allow_unfixed_host,
        names: &publish::local_names(&args.run),
    })?;
    match global.json {
        true => output::print_json(&published)?,
        false => output::print(&format!(
            "{}\n  {} files, seal {}\n  next: campaign audit {0}, campaign report {0}\n",
            published.path.display(),
            published.files,
            published.seal
        ))?,
    }
    Ok(Outcome::Done)
}
