//! Evidence files of every kind: an auditor never panics on one, what its strict reader takes every reader
//! takes, and what is of its schema can be shown as tables.
#![no_main]

use harness::audit;
use harness::evidence::TimingRecord;
use harness::json;
use harness::stats::{derive_timing, TimingInput};
use libfuzzer_sys::fuzz_target;

/// A place for each kind of file, and the word that it is known by.
const PLACES: [(&str, &str); 9] = [
    ("\"timing\"", "records/c/l.ref.reference__sign.json"),
    ("\"kat\"", "kat/c/l.ref.reference.timed.json"),
    ("\"calibrate\"", "calibrate/c/l.ref.reference__sign.json"),
    ("\"memory\"", "memory/c/l.ref.reference__sign.json"),
    ("\"profile\"", "profile/c/l.ref.reference__sign.json"),
    ("\"campaign\"", "campaign.json"),
    ("\"build\"", "build.json"),
    ("\"environment\"", "environment/0.json"),
    ("\"cells\"", "cells.json"),
];

fn seeds() {
    let files = evidence_fuzz::evidence();
    let own = |path: &str| path.ends_with(".json") && !path.contains("/source/");
    evidence_fuzz::seed(
        files
            .into_iter()
            .filter(|(path, _)| own(path))
            .map(|(_, bytes)| bytes),
    );
}

/// Where a file of these bytes would lie: by the first `kind` in it, or by chance.
fn place(bytes: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(bytes);
    let kind = text.split_once("\"kind\": ").map(|(_, rest)| rest);
    let known = kind.and_then(|rest| PLACES.iter().find(|(word, _)| rest.starts_with(word)));
    known.unwrap_or(&PLACES[bytes.len() % PLACES.len()]).1
}

fuzz_target!(init: seeds(), |bytes: &[u8]| {
    let findings = audit::file(place(bytes), bytes);
    let strict = json::parse(bytes);
    if strict.is_ok() {
        serde_json::from_slice::<serde_json::Value>(bytes).expect("strict JSON is JSON");
    } else {
        assert!(!findings.is_empty(), "an auditor reads strict JSON only");
    }
    if let Ok(record) = serde_json::from_slice::<TimingRecord>(bytes) {
        let input = TimingInput {
            verdicts: true,
            clock_hz: record.cycle_source.frequency_hz.map(|hz| hz as f64),
            empty_call_s: None,
            cost_s: None,
        };
        let _ = derive_timing(&record.trials, input);
    }
});
