//! `campaign import`: brings evidence of another tool, or published cells, into `performance/data/`.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::config::Sources;
use crate::import::{cells, dataset, ImportError};
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Folder of evidence
    #[arg(
        value_name = "DIR",
        required_unless_present = "aggregate",
        conflicts_with = "aggregate"
    )]
    pub dir: Option<PathBuf>,
    /// Table of published cells without trials
    #[arg(long, value_name = "FILE")]
    pub aggregate: Option<PathBuf>,
    /// System that was measured
    #[arg(long, value_name = "ID")]
    pub system: String,
    /// Id of the dataset [default: public-YEAR, the year of the campaign's start]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Make it the system's current dataset
    #[arg(long)]
    pub current: bool,
}

/// Unsound evidence is a finding; a wrong name or system is a wrong request.
impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Unsound { .. }
            | ImportError::Foreign { .. }
            | ImportError::Table { .. } => Failure::found(error),
            ImportError::System { .. } => Failure::request(error),
            ImportError::Place(crate::place::PlaceError::Name(_)) => Failure::request(error),
            ImportError::Store(_) | ImportError::Place(_) => Failure::could_not(error),
        }
    }
}

/// Imports and says what was made.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let config = super::prepare::campaign(global, Sources::Absent)?;
    if config.system(&args.system).is_none() {
        return Err(Failure::request(format!(
            "`{}` is no system of campaign.toml: add a [[system]] with that id, or name one of those that are there",
            args.system
        )));
    }
    let (id, current) = (args.id.as_deref(), args.current);
    let imported = match (&args.dir, &args.aggregate) {
        (Some(dir), _) => dataset::import(&config, dir, &args.system, id, current)?,
        (None, Some(file)) => cells::import(&config, file, &args.system, id, current)?,
        (None, None) => unreachable!("clap asks for one of them"),
    };
    if global.json {
        output::print_json(&imported)?;
    } else {
        let mut text = format!(
            "{}\n  {} files, seal {}\n",
            imported.path.display(),
            imported.files,
            imported.seal
        );
        if imported.dropped > 0 {
            text += &format!("  host name dropped in {} places\n", imported.dropped);
        }
        for file in &imported.left_out {
            text += &format!("  left out, not of the format: {file}\n");
        }
        output::print(&text)?;
    }
    Ok(Outcome::Done)
}
