//! `campaign export`: a dataset as tables for other programs.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::dataset::Dataset;
use crate::export::{self, ExportError};
use std::path::PathBuf;

/// Arguments of `export`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Run or dataset
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// As comma-separated values, the only format so far
    #[arg(long, required = true)]
    pub csv: bool,
    /// Folder of the tables [default: export/<name of the dataset> here]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Failure::could_not(error)
    }
}

/// Writes the tables and names them.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let paths = super::report::resolve(std::slice::from_ref(&args.dataset), global)?;
    let dataset = Dataset::read(&paths[0]).map_err(Failure::could_not)?;
    let folder = match &args.to {
        Some(folder) => folder.clone(),
        None => PathBuf::from("export").join(&dataset.id),
    };
    let files = export::write(&dataset, &folder)?;
    match global.json {
        true => output::print_json(&files)?,
        false => {
            let text: String = files.iter().map(|f| format!("{}\n", f.display())).collect();
            output::print(&text)?;
        }
    }
    Ok(Outcome::Done)
}
