//! `campaign import`: brings evidence of another tool, or published cells, into `performance/data/`.

use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Folder of evidence
    #[arg(
        value_name = "DIR",
        required_unless_present = "aggregate",
        conflicts_with = "aggregate"
    )]
    pub dir: Option<PathBuf>,
    /// Table of published cells without trials
    #[arg(long, value_name = "FILE")]
    pub aggregate: Option<PathBuf>,
    /// System that was measured
    #[arg(long, value_name = "ID")]
    pub system: String,
}
