//! A campaign in the emulated ARM machine whose kernel counts cycles: packed here, run there without a
//! compiler, brought back, audited, rendered. In the mode `exact` a count is a number of instructions,
//! so two boots must agree to the last digit.
//!
//! And the pages of the published datasets, rendered by the program for ARM.

use crate::support::{arm, lab, root, skip};
use harness::audit::audit;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Cycles per instruction of the machine, as a power of two.
const SHIFT: u32 = 2;

/// Two codes of one parameter set: portable C and NEON assembly.
const ONLY: &str = "^dilithium/dilithium2/(clean|aarch64)/";

/// Nothing of this plan depends on a clock: calls, warm-ups and clock reads are the same each time.
const PLAN: &str = "
[plan.exact]
trials = 2
iterations = 2
cost_s = 1e-9
keys = 1
keys_expensive = 1
";

/// The project's own campaign with that plan, in a folder of its own.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for folder in ["drivers", "performance"] {
            std::os::unix::fs::symlink(root().join(folder), dir.path().join(folder))
                .expect("a fresh directory");
        }
        let own = std::fs::read_to_string(root().join("campaign.toml")).expect("the campaign");
        std::fs::write(dir.path().join("campaign.toml"), own + PLAN).expect("a fresh directory");
        Home { dir }
    }

    fn campaign(&self, arguments: &[&str]) -> Output {
        let output = Command::new(assert_cmd::cargo::cargo_bin("campaign"))
            .current_dir(self.dir.path())
            .args(arguments)
            .env("CAMPAIGN_CACHE", lab::cache())
            .output();
        output.expect("the program starts")
    }
}

fn must(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    out
}

/// The campaign, packed for arm_1: made once for all tests of this file.
struct Pack {
    home: Home,
}

impl Pack {
    fn archive(&self) -> PathBuf {
        self.home.dir.path().join("pack-arm_1.tar")
    }

    /// The program in it.
    fn program(&self) -> PathBuf {
        self.home.dir.path().join("pack-arm_1/campaign")
    }
}

fn pack() -> Result<&'static Pack, String> {
    static PACK: OnceLock<Result<Pack, String>> = OnceLock::new();
    PACK.get_or_init(|| {
        let path = |path: &'static Path| path.to_str().expect("a plain path");
        let (worker, program) = (path(arm::worker()?), path(arm::program()?));
        let home = Home::new();
        let system = ["--system", "arm_1", "--plan", "exact", "--only", ONLY];
        let tools = ["--worker", worker, "pack", "--program", program];
        must(&home.campaign(&[&tools[..], &system].concat()));
        let pack = Pack { home };
        let archive = std::fs::File::open(pack.archive()).expect("the pack");
        tar::Archive::new(archive)
            .unpack(pack.home.dir.path())
            .expect("a sound archive");
        Ok(pack)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// What the guest does: it has no compiler, no Rust, and no library but glibc's.
const COMMANDS: &str = r#"
export CAMPAIGN_LOCK_DIR=/tmp
tar -xf pack-arm_1.tar && cd pack-arm_1 && ./campaign --quiet run --pack . >$OUT/said 2>&1
status=$?
tar -cf $OUT/back.tar runs
exit $status
"#;

/// A tick of the kernel's timer that falls into a clock read makes a program read again, a few
/// instructions more in one attempt of some hundreds: so the clock is read in the kernel, whose
/// instructions do not count.
fn boot(pack: &Pack) -> Result<arm::Boot, String> {
    let guest = arm::Guest::new()?;
    guest.copy(&pack.archive());
    let shift = SHIFT.to_string();
    let options = ["--mode", "exact", "--shift", &shift, "--clock", "kernel"];
    let boot = guest.boot(&options, COMMANDS);
    let said = boot.out.get("said").cloned().unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(boot.status, 0, "{said}\n{}", boot.console);
    Ok(boot)
}

/// Takes the run of a boot back; where it is now.
fn collect(pack: &Pack, boot: arm::Boot, name: &str) -> PathBuf {
    let archive = pack.home.dir.path().join(name);
    std::fs::write(&archive, &boot.out["back.tar"]).expect("a writable directory");
    let output = pack.home.campaign(&["collect", name, "--json"]);
    let collected: Value = serde_json::from_str(&must(&output)).expect("JSON");
    PathBuf::from(collected[0]["run"].as_str().expect("a path"))
}

/// Two boots, side by side, and where their runs are now.
fn boots() -> Result<&'static [PathBuf; 2], String> {
    static RUNS: OnceLock<Result<[PathBuf; 2], String>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let pack = pack()?;
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(|| boot(pack));
            (boot(pack), other.join().expect("the other boot"))
        });
        Ok([
            collect(pack, one?, "one.tar"),
            collect(pack, two?, "two.tar"),
        ])
    })
    .as_ref()
    .map_err(Clone::clone)
}

macro_rules! or_skip {
    ($given:expr) => {
        match $given {
            Ok(given) => given,
            Err(reason) => return skip(&reason),
        }
    };
}

/// Records by file name.
fn records(run: &Path) -> BTreeMap<String, Value> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    lab::files(&run.join("records"))
        .iter()
        .map(|(path, bytes)| (name(path), serde_json::from_slice(bytes).expect("JSON")))
        .collect()
}

fn attempts(record: &Value) -> Vec<&Value> {
    let trials = record["trials"].as_array().expect("trials");
    trials.iter().map(|trial| &trial["attempts"][0]).collect()
}

#[test]
fn a_packed_campaign_counts_cycles_in_the_arm_machine_and_comes_back_sound() {
    let [run, _] = or_skip!(boots());
    let campaign = lab::json(run, "campaign.json");
    let told = ["system", "class", "arch"].map(|key| campaign[key].clone());
    // A machine of that architecture which is not the registered one.
    assert_eq!(told, ["arm_1", "local", "aarch64"]);
    let rows = campaign["rows"].as_array().unwrap();
    let complete = rows.iter().filter(|row| row["status"] == "complete");
    assert_eq!(complete.count(), 2, "{rows:?}");
    let records = records(run);
    assert_eq!(
        records.len(),
        7,
        "three operations of two codes, and one twice"
    );
    for (name, record) in &records {
        assert_eq!(record["cycle_source"]["kind"], "perf", "{name}");
        assert_eq!(record["cycle_source"]["pmu"], "armv8_pmuv3");
        for attempt in attempts(record) {
            let count = |key: &str| attempt[key].as_u64().expect("counted");
            assert_eq!(count("cycles"), count("instructions") << SHIFT, "{name}");
            assert!(attempt["ticks"].is_null(), "sources are never mixed");
        }
    }
    assert_eq!(audit(run).findings, []);
    let page = std::fs::read_to_string(run.join("pages/dilithium.md")).expect("a page");
    assert!(page.contains("mean cycles"), "{page}");
}

/// Cycles of all attempts, by record and trial. Which verification is timed twice is decided by a
/// calibrated cost, so that second timing is left out.
fn cycles(run: &Path) -> BTreeMap<(String, usize), u64> {
    let mut all = BTreeMap::new();
    for (name, record) in records(run) {
        if name.ends_with(".aa.json") {
            continue;
        }
        for (trial, attempt) in attempts(&record).into_iter().enumerate() {
            let cycles = attempt["cycles"].as_u64().expect("counted");
            all.insert((name.clone(), trial), cycles);
        }
    }
    all
}

#[test]
fn two_boots_give_the_same_cycles_in_every_record_digit_for_digit() {
    let [one, two] = or_skip!(boots());
    assert_ne!(one, two);
    let (one, two) = (cycles(one), cycles(two));
    assert_eq!(one.len(), 12, "two trials of six records");
    assert!(one.values().all(|&cycles| cycles > 0));
    assert_eq!(one, two);
}

#[test]
fn the_program_for_arm_renders_the_published_pages_to_the_same_bytes() {
    let pack = or_skip!(pack());
    let data = root().join("performance/data");
    let mut datasets = Vec::new();
    for system in std::fs::read_dir(data).expect("published data").flatten() {
        let entries = std::fs::read_dir(system.path())
            .into_iter()
            .flatten()
            .flatten();
        datasets.extend(
            entries
                .map(|entry| entry.path())
                .filter(|path| path.is_dir()),
        );
    }
    assert!(datasets.len() >= 2);
    let output = arm::emulated(&pack.program())
        .current_dir(root())
        .args(["report", "--check"])
        .args(&datasets)
        .output()
        .expect("the emulator runs");
    must(&output);
}
