//! `campaign run`: all phases, from source to pages; resumes what was begun.

use super::options::{HostOptions, Selection};
use std::path::PathBuf;

/// Arguments of `run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
    /// Start another run, even if one could be resumed
    #[arg(long, conflicts_with = "run")]
    pub new: bool,
    /// Fix the host for the run, and restore it afterwards
    #[arg(long)]
    pub tune: bool,
    /// See [`HostOptions`].
    #[command(flatten)]
    pub host: HostOptions,
    /// Leave out what the plan defers to the end
    #[arg(long)]
    pub no_deferred: bool,
    /// Wait for another campaign on this machine instead of failing
    #[arg(long)]
    pub wait: bool,
    /// Use the libraries and the worker of an unpacked campaign instead of building them
    #[arg(long, value_name = "DIR")]
    pub pack: Option<PathBuf>,
}
