//! `campaign tune-guard`: the supervisor that `run --tune` starts. Not for people.

use super::exit::{Failure, Outcome};
use crate::host::tune::guard;
use crate::host::Root;
use crate::values::CpuList;
use std::path::PathBuf;

/// Arguments of `tune-guard`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// CPUs that are measured on
    #[arg(long, value_name = "LIST")]
    pub cpu: CpuList,
    /// Read and write /proc and /sys below this folder, for tests
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Tunes, waits for the end of standard input, restores.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let root = Root::from_option(args.sysroot.as_deref());
    let went_well = guard::watch(&root, &args.cpu.0, std::io::stdin(), std::io::stdout());
    Ok(Outcome::found(!went_well))
}
