//! The memory and profile phases on candidates of which the answer is known.

use crate::support::lab::{json, End, Instance, Lab, FINE};
use crate::support::{have, root, skip};
use harness::process::Stop;
use harness::worker::{session, Job, Worker};
use protocol::{
    Body, InputRule, Inputs, LibraryFile, Operation, ProfileOutcome, Task, TRIAL_PROFILE,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SIGN: &str = "lab/lab-1.ref.reference__sign.json";

/// A campaign of one instance with these macros.
fn lab(defines: &'static [&'static str]) -> Lab {
    Lab::new(&[Instance { defines, ..FINE }], "")
}

fn profile(run: &Path) -> Value {
    json(run, &format!("profile/{SIGN}"))
}

#[test]
fn a_known_share_is_reported_through_the_whole_phase() {
    let lab = lab(&["LAB_SHARE=30"]);
    lab.campaign(&["profile"]).expect(0);
    let evidence = profile(&lab.run_dir(1));
    let share = evidence["derived"]["share"]["sm3hash"].as_f64().unwrap();
    assert!((0.28..=0.32).contains(&share), "{evidence:#}");
    // 30 pieces of work and the signature itself, whatever the number of passes.
    let calls = &evidence["derived"]["calls_per_operation"]["sm3hash"];
    assert_eq!(calls.as_f64(), Some(31.0));
    let passes = evidence["passes"].as_array().unwrap();
    assert_eq!(passes.len(), 2, "one of each key");
    assert!(passes
        .iter()
        .all(|key| key["ticks"].as_array().unwrap().len() >= 3));
    assert_eq!(evidence["total"]["operations"], 2);
}

/// Makes the timed library of a lab's first run its candidate, and takes the sources away.
fn make_prebuilt(lab: &Lab) {
    let build = json(&lab.run_dir(1), "build.json");
    let file = build["rows"][0]["libraries"]["timed"]["file"]
        .as_str()
        .unwrap();
    fs::copy(lab.run_dir(1).join(file), lab.path("ready.so")).unwrap();
    fs::remove_dir_all(lab.path("sources")).unwrap();
    let config = fs::read_to_string(lab.path("campaign.toml")).unwrap();
    let ours = ["sources =", "include =", "defines ="];
    let mut lines: Vec<&str> = config
        .lines()
        .filter(|line| !ours.iter().any(|key| line.starts_with(key)))
        .collect();
    let name = lines
        .iter()
        .position(|line| *line == r#"name = "ref""#)
        .unwrap();
    lines.insert(name + 1, r#"library = "ready.so""#);
    fs::write(lab.path("campaign.toml"), lines.join("\n")).unwrap();
}

#[test]
fn a_library_that_comes_already_built_has_its_memory_counted_and_no_profile() {
    let lab = lab(&["LAB_HEAP=3000"]);
    lab.campaign(&["memory"]).expect(0);
    let built = lab.run_dir(1);
    make_prebuilt(&lab);
    let end = lab.campaign(&["run"]).expect(0);
    let run = lab.run_dir(2);
    assert_eq!(
        json(&run, "campaign.json")["rows"][0]["status"],
        "complete",
        "{end}"
    );

    for operation in ["keygen", "sign", "verify"] {
        let file = format!("memory/lab/lab-1.ref.reference__{operation}.json");
        let (ours, theirs) = (json(&run, &file), json(&built, &file));
        assert_eq!(ours["status"], "complete", "{ours:#}");
        assert_eq!(ours["library"]["kind"], "timed");
        assert!(ours["interposed_sha256"].is_string() && theirs["interposed_sha256"].is_null());
        let heap = if operation == "sign" { 3000 } else { 0 };
        for key in 0..2 {
            for (side, evidence) in [("interposed", &ours), ("wrapped", &theirs)] {
                let run = &evidence["runs"][key];
                assert_eq!(run["heap_peak_bytes"], heap, "{operation} {side}");
                assert_eq!(
                    run["allocations"],
                    u64::from(heap > 0),
                    "{operation} {side}"
                );
                assert_eq!(run["leaked_bytes"], 0, "{operation} {side}");
                assert!(run["stack_peak_bytes"].as_u64().unwrap() > 0);
            }
        }
    }
    let skipped = profile(&run);
    assert_eq!(skipped["status"], "skipped");
    let why = skipped["reason"]["text"].as_str().unwrap();
    assert!(why.contains("already built"), "{why}");

    let page = fs::read_to_string(run.join("pages/lab.md")).unwrap();
    assert!(page.contains(why), "the page says why there is no share");
    assert!(page.contains("an allocator interposed in the process"));
    let dir = run.display().to_string();
    lab.campaign(&["audit", &dir]).expect(0);
    lab.campaign(&["report", &dir, "--check"]).expect(0);
}

/// The folder's own campaign, which measures real candidates.
fn real(lab: &Lab, arguments: &[&str]) -> (PathBuf, End) {
    let run = lab.path("real");
    let config = root().join("campaign.toml");
    let mut all = arguments.to_vec();
    all.extend(["--config", config.to_str().unwrap()]);
    all.extend(["--run", run.to_str().unwrap()]);
    let end = lab.campaign(&all);
    (run, end)
}

/// Stack and heap of round-3 signing that the submission's own C is known for, and DOVE's smallest set
/// with the calls of its specification, through all phases.
#[test]
fn real_candidates_use_the_memory_and_make_the_calls_that_are_known() {
    if !have("cargo", "cargo") {
        return;
    }
    let lab = Lab::bare();
    let only = "dilithium[235]/clean/reference|dove_classic_128/ref/reference";
    let (run, end) = real(&lab, &["profile", "--only", only]);
    let end = end.expect(0);
    for (label, stack) in [
        ("dilithium2", 51904.0),
        ("dilithium3", 79552.0),
        ("dilithium5", 122_560.0),
    ] {
        let file = format!("memory/dilithium/{label}.clean.reference__sign.json");
        let worst = &json(&run, &file)["derived"]["worst"];
        let found = worst["stack_peak_bytes"].as_f64().unwrap();
        assert!(
            (found / stack - 1.0).abs() <= 0.05,
            "{label}: {found}\n{end}"
        );
        assert_eq!(worst["heap_peak_bytes"], 208.0, "{label}");
        // It names no counter of rejected draws, and 0 would be a number that stands for nothing.
        let file = format!("profile/dilithium/{label}.clean.reference__sign.json");
        let profile = json(&run, &file);
        assert!(profile["derived"]["rejected_draws"].is_null(), "{label}");
        let missing = &profile["missing"]["/derived/rejected_draws"];
        assert_eq!(missing["code"], "not_recorded", "{label}");
    }
    for (operation, calls) in [
        ("keygen", vec![("drng", 1), ("pseudoXOF", 140)]),
        ("sign", vec![("pseudoXOF", 3)]),
        ("verify", vec![("pseudoXOF", 1)]),
    ] {
        let file = format!("profile/sign-09/dove_classic_128.ref.reference__{operation}.json");
        let evidence = json(&run, &file);
        let runs = evidence["runs"].as_array().unwrap();
        // Where a vinegar draw was rejected there are more.
        let base = runs.iter().filter(|run| run["rejected_draws"] == 0);
        let base: Vec<&Value> = base.map(|run| &run["calls"]).collect();
        assert!(base.len() > runs.len() / 2, "{evidence:#}");
        let calls: BTreeMap<&str, u64> = calls.into_iter().collect();
        let expected = serde_json::to_value(&calls).unwrap();
        assert!(
            base.iter().all(|run| **run == expected),
            "{operation}: {base:?}"
        );
        assert_eq!(evidence["derived"]["verdict"], "ICCS-only");
        assert!(
            evidence["derived"]["rejected_draws"].is_u64(),
            "{operation}"
        );
    }
}

/// Calls of `pseudoXOF` in key generation, signing and verification, of the specification's algorithms.
const DOVE: [(&str, [u64; 3]); 6] = [
    ("dove_classic_128", [140, 3, 1]),
    ("dove_classic_256", [299, 3, 1]),
    ("dove_classic_512", [664, 3, 1]),
    ("dove_pkc_skc_128", [52, 55, 52]),
    ("dove_pkc_skc_256", [107, 110, 107]),
    ("dove_pkc_skc_512", [232, 235, 232]),
];

#[test]
fn every_set_of_dove_makes_the_calls_that_are_known() {
    let lab = Lab::bare();
    let (run, end) = real(&lab, &["build", "--only", "sign-09/.*/ref/reference"]);
    end.expect(0);
    let found = assert_cmd::cargo::cargo_bin("campaign").with_file_name("worker");
    if !found.is_file() {
        return skip("there is no worker beside the program; run cargo test --workspace");
    }
    let worker = Worker::at(&found, &[]).unwrap();
    let build = json(&run, "build.json");
    for (label, expected) in DOVE {
        let rows = build["rows"].as_array().unwrap().iter();
        let identity = format!("sign-09/{label}/ref/reference");
        let row = rows
            .into_iter()
            .find(|row| row["identity"] == identity)
            .unwrap();
        let library = &row["libraries"]["profile"];
        let library = LibraryFile {
            path: library["file"].as_str().unwrap().to_owned(),
            sha256: library["sha256"].as_str().unwrap().to_owned(),
        };
        for (operation, expected) in Operation::ALL.into_iter().zip(expected) {
            let outcome = profile_once(&worker, &run, label, operation, &library);
            let calls = |name: &str| -> u64 {
                let rows = outcome.calls.iter().filter(|row| row.function == name);
                rows.map(|row| row.calls).sum()
            };
            let place = format!("{label} {operation}: {:?}", outcome.calls);
            // These seeds reject no draw, so the counts are the base counts.
            assert_eq!(outcome.rejected_draws, 0, "{place}");
            assert_eq!(calls("pseudoXOF"), expected, "{place}");
            assert_eq!(
                calls("drng"),
                u64::from(operation == Operation::Keygen),
                "{place}"
            );
            let names = ["pseudoXOF", "drng"];
            assert!(
                outcome
                    .calls
                    .iter()
                    .all(|row| names.contains(&&*row.function)),
                "{place}"
            );
        }
    }
}

/// The worker's profile of one operation, as the phase asks for it, with one key.
fn profile_once(
    worker: &Worker,
    run: &Path,
    label: &str,
    operation: Operation,
    library: &LibraryFile,
) -> ProfileOutcome {
    let inputs = Inputs {
        subject: format!("sign-09/{label}"),
        rule: InputRule::Fresh,
        message_bytes: 64,
        trial: TRIAL_PROFILE,
        key_trial: TRIAL_PROFILE,
        prepared_key: None,
    };
    let job = Job {
        task: Task::Profile {
            operation,
            inputs,
            keys: 1,
        },
        library: Some(library.clone()),
        cpu: None,
        limit: Duration::from_secs(300),
        file: None,
        preload: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answer = runtime
        .block_on(session::run(worker, run, job, &Stop::new()))
        .unwrap();
    match answer.body {
        Some(Body::Profile(outcome)) => outcome,
        other => panic!("{label} {operation}: {:?} {other:?}", answer.ending),
    }
}
