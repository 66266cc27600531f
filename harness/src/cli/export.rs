//! `campaign export`: a dataset as tables for other programs.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::dataset::Dataset;
use crate::evidence::CAMPAIGN_FILE;
use crate::export::{self, ExportError};
use crate::report::site;
use std::path::{Path, PathBuf};

/// Arguments of `export`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Run or dataset
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// As comma-separated values, the only format so far
    #[arg(long, required = true)]
    pub csv: bool,
    /// Folder of the tables [default: export/SYSTEM/ID here, export/NAME for a run]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Replace tables that are there
    #[arg(long)]
    pub overwrite: bool,
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Exists(_) | ExportError::InDataset(_) => Failure::request(error),
            ExportError::Write(_) => Failure::could_not(error),
        }
    }
}

/// Writes the tables and names them.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let paths = super::named::resolve(std::slice::from_ref(&args.dataset), global)?;
    let dataset = Dataset::read(&paths[0]).map_err(Failure::could_not)?;
    let folder = args.to.clone().unwrap_or_else(|| folder_of(&paths[0]));
    if is_in_dataset(&folder) {
        return Err(ExportError::InDataset(folder).into());
    }
    let files = export::write(&dataset, &folder, args.overwrite)?;
    match global.json {
        true => output::print_json(&files)?,
        false => {
            let text: String = files.iter().map(|f| format!("{}\n", f.display())).collect();
            output::print(&text)?;
        }
    }
    Ok(Outcome::Done)
}

/// Whether a folder, there or not, is a run or dataset or lies in one.
fn is_in_dataset(folder: &Path) -> bool {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let there = absolute
        .ancestors()
        .find_map(|path| path.canonicalize().ok());
    let chain = there.as_deref().unwrap_or(&absolute).ancestors();
    chain
        .into_iter()
        .any(|path| path.join(CAMPAIGN_FILE).exists())
}

/// Where the tables of a dataset go when nobody says: datasets of two systems may have one id.
fn folder_of(dataset: &Path) -> PathBuf {
    let export = Path::new("export");
    match site::Published::at(dataset) {
        Some(published) => export.join(published.system).join(published.id),
        None => export.join(site::name_of(dataset)),
    }
}
