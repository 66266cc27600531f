//! Groups of options that several subcommands share.

use crate::values::CpuList;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::ArgAction;
use regex::Regex;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reads a regular expression; names are text, so what is none matches nothing and is told byte for byte.
pub(super) fn pattern() -> impl TypedValueParser<Value = Regex> {
    OsStringValueParser::new().try_map(|given: OsString| match given.to_str() {
        Some(text) => Regex::new(text).map_err(|error| error.to_string()),
        None => Err(format!(
            "`{}` is not UTF-8, as every name of a campaign is",
            protocol::path_to_text(Path::new(&given))
        )),
    })
}

/// Options of every subcommand.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The campaign's configuration [default: campaign.toml here or in the nearest folder above]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// The worker to use instead of finding or building one
    #[arg(long, value_name = "PATH", global = true)]
    pub worker: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true, action = ArgAction::SetTrue)]
    pub json: bool,
    /// Print results and errors, and no progress
    #[arg(long, short, global = true, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

/// Which campaign: common to `run` and to each phase.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Selection {
    /// Plan of the configuration [default: quick, or the plan of the run that is resumed]
    #[arg(long, value_name = "NAME")]
    pub plan: Option<String>,
    /// System to measure [default: the only registered one that matches this machine, else local]
    #[arg(long, value_name = "ID")]
    pub system: Option<String>,
    /// CPUs to measure on, as in 2 or 2,4-6 [default: chosen from this machine]
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
    /// Only what matches, in candidate/label/code/build/operation
    #[arg(long, value_name = "REGEX", value_parser = pattern())]
    pub only: Option<Regex>,
    /// Run directory [default: the newest unfinished run of this campaign]
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
}

/// A phase's own arguments are none but the campaign's.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PhaseArgs {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
}

/// Readiness of the host, where a command would refuse an unready one.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct HostOptions {
    /// Go on although the host is not fixed (frequency, turbo, SMT); every page then says so
    #[arg(long)]
    pub allow_unfixed_host: bool,
}

/// Datasets or runs to read.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Datasets {
    /// Run directories, dataset directories, or SYSTEM/ID below performance/data
    #[arg(value_name = "DATASET", required = true)]
    pub datasets: Vec<PathBuf>,
}
