//! `campaign templates`: the built-in page templates.

use std::path::PathBuf;

/// Arguments of `templates`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on templates.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Action {
    /// Write the built-in templates to a folder, to be changed and used with `report --templates`
    Export {
        /// The folder, empty or not there yet
        #[arg(value_name = "DIR", default_value = "templates-export")]
        dir: PathBuf,
    },
}
