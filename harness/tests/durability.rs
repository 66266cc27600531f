//! A campaign that loses nothing: kills at two hundred random moments, a disk that becomes read-only
//! under it, a clock that jumps, files that are replaced behind its back, places with difficult names.
//!
//! Kills inside each single phase, full disks, interruptions and locks are in `run`.

use crate::support::lab::{self, check_complete, check_complete_of, event, json, Lab, FINE};
use crate::support::{copy_tree, have, skip, skip_without_root};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Identities of the synthetic campaign.
const IDENTITIES: usize = 20;
/// Its trials, of a millisecond each.
const TRIALS: u64 = 5;
/// Kills; `CAMPAIGN_TEST_KILLS` says another number.
const KILLS: usize = 200;

/// A campaign of many identities of one candidate, all of the same code.
fn synthetic() -> Lab {
    let lab = Lab::bare();
    let digest = lab::known_answers(1);
    let (mut text, mut manifest) = (
        format!(
            r#"
[build.reference]
cflags = "-std=c99 -O2"
[plan.quick]
trials = {TRIALS}
target_s = 0.001
min_total = 5
budget_s = 5
keys = 2
[[candidate]]
id = "lab"
name = "LAB"
origin = "independent"
kat = {{ flow = "iccs", manifest = "lab.sha256" }}
wrap = {{ hash = ["sm3hash"], drng = ["get_random_number"] }}
[[candidate.code]]
name = "ref"
sources = ["sources/*.c"]
include = ["sources"]
defines = ["LAB_ID=1"]
builds = ["reference"]
"#
        ),
        String::new(),
    );
    for n in 1..=IDENTITIES {
        write!(text, "[[candidate.instance]]\nlabel = \"lab-{n}\"\n").unwrap();
        writeln!(manifest, "{digest} strict lab-{n}/KAT_SIG_lab-{n}.txt").unwrap();
    }
    fs::write(lab.path("campaign.toml"), text).unwrap();
    fs::write(lab.path("lab.sha256"), manifest).unwrap();
    lab
}

/// Random moments from a seed that is printed: `CAMPAIGN_TEST_SEED`, else of the moment.
struct Moments(u64);

impl Moments {
    fn new() -> Moments {
        let seed = match std::env::var("CAMPAIGN_TEST_SEED") {
            Ok(text) => text.parse().expect("a number"),
            Err(_) => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_nanos() as u64,
        };
        println!("seed of the moments: {seed}");
        Moments(seed)
    }

    /// A moment before `end`.
    fn next(&mut self, end: Duration) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        end.mul_f64((self.0 >> 11) as f64 / (1u64 << 53) as f64)
    }
}

fn kills() -> usize {
    match std::env::var("CAMPAIGN_TEST_KILLS") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => KILLS,
    }
}

#[test]
fn two_hundred_kills_at_random_moments_lose_nothing_and_repeat_nothing() {
    let lab = synthetic();
    // Compiled once: each campaign starts from a copy of the run that is built.
    lab.campaign(&["build", "--run", "runs/built"]).expect(0);
    let built = lab.path("runs/built");
    let mut moments = Moments::new();
    let mut left = kills();
    let mut longest = None;
    for k in 1.. {
        let name = format!("runs/killed-{k}");
        let run = lab.path(&name);
        copy_tree(&built, &run, &[]);
        let arguments = ["run", "--run", name.as_str()];
        let mut resumes = 0u64;
        loop {
            let before = complete_evidence(&run);
            let mut running = lab.start(&arguments);
            resumes += 1;
            // Twice the time to the first step of the first start: half of the moments lie before it.
            let longest =
                *longest.get_or_insert_with(|| 2 * time_to_first_attempt(&mut running, &run));
            if left > 0 {
                std::thread::sleep(moments.next(longest));
                if running.is_alive() {
                    running.signal(Signal::SIGKILL);
                    left -= 1;
                }
            }
            let end = running.end();
            for (path, content) in before {
                let now = fs::read(&path).unwrap();
                assert_eq!(now, content, "{} was changed", path.display());
            }
            match end.status {
                None => {}
                Some(0) => break,
                Some(_) => panic!("{end}"),
            }
        }
        assert_eq!(lab::processes_in(&run), [""; 0]);
        println!("{name}: complete after {resumes} starts, {left} kills left");
        exactly_what_was_planned(&run);
        lab.campaign(&["audit", &name]).expect(0);
        if left == 0 {
            break;
        }
    }
}

/// How long the program takes to get to work.
fn time_to_first_attempt(running: &mut lab::Running, run: &Path) -> Duration {
    let start = Instant::now();
    let kat = run.join("kat/lab");
    let begun = lab::wait_until(running, || kat.is_dir());
    assert!(begun, "it ended before its first known answer");
    start.elapsed()
}

/// Evidence that says it is complete.
fn complete_evidence(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    ["records", "kat", "calibrate", "memory", "profile"]
        .into_iter()
        .flat_map(|folder| lab::files(&run.join(folder)))
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "json"))
        .filter(|(_, content)| {
            String::from_utf8_lossy(content).contains("\"status\": \"complete\"")
        })
        .collect()
}

/// All records with all their trials, each made once, and in the journal as often as in the records.
fn exactly_what_was_planned(run: &Path) {
    check_complete_of(run, TRIALS);
    let mut begun: BTreeMap<String, u64> = BTreeMap::new();
    for line in lab::journal(run).lines.iter().map(event) {
        if line["event"] == "attempt_begun" {
            *begun
                .entry(line["record"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    let mut records = 0;
    for (path, content) in lab::files(&run.join("records")) {
        let record: serde_json::Value = serde_json::from_slice(&content).unwrap();
        let name = path.strip_prefix(run).unwrap().display().to_string();
        assert_eq!(record["status"], "complete", "{name}");
        let trials = record["trials"].as_array().unwrap();
        let attempts: usize = trials
            .iter()
            .map(|trial| trial["attempts"].as_array().unwrap().len())
            .sum();
        assert_eq!(attempts as u64, begun[&name], "{name}");
        records += 1;
    }
    // Three operations of each identity, and the cheapest verification a second time.
    assert_eq!((records, begun.len()), (3 * IDENTITIES + 1, records));
}

/// One instance whose signatures take a tenth of a second.
fn slow() -> Lab {
    let slow = lab::Instance {
        defines: &["LAB_SPIN_MS=100"],
        ..FINE
    };
    Lab::new(&[slow], "")
}

/// What is measured of it.
const SIGN: [&str; 3] = ["run", "--only", "/sign$"];

const RECORD: &str = "records/lab/lab-1.ref.reference__sign.json";

/// Waits until the first trial of [`slow`] runs.
fn until_a_trial_runs(running: &mut lab::Running, run: &Path) {
    let begun = [("event", "attempt_begun"), ("record", RECORD)];
    assert!(lab::wait_until(running, || lab::has_event(run, &begun)));
}

/// An ext4 file system in a file, which can be made to fail under open files as a broken disk does.
struct Disk {
    image: PathBuf,
    place: PathBuf,
}

impl Disk {
    /// `None`, after saying so, where there can be none.
    fn new(lab: &Lab) -> Option<Disk> {
        if !nix::unistd::geteuid().is_root() {
            skip_without_root("mounting a file system");
            return None;
        }
        if !have("mkfs.ext4", "e2fsprogs") || !have("mount", "mount") {
            return None;
        }
        let disk = Disk {
            image: lab.path("image"),
            place: lab.path("disk"),
        };
        fs::create_dir(&disk.place).unwrap();
        let image = fs::File::create(&disk.image).unwrap();
        image.set_len(48 << 20).unwrap();
        run_tool("mkfs.ext4", &["-q", "-F"], &[&disk.image]);
        match disk.mount(&["-o", "loop"]) {
            true => Some(disk),
            false => {
                skip("this root may not mount a file as a disk");
                None
            }
        }
    }

    fn mount(&self, options: &[&str]) -> bool {
        let mut command = Command::new("mount");
        command.args(options).arg(&self.image).arg(&self.place);
        command.status().unwrap().success()
    }

    /// As after an error of the medium: read-only, whatever is open.
    fn abort(&self) {
        run_tool("mount", &["-o", "remount,abort"], &[&self.place]);
    }

    /// Checks the file system and mounts it again.
    fn repair(&self) {
        run_tool("umount", &[], &[&self.place]);
        let check = Command::new("e2fsck")
            .args(["-y", "-f"])
            .arg(&self.image)
            .output();
        let status = check.unwrap().status.code();
        assert!(
            matches!(status, Some(0..=1)),
            "e2fsck ended with {status:?}"
        );
        assert!(self.mount(&["-o", "loop"]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).output();
    }
}

fn run_tool(program: &str, arguments: &[&str], paths: &[&Path]) {
    let output = Command::new(program)
        .args(arguments)
        .args(paths)
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
}

#[test]
fn a_disk_that_becomes_read_only_under_a_run_stops_it_and_nothing_is_lost() {
    let lab = slow();
    let Some(disk) = Disk::new(&lab) else { return };
    let run = disk.place.join("run");
    let arguments = ["run", "--only", "/sign$", "--run", "disk/run"];
    let mut running = lab.start(&arguments);
    until_a_trial_runs(&mut running, &run);
    disk.abort();
    let end = running.end().expect(3);
    assert!(end.stderr.contains("Read-only file system"), "{end}");
    assert_eq!(lab::processes_in(&run), [""; 0]);
    let end = lab.campaign(&arguments).expect(3);
    assert!(end.stderr.contains("cannot be written to"), "{end}");
    disk.repair();
    lab.campaign(&arguments).expect(0);
    check_complete(&run);
    lab.campaign(&["audit", "disk/run"]).expect(0);
}

/// A library to preload, from `c/clock_jump.c`; its path may not hold a blank, which a lab's does.
fn clock(folder: &Path, flags: &[&str]) -> PathBuf {
    let path = folder.join("clock.so");
    let source = crate::support::root().join("harness/tests/c/clock_jump.c");
    let flags = [&["-std=c99", "-O2", "-fPIC", "-shared"], flags].concat();
    let output = Command::new("cc")
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    path
}

/// Runs a command whose clock of the day is another one.
fn with_clock(lab: &Lab, arguments: &[&str], clock: &Path) -> lab::End {
    let mut command = lab.command(arguments);
    command.env("LD_PRELOAD", clock);
    lab::End::of(command.output().unwrap())
}

#[test]
fn a_clock_that_jumps_is_said_and_changes_no_result() {
    let lab = Lab::new(&[FINE], "");
    let folder = tempfile::tempdir().unwrap();
    let jumping = clock(folder.path(), &[]);
    with_clock(&lab, &["run"], &jumping).expect(0);
    let run = lab.run_dir(1);
    check_complete(&run);
    let jumps: Vec<i64> = lab::journal(&run)
        .lines
        .iter()
        .map(event)
        .filter(|line| line["event"] == "clock_jump")
        .map(|line| line["milliseconds"].as_i64().unwrap())
        .collect();
    let day = 86_400_000;
    assert!(jumps.iter().any(|&ms| ms > 300 * day), "{jumps:?}");
    assert!(jumps.iter().any(|&ms| ms < -300 * day), "{jumps:?}");
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

#[test]
fn a_clock_that_went_back_between_two_sessions_is_said() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["kat"]).expect(0);
    let folder = tempfile::tempdir().unwrap();
    let late = clock(folder.path(), &["-DBACK"]);
    with_clock(&lab, &["run"], &late).expect(0);
    let run = lab.run_dir(1);
    check_complete(&run);
    assert!(lab::has_event(&run, &[("event", "clock_jump")]));
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

#[test]
fn a_worker_that_is_replaced_while_a_trial_runs_is_not_started() {
    let lab = slow();
    let Some(found) = lab::worker() else { return };
    let own = lab.path("my worker");
    fs::copy(&found, &own).unwrap();
    let arguments = ["run", "--only", "/sign$", "--worker", "my worker"];
    let run = lab.run_dir(1);
    let mut running = lab.start(&arguments);
    until_a_trial_runs(&mut running, &run);
    // Its line in the journal comes first, then the worker is looked at and started.
    let is_started = || {
        lab::processes_in(&run)
            .iter()
            .any(|p| p.contains("my worker"))
    };
    assert!(lab::wait_until(&mut running, is_started));
    // Something that would leave a trace, under the same name.
    let impostor = lab.path("impostor");
    let trace = lab.path("trace");
    let script = format!("#!/bin/sh\ntouch '{}'\n", trace.display());
    fs::write(&impostor, script).unwrap();
    fs::set_permissions(&impostor, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&impostor, &own).unwrap();
    let end = running.end().expect(3);
    assert!(
        end.stderr
            .contains("the worker was changed while the campaign ran"),
        "{end}"
    );
    assert!(!trace.exists(), "the other program was started");
    fs::copy(&found, lab.path("good")).unwrap();
    fs::rename(lab.path("good"), &own).unwrap();
    lab.campaign(&arguments).expect(0);
    check_complete(&run);
}

/// The timed library of the only row.
fn timed_library(run: &Path) -> PathBuf {
    let build = json(run, "build.json");
    run.join(
        build["rows"][0]["libraries"]["timed"]["file"]
            .as_str()
            .unwrap(),
    )
}

/// Another file in the place of `path`.
fn replace(path: &Path) {
    let mut content = fs::read(path).unwrap();
    *content.last_mut().unwrap() ^= 1;
    let other = path.with_extension("other");
    fs::write(&other, content).unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn a_library_that_is_replaced_between_known_answers_and_timing_is_made_again() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["kat"]).expect(0);
    let run = lab.run_dir(1);
    let library = timed_library(&run);
    let digest = harness::hash::sha256(&fs::read(&library).unwrap());
    replace(&library);
    lab.campaign(&["run"]).expect(0);
    check_complete(&run);
    assert_eq!(
        harness::hash::sha256(&fs::read(&library).unwrap()),
        digest,
        "the other file is still there"
    );
    let record = json(&run, RECORD);
    assert_eq!(record["libraries"]["timed"], digest);
    let kat = json(&run, record["kat"]["file"].as_str().unwrap());
    assert_eq!(kat["library"]["sha256"], digest);
}

#[test]
fn a_prepared_key_that_is_replaced_between_sessions_is_made_again() {
    let shared = lab::Instance {
        one_key: true,
        ..FINE
    };
    let lab = Lab::new(&[shared], "");
    lab.campaign(&["calibrate"]).expect(0);
    let run = lab.run_dir(1);
    let keys = lab::files(&run.join("keys"));
    let (path, content) = keys.iter().next().expect("a key that all trials share");
    replace(path);
    lab.campaign(&["run"]).expect(0);
    check_complete(&run);
    assert_eq!(
        &fs::read(path).unwrap(),
        content,
        "the other key is still there"
    );
    let journal = lab::journal(&run);
    let made = journal.lines.iter().map(event);
    let made = made.filter(|line| line["event"] == "prepared").count();
    assert_eq!(made, 2);
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

#[test]
fn a_prepared_key_that_is_replaced_while_trials_run_is_never_used() {
    let shared = lab::Instance {
        one_key: true,
        defines: &["LAB_SPIN_MS=100"],
        ..FINE
    };
    let lab = Lab::new(&[shared], "");
    let run = lab.run_dir(1);
    let mut running = lab.start(&SIGN);
    until_a_trial_runs(&mut running, &run);
    let keys = lab::files(&run.join("keys"));
    let (path, content) = keys.iter().next().expect("a key that all trials share");
    replace(path);
    let end = running.end().expect(3);
    assert!(end.stderr.contains("prepared key"), "{end}");
    assert_eq!(lab::processes_in(&run), [""; 0]);
    lab.campaign(&SIGN).expect(0);
    check_complete(&run);
    assert_eq!(&fs::read(path).unwrap(), content);
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

#[test]
fn known_answers_are_tried_again_where_their_manifest_was_changed() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["kat"]).expect(0);
    let run = lab.run_dir(1);
    let manifest = lab.path("lab.sha256");
    let text = fs::read_to_string(&manifest).unwrap();
    let same = format!("# the same known answers\n{text}");
    fs::write(&manifest, &same).unwrap();
    lab.campaign(&["run"]).expect(0);
    check_complete(&run);
    let digest = harness::hash::sha256(same.as_bytes());
    for kind in ["timed", "profile", "memory"] {
        let kat = json(&run, &format!("kat/lab/lab-1.ref.reference.{kind}.json"));
        assert_eq!(kat["manifest_sha256"], digest, "{kind}");
    }
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
    // Other known answers are not found, and nothing is timed.
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["kat"]).expect(0);
    fs::write(lab.path("lab.sha256"), other_answers(&text)).unwrap();
    let end = lab.campaign(&["run"]).expect(1);
    assert!(end.stdout.contains("MISMATCH"), "{end}");
    let run = lab.run_dir(1);
    let row = json(&run, "campaign.json")["rows"][0].clone();
    assert_eq!(row["reason"]["code"], "kat_mismatch", "{row}");
    assert!(!run.join("records").exists() || lab::files(&run.join("records")).is_empty());
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

/// A manifest with another digest.
fn other_answers(manifest: &str) -> String {
    let other = if manifest.starts_with('0') { "1" } else { "0" };
    format!("{other}{}", &manifest[1..])
}

#[test]
fn what_was_timed_keeps_the_known_answers_that_it_rests_on() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["measure"]).expect(0);
    let run = lab.run_dir(1);
    let evidence = || {
        (
            lab::files(&run.join("kat")),
            lab::files(&run.join("records")),
        )
    };
    let before = evidence();
    let manifest = lab.path("lab.sha256");
    let text = fs::read_to_string(&manifest).unwrap();
    for changed in [format!("# more\n{text}"), other_answers(&text)] {
        fs::write(&manifest, changed).unwrap();
        for command in ["run", "kat"] {
            let end = lab.campaign(&[command]).expect(2);
            assert!(
                end.stderr
                    .contains("lab/lab-1/ref/reference was timed in this run"),
                "{end}"
            );
            assert!(end.stderr.contains("--new"), "{end}");
            assert!(evidence() == before, "{command} changed evidence");
        }
    }
    fs::write(&manifest, &text).unwrap();
    let end = lab.campaign(&["kat", "--keep-text", "texts"]).expect(2);
    assert!(end.stderr.contains("was timed in this run"), "{end}");
    assert!(evidence() == before, "--keep-text changed evidence");
    lab.campaign(&["run"]).expect(0);
    check_complete(&run);
    lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
}

/// A campaign whose sets hang, each in another phase, beside one that does nothing wrong.
fn hanging(bad: &[&'static [&'static str]], one_key: bool) -> Lab {
    let labels = ["lab-1", "lab-2", "lab-3"];
    let instances: Vec<lab::Instance> = labels
        .into_iter()
        .zip([&[][..]].into_iter().chain(bad.iter().copied()))
        .map(|(label, defines)| lab::Instance {
            label,
            defines,
            one_key: one_key && !defines.is_empty(),
            ..FINE
        })
        .collect();
    Lab::new(&instances, "timeout_floor_s = 2\nkat_timeout_s = 60")
}

/// Evidence of a set that ended at its time limit.
fn timed_out(run: &Path, file: &str) {
    let evidence = json(run, file);
    assert_eq!(evidence["status"], "failed", "{file}");
    assert_eq!(evidence["reason"]["code"], "timeout", "{file}");
    let text = evidence["reason"]["text"].as_str().unwrap();
    assert!(text.contains("killed after"), "{file}: {text}");
}

#[test]
fn a_library_that_hangs_in_any_phase_is_ended_and_the_campaign_goes_on() {
    type Set = (&'static [&'static str], &'static str);
    const SETS: [[Set; 2]; 3] = [
        [
            (&["LAB_BAD=PREPARING_HANGS"], "calibrate"),
            (&["LAB_BAD=CALIBRATING_HANGS"], "calibrate"),
        ],
        [
            (&["LAB_BAD=TIMED_HANGS"], "records"),
            (&["LAB_BAD=MEMORY_HANGS"], "memory"),
        ],
        [
            (&["LAB_BAD=PROFILE_HANGS"], "profile"),
            (&["LAB_BAD=SIGN_HANGS"], "kat"),
        ],
    ];
    for sets in SETS {
        // Only what shares a key has one prepared.
        let lab = hanging(
            &sets.map(|(defines, _)| defines),
            sets[0].0[0].contains("PREPARING"),
        );
        lab.campaign(&["run"]).expect(1);
        let run = lab.run_dir(1);
        assert_eq!(lab::processes_in(&run), [""; 0], "left running");
        let rows = json(&run, "campaign.json")["rows"].clone();
        assert_eq!(rows[0]["status"], "complete", "the neighbour: {rows}");
        for ((defines, phase), (n, row)) in sets.into_iter().zip([(2, &rows[1]), (3, &rows[2])]) {
            let code = if phase == "kat" {
                "kat_timeout"
            } else {
                "timeout"
            };
            assert_eq!(row["reason"]["code"], code, "{defines:?}: {row}");
            let stem = format!("lab/lab-{n}.ref.reference");
            match phase {
                "kat" => assert_eq!(
                    json(&run, &format!("kat/{stem}.timed.json"))["result"],
                    "TIMEOUT"
                ),
                _ => timed_out(&run, &format!("{phase}/{stem}__sign.json")),
            }
        }
        lab.campaign(&["audit", "runs/local-quick-1"]).expect(0);
    }
}

#[test]
fn a_library_that_hangs_in_a_study_is_ended_and_the_study_goes_on() {
    let lab = hanging(&[&["LAB_BAD=LONG_MESSAGE_HANGS"]], false);
    let words = [
        "study",
        "message-size",
        "--sizes",
        "1000,2000",
        "--only",
        "lab",
    ];
    lab.campaign(&words).expect(1);
    let run = lab.path("runs/local-study-1");
    assert_eq!(lab::processes_in(&run), [""; 0], "left running");
    let rows = json(&run, "campaign.json")["rows"].clone();
    assert_eq!(rows[0]["status"], "complete", "the neighbour: {rows}");
    assert_eq!(rows[1]["reason"]["code"], "timeout", "{rows}");
    let file =
        |bytes| format!("study/message-size/lab/lab-2.ref.reference__sign__mmap__{bytes}.json");
    timed_out(&run, &file(2000));
    assert_eq!(json(&run, &file(1000))["status"], "complete");
    lab.campaign(&["audit", "runs/local-study-1"]).expect(0);
}

#[test]
fn a_library_that_is_replaced_while_trials_run_is_refused() {
    let lab = slow();
    let run = lab.run_dir(1);
    let mut running = lab.start(&SIGN);
    until_a_trial_runs(&mut running, &run);
    replace(&timed_library(&run));
    let end = running.end().expect(1);
    let record = json(&run, RECORD);
    assert_eq!(record["status"], "failed", "{end}");
    let text = record["reason"]["text"].as_str().unwrap();
    assert!(
        text.contains("is another file than the one named"),
        "{text}"
    );
    assert!(record["derived"].is_null());
}

#[test]
fn places_may_have_any_name_and_runs_are_their_owners_alone() {
    let lab = Lab::new(&[FINE], "");
    // A blank, a quote, a byte that is no UTF-8.
    let name = OsStr::from_bytes(b"caf\xe9 d'un \"ami\"");
    let place = lab.path("").join(name);
    fs::create_dir(&place).unwrap();
    for entry in ["campaign.toml", "lab.sha256", "sources"] {
        fs::rename(lab.path(entry), place.join(entry)).unwrap();
    }
    let odd_sources = OsStr::from_bytes(b"\xff sources");
    let toml = fs::read_to_string(place.join("campaign.toml")).unwrap();
    // A pattern reaches what a name in a text file cannot.
    let toml = toml.replace("\"sources/*.c\"", "\"? sources/*.c\"");
    let toml = toml.replace("include = [\"sources\"]", "include = []");
    fs::write(place.join("campaign.toml"), toml).unwrap();
    fs::rename(place.join("sources"), place.join(odd_sources)).unwrap();
    let mut command = lab.command(&["run"]);
    lab::End::of(command.current_dir(&place).output().unwrap()).expect(0);
    let run = place.join("runs/local-quick-1");
    check_complete(&run);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&run), 0o700);
    assert_eq!(mode(&run.join("keys")) & 0o077, 0);
    let mut command = lab.command(&["audit", "runs/local-quick-1"]);
    lab::End::of(command.current_dir(&place).output().unwrap()).expect(0);
}
