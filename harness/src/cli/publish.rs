//! `campaign publish`: copies a sealed run into `performance/data/`.

use super::options::HostOptions;
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
    #[arg(long, value_name = "REGEX")]
    pub partial: Option<Regex>,
    /// See [`HostOptions`].
    #[command(flatten)]
    pub host: HostOptions,
}
