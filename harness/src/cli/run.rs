//! `campaign run`: all phases, from source to pages; resumes what was begun.

use super::carry::{self, Asked};
use super::exit::{Failure, Outcome};
use super::options::{Global, HostOptions, Selection};
use crate::phases::pipeline::Phase;
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
    /// Read and write /proc and /sys below this folder when tuning, for tests
    #[arg(long, value_name = "DIR", requires = "tune", hide = true)]
    pub sysroot: Option<PathBuf>,
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

/// Carries all phases out and names the pages.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let asked = Asked {
        new: args.new,
        allow_unfixed_host: args.host.allow_unfixed_host,
        no_deferred: args.no_deferred,
        wait: args.wait,
        tune: args.tune,
        sysroot: args.sysroot.as_deref(),
        pack: args.pack.as_deref(),
        ..Asked::phase(&args.selection, Phase::Seal)
    };
    carry::finish(&carry::carry_out(&asked, global)?, global)
}
