//! `campaign export`: a dataset as a table for other programs.

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
}
