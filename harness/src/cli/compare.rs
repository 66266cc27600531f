//! `campaign compare`: two or more datasets, or two systems, row by row.

use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The dataset that ratios are relative to
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The datasets compared with it
    #[arg(value_name = "B", required = true)]
    pub b: Vec<PathBuf>,
}
