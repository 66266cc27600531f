//! A campaign of another architecture, under the runner of its system: what may be said there (known
//! answers, sizes, call counts) is said and equals what this machine says, and nothing was timed.

use crate::support::lab::{self, json};
use crate::support::{arm, cells, root, skip};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Parameter sets that are cheap enough for every test run.
const ONLY: &str = "^sign-09/dove_[a-z_]*_128/";
const BANNER: &str = "Emulated, functional only";

/// The program on the project's own campaign, in a folder of its own.
fn campaign(home: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(assert_cmd::cargo::cargo_bin("campaign"))
        .current_dir(home)
        .arg("--config")
        .arg(root().join("campaign.toml"))
        .args(arguments)
        .env("CAMPAIGN_LOCK_DIR", home)
        .env("CAMPAIGN_CACHE", lab::cache())
        .output();
    output.expect("the program starts")
}

fn must(output: &Output, status: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}\n{err}");
    out
}

/// A whole emulated run, and the same of this machine.
struct Runs {
    home: tempfile::TempDir,
    /// Progress of the emulated one, as it was shown.
    progress: String,
}

impl Runs {
    fn emulated(&self) -> PathBuf {
        self.home.path().join("arm")
    }

    /// Files below a folder of the emulated run, as JSON.
    fn evidence(&self, folder: &str) -> Vec<Value> {
        let files = lab::files(&self.emulated().join(folder));
        let json = files
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|e| e == "json"));
        json.map(|(_, bytes)| serde_json::from_slice(bytes).expect("JSON"))
            .collect()
    }
}

fn runs() -> Result<&'static Runs, String> {
    static RUNS: OnceLock<Result<Runs, String>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let worker = arm::worker()?.to_str().expect("a plain path");
        let home = tempfile::tempdir().expect("a temporary directory");
        let emulated = ["run", "--system", "arm_1", "--only", ONLY, "--run", "arm"];
        let emulated = [&["--worker", worker][..], &emulated].concat();
        let output = campaign(home.path(), &emulated);
        must(&output, 0);
        let progress = String::from_utf8(output.stderr).expect("text");
        let native = ["profile", "--only", ONLY, "--run", "native"];
        must(&campaign(home.path(), &native), 0);
        Ok(Runs { home, progress })
    })
    .as_ref()
    .map_err(Clone::clone)
}

macro_rules! runs_or_skip {
    () => {
        match runs() {
            Ok(runs) => runs,
            Err(reason) => return skip(&reason),
        }
    };
}

#[test]
fn an_emulated_run_checks_and_counts_everything_and_times_nothing() {
    let runs = runs_or_skip!();
    let campaign = json(&runs.emulated(), "campaign.json");
    let told = ["system", "class", "arch"].map(|key| campaign[key].clone());
    assert_eq!(told, ["arm_1", "emulated", "aarch64"]);
    let timed: Vec<Value> = runs
        .evidence("kat")
        .into_iter()
        .filter(|kat| kat["library"]["kind"] == "timed")
        .collect();
    assert_eq!(timed.len(), 2);
    assert!(timed.iter().all(|kat| kat["result"] == "PASS"), "{timed:?}");
    let records = runs.evidence("records");
    assert_eq!(records.len(), 6);
    for record in &records {
        let said = (&record["status"], &record["reason"]["code"]);
        assert_eq!(said, (&"skipped".into(), &"emulated".into()));
        assert_eq!(record["trials"], serde_json::json!([]));
        assert!(record["derived"].is_null() && record["plan"]["cost_s"].is_null());
        assert!(record["sizes"]["signature_bytes"].as_u64() > Some(0));
    }
    let operations = |folder: &str| {
        let evidence = runs.evidence(folder);
        assert_eq!(evidence.len(), records.len(), "{folder}");
        evidence
    };
    for profile in operations("profile") {
        assert_eq!(profile["status"], "complete");
        assert!(profile["derived"]["share"].is_null(), "ticks mean nothing");
        assert!(!profile["runs"].as_array().unwrap().is_empty());
    }
    for memory in operations("memory") {
        assert_eq!(memory["status"], "complete");
        assert!(memory["process"].is_null(), "it would be the emulator's");
        assert!(memory["derived"]["worst"]["stack_peak_bytes"].as_f64() > Some(0.0));
    }
    for calibration in operations("calibrate") {
        assert!(calibration["c_s"].is_null() && calibration["calls_ns"] == serde_json::json!([]));
    }
}

/// What is printed is what this machine's own run counts.
#[test]
fn it_prints_the_call_counts_and_they_are_those_of_this_machine() {
    let runs = runs_or_skip!();
    let native = lab::files(&runs.home.path().join("native/profile"));
    assert_eq!(native.len(), 6);
    for (_, bytes) in native {
        let profile: Value = serde_json::from_slice(&bytes).expect("JSON");
        let calls = profile["derived"]["calls_per_operation"]
            .as_object()
            .unwrap();
        assert!(calls["pseudoXOF"].as_f64() >= Some(1.0), "{profile}");
        let calls: Vec<String> = calls
            .iter()
            .map(|(name, n)| format!("{name} {n}").replace(".0", ""))
            .collect();
        let [identity, operation] =
            ["identity", "operation"].map(|key| profile[key].as_str().unwrap());
        let line = format!("profile {identity}/{operation}: {}\n", calls.join(", "));
        assert!(runs.progress.contains(&line), "{line}{}", runs.progress);
    }
}

#[test]
fn every_page_of_it_says_so_at_its_top_and_shows_no_time_and_no_cycles() {
    let runs = runs_or_skip!();
    let pages = lab::files(&runs.emulated().join("pages"));
    let (mut seen, mut cells_seen) = (0, 0);
    for (path, bytes) in pages {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.ends_with(".md") || name.ends_with(".html")) {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        if name == "sign-09.md" {
            let emulated = "emulated by qemu-aarch64-static -cpu neoverse-n1";
            assert!(text.contains(emulated), "whose processor: {text}");
        }
        let banner = text.find(BANNER).unwrap_or_else(|| panic!("{name}"));
        let table = text
            .find("\n|")
            .or(text.find("<table"))
            .unwrap_or(text.len());
        assert!(banner < table, "{name}: the banner comes before any figure");
        seen += 1;
        if !name.ends_with(".md") {
            continue;
        }
        for table in cells::tables(&text) {
            for row in &table.rows {
                for (title, cell) in cells::by_title(&table, row) {
                    if is_timing(&title) {
                        assert!(cell.starts_with('–'), "{name}: {title}: {cell}");
                        cells_seen += 1;
                    }
                }
            }
        }
    }
    assert!(
        seen > 6 && cells_seen >= 6,
        "{seen} pages, {cells_seen} cells"
    );
}

/// Columns of times, clock ticks and cycles.
fn is_timing(title: &str) -> bool {
    ["cycles", "mean time", "ops/s", "ticks", "median trial"]
        .iter()
        .any(|word| title.contains(word))
}

#[test]
fn its_protections_are_evidence_each_with_what_is_in_force_or_why_it_is_not() {
    let runs = runs_or_skip!();
    let text = std::fs::read_to_string(runs.home.path().join("arm/environment/0.json")).unwrap();
    let environment: Value = serde_json::from_str(&text).unwrap();
    let layers = environment["layers"].as_array().unwrap();
    let layer = |name: &str| {
        let found = layers.iter().find(|layer| layer["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {layers:?}"))
    };
    for layer in layers {
        assert!(layer["detail"].as_str().unwrap().len() > 2, "{layer}");
    }
    for name in [
        "session",
        "no_new_privs",
        "capabilities",
        "not_dumpable",
        "open_files",
    ] {
        assert_eq!(layer(name)["active"], true, "{}", layer(name));
    }
    // The emulator knows neither filters nor a limit of the address space.
    assert_eq!(layer("seccomp")["active"], false, "{}", layer("seccomp"));
    let limits = layer("rlimits")["detail"].as_str().unwrap();
    assert_eq!(layer("rlimits")["active"], false, "{limits}");
    assert!(
        limits.contains("address space: accepted and not kept"),
        "{limits}"
    );
    assert!(
        limits.contains("in force: core files 0, CPU seconds"),
        "{limits}"
    );
    assert!(layers.iter().any(|layer| layer["name"] == "processes"));
}

#[test]
fn it_audits_clean() {
    let runs = runs_or_skip!();
    let output = campaign(runs.home.path(), &["audit", "arm"]);
    must(&output, 0);
}

#[test]
fn compare_shows_that_it_agrees_with_this_machine_in_all_that_no_machine_may_change() {
    let runs = runs_or_skip!();
    let output = campaign(runs.home.path(), &["compare", "native", "arm", "--json"]);
    let compared: Value = serde_json::from_str(&must(&output, 0)).expect("JSON");
    let compared = &compared[0];
    assert_eq!(compared["findings"], serde_json::json!([]));
    let agreement = compared["agreement"].as_array().unwrap();
    let kinds: Vec<&str> = agreement
        .iter()
        .filter_map(|a| a["what"].as_str())
        .collect();
    let expected = ["sizes", "kat_results", "kat_digests", "outputs", "calls"];
    assert_eq!(kinds, expected);
    for agreement in agreement {
        assert_eq!(agreement["identities"], 2, "{agreement}");
        assert_eq!(agreement["equal"], agreement["facts"]);
        // One result of each identity, and at least two digests; of the others three facts.
        let least = match agreement["what"].as_str() {
            Some("kat_results") => 2,
            Some("kat_digests") => 4,
            _ => 6,
        };
        assert!(agreement["facts"].as_u64() >= Some(least), "{agreement}");
    }
    let rows = compared["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(row["cycles"]["ratio"].is_null() && row["time"]["ratio"].is_null());
    }
    let page = runs.home.path().join("compare/native--arm.md");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains(BANNER) && page.contains("What must agree"));
}

/// No tool is needed to say what the runner's CPU cannot do.
#[test]
fn what_the_runners_cpu_lacks_is_left_out_with_the_reason() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let plan = ["plan", "--system", "arm_1", "--plan", "guide", "--json"];
    let outlook: Value = serde_json::from_str(&must(&campaign(home.path(), &plan), 0)).unwrap();
    let skipped = outlook["skipped"].as_array().unwrap();
    let of = |word: &str| {
        let text = format!("the runner's CPU neoverse-n1 lacks {word}");
        let found = skipped.iter().filter(|row| row["reason"]["text"] == *text);
        found.count()
    };
    // The performance builds of DOVE and of the portable codes; ML-DSA's NEON code.
    assert_eq!((of("sve"), of("sha3"), skipped.len()), (12, 3, 15));
}
