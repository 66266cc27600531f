//! `campaign schema`: the JSON schema of an evidence file, from the types that write it.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use crate::evidence;
use schemars::{schema_for, Schema};

/// Arguments of `schema`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which evidence
    #[arg(value_name = "NAME")]
    pub name: Name,
}

/// Kinds of evidence that have a schema, by the name of their file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// campaign.json
    Campaign,
    /// build.json
    Build,
    /// environment/
    Environment,
    /// kat/
    Kat,
    /// calibrate/
    Calibrate,
    /// records/
    Timing,
    /// memory/
    Memory,
    /// profile/
    Profile,
    /// study/
    Study,
}

/// Prints one schema.
pub fn run(args: &Args, _global: &Global) -> Result<Outcome, Failure> {
    output::print_json(&schema(args.name))?;
    Ok(Outcome::Done)
}

/// The schema of a kind.
pub fn schema(name: Name) -> Schema {
    match name {
        Name::Campaign => schema_for!(evidence::CampaignFile),
        Name::Build => schema_for!(evidence::BuildFile),
        Name::Environment => schema_for!(evidence::EnvironmentFile),
        Name::Kat => schema_for!(evidence::KatEvidence),
        Name::Calibrate => schema_for!(evidence::CalibrateEvidence),
        Name::Timing => schema_for!(evidence::TimingRecord),
        Name::Memory => schema_for!(evidence::MemoryEvidence),
        Name::Profile => schema_for!(evidence::ProfileEvidence),
        Name::Study => schema_for!(evidence::StudyRecord),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_schema_describes_an_object_and_its_schema_string() {
        for name in Name::value_variants() {
            let schema = schema(*name);
            let properties = schema.get("properties").and_then(|p| p.as_object());
            assert!(
                properties.is_some_and(|p| p.contains_key("schema")),
                "{name:?}"
            );
        }
    }
}
