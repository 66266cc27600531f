//! `performance/FORMAT.md`: its commands hold on sound datasets and fail on changed ones, and it names
//! every word of the closed lists.

use crate::support::datasets::{seal_of, small};
use crate::support::{have, root};
use harness::schema::{schema, Name};
use harness::testing::sealed;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

fn document() -> String {
    fs::read_to_string(root().join("performance/FORMAT.md")).unwrap()
}

/// The commands of the document by their headings.
fn commands() -> BTreeMap<String, String> {
    let document = document();
    let mut commands = BTreeMap::new();
    for part in document.split("\n### ").skip(1) {
        let heading = part.lines().next().unwrap().to_owned();
        let (_, rest) = part
            .split_once("```sh\n")
            .expect("a command below each heading");
        let (command, _) = rest.split_once("```").unwrap();
        commands.insert(heading, command.to_owned());
    }
    assert_eq!(commands.len(), document.matches("```sh").count());
    commands
}

/// Whether a command ends with status 0 in a dataset, and what it says.
fn holds(command: &str, dataset: &Path) -> (bool, String) {
    let output = Command::new("sh")
        .args(["-eu", "-c", command])
        .current_dir(dataset)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn every_command_holds_on_sound_datasets() {
    if !have("jq", "jq") {
        return;
    }
    let (_home, run) = small();
    let import = root().join("performance/data/arm_1/public-2026");
    let commands = commands();
    assert!(commands.len() >= 12, "{:?}", commands.keys());
    for (heading, command) in &commands {
        for dataset in [run.as_path(), &import] {
            let (ok, said) = holds(command, dataset);
            assert!(ok, "{heading} in {}: {said}", dataset.display());
            assert_eq!(said, "", "{heading} in {}", dataset.display());
        }
    }
}

const RECORD: &str = "records/sign-09/dove_a_128.ref.reference__sign.json";
const PROFILE: &str = "profile/sign-09/dove_a_128.ref.reference__sign.json";
const KAT: &str = "kat/sign-09/dove_a_128.ref.reference.timed.json";

/// Changes a JSON file at a pointer and writes it as the format is written.
fn edit(dataset: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = dataset.join(file);
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
}

/// A false figure in a dataset that was sealed again.
fn forged(dataset: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    edit(dataset, file, change);
    sealed::reseal(dataset).unwrap();
}

/// Which command a change fails: its heading begins so.
type Case = (&'static str, fn(&Path));

const CASES: &[Case] = &[
    ("Every file is the one", |d| {
        edit(d, RECORD, |v| v["cpu"] = 3.into())
    }),
    ("Every file is the one", |d| {
        fs::remove_file(d.join(RECORD)).unwrap()
    }),
    ("No file is there", |d| {
        fs::write(d.join("records/x.json"), "{}").unwrap()
    }),
    ("The journal's last line", |d| {
        let manifest = d.join("MANIFEST.sha256");
        let text = fs::read_to_string(&manifest).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        fs::write(manifest, rest).unwrap();
    }),
    ("The seal is the digest", |d| {
        fs::write(seal_of(d), "0".repeat(64) + "\n").unwrap()
    }),
    ("The chain of the journal", |d| {
        let journal = d.join("journal.jsonl");
        let text = fs::read_to_string(&journal).unwrap();
        fs::write(journal, text.replacen("\"seq\":3", "\"seq\":4", 1)).unwrap();
    }),
    ("The digests that the journal", |d| {
        let journal = d.join("journal.jsonl");
        let text = fs::read_to_string(&journal).unwrap();
        fs::write(journal, text.replacen("\"sha256\":\"", "\"sha256\":\"0", 1)).unwrap();
    }),
    ("KAT logs are those", |d| {
        forged(d, KAT, |v| v["log_sha256"] = "0".repeat(64).into());
    }),
    ("KAT logs are those", |d| {
        forged(d, RECORD, |v| v["kat"]["sha256"] = "0".repeat(64).into());
    }),
    ("The timed library is", |d| {
        forged(d, RECORD, |v| {
            v["libraries"]["timed"] = "0".repeat(64).into()
        });
    }),
    ("The timed library is", |d| {
        forged(d, KAT, |v| v["library"]["sha256"] = "0".repeat(64).into());
    }),
    ("Counts, means", |d| {
        forged(d, RECORD, |v| v["derived"]["n"] = 106.into())
    }),
    ("Counts, means", |d| {
        forged(d, RECORD, |v| {
            let median = v["derived"]["median_trial_s"].as_f64().unwrap();
            v["derived"]["median_trial_s"] = (median * (1.0 + 1e-9)).into();
        });
    }),
    ("Counts, means", |d| {
        forged(d, RECORD, |v| {
            let mean = v["derived"]["mean_cycles"].as_f64().unwrap();
            v["derived"]["mean_cycles"] = (mean + 0.5).into();
        });
    }),
    ("Counts, means", |d| {
        forged(d, RECORD, |v| v["derived"]["mean_cycles"] = Value::Null)
    }),
    ("Samples and rest", |d| {
        forged(d, RECORD, |v| {
            let sample = &mut v["trials"][1]["attempts"][0]["samples"][2];
            *sample = (sample.as_u64().unwrap() + 1).into();
        });
    }),
    ("Samples and rest", |d| {
        forged(d, RECORD, |v| {
            v["trials"][1]["attempts"][0]["calls"] = 22.into()
        });
    }),
    ("Ticks of the wrapped", |d| {
        forged(d, PROFILE, |v| v["total"]["ticks"] = 1_000_001.into());
    }),
    ("Of a profile's passes", |d| {
        forged(d, PROFILE, |v| v["passes"][3]["counted"] = 0.into());
    }),
    ("Of a profile's passes", |d| {
        forged(d, PROFILE, |v| {
            let ticks = &mut v["passes"][3]["ticks"][1];
            *ticks = (ticks.as_u64().unwrap() - 1).into();
        });
    }),
    ("Every null has", |d| {
        forged(d, RECORD, |v| v["host_ready"] = Value::Null)
    }),
];

#[test]
fn every_command_fails_on_what_it_is_there_to_find() {
    if !have("jq", "jq") {
        return;
    }
    let commands = commands();
    for heading in commands.keys() {
        let covered = CASES.iter().any(|(begin, _)| heading.starts_with(begin));
        assert!(covered, "no case for `{heading}`");
    }
    for (begin, change) in CASES {
        let (_home, dataset) = small();
        change(&dataset);
        let (_, command) = commands
            .iter()
            .find(|(heading, _)| heading.starts_with(begin))
            .unwrap();
        let (ok, said) = holds(command, &dataset);
        assert!(!ok, "{begin}: {said}");
    }
}

/// Every word of an enumeration below a schema.
fn words(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for key in ["const", "enum"] {
                let of = members.get(key).into_iter();
                let flat =
                    of.flat_map(|v| v.as_array().cloned().unwrap_or_else(|| vec![v.clone()]));
                found.extend(flat.filter_map(|v| v.as_str().map(str::to_owned)));
            }
            members.values().for_each(|member| words(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        _ => {}
    }
}

/// Words in backticks between two texts of the document.
fn quoted(document: &str, from: &str, to: &str) -> BTreeSet<String> {
    let (_, rest) = document.split_once(from).expect(from);
    let (part, _) = rest.split_once(to).expect(to);
    part.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// No word is left out, and none is there that the program does not write.
#[test]
fn the_closed_lists_are_those_of_the_types() {
    let document = document();
    let timing = schema(Name::Timing).to_value();
    let of_timing = |part: &str| {
        let mut found = Vec::new();
        words(&timing["$defs"][part], &mut found);
        found
    };
    let mut events = Vec::new();
    for event in schema(Name::Journal).to_value()["oneOf"]
        .as_array()
        .unwrap()
    {
        words(&event["properties"]["event"], &mut events);
    }
    for (from, to, expected) in [
        (
            "The codes are a closed list:",
            "Four keys",
            of_timing("ReasonCode"),
        ),
        ("Events: ", "`session_begun` of", events),
        ("whose code it is: ", " |", of_timing("Origin")),
        ("was to the campaign: ", "; which", of_timing("Class")),
        ("| `status`, `reason` | ", "; why", of_timing("Status")),
        (
            "a verdict over the trial means: ",
            ".\n",
            of_timing("Verdict"),
        ),
    ] {
        let expected: BTreeSet<String> = expected.into_iter().collect();
        assert!(expected.len() > 2, "{from}");
        assert_eq!(quoted(&document, from, to), expected, "{from}");
    }
}

#[test]
fn every_kind_of_file_has_its_place_in_the_table() {
    let document = document();
    let (_, table) = document.split_once("## Files").unwrap();
    let (table, _) = table.split_once("## Names").unwrap();
    for dataset in ["arm_1/public-2026", "x86_1/public-2026"] {
        let folder = root().join("performance/data").join(dataset);
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(table.contains(&format!("`{name}")), "{name}");
        }
    }
    for name in ["calibrate", "memory", "study"] {
        assert!(table.contains(&format!("`{name}/")), "{name}");
    }
}
