//! `campaign report`: pages of runs and datasets.

use super::options::Datasets;
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to show.
    #[command(flatten)]
    pub datasets: Datasets,
    /// Write nothing: compare with the pages that are there, show the differences, status 1 if any
    #[arg(long)]
    pub check: bool,
    /// Templates instead of the built-in ones (`campaign templates export` gives a start)
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
    /// Write the charts as files too
    #[arg(long, value_name = "FORMAT")]
    pub charts: Option<ChartFormat>,
}

/// Formats of chart files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ChartFormat {
    /// Portable network graphics
    Png,
}
