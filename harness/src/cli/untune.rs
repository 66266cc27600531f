//! `campaign untune`: restores the host exactly as `tune` found it.

use std::path::PathBuf;

/// Arguments of `untune`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Write /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}
