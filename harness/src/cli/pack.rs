//! `campaign pack`: a campaign for a machine without a toolchain.

/// Arguments of `pack`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// System that it is for
    #[arg(long, value_name = "ID")]
    pub system: String,
}
