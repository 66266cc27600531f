//! `campaign collect`: takes back what a packed campaign has measured.

use std::path::PathBuf;

/// Arguments of `collect`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The archive or folder that came back
    #[arg(value_name = "TAR|DIR")]
    pub from: PathBuf,
}
