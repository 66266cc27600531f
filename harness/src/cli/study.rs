//! `campaign study`: studies beside the campaign; so far the message-size study.

use super::carry::{self, Asked, StudyAsked};
use super::exit::{Failure, Outcome};
use super::options::{Global, HostOptions, Selection};
use crate::phases::pipeline::Phase;
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
#[command(
    after_help = "Without --only the instances of [study.message-size] are measured; with it, what it \
                  matches among all. The plan gives limits, repeats and verdicts; sizes, modes and \
                  trials are the study's."
)]
pub struct MessageSizeArgs {
    /// Which campaign.
    #[command(flatten)]
    pub selection: Selection,
    /// Sizes instead of the configuration's, as in 1MB,100MB
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<Size>,
    /// Sign this file instead of a generated one
    #[arg(long, value_name = "PATH", conflicts_with_all = ["sizes", "full"])]
    pub file: Option<PathBuf>,
    /// Add the configuration's large sizes
    #[arg(long)]
    pub full: bool,
    /// Trials of each point instead of the configuration's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    /// Start another run, even if one could be resumed
    #[arg(long, conflicts_with = "run")]
    pub new: bool,
    /// See [`HostOptions`].
    #[command(flatten)]
    pub host: HostOptions,
    /// Wait for another campaign on this machine instead of failing
    #[arg(long)]
    pub wait: bool,
}

/// A size of a message: at least a byte.
fn size(text: &str) -> Result<Size, String> {
    match text.parse::<Size>() {
        Ok(Size(0)) => Err("a message has at least one byte".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// Carries the study out and names its pages.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let Study::MessageSize(args) = &args.study;
    let asked = Asked {
        new: args.new,
        allow_unfixed_host: args.host.allow_unfixed_host,
        wait: args.wait,
        study: Some(StudyAsked {
            sizes: args.sizes.iter().map(|size| size.0).collect(),
            full: args.full,
            trials: args.trials,
            file: args.file.as_deref(),
        }),
        ..Asked::phase(&args.selection, Phase::Seal)
    };
    carry::finish(&carry::carry_out(&asked, global)?, global)
}
