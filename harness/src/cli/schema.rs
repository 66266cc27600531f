//! `campaign schema`: the JSON schema of an evidence file, from the types that write it.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::schema::{self, Name};

/// Arguments of `schema`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which evidence
    #[arg(value_name = "NAME")]
    pub name: Name,
}

/// Prints one schema.
pub fn run(args: &Args, _global: &Global) -> Result<Outcome, Failure> {
    output::print(&schema::text(args.name))?;
    Ok(Outcome::Done)
}
