//! `campaign templates`: the built-in page templates.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::report::templates::{self, TemplateError};
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

/// Writes the built-in templates out.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let Action::Export { dir } = &args.action;
    let written = templates::export(dir).map_err(|error| match error {
        TemplateError::NotEmpty(_) => Failure::request(error),
        other => Failure::could_not(other),
    })?;
    if global.json {
        output::print_json(&written)?;
    } else if !global.quiet {
        let list: String = written
            .iter()
            .map(|path| format!("{}\n", path.display()))
            .collect();
        output::print(&list)?;
    }
    Ok(Outcome::Done)
}
