//! `campaign kat`: one phase; it checks every library against its known answers.

use super::options::Selection;
use std::path::PathBuf;

/// Arguments of `kat`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
    /// Write the texts of the known answers to this folder (860 MB for the largest instance)
    #[arg(long, value_name = "DIR")]
    pub keep_text: Option<PathBuf>,
}
