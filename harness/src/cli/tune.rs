//! `campaign tune`: fixes the host for measuring, and remembers what it was.

use crate::values::CpuList;
use std::path::PathBuf;

/// Arguments of `tune`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Show the changes and make none
    #[arg(long)]
    pub dry_run: bool,
    /// CPUs that will be measured on [default: chosen from this machine]
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
    /// Read and write /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}
