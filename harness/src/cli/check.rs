//! `campaign check`: readiness of the host, item by item.

use crate::values::CpuList;
use std::path::PathBuf;

/// Arguments of `check`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// CPUs that would be measured on [default: chosen from this machine]
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<CpuList>,
    /// System that the machine should be [default: the one that matches]
    #[arg(long, value_name = "ID")]
    pub system: Option<String>,
    /// Read /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}
