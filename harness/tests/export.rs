//! `campaign export`: tidy tables whose rows and cells are those of the evidence files.

use crate::support::{files, root};
use harness::dataset::Dataset;
use harness::export::{self, Table};
use harness::testing::{self, Synthetic, SyntheticCandidate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Ends of the titles of columns that hold quantities.
const UNITS: &str = "_s _ns _bytes _bits _hz _ticks _milliticks _cycles _calls ops_per_s _digits";

/// Columns of numbers without a unit: counts of what they are named after, numbers of things, shares.
const PLAIN: &str = "trials iterations warmups cycles ticks instructions calls operations \
    voluntary_switches involuntary_switches minor_faults major_faults allocations function_share \
    trial attempt session cpu cpu_before cpu_after key message value";

type Row = BTreeMap<String, String>;

fn campaign(folder: &Path, words: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// A table as another program reads it.
fn read(file: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(file).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// All evidence of a folder of a dataset, in order of the files.
fn evidence(dataset: &Path, folder: &str) -> Vec<(String, Value)> {
    files(&dataset.join(folder))
        .into_iter()
        .filter(|file| file.extension().is_some_and(|e| e == "json"))
        .map(|file| {
            let bytes = fs::read(dataset.join(folder).join(&file)).unwrap();
            let path = format!("{folder}/{}", file.display());
            (path, serde_json::from_slice(&bytes).unwrap())
        })
        .collect()
}

fn arm_1() -> PathBuf {
    root().join("performance/data/arm_1/public-2026")
}

fn exported(dataset: &Path) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("deep/tables");
    let words = ["export", dataset.to_str().unwrap(), "--csv", "--to"];
    let output = campaign(home.path(), &[&words[..], &["deep/tables"]].concat());
    assert!(output.status.success(), "{output:?}");
    let named = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<String> = ["records", "trials", "calls", "memory", "study", "cells"]
        .map(|name| format!("deep/tables/{name}.csv"))
        .into();
    assert_eq!(named.lines().collect::<Vec<_>>(), expected);
    (home, to)
}

/// What a cell must say of a JSON value: nothing for null, numbers by value.
fn assert_cell(cell: &str, value: &Value, place: &str) {
    match value {
        Value::Null => assert_eq!(cell, "", "{place}"),
        Value::Number(number) => {
            let shown: f64 = cell.parse().expect(place);
            assert_eq!(Some(shown), number.as_f64(), "{place}");
        }
        Value::String(text) => assert_eq!(cell, text, "{place}"),
        other => assert_eq!(cell, other.to_string(), "{place}"),
    }
}

#[test]
fn there_is_a_row_for_each_record_with_the_values_of_its_file() {
    let dataset = arm_1();
    let (_home, to) = exported(&dataset);
    let rows: BTreeMap<String, Row> = read(&to.join("records.csv"))
        .into_iter()
        .map(|row| (row["file"].clone(), row))
        .collect();
    let records = evidence(&dataset, "records");
    assert_eq!((rows.len(), records.len()), (18, 18));
    let mut empty = 0;
    for (file, record) in &records {
        let row = &rows[file];
        let identity: Vec<&str> = ["candidate", "label", "code", "build"]
            .map(|key| row[key].as_str())
            .into();
        assert_eq!(record["identity"], identity.join("/"));
        for (column, pointer) in [
            ("operation", "/operation"),
            ("system", "/system"),
            ("status", "/status"),
            ("cpu", "/cpu"),
            ("cycle_source", "/cycle_source/kind"),
            ("iterations", "/plan/iterations"),
            ("calibrated_cost_s", "/plan/cost_s"),
            ("n_calls", "/derived/n"),
            ("total_s", "/derived/total_s"),
            ("mean_s", "/derived/mean_s"),
            ("ops_per_s", "/derived/ops_per_s"),
            ("median_trial_s", "/derived/median_trial_s"),
            ("ci95_low_s", "/derived/ci95/low"),
            ("mean_cycles", "/derived/mean_cycles"),
            ("mean_ticks", "/derived/mean_ticks"),
            ("signature_bytes", "/sizes/signature_bytes"),
            ("library_sha256", "/libraries/timed"),
        ] {
            let value = record.pointer(pointer).expect(pointer);
            assert_cell(&row[column], value, &format!("{file} {pointer}"));
            empty += usize::from(value.is_null());
        }
    }
    assert!(empty >= 36, "{empty} values that the source does not have");
}

#[test]
fn there_is_a_row_for_each_attempt_and_for_each_call_shape() {
    let dataset = arm_1();
    let (_home, to) = exported(&dataset);
    let mut attempts = read(&to.join("trials.csv")).into_iter();
    for (file, record) in evidence(&dataset, "records") {
        for (trial, slot) in record["trials"].as_array().unwrap().iter().enumerate() {
            for (index, attempt) in slot["attempts"].as_array().unwrap().iter().enumerate() {
                let row = attempts.next().expect("a row");
                let place = format!("{file} trial {trial} attempt {index}");
                assert_eq!(row["trial"], trial.to_string(), "{place}");
                assert_eq!(row["attempt"], index.to_string(), "{place}");
                let counted = slot["counted"] == index;
                assert_eq!(row["counted"], counted.to_string(), "{place}");
                assert_eq!(record["operation"], row["operation"], "{place}");
                for (column, key) in [
                    ("calls", "calls"),
                    ("time_ns", "nanoseconds"),
                    ("cycles", "cycles"),
                    ("ticks", "ticks"),
                    ("user_ns", "user_ns"),
                    ("peak_rss_bytes", "peak_rss_bytes"),
                    ("started_utc", "started_utc"),
                ] {
                    assert_cell(&row[column], &attempt[key], &format!("{place} {key}"));
                }
            }
        }
    }
    assert_eq!(attempts.next(), None, "no more rows");
    let mut calls = read(&to.join("calls.csv")).into_iter();
    for (file, profile) in evidence(&dataset, "profile") {
        for call in profile["calls"].as_array().unwrap() {
            let row = calls.next().expect("a row");
            for key in ["function", "group", "in_bits", "out_bits", "calls", "ticks"] {
                assert_cell(&row[key], &call[key], &format!("{file} {key}"));
            }
            assert_cell(&row["total_ticks"], &profile["total"]["ticks"], &file);
        }
    }
    assert_eq!(calls.next(), None, "no more rows");
}

#[test]
fn cells_of_an_aggregate_keep_their_text_beside_the_number_they_stand_for() {
    let (_home, to) = exported(&root().join("performance/data/x86_1/public-2026"));
    assert_eq!(read(&to.join("records.csv")), [], "it has no records");
    let rows = read(&to.join("cells.csv"));
    let cell = rows
        .iter()
        .find(|row| row["column"] == "mean cycles" && row["operation"] == "keygen")
        .unwrap();
    assert_eq!(cell["row"], "dove_classic_128");
    assert_eq!(cell["text"], "101.87 M");
    assert_eq!(cell["value"].parse(), Ok(101_870_000.0));
    assert_eq!(
        (&cell["unit"][..], &cell["significant_digits"][..]),
        ("cycles", "5")
    );
}

#[test]
fn every_column_of_numbers_says_its_unit_or_what_it_counts() {
    let dataset = Synthetic::default().build();
    let aggregate = Dataset::read(&root().join("performance/data/x86_1/public-2026")).unwrap();
    let mut tables = export::tables(&dataset);
    tables.extend(export::tables(&aggregate));
    let mut checked = 0;
    for Table { name, header, rows } in &tables {
        for (index, title) in header.iter().enumerate() {
            let cells: Vec<&String> = rows.iter().map(|row| &row[index]).collect();
            let filled = cells.iter().any(|cell| !cell.is_empty());
            let number = |cell: &&String| cell.is_empty() || cell.parse::<f64>().is_ok();
            // Texts of cells are what a page shows.
            if !filled || !cells.iter().all(number) || *title == "text" {
                continue;
            }
            checked += 1;
            let unit = UNITS.split(' ').any(|end| title.ends_with(end));
            let plain = PLAIN.split_whitespace().any(|word| word == *title);
            assert!(unit || plain, "{name}: {title}");
        }
    }
    assert!(checked > 40, "{checked} columns");
}

/// Names that a careless writer of tables breaks at.
const HOSTILE: [&str; 7] = [
    "comma, and; semicolon",
    "\"quoted\" \"\"twice\"\"",
    "tab\tand ' and `",
    "=1+1",
    "שלום\u{202E}",
    " blank at both ends ",
    "<b>bold<\\b>",
];

#[test]
fn hostile_names_come_back_as_they_are() {
    let home = tempfile::tempdir().unwrap();
    let labels: Vec<(&str, u32)> = HOSTILE.iter().map(|name| (*name, 128)).collect();
    let spec = Synthetic {
        candidates: vec![SyntheticCandidate::new("a,b", "x", &labels)],
        system: "line\r\nend \"".into(),
        ..Synthetic::default()
    };
    let run = home.path().join("run");
    testing::write(&spec.build(), &run).unwrap();
    let output = campaign(home.path(), &["export", "run", "--csv", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let named: Vec<PathBuf> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(named[0], Path::new("export/run/records.csv"));
    for table in ["records", "trials", "calls", "memory"] {
        let rows = read(&home.path().join(format!("export/run/{table}.csv")));
        for name in HOSTILE {
            assert!(
                rows.iter().any(|row| row["label"] == name),
                "{table}: {name}"
            );
        }
        assert!(rows.iter().all(|row| HOSTILE.contains(&&row["label"][..])));
        assert!(rows.iter().all(|row| row["candidate"] == "a,b"), "{table}");
    }
    let records = read(&named_in(&home, "records"));
    assert!(records.iter().all(|row| row["system"] == "line\r\nend \""));
}

fn named_in(home: &tempfile::TempDir, table: &str) -> PathBuf {
    home.path().join(format!("export/run/{table}.csv"))
}

#[test]
fn tables_that_are_there_are_not_replaced_unasked() {
    let home = tempfile::tempdir().unwrap();
    let dataset = arm_1();
    let words = ["export", dataset.to_str().unwrap(), "--csv", "--to", "t"];
    fs::create_dir(home.path().join("t")).unwrap();
    fs::write(home.path().join("t/calls.csv"), "mine\n").unwrap();
    let output = campaign(home.path(), &words);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("t/calls.csv") && said.contains("--overwrite"),
        "{said}"
    );
    assert_eq!(files(&home.path().join("t")), [Path::new("calls.csv")]);
    assert_eq!(
        fs::read(home.path().join("t/calls.csv")).unwrap(),
        b"mine\n"
    );
    let output = campaign(home.path(), &[&words[..], &["--overwrite"]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(&home.path().join("t/calls.csv")).len(), 63);
    assert_eq!(files(&home.path().join("t")).len(), 6, "and nothing else");
}

#[test]
fn a_place_that_cannot_be_written_to_is_said_with_status_3() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "x").unwrap();
    let dataset = arm_1();
    let words = [
        "export",
        dataset.to_str().unwrap(),
        "--csv",
        "--to",
        "file/t",
    ];
    let output = campaign(home.path(), &words);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("file/t/records.csv"), "{said}");
    assert_eq!(fs::read(home.path().join("file")).unwrap(), b"x");
}

#[test]
fn published_datasets_of_two_systems_do_not_share_a_folder() {
    let home = tempfile::tempdir().unwrap();
    for dataset in ["arm_1/public-2026", "x86_1/public-2026"] {
        let path = root().join("performance/data").join(dataset);
        let output = campaign(home.path(), &["export", path.to_str().unwrap(), "--csv"]);
        assert!(output.status.success(), "{output:?}");
        assert!(home
            .path()
            .join("export")
            .join(dataset)
            .join("cells.csv")
            .is_file());
    }
}
