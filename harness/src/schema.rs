//! JSON Schemas of the evidence, generated from the types that write it. Copies for readers without this
//! program are in `performance/schema/`; a test fails when they differ.

use crate::evidence;
use crate::evidence::journal::JournalLine;
use schemars::transform::{transform_subschemas, Transform};
use schemars::{schema_for, Schema};
use serde_json::Value;

/// Kinds of evidence that have a schema, by the name of their file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Name {
    /// campaign.json
    Campaign,
    /// build.json
    Build,
    /// environment/
    Environment,
    /// cells.json
    Cells,
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
    /// study/, points
    Study,
    /// study/, fitted models
    Fit,
    /// a line of journal.jsonl
    Journal,
}

/// The schema of a kind. Objects have the keys that it names and no others.
pub fn schema(name: Name) -> Schema {
    let mut schema = match name {
        Name::Campaign => schema_for!(evidence::CampaignFile),
        Name::Build => schema_for!(evidence::BuildFile),
        Name::Environment => schema_for!(evidence::EnvironmentFile),
        Name::Cells => schema_for!(evidence::CellsFile),
        Name::Kat => schema_for!(evidence::KatEvidence),
        Name::Calibrate => schema_for!(evidence::CalibrateEvidence),
        Name::Timing => schema_for!(evidence::TimingRecord),
        Name::Memory => schema_for!(evidence::MemoryEvidence),
        Name::Profile => schema_for!(evidence::ProfileEvidence),
        Name::Study => schema_for!(evidence::StudyRecord),
        Name::Fit => schema_for!(evidence::FitEvidence),
        Name::Journal => schema_for!(JournalLine),
    };
    Closed.transform(&mut schema);
    schema
}

/// The schema as it lies in `performance/schema/`.
pub fn text(name: Name) -> String {
    let mut text =
        serde_json::to_string_pretty(&schema(name)).expect("a schema has text keys only");
    text.push('\n');
    text
}

/// Alternatives that are evaluated together with the properties beside them.
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Closes every object that lists its properties against further ones, and asks for all of them: a
/// reader that meets an unknown key, or misses one, has met another version. What has no value is null.
struct Closed;

impl Transform for Closed {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        let Some(keys) = object.get("properties").and_then(Value::as_object) else {
            return;
        };
        // A key with a default is left out where it says nothing.
        let asked = keys
            .iter()
            .filter(|(_, value)| value.get("default").is_none());
        let all = asked.map(|(key, _)| Value::String(key.clone())).collect();
        object.insert("required".to_owned(), Value::Array(all));
        let alternatives: Vec<&str> = ALTERNATIVES
            .into_iter()
            .filter(|key| object.contains_key(*key))
            .collect();
        if alternatives.is_empty() {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
            return;
        }
        // Each alternative sees the keys of the others' common part, so only the whole is closed.
        for key in alternatives {
            for branch in object[key].as_array_mut().into_iter().flatten() {
                if let Some(branch) = branch.as_object_mut() {
                    branch.remove("additionalProperties");
                }
            }
        }
        object.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::path::Path;

    #[test]
    fn the_schemas_in_the_repository_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../performance/schema");
        let mut known = Vec::new();
        for name in Name::value_variants() {
            let word = name.to_possible_value().unwrap().get_name().to_owned();
            let file = format!("{word}.json");
            let there = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
            assert!(
                there == text(*name),
                "`campaign schema {word} > performance/schema/{file}` brings it up to date"
            );
            known.push(file);
        }
        let mut there: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        known.sort();
        assert_eq!(there, known);
    }

    #[test]
    fn every_schema_describes_an_object_and_its_keys() {
        for name in Name::value_variants() {
            let schema = schema(*name);
            let properties = schema.get("properties").and_then(|p| p.as_object());
            let key = if *name == Name::Journal {
                "seq"
            } else {
                "schema"
            };
            assert!(properties.is_some_and(|p| p.contains_key(key)), "{name:?}");
        }
    }

    #[test]
    fn objects_are_closed() {
        let timing = schema(Name::Timing);
        assert_eq!(
            timing.get("additionalProperties"),
            Some(&Value::Bool(false))
        );
        let attempt = timing.pointer("/$defs/Attempt/additionalProperties");
        assert_eq!(attempt, Some(&Value::Bool(false)));
        // A line of the journal is closed as a whole.
        let journal = schema(Name::Journal);
        assert_eq!(
            journal.get("unevaluatedProperties"),
            Some(&Value::Bool(false))
        );
        assert!(journal.pointer("/oneOf/0/additionalProperties").is_none());
        // A map has any keys.
        assert!(timing.pointer("/properties/missing/properties").is_none());
    }
}
