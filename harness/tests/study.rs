//! The message-size study, run by the real program with the real worker on a small candidate, and once
//! on Dilithium itself.

use crate::support::lab::{self, json, Instance, Lab, FINE};
use crate::support::{copy_tree, root};
use harness::audit::audit;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const STUDY: [&str; 2] = ["study", "message-size"];

/// Modes of the small candidate; it has no function that could be hooked.
const MODES: &str = r#"modes = ["buffer", "mmap", "stream", "prehash-sha256"]"#;

/// A lab with this section for its study, on a machine that is registered as `here`.
fn lab(instances: &[Instance], study: &str) -> Lab {
    let lab = Lab::new(instances, "");
    let path = lab.path("campaign.toml");
    let arch = std::env::consts::ARCH;
    let text = fs::read_to_string(&path).unwrap()
        + &format!(
            "\n[[system]]\nid = \"here\"\narch = \"{arch}\"\ncpu_model = \".*\"\ncc = \"gcc\"\n\
             description = \"the machine of the tests\"\n\
             \n[study.message-size]\ninstances = [\"^lab/\"]\ntrials = 3\n{study}\n"
        );
    fs::write(path, text).unwrap();
    lab
}

fn run_of(lab: &Lab, k: u32) -> PathBuf {
    lab.path(&format!("runs/here-study-{k}"))
}

fn campaign(lab: &Lab, arguments: &[&str]) -> lab::End {
    lab.campaign(&[&STUDY, arguments].concat())
}

fn record(run: &Path, operation: &str, mode: &str, size: u64) -> Value {
    let file =
        format!("study/message-size/lab/lab-1.ref.reference__{operation}__{mode}__{size}.json");
    json(run, &file)
}

/// What lies in `keys/` beside the salt and the lock.
fn left_in_keys(run: &Path) -> Vec<PathBuf> {
    let kept = |path: &PathBuf| !path.ends_with("host.salt") && !path.ends_with("run.lock");
    lab::files(&run.join("keys"))
        .into_keys()
        .filter(kept)
        .collect()
}

#[test]
fn a_study_runs_from_source_to_a_published_page() {
    let study = format!("sizes = [1000, 8000, 32000]\nmemory_guard = 10000\n{MODES}");
    let lab = lab(&[FINE], &study);
    let end = campaign(&lab, &[]).expect(0);
    assert!(
        end.stdout.contains("pages/study-message-size.html"),
        "{end}"
    );
    let run = run_of(&lab, 1);
    assert!(lab::journal(&run).sealed().is_some());
    assert_eq!(
        left_in_keys(&run),
        [""; 0].map(PathBuf::from),
        "messages go"
    );
    points(&run);
    signatures(&run);
    what_cannot_be_measured(&run);
    let fit = json(
        &run,
        "study/message-size/lab/lab-1.ref.reference__verify.fit.json",
    );
    assert_eq!(fit["modes"][1]["mode"], "mmap");
    assert_eq!(fit["modes"][1]["points"].as_array().unwrap().len(), 3);
    assert!(
        fit["modes"][1]["model"]["s_per_byte"]["value"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    page(&run);
    let report = audit(&run);
    assert!(!report.is_refuted(), "{:?}", report.findings);
    tampering_is_found(&run);

    // The same command has nothing left to do; others are other runs.
    let end = campaign(&lab, &["--worker", "none"]).expect(0);
    assert!(end.stdout.contains("is complete already"), "{end}");
    let end = campaign(&lab, &["--run", "runs/here-study-1", "--trials", "4"]).expect(2);
    assert!(end.stderr.contains("it is a run of another study"), "{end}");

    let current = ["publish", "runs/here-study-1", "--current"];
    let end = lab.campaign(&current).expect(2);
    assert!(end.stderr.contains("leave --current out"), "{end}");
    lab.campaign(&[
        "publish",
        "runs/here-study-1",
        "--id",
        "s1",
        "--allow-unfixed-host",
    ])
    .expect(0);
    lab.campaign(&["audit", "performance/data/here/s1"])
        .expect(0);
    lab.campaign(&["report", "performance/data/here/s1"])
        .expect(0);
    lab.campaign(&["report", "--check", "performance/data/here/s1"])
        .expect(0);
    lab.campaign(&["export", "performance/data/here/s1", "--csv"])
        .expect(0);
}

/// Key generation once a size; the others in every mode that can be.
fn points(run: &Path) {
    for size in [1000, 8000, 32000] {
        let keygen = record(run, "keygen", "mmap", size);
        assert_eq!(
            (&keygen["status"], &keygen["signature_sha256"]),
            (&"complete".into(), &Value::Null)
        );
        assert_eq!(keygen["study"]["throughput_mb_per_s"], Value::Null);
        for mode in ["mmap", "prehash-sha256"] {
            let point = record(run, "sign", mode, size);
            assert_eq!(point["status"], "complete", "{mode} {size}");
            assert_eq!(point["kind"], "study");
            assert_eq!(point["inputs"]["message_bytes"], size);
            let study = &point["study"];
            let rate = study["throughput_mb_per_s"].as_f64().unwrap();
            let mean = point["derived"]["mean_s"].as_f64().unwrap();
            assert!((rate * mean * 1e6 / size as f64 - 1.0).abs() < 1e-12);
            let (one, all) = (&study["cpu_percent_one"], &study["cpu_percent_all"]);
            let online = point["online_cpus"].as_f64().unwrap();
            assert_eq!(one.as_f64().unwrap() / online, all.as_f64().unwrap());
        }
    }
    let hashed = record(run, "verify", "prehash-sha256", 8000);
    let calls = hashed["plan"]["iterations"].as_u64().unwrap();
    assert_eq!(hashed["io"][0][0]["bytes_read"], calls * 8000);
    assert_eq!(hashed["chunk_bytes"], 65536);
    let share = hashed["study"]["hash_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
}

/// The same message, key and randomness give the same signature, however the message gets there.
fn signatures(run: &Path) {
    for operation in ["sign", "verify"] {
        for trial in 0..3 {
            let of = |mode: &str, size| {
                let point = record(run, operation, mode, size);
                point["io"][trial][0]["signature_sha256"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            };
            assert_eq!(of("buffer", 1000), of("mmap", 1000));
            assert_ne!(of("buffer", 1000), of("prehash-sha256", 1000));
            assert_ne!(of("mmap", 1000), of("mmap", 8000));
        }
        let fit = json(
            run,
            &format!("study/message-size/lab/lab-1.ref.reference__{operation}.fit.json"),
        );
        assert_eq!(
            fit["signatures"]["compared"], 6,
            "two sizes below the guard, three trials"
        );
        assert_eq!(fit["signatures"]["identical"], 6);
    }
}

/// A buffer above the guard says what it would need; a candidate without a hook has no stream.
fn what_cannot_be_measured(run: &Path) {
    let large = record(run, "sign", "buffer", 32000);
    assert_eq!(
        (&large["status"], &large["reason"]["code"]),
        (&"skipped".into(), &"over_budget".into())
    );
    let text = large["reason"]["text"].as_str().unwrap();
    assert!(
        text.contains("needs 32000 bytes") && text.contains("guard is 10000 bytes"),
        "{text}"
    );
    let stream = record(run, "verify", "stream", 1000);
    assert_eq!(
        (&stream["status"], &stream["reason"]["code"]),
        (&"skipped".into(), &"not_in_plan".into())
    );
}

fn page(run: &Path) {
    let text = fs::read_to_string(run.join("pages/study-message-size.md")).unwrap();
    for part in [
        "## 6. The published study beside this one",
        "### lab/lab-1/ref/reference",
        "Signatures of buffer, mmap and stream under the same randomness are identical in 12 of 12 comparisons",
        "30% of a quad core suggests hyper-threading",
        "Levels are not held against each other: there are no two levels of one code at one size.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let charts = lab::files(&run.join("pages/charts"));
    assert_eq!(charts.len(), 6, "{:?}", charts.keys());
    let index = fs::read_to_string(run.join("pages/index.html")).unwrap();
    assert!(index.contains("href=\"study-message-size.html\""));
}

/// Every kind of number of a study is computed again.
fn tampering_is_found(run: &Path) {
    let point = "study/message-size/lab/lab-1.ref.reference__sign__prehash-sha256__8000.json";
    let fit = "study/message-size/lab/lab-1.ref.reference__sign.fit.json";
    let cases: [(&str, &[&str], &str); 8] = [
        (
            point,
            &["study", "cpu_percent_one"],
            "values of a study follow",
        ),
        (point, &["study", "hash_s"], "values of a study follow"),
        (point, &["derived", "mean_s"], "derived values follow"),
        (
            point,
            &["io", "0", "0", "bytes_read"],
            "reads what its mode reads",
        ),
        (point, &["plan", "iterations"], "makes the planned calls"),
        (
            fit,
            &["modes", "3", "model", "fixed_s", "value"],
            "weighted least squares",
        ),
        (
            fit,
            &["modes", "3", "points", "0", "mean_s"],
            "weighted least squares",
        ),
        (
            fit,
            &["signatures", "identical"],
            "compared by size and trial",
        ),
    ];
    for (file, path, rule) in cases {
        let home = tempfile::tempdir().unwrap();
        let copy = home.path().join("run");
        copy_tree(run, &copy, &["lib", "pages", "keys"]);
        let mut value = json(&copy, file);
        let mut at = &mut value;
        for key in path {
            at = match key.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[*key],
            };
        }
        *at = match at.as_u64() {
            Some(whole) => (whole + 1).into(),
            None => (at.as_f64().unwrap() * 1.01).into(),
        };
        fs::write(
            copy.join(file),
            serde_json::to_string_pretty(&value).unwrap() + "\n",
        )
        .unwrap();
        let findings = audit(&copy).findings;
        assert!(
            findings.iter().any(|f| f.rule.contains(rule)),
            "{path:?}: {findings:?}"
        );
    }
}

/// Signatures take a tenth of a second.
const SLOW: Instance = Instance {
    label: "lab-1",
    defines: &["LAB_SPIN_MS=100"],
    one_key: false,
    wrong_digest: false,
};

#[test]
fn a_study_that_was_killed_and_one_that_was_interrupted_go_on() {
    let lab = lab(
        &[SLOW],
        "sizes = [1000, 2000]\nmodes = [\"buffer\", \"mmap\"]",
    );
    let run = run_of(&lab, 1);
    let arguments = [&STUDY[..], &["--only", "/sign$"]].concat();
    let begun = [("event", "attempt_begun")];
    let mut killed = lab.start(&arguments);
    assert!(lab::wait_until(&mut killed, || lab::has_event(
        &run, &begun
    )));
    killed.signal(Signal::SIGKILL);
    killed.end();
    let count = || {
        let chain = lab::journal(&run);
        let lines = chain.lines.iter().map(lab::event);
        lines
            .filter(|line| line["event"] == "attempt_begun")
            .count()
    };
    let before = count();
    let mut stopped = lab.start(&arguments);
    assert!(lab::wait_until(&mut stopped, || {
        let text = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
        text.matches("attempt_begun").count() > before + 2
    }));
    stopped.signal(Signal::SIGINT);
    stopped.end().expect(130);
    assert_eq!(
        left_in_keys(&run),
        [""; 0].map(PathBuf::from),
        "messages go with an interruption"
    );
    lab.campaign(&arguments).expect(0);
    assert!(lab::journal(&run).sealed().is_some());
    let mut good = 0;
    for mode in ["buffer", "mmap"] {
        for size in [1000, 2000] {
            let point = record(&run, "sign", mode, size);
            assert_eq!(point["status"], "complete");
            let both = ["trials", "io"].map(|key| point[key].as_array().unwrap());
            assert_eq!(both.map(Vec::len), [3, 3]);
            for (trial, io) in both[0].iter().zip(both[1]) {
                let attempts = trial["attempts"].as_array().unwrap();
                assert_eq!(attempts.len(), io.as_array().unwrap().len());
                good += attempts.iter().filter(|a| a["exit"] == "ok").count();
            }
        }
    }
    assert_eq!(good, 12, "nothing was measured twice");
    assert!(count() > 12, "and something was cut off");
    let report = audit(&run);
    assert!(!report.is_refuted(), "{:?}", report.findings);
}

#[test]
fn a_file_of_the_users_is_the_message() {
    let lab = lab(&[FINE], MODES);
    let path = lab.path("a film.mp4");
    fs::write(&path, vec![7; 5000]).unwrap();
    campaign(&lab, &["--file", "a film.mp4", "--only", "/verify$"]).expect(0);
    let point = record(&run_of(&lab, 1), "verify", "mmap", 5000);
    let digest = harness::hash::sha256_file(&path).unwrap();
    assert_eq!(point["file_sha256"], digest.as_str());
    let settings = json(&run_of(&lab, 1), "campaign.json")["study"].clone();
    assert_eq!(settings["file"]["sha256"], digest.as_str());
    assert_eq!(
        (&settings["file"]["bytes"], &settings["file"]["sparse"]),
        (&5000.into(), &false.into())
    );
    assert_eq!(fs::read(&path).unwrap(), vec![7; 5000], "it is left alone");
    let everything =
        fs::read_to_string(run_of(&lab, 1).join("pages/study-message-size.md")).unwrap();
    assert!(
        !everything.contains("a film"),
        "its name is nobody's business"
    );

    // Another content is another study.
    fs::write(&path, vec![8; 5000]).unwrap();
    let end = campaign(
        &lab,
        &[
            "--file",
            "a film.mp4",
            "--run",
            "runs/here-study-1",
            "--only",
            "/verify$",
        ],
    )
    .expect(2);
    assert!(end.stderr.contains("another study"), "{end}");

    // Holes are measured, and said.
    let file = fs::File::create(&path).unwrap();
    file.set_len(40_000).unwrap();
    campaign(&lab, &["--file", "a film.mp4", "--only", "/verify$"]).expect(0);
    let page = fs::read_to_string(run_of(&lab, 2).join("pages/study-message-size.md")).unwrap();
    assert!(
        page.contains("it has holes, which are read as zeros"),
        "{page}"
    );
}

#[test]
fn what_is_no_message_is_refused_before_anything_is_written() {
    let lab = lab(&[FINE], MODES);
    fs::write(lab.path("empty"), "").unwrap();
    nix::unistd::mkfifo(&lab.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (file, said) in [
        ("absent", "cannot be read"),
        ("sources", "it is a directory"),
        ("fifo", "it is a FIFO"),
        ("empty", "it is empty"),
        ("/dev/zero", "it is a device"),
    ] {
        let end = campaign(&lab, &["--file", file]).expect(2);
        assert!(end.stderr.contains(said), "{end}");
    }
    let end = campaign(&lab, &["--sizes", "0"]).expect(2);
    assert!(end.stderr.contains("at least one byte"), "{end}");
    let end = campaign(&lab, &["--only", "nothing"]).expect(2);
    assert!(end.stderr.contains("matches no candidate"), "{end}");
    assert!(!lab.path("runs").exists());
}

#[test]
fn a_file_that_is_written_to_ends_the_study() {
    let lab = lab(&[SLOW], "modes = [\"buffer\", \"mmap\"]");
    let path = lab.path("log");
    fs::write(&path, vec![7; 5000]).unwrap();
    let run = run_of(&lab, 1);
    let arguments = [&STUDY[..], &["--file", "log", "--only", "/sign$"]].concat();
    let mut running = lab.start(&arguments);
    assert!(lab::wait_until(&mut running, || {
        lab::has_event(&run, &[("event", "attempt_begun")])
    }));
    let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"a line").unwrap();
    let end = running.end().expect(3);
    assert!(
        end.stderr.contains("it was changed while it was measured"),
        "{end}"
    );
    assert!(lab::journal(&run).sealed().is_none());
}

/// The real library: signatures of all three ways agree, and a stream holds a chunk, not the file.
#[test]
fn dilithium_signs_a_stream_as_it_signs_a_buffer() {
    const BYTES: u64 = 12_000_000;
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    let config = home.path().join("campaign.toml");
    let text = fs::read_to_string(root().join("campaign.toml")).unwrap();
    let (before, _) = text.split_once("[study.message-size]").unwrap();
    // Paths of the configuration are relative to it.
    for name in [
        "drivers",
        "performance",
        "harness",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        std::os::unix::fs::symlink(root().join(name), home.path().join(name)).unwrap();
    }
    let study = "[study.message-size]\ninstances = [\"^dilithium/dilithium2/clean/reference\"]\n\
                 modes = [\"buffer\", \"mmap\", \"stream\"]\nchunk = 1000\ntrials = 2\n";
    fs::write(&config, format!("{before}{study}")).unwrap();
    let output = Command::new(assert_cmd::cargo::cargo_bin("campaign"))
        .args([
            "study",
            "message-size",
            "--only",
            "^dilithium/dilithium2/clean/reference/(sign|verify)",
        ])
        .args(["--sizes", &format!("70000,{BYTES}"), "--run"])
        .arg(&run)
        .current_dir(home.path())
        .env("CAMPAIGN_LOCK_DIR", home.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for operation in ["sign", "verify"] {
        let file = |tail: &str| {
            format!("study/message-size/dilithium/dilithium2.clean.reference__{operation}{tail}")
        };
        let fit = json(&run, &file(".fit.json"));
        assert_eq!(fit["signatures"]["compared"], 4, "{fit}");
        assert_eq!(fit["signatures"]["identical"], 4);
        let peak = |mode: &str| {
            let point = json(&run, &file(&format!("__{mode}__{BYTES}.json")));
            assert_eq!(point["status"], "complete", "{point}");
            point["study"]["peak_rss_bytes"].as_u64().unwrap()
        };
        assert!(peak("buffer") > BYTES && peak("mmap") > BYTES);
        assert!(peak("stream") < 8_000_000, "{}", peak("stream"));
        let stream = json(&run, &file(&format!("__stream__{BYTES}.json")));
        assert_eq!(
            (&stream["chunk_bytes"], &stream["library"]["kind"]),
            (&1000.into(), &"stream".into())
        );
    }
    let report = audit(&run);
    assert!(!report.is_refuted(), "{:?}", report.findings);
}
