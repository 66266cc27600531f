//! `campaign study`: studies beside the campaign; so far the message-size study.

use super::options::Selection;
use crate::values::Size;
use std::path::PathBuf;

/// Arguments of `study`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which study.
    #[command(subcommand)]
    pub study: Study,
}

/// The studies.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Study {
    /// Sign and verify files of growing size
    MessageSize(MessageSizeArgs),
}

/// Arguments of `study message-size`.
#[derive(Debug, Clone, clap::Args)]
pub struct MessageSizeArgs {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
    /// Sizes instead of the configuration's, as in 1MB,100MB
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sizes: Vec<Size>,
    /// Sign this file instead of a generated one
    #[arg(long, value_name = "PATH", conflicts_with = "sizes")]
    pub file: Option<PathBuf>,
    /// Add the configuration's large sizes
    #[arg(long)]
    pub full: bool,
}
