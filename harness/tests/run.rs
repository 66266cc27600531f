//! Whole campaigns of a small candidate, run by the real program with the real worker: to the end,
//! a second time, after kills and interruptions, with what a user or a machine can do wrong.

use crate::support::cells;
use crate::support::lab::{self, check_complete, event, json, Instance, Lab, FINE};
use crate::support::{have, skip, skip_without_root};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TWO: [Instance; 2] = [
    FINE,
    Instance {
        label: "lab-2",
        one_key: true,
        ..FINE
    },
];

const RECORD: &str = "records/lab/lab-1.ref.reference__sign.json";

/// What is measured of [`slow`]: signatures alone, for a verification needs many of them.
const SIGN: [&str; 3] = ["run", "--only", "/sign$"];

/// One instance whose signatures take a tenth of a second.
fn slow() -> Lab {
    let slow = Instance {
        defines: &["LAB_SPIN_MS=100"],
        ..FINE
    };
    Lab::new(&[slow], "")
}

#[test]
fn a_campaign_runs_from_source_to_sealed_evidence_and_pages() {
    let lab = Lab::new(&TWO, "");
    let end = lab.campaign(&["run"]).expect(0);
    let run = lab.run_dir(1);
    check_complete(&run);
    assert_eq!(run.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for page in ["index.html", "lab.html"] {
        let path = format!("runs/local-quick-1/pages/{page}");
        assert!(end.stdout.contains(&path), "{end}");
        assert!(lab.path(&path).is_file());
    }
    let campaign = json(&run, "campaign.json");
    let rows = campaign["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter().all(|row| row["status"] == "complete"),
        "{rows:?}"
    );
    assert_eq!(campaign["class"], "local");
    let record = json(&run, RECORD);
    let kat = json(&run, record["kat"]["file"].as_str().unwrap());
    assert_eq!(kat["result"], "PASS");
    let timed = record["libraries"]["timed"].as_str().unwrap();
    assert_eq!(kat["library"]["sha256"], timed);
    // Samples and remainder are the whole attempt.
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(trials.len() as u64, lab::TRIALS);
    for trial in trials {
        let attempt = &trial["attempts"][0];
        let sum = |v: &serde_json::Value| -> u64 {
            v.as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap())
                .sum()
        };
        let rest = attempt["rest"]["value"].as_u64().unwrap();
        assert_eq!(sum(&attempt["samples"]) + rest, attempt["nanoseconds"]);
    }
    // The cheapest verify has its second timing.
    let aa = lab::files(&run.join("records/lab"))
        .into_keys()
        .filter(|path| path.to_string_lossy().ends_with("__verify.aa.json"))
        .count();
    assert_eq!(aa, 1);
}

/// The pages of a fresh run are complete, and every cell of them follows from its evidence.
#[test]
fn every_cell_of_a_fresh_runs_pages_follows_from_its_evidence() {
    let lab = Lab::new(&TWO, "");
    let own = "[report]\nkind = \"self-assessment\"\n";
    let config = fs::read_to_string(lab.path("campaign.toml")).unwrap();
    fs::write(lab.path("campaign.toml"), format!("{own}{config}")).unwrap();
    lab.campaign(&["run"]).expect(0);
    let run = lab.run_dir(1);
    let pages = run.join("pages");
    for page in ["index", "lab", "summary", "method", "sizes", "symmetric"] {
        for form in ["md", "html"] {
            assert!(
                pages.join(format!("{page}.{form}")).is_file(),
                "{page}.{form}"
            );
        }
    }
    let page = fs::read_to_string(pages.join("lab.md")).unwrap();
    assert!(page.contains("Submitter's self-assessment"), "{page}");
    for caption in [
        "The machine and the campaign.",
        "Result of the known-answer tests",
        "Cost of one operation.",
        "Agreement of the trials",
        "Quantiles of the time of one call",
        "Static image and resident set.",
        "Memory of one operation in isolation.",
        "Sizes in bytes.",
        "Share of wrapped functions",
        "Files behind the figures",
    ] {
        let tables = cells::tables(&page);
        let table = tables.iter().find(|t| t.caption.starts_with(caption));
        assert!(
            table.is_some_and(|t| !t.rows.is_empty()),
            "{caption}: {page}"
        );
    }
    for chart in ["means", "trials", "symmetric"] {
        assert!(
            pages.join(format!("charts/lab-{chart}.svg")).is_file(),
            "{chart}"
        );
    }
    let (found, wrong) = cells::recompute(&run, "lab", &page);
    assert!(wrong.is_empty(), "{wrong:#?}\n{page}");
    // Of each of the six records at least these 16 columns, whatever the machine counts with.
    assert!(found >= 6 * 16, "{found} cells");
}

#[test]
fn evidence_and_pages_hold_nothing_of_this_machine() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["run"]).expect(0);
    let run = lab.run_dir(1);
    check_complete(&run);
    let folder = lab.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (path, content) in lab::files(&run) {
        let below = path.strip_prefix(&run).unwrap().display().to_string();
        if below.starts_with("lib/") || below.starts_with("keys/") {
            continue;
        }
        let text = String::from_utf8(content).unwrap();
        assert!(!text.contains(folder), "{below} holds the folder");
        let quoted = format!("\"{}\"", host.trim());
        assert!(!text.contains(&quoted), "{below} holds the host name");
    }
}

#[test]
fn trials_are_interleaved_in_the_recorded_order() {
    let lab = Lab::new(&TWO, "");
    lab.campaign(&["measure"]).expect(0);
    let chain = lab::journal(&lab.run_dir(1));
    let trials: Vec<u64> = chain
        .lines
        .iter()
        .map(event)
        .filter(|line| line["event"] == "attempt_begun")
        .map(|line| line["trial"].as_u64().unwrap())
        .collect();
    // Two instances, three operations, and the second timing: seven a round.
    assert_eq!(trials.len() as u64, 7 * lab::TRIALS);
    assert!(trials.is_sorted(), "{trials:?}");
    let seed = event(&chain.lines[0])["order_seed"].clone();
    assert_eq!(seed.as_str().unwrap().len(), 32);
}

#[test]
fn a_second_run_starts_no_worker_and_writes_nothing() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["run"]).expect(0);
    let before = lab::files(&lab.path("runs"));
    let end = lab
        .campaign(&["run", "--worker", "no-such-worker"])
        .expect(0);
    assert!(
        end.stdout
            .contains("runs/local-quick-1 is complete already"),
        "{end}"
    );
    assert!(
        end.stdout.contains("runs/local-quick-1/pages/lab.html"),
        "{end}"
    );
    assert_eq!(lab::files(&lab.path("runs")), before);
    // A phase has no business in a sealed run.
    let end = lab.campaign(&["measure"]).expect(2);
    assert!(end.stderr.contains("the run is sealed"), "{end}");
    // Another one is another one.
    lab.campaign(&["run", "--new"]).expect(0);
    check_complete(&lab.run_dir(2));
}

#[test]
fn phases_can_be_run_one_by_one_and_do_nothing_twice() {
    let lab = Lab::new(&TWO, "");
    let run = lab.run_dir(1);
    let folders = [
        ("build", "lib"),
        ("kat", "kat"),
        ("calibrate", "calibrate"),
        ("measure", "records"),
        ("memory", "memory"),
        ("profile", "profile"),
    ];
    for (phase, folder) in folders {
        assert!(!run.join(folder).exists() || folder == "lib");
        lab.campaign(&[phase]).expect(0);
        let made = lab::files(&run.join(folder));
        assert!(!made.is_empty(), "{phase} made nothing");
        lab.campaign(&[phase]).expect(0);
        assert_eq!(lab::files(&run.join(folder)), made, "{phase} was repeated");
    }
    lab.campaign(&["seal"]).expect(0);
    check_complete(&run);
}

#[test]
fn a_wrong_digest_is_a_mismatch_and_the_rest_is_measured() {
    let wrong = Instance {
        label: "lab-2",
        wrong_digest: true,
        ..FINE
    };
    let lab = Lab::new(&[FINE, wrong], "");
    let end = lab.campaign(&["run"]).expect(1);
    assert!(
        end.stdout
            .contains("failed: lab/lab-2/ref/reference: the KAT result is MISMATCH"),
        "{end}"
    );
    let run = lab.run_dir(1);
    check_complete(&run);
    assert_eq!(json(&run, RECORD)["status"], "complete");
    assert!(!run
        .join("records/lab/lab-2.ref.reference__sign.json")
        .exists());
    let kat = json(&run, "kat/lab/lab-2.ref.reference.timed.json");
    assert_eq!(
        (&kat["result"], &kat["status"]),
        (&"MISMATCH".into(), &"failed".into())
    );
    // The status of a run that is complete stays what it was.
    lab.campaign(&["run"]).expect(1);
}

#[test]
fn what_a_library_does_wrong_is_evidence_and_its_neighbour_is_measured() {
    // name, macro, KAT result or null, reason code of the row
    let cases = [
        ("SIGN_CRASHES", "CRASH", "kat_crash"),
        ("SIGN_HANGS", "TIMEOUT", "kat_timeout"),
        ("SIGN_FAILS", "CRYPTOFAIL", "kat_cryptofail"),
        ("KEYGEN_EXITS", "CRASH", "kat_crash"),
        ("PRINTS", "PASS", ""),
        ("TIMED_CRASHES", "PASS", "crash"),
    ];
    for (name, result, code) in cases {
        let define = [format!("LAB_BAD={name}")];
        let bad = Instance {
            label: "lab-2",
            defines: Box::leak(Box::new([&*Box::leak(define[0].clone().into_boxed_str())])),
            ..FINE
        };
        let lab = Lab::new(&[FINE, bad], "kat_timeout_s = 2\ntimeout_floor_s = 30\n");
        let end = lab.campaign(&["run"]);
        let run = lab.run_dir(1);
        assert_eq!(
            end.status,
            Some(i32::from(!code.is_empty())),
            "{name}: {end}"
        );
        let kat = json(&run, "kat/lab/lab-2.ref.reference.timed.json");
        assert_eq!(kat["result"], result, "{name}: {kat}");
        let rows = json(&run, "campaign.json")["rows"].clone();
        assert_eq!(rows[0]["status"], "complete", "{name}: {rows}");
        match code {
            "" => assert_eq!(rows[1]["status"], "complete", "{name}: {rows}"),
            code => assert_eq!(rows[1]["reason"]["code"], code, "{name}: {rows}"),
        }
        check_complete(&run);
        assert_eq!(lab::processes_in(&run), [""; 0], "{name}");
    }
}

#[test]
fn a_run_of_another_request_is_refused() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["build"]).expect(0);
    let run = "runs/local-quick-1";
    for (arguments, said) in [
        (
            &["run", "--run", run, "--plan", "guide"][..],
            "another plan (quick, asked for guide)",
        ),
        (
            &["run", "--run", run, "--only", "sign"],
            "another selection (everything, asked for sign)",
        ),
        (&["run", "--run", run, "--cpu", "0"], "another CPU list"),
        (&["run", "--run", "sources"], "no run directory"),
    ] {
        let end = lab.campaign(arguments).expect(2);
        assert!(end.stderr.contains(said), "{end}");
    }
    // A changed configuration is another campaign.
    lab.configure(&[FINE], "repeats = 1\n");
    let end = lab.campaign(&["run", "--run", run]).expect(2);
    assert!(end.stderr.contains("another configuration"), "{end}");
    lab.campaign(&["build"]).expect(0);
    assert!(lab.run_dir(2).is_dir());
}

#[test]
fn a_changed_evidence_file_stops_a_resume() {
    let lab = Lab::new(&[FINE], "");
    lab.campaign(&["calibrate"]).expect(0);
    let file = lab
        .run_dir(1)
        .join("calibrate/lab/lab-1.ref.reference__sign.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replacen("\"operation\": ", "\"operation\":  ", 1),
    )
    .unwrap();
    let end = lab.campaign(&["run"]).expect(3);
    assert!(
        end.stderr.contains("was changed after it was written"),
        "{end}"
    );
    fs::write(&file, text).unwrap();
    lab.campaign(&["run"]).expect(0);
}

#[test]
fn two_orchestrators_do_not_share_a_run() {
    let lab = slow();
    let mut first = lab.start(&SIGN);
    let run = lab.run_dir(1);
    assert!(lab::wait_until(&mut first, || lab::has_event(
        &run,
        &[("event", "phase_begun")]
    )));
    // Without the CPU's lock in the way.
    let end = lab.campaign(&["kat", "--only", "/sign$"]).expect(3);
    let holder = format!("in use by process {} ", first.pid());
    assert!(end.stderr.contains(&holder), "{end}");
    first.signal(Signal::SIGTERM);
    first.end().expect(143);
}

#[test]
fn one_campaign_a_cpu_and_the_second_can_wait() {
    let lab = Lab::new(&[FINE], "");
    let cpu = last_cpu();
    let path = lab.path(&format!("campaign-cpu{cpu}.lock"));
    let stop = harness::process::Stop::new();
    let patience = harness::run::lock::Patience::Until(&stop);
    let held = harness::run::lock::lock(&path, "the CPU", "a test", patience).unwrap();
    let cpu = cpu.to_string();
    let end = lab.campaign(&["run", "--cpu", &cpu]).expect(3);
    let holder = format!("in use by process {} (a test)", std::process::id());
    let said = format!("CPU {cpu} is {holder}");
    assert!(end.stderr.contains(&said), "{end}");
    assert!(!lab.path("runs").exists(), "a refused run left something");
    // What measures nothing needs no CPU of its own.
    lab.campaign(&["kat", "--cpu", &cpu]).expect(0);
    let journal = || lab::journal(&lab.run_dir(1)).lines.len();
    let before = journal();
    let log = lab.path("said");
    let mut command = lab.command(&["run", "--cpu", &cpu, "--wait"]);
    let mut waiting = lab::Running::start(command.stderr(fs::File::create(&log).unwrap()));
    let said = format!("waiting for CPU {cpu}, {holder}");
    assert!(lab::wait_until(&mut waiting, || {
        fs::read_to_string(&log).unwrap().contains(&said)
    }));
    // While another does the same work elsewhere, one that went on all the same would do its own.
    Lab::new(&[FINE], "").campaign(&["run"]).expect(0);
    assert!(waiting.is_alive());
    assert_eq!(journal(), before, "nothing is done while it waits");
    drop(held);
    waiting.end().expect(0);
    check_complete(&lab.run_dir(1));
}

fn last_cpu() -> u32 {
    *harness::host::affinity::allowed().unwrap().last().unwrap()
}

#[test]
fn several_cpus_share_the_work_and_an_instance_stays_on_one() {
    let allowed = harness::host::affinity::allowed().unwrap();
    let [a, b, ..] = allowed[..] else {
        return skip("one CPU is allowed here; two are needed");
    };
    let lab = Lab::new(&TWO, "");
    let list = format!("{a},{b}");
    lab.campaign(&["run", "--cpu", &list]).expect(0);
    let run = lab.run_dir(1);
    check_complete(&run);
    let mut used = std::collections::BTreeSet::new();
    for label in ["lab-1", "lab-2"] {
        let cpus: Vec<u64> = ["keygen", "sign", "verify"]
            .map(|op| {
                json(
                    &run,
                    &format!("records/lab/{label}.ref.reference__{op}.json"),
                )
            })
            .iter()
            .map(|record| record["cpu"].as_u64().unwrap())
            .collect();
        assert!(cpus.iter().all(|cpu| *cpu == cpus[0]), "{label}: {cpus:?}");
        used.insert(cpus[0]);
    }
    assert_eq!(used.len(), 2);
    // Facts and a counter that was held against a known loop, of each of them and of no other.
    let environment = json(&run, "environment/0.json");
    for list in ["cpus", "probes"] {
        let cpus = environment[list].as_array().unwrap().iter();
        let cpus: Vec<u64> = cpus.map(|of| of["cpu"].as_u64().unwrap()).collect();
        assert_eq!(cpus, [u64::from(a), u64::from(b)], "{list}");
    }
    for probe in environment["probes"].as_array().unwrap() {
        for source in probe["probe"]["sources"].as_array().unwrap() {
            let test = &source["source"]["self_test"];
            assert!(test.is_object() || source["reason"].is_array(), "{source}");
        }
    }
}

#[test]
fn while_a_trial_runs_the_program_keeps_off_its_cpu() {
    let allowed = harness::host::affinity::allowed().unwrap();
    let [.., other, measured] = allowed[..] else {
        return skip("one CPU is allowed here; two are needed");
    };
    let lab = slow();
    // Trials of 10 seconds, so that 3 of them lie within one.
    let file = lab.path("campaign.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text
        .replace("target_s = 0.002", "target_s = 10")
        .replace("budget_s = 5", "budget_s = 100");
    fs::write(&file, text).unwrap();
    let run = lab.run_dir(1);
    let list = measured.to_string();
    let mut running = lab.start(&["run", "--only", "/sign$", "--cpu", &list]);
    let sign = [("event", "attempt_begun"), ("record", RECORD)];
    assert!(lab::wait_until(&mut running, || lab::has_event(
        &run, &sign
    )));
    let tasks = PathBuf::from(format!("/proc/{}/task", running.pid()));
    let mut threads = 0;
    for task in fs::read_dir(&tasks).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list:"));
        let cpus = harness::host::facts::parse_cpu_list(line.unwrap().split_once(':').unwrap().1);
        assert!(
            cpus.contains(&other) && !cpus.contains(&measured),
            "{cpus:?}"
        );
        threads += 1;
    }
    // Ticks are hundredths of a second: 2 of them in 3 seconds are below 1% of a CPU.
    let before = ticks(&tasks);
    std::thread::sleep(Duration::from_secs(3));
    assert!(running.is_alive());
    let after = ticks(&tasks);
    let used: u64 = after
        .iter()
        .map(|(task, now)| now.ticks - before.get(task).map_or(0, |then| then.ticks))
        .sum();
    assert!(used <= 2, "{used} ticks in 3 s");
    // A thread that has used a tick on the measured CPU would have been there last at one of both times,
    // or have moved back, which its affinity forbids.
    for now in before.values().chain(after.values()) {
        assert_ne!(now.cpu, measured);
    }
    assert!(threads > 0);
    running.signal(Signal::SIGTERM);
    running.end().expect(143);
}

/// CPU time of a thread so far, in clock ticks, and the CPU that it was on last.
struct Ticks {
    ticks: u64,
    cpu: u32,
}

/// Of each thread of a process, from `/proc/<pid>/task/<tid>/stat` (fields 14, 15 and 39 of proc(5)).
fn ticks(tasks: &Path) -> std::collections::BTreeMap<PathBuf, Ticks> {
    let threads = fs::read_dir(tasks).unwrap().flatten().map(|t| t.path());
    threads
        .map(|task| {
            let text = fs::read_to_string(task.join("stat")).unwrap();
            // The name is in parentheses and may hold blanks; field 3 follows it.
            let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
            let field = |n: usize| fields[n - 3].parse::<u64>().unwrap();
            let ticks = field(14) + field(15);
            let cpu = field(39) as u32;
            (task, Ticks { ticks, cpu })
        })
        .collect()
}

#[test]
fn the_memory_of_a_program_that_runs_libraries_is_root_s_alone() {
    let lab = slow();
    let mut running = lab.start(&SIGN);
    let run = lab.run_dir(1);
    let begun = [("event", "phase_begun")];
    assert!(lab::wait_until(&mut running, || lab::has_event(
        &run, &begun
    )));
    // Where a process may be read by its user's other processes, its files are its user's.
    let memory = fs::metadata(format!("/proc/{}/mem", running.pid())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&memory), 0);
    running.signal(Signal::SIGTERM);
    running.end().expect(143);
}

#[test]
fn an_interruption_is_said_kills_the_worker_and_can_be_resumed() {
    for (signal, status, name) in [
        (Signal::SIGINT, 130, "SIGINT"),
        (Signal::SIGTERM, 143, "SIGTERM"),
    ] {
        let lab = slow();
        let run = lab.run_dir(1);
        let mut running = lab.start(&SIGN);
        let sign = [("event", "attempt_begun"), ("record", RECORD)];
        assert!(lab::wait_until(&mut running, || lab::has_event(
            &run, &sign
        )));
        running.signal(signal);
        let end = running.end().expect(status);
        assert!(end.stderr.contains("the same command resumes it"), "{end}");
        assert_eq!(lab::processes_in(&run), [""; 0]);
        assert!(lab::has_event(
            &run,
            &[("event", "interrupted"), ("by", name)]
        ));
        let before = lab::journal(&run).lines.len();
        lab.campaign(&SIGN).expect(0);
        check_complete(&run);
        assert!(lab::journal(&run).lines.len() > before);
        let sessions = json(&run, RECORD)["sessions"].as_array().unwrap().len();
        assert!((1..=2).contains(&sessions));
    }
}

/// Kills the program ten times, each time a moment after `phase` was begun, and lets it finish.
fn survives_kills_in(phase: &str) {
    let lab = Lab::new(&TWO, "");
    let seed = rand_seed();
    println!("seed of the moments: {seed}");
    let mut moment = seed;
    // Kills that hit the phase; those that came too late make the next one come earlier.
    let (mut kills, mut latest_us) = (0, 1 << 18); // 0.26 s
    let mut k = 1;
    while kills < 10 {
        let run = lab.run_dir(k);
        let begun_before = count(&run, phase);
        let finished_before = finished(&run);
        let arguments: &[&str] = match run.exists() || k == 1 {
            true => &["run"],
            false => &["run", "--new"],
        };
        let mut running = lab.start(arguments);
        let begun = lab::wait_until(&mut running, || count(&run, phase) > begun_before);
        assert!(begun, "{phase} was not begun: {}", running.end());
        moment = moment
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_micros((moment >> 33) % latest_us));
        if running.is_alive() {
            running.signal(Signal::SIGKILL);
        }
        let end = running.end();
        match end.status.is_none() && last_begun(&run).as_deref() == Some(phase) {
            true => kills += 1,
            false => latest_us = (latest_us / 2).max(1000),
        }
        for (path, content) in finished_before {
            assert_eq!(
                fs::read(&path).unwrap(),
                content,
                "{} was changed",
                path.display()
            );
        }
        match end.status {
            // A kill after the sealing line: what belongs beside it is made up for.
            None if is_sealed(&run) => {
                lab.campaign(&["run"]).expect(0);
            }
            None => continue,
            Some(0) => {}
            Some(_) => panic!("{end}"),
        }
        check_complete(&run);
        k += 1;
    }
    let run = lab.run_dir(k);
    if run.exists() {
        lab.campaign(&["run"]).expect(0);
        check_complete(&run);
        assert_eq!(lab::processes_in(&run), [""; 0]);
    }
}

fn is_sealed(run: &Path) -> bool {
    fs::read_to_string(run.join("journal.jsonl"))
        .is_ok_and(|text| text.ends_with('\n') && text.contains("\"event\":\"sealed\""))
}

/// The phase that was begun last.
fn last_begun(run: &Path) -> Option<String> {
    let text = fs::read_to_string(run.join("journal.jsonl")).ok()?;
    let lines = text.lines().rev();
    let mut events = lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let begun = events.find(|event| event["event"] == "phase_begun")?;
    begun["phase"].as_str().map(str::to_owned)
}

/// How often a phase was begun.
fn count(run: &Path, phase: &str) -> usize {
    let text = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let needle = format!("\"event\":\"phase_begun\",\"phase\":\"{phase}\"");
    text.matches(&needle).count()
}

/// Evidence that says it is complete; not what a write that was cut off has left.
fn finished(run: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let all = lab::files(&run.join("records")).into_iter();
    all.chain(lab::files(&run.join("kat")))
        .chain(lab::files(&run.join("calibrate")))
        .chain(lab::files(&run.join("memory")))
        .chain(lab::files(&run.join("profile")))
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "json"))
        .filter(|(_, content)| {
            String::from_utf8_lossy(content).contains("\"status\": \"complete\"")
        })
        .collect()
}

/// A seed that is printed: `CAMPAIGN_TEST_SEED`, else of the moment.
fn rand_seed() -> u64 {
    match std::env::var("CAMPAIGN_TEST_SEED") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64,
    }
}

#[test]
fn a_run_survives_kills_while_it_builds() {
    survives_kills_in("build");
}

#[test]
fn a_run_survives_kills_while_it_checks_known_answers() {
    survives_kills_in("kat");
}

#[test]
fn a_run_survives_kills_while_it_calibrates() {
    survives_kills_in("calibrate");
}

#[test]
fn a_run_survives_kills_while_it_measures() {
    survives_kills_in("measure");
}

#[test]
fn a_run_survives_kills_while_it_measures_memory() {
    survives_kills_in("memory");
}

#[test]
fn a_run_survives_kills_while_it_profiles() {
    survives_kills_in("profile");
}

#[test]
fn an_attempt_that_a_kill_cut_off_is_kept_and_does_not_count() {
    let lab = slow();
    let run = lab.run_dir(1);
    let mut running = lab.start(&SIGN);
    let sign = [("event", "attempt_begun"), ("record", RECORD)];
    assert!(lab::wait_until(&mut running, || lab::has_event(
        &run, &sign
    )));
    running.signal(Signal::SIGKILL);
    running.end();
    // Nobody is left to end the worker but the kernel.
    let gone = || lab::processes_in(&run).is_empty();
    assert!((0..12_000).any(|_| gone() || {
        std::thread::sleep(Duration::from_millis(10));
        false
    }));
    lab.campaign(&SIGN).expect(0);
    check_complete(&run);
    let record = json(&run, RECORD);
    let attempts: Vec<&serde_json::Value> = record["trials"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|trial| trial["attempts"].as_array().unwrap())
        .collect();
    let cut_off: Vec<_> = attempts
        .iter()
        .filter(|a| a["exit"] == "interrupted")
        .collect();
    assert_eq!(cut_off.len(), 1);
    assert_eq!(cut_off[0]["session"], 0);
    assert!(cut_off[0]["started_utc"].is_string());
    assert_eq!(attempts.len() as u64, lab::TRIALS + 1);
}

#[test]
fn a_worker_that_somebody_kills_is_tried_again() {
    let lab = slow();
    let run = lab.run_dir(1);
    let mut running = lab.start(&SIGN);
    let sign = [("event", "attempt_begun"), ("record", RECORD)];
    let killed = lab::wait_until(&mut running, || {
        lab::has_event(&run, &sign)
            && lab::numbers_in(&run).into_iter().any(|pid| {
                let pid = nix::unistd::Pid::from_raw(pid);
                nix::sys::signal::kill(pid, Signal::SIGKILL).is_ok()
            })
    });
    assert!(killed);
    running.end().expect(0);
    check_complete(&run);
    let text = fs::read_to_string(run.join(RECORD)).unwrap();
    assert!(text.contains("was ended by SIGKILL"), "{text}");
}

/// Mounts a small file system for a test; gone when dropped.
struct Mount(std::path::PathBuf);

impl Mount {
    /// `None` (and a word about it) where this process may not mount.
    fn new(path: &Path, size: &str) -> Option<Mount> {
        if !nix::unistd::geteuid().is_root() {
            skip_without_root("mounting a small file system");
            return None;
        }
        if !have("mount", "mount") {
            return None;
        }
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(path)
            .status()
            .unwrap();
        match mounted.success() {
            true => Some(Mount(path.to_owned())),
            false => {
                skip("this root may not mount");
                None
            }
        }
    }

    fn remount(&self, option: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_place_that_cannot_be_written_is_status_3_before_anything_is_done() {
    let lab = Lab::new(&[FINE], "");
    let place = lab.path("disk");
    let Some(disk) = Mount::new(&place, "64m") else {
        return;
    };
    disk.remount("ro");
    let end = lab.campaign(&["run", "--run", "disk/run"]).expect(3);
    assert!(end.stderr.contains("cannot be written to"), "{end}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    drop(disk);
    let disk = Mount::new(&place, "1m").unwrap();
    let end = lab.campaign(&["run", "--run", "disk/run"]).expect(3);
    assert!(end.stderr.contains("make room"), "{end}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    drop(disk);
}

#[test]
fn a_disk_that_fills_up_stops_the_run_with_its_records_whole() {
    let lab = slow();
    let place = lab.path("disk");
    let Some(_disk) = Mount::new(&place, "16m") else {
        return;
    };
    let run = place.join("run");
    let mut running = lab.start(&["run", "--run", "disk/run", "--only", "/sign$"]);
    let written = || run.join(RECORD).is_file();
    assert!(lab::wait_until(&mut running, written));
    let filler = place.join("filler");
    let filled = Command::new("dd")
        .args(["if=/dev/zero", "bs=4k", &format!("of={}", filler.display())])
        .output()
        .unwrap();
    assert!(
        !filled.status.success(),
        "the disk is larger than it should be"
    );
    let end = running.end().expect(3);
    assert!(end.stderr.contains("No space left on device"), "{end}");
    assert_eq!(lab::processes_in(&run), [""; 0]);
    lab::journal(&run);
    let records = lab::files(&run.join("records"));
    assert!(records.contains_key(&run.join(RECORD)));
    let status = |content: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(content).expect("whole files");
        value["status"].clone()
    };
    let mut complete = Vec::new();
    for folder in ["calibrate", "kat", "memory", "profile", "records"] {
        let json = lab::files(&run.join(folder)).into_iter();
        let json = json.filter(|(path, _)| path.extension().is_some_and(|e| e == "json"));
        complete.extend(json.filter(|(_, content)| status(content) == "complete"));
    }
    assert!(
        complete.len() > 3,
        "known answers and a calibration: {complete:?}"
    );
    fs::remove_file(&filler).unwrap();
    lab.campaign(&["run", "--run", "disk/run"]).expect(0);
    check_complete(&run);
    for (path, content) in complete {
        assert_eq!(fs::read(&path).unwrap(), content, "{}", path.display());
    }
    lab.campaign(&["audit", "disk/run"]).expect(0);
}

#[test]
fn a_worker_that_is_missing_or_replaced_stops_the_run() {
    let lab = slow();
    let own = lab.path("my worker");
    let found = assert_cmd::cargo::cargo_bin("campaign").with_file_name("worker");
    if !found.is_file() {
        return skip("there is no worker beside the program; run cargo test --workspace");
    }
    fs::copy(&found, &own).unwrap();
    let arguments = ["run", "--only", "/sign$", "--worker", "my worker"];
    let run = lab.run_dir(1);
    let mut running = lab.start(&arguments);
    assert!(lab::wait_until(&mut running, || lab::has_event(
        &run,
        &[("event", "attempt_begun")]
    )));
    fs::remove_file(&own).unwrap();
    let end = running.end().expect(3);
    assert!(end.stderr.contains("my worker"), "{end}");
    lab.campaign(&arguments).expect(3);
    fs::copy(&found, &own).unwrap();
    lab.campaign(&arguments).expect(0);
    check_complete(&run);
}

#[test]
fn a_manifest_line_that_is_malformed_is_status_2_with_its_line() {
    let lab = Lab::new(&[FINE], "");
    let path = lab.path("lab.sha256");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}not a line\n")).unwrap();
    let end = lab.campaign(&["run"]).expect(2);
    assert!(end.stderr.contains("lab.sha256:2"), "{end}");
    assert!(!lab.path("runs").exists());
}

#[test]
fn leaving_a_wrapper_out_changes_the_verdict() {
    let verdict = |hash: &str| {
        let lab = Lab::new(&[FINE], "");
        let file = lab.path("campaign.toml");
        let text = fs::read_to_string(&file).unwrap();
        let with = r#"hash = ["sm3hash"]"#;
        assert!(text.contains(with));
        fs::write(&file, text.replace(with, &format!("hash = [{hash}]"))).unwrap();
        lab.campaign(&["profile"]).expect(0);
        let profile = json(
            &lab.run_dir(1),
            "profile/lab/lab-1.ref.reference__sign.json",
        );
        profile["derived"]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(r#""sm3hash""#), "ICCS-only");
    assert_eq!(verdict(""), "own primitives");
}
