//! Known answers that were forged with care: file, log, references and seal agree, and the audit finds them.

use crate::support::datasets::small;
use crate::support::files;
use harness::audit::{audit, Severity};
use harness::hash::sha256;
use harness::testing::sealed;
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

const STEM: &str = "kat/sign-09/dove_a_128.ref.reference";

fn json_of(dir: &Path, kind: &str) -> PathBuf {
    dir.join(format!("{STEM}.{kind}.json"))
}

fn log_of(dir: &Path, kind: &str) -> PathBuf {
    dir.join(format!("{STEM}.{kind}.log"))
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
    bytes.push(b'\n');
    fs::write(path, bytes).unwrap();
}

/// Changes the text of a log; the text must have been there.
fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{}: no `{from}`", path.display());
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Changes a word in evidence and log of a library.
fn both(dir: &Path, kind: &str, from: &str, to: &str) {
    replace(&json_of(dir, kind), from, to);
    replace(&log_of(dir, kind), from, to);
}

/// What a careful forger does at the end: digests of logs, references of records, manifest, journal, seal.
fn seal(dir: &Path) {
    let all = files(dir);
    let below = |folder: &str| {
        let json = |file: &&PathBuf| {
            file.starts_with(folder) && file.extension().is_some_and(|e| e == "json")
        };
        all.iter()
            .filter(json)
            .map(|file| dir.join(file))
            .collect::<Vec<_>>()
    };
    for file in below("kat") {
        edit(&file, |kat| {
            let log = dir.join(kat["log"].as_str().unwrap());
            kat["log_sha256"] = sha256(&fs::read(log).unwrap()).into();
        });
    }
    for file in below("records") {
        edit(&file, |record| {
            let kat = dir.join(record["kat"]["file"].as_str().unwrap());
            record["kat"]["sha256"] = sha256(&fs::read(kat).unwrap()).into();
        });
    }
    sealed::reseal(dir).unwrap();
}

/// One more published stream, in evidence and log.
fn add_nolen(dir: &Path) {
    let digest = "5".repeat(64);
    edit(&json_of(dir, "timed"), |kat| {
        let stream = json!({"mode": "nolen", "expected": digest, "found": digest, "records": 10});
        kat["digests"].as_array_mut().unwrap().insert(1, stream);
    });
    let log = log_of(dir, "timed");
    replace(
        &log,
        "text ",
        &format!("{digest} nolen over 10 records\ntext "),
    );
    let line = format!("digest nolen expected {digest} found {digest} records 10\n");
    replace(&log, "digest strict:1", &format!("{line}digest strict:1"));
}

fn published() -> String {
    sha256(b"kat")
}

/// Name, change, and a part of the rule that must be broken.
type Forgery = (&'static str, fn(&Path), &'static str);

const FORGERIES: &[Forgery] = &[
    (
        "no KAT of the profile library",
        |dir| remove(dir, "profile"),
        "has KAT evidence",
    ),
    (
        "no KAT of the memory library",
        |dir| remove(dir, "memory"),
        "has KAT evidence",
    ),
    (
        "another first vector",
        |dir| {
            let first = first(dir);
            both(dir, "memory", &first, &"7".repeat(64));
        },
        "against the timed library's",
    ),
    (
        "a stream that the log keeps",
        |dir| {
            add_nolen(dir);
            edit(&json_of(dir, "timed"), |kat| {
                kat["digests"].as_array_mut().unwrap().remove(1);
            });
        },
        "the log says what the evidence says",
    ),
    (
        "flips that contradict the log",
        |dir| {
            edit(&json_of(dir, "timed"), |kat| {
                kat["flips"]["message"] = json!({"tried": 9, "rejected": 9, "exempt": 0});
            });
        },
        "the log says what the evidence says",
    ),
    (
        "digests that the worker did not tell",
        |dir| {
            let (from, to) = (published(), "6".repeat(64));
            replace(
                &json_of(dir, "timed"),
                &format!("expected\": \"{from}"),
                &format!("expected\": \"{to}"),
            );
            replace(
                &json_of(dir, "timed"),
                &format!("found\": \"{from}"),
                &format!("found\": \"{to}"),
            );
            let line = |digest: &str| format!("digest strict expected {digest} found {digest}");
            replace(&log_of(dir, "timed"), &line(&from), &line(&to));
        },
        "those that the worker told",
    ),
    (
        "another manifest",
        |dir| {
            replace(
                &json_of(dir, "timed"),
                &format!("manifest_sha256\": \"{}", manifest(dir)),
                &format!("manifest_sha256\": \"{}", "8".repeat(64)),
            )
        },
        "the log says what the evidence says",
    ),
    (
        "another flow",
        |dir| edit(&json_of(dir, "timed"), |kat| kat["flow"] = "nist".into()),
        "a stream is of the flow",
    ),
    (
        "another amount of text",
        |dir| edit(&json_of(dir, "timed"), |kat| kat["text_bytes"] = 5.into()),
        "the log says what the evidence says",
    ),
    (
        "flips of which a third was accepted",
        |dir| {
            edit(&json_of(dir, "timed"), |kat| {
                kat["flips"]["signature"] = json!({"tried": 24, "rejected": 16, "exempt": 8});
            });
            replace(
                &log_of(dir, "timed"),
                "32 tried, 32 rejected, 0 exempt",
                "24 tried, 16 rejected, 8 exempt",
            );
        },
        "modified inputs are rejected",
    ),
    (
        "no flips",
        |dir| {
            edit(&json_of(dir, "timed"), |kat| {
                kat["flips"] = Value::Null;
                kat["missing"]["/flips"] = json!({"code": "not_recorded", "text": "x"});
            });
            let text = fs::read_to_string(log_of(dir, "timed")).unwrap();
            let kept = text
                .lines()
                .filter(|line| !line.starts_with("flips"))
                .map(|line| format!("{line}\n"));
            fs::write(log_of(dir, "timed"), kept.collect::<String>()).unwrap();
        },
        "bits are flipped",
    ),
    (
        "another secret key in all records",
        |dir| {
            for file in files(dir).iter().filter(|f| f.starts_with("records")) {
                edit(&dir.join(file), |record| {
                    record["sizes"]["secret_key_bytes"] = 2529.into()
                });
            }
        },
        "claimed in its KAT",
    ),
    (
        "a library that claims other lengths",
        |dir| {
            replace(
                &log_of(dir, "memory"),
                "claimed lengths: public key 1312",
                "claimed lengths: public key 1313",
            )
        },
        "claim the same lengths",
    ),
    (
        "an output longer than claimed",
        |dir| {
            replace(
                &log_of(dir, "timed"),
                "vector 0: message 56 bytes, public key 1312",
                "vector 0: message 56 bytes, public key 1313",
            )
        },
        "longer than its claimed length",
    ),
    (
        "fewer vectors than were planned",
        |dir| {
            let text = fs::read_to_string(log_of(dir, "timed")).unwrap();
            let kept = text
                .lines()
                .filter(|line| !line.starts_with("vector 9"))
                .map(|line| format!("{line}\n"));
            fs::write(log_of(dir, "timed"), kept.collect::<String>()).unwrap();
        },
        "every vector of the streams was made",
    ),
    (
        "fewer records than the stream covers",
        |dir| {
            replace(&json_of(dir, "timed"), "\"records\": 10", "\"records\": 9");
            replace(&log_of(dir, "timed"), "over 10 records", "over 9 records");
            replace(&log_of(dir, "timed"), "records 10", "records 9");
        },
        "the result follows from the digests",
    ),
    (
        "two manifests",
        |dir| {
            let before = manifest(dir);
            both(dir, "memory", &before, &"8".repeat(64));
        },
        "held against one manifest",
    ),
    (
        "a log of another name",
        |dir| {
            let other = format!("{STEM}.other.log");
            fs::rename(log_of(dir, "timed"), dir.join(&other)).unwrap();
            edit(&json_of(dir, "timed"), |kat| kat["log"] = other.into());
        },
        "beside the evidence",
    ),
    (
        "a library that failed was used",
        |dir| {
            let (first, other) = (first(dir), "9".repeat(64));
            let detail = "it differs";
            edit(&json_of(dir, "memory"), |kat| {
                kat["digests"][0]["found"] = other.clone().into();
                kat["result"] = "MISMATCH".into();
                kat["status"] = "failed".into();
                kat["detail"] = detail.into();
                kat["missing"]
                    .as_object_mut()
                    .unwrap()
                    .shift_remove("/detail");
                kat["reason"] = json!({"code": "kat_mismatch", "text": detail});
            });
            let log = log_of(dir, "memory");
            replace(
                &log,
                &format!("{first} strict:1"),
                &format!("{other} strict:1"),
            );
            replace(&log, &format!("found {first}"), &format!("found {other}"));
            replace(
                &log,
                "RESULT PASS",
                &format!("detail {detail}\nRESULT MISMATCH"),
            );
        },
        "only what passes its KAT is used",
    ),
];

fn remove(dir: &Path, kind: &str) {
    fs::remove_file(json_of(dir, kind)).unwrap();
    fs::remove_file(log_of(dir, kind)).unwrap();
}

/// The first vector of the timed library.
fn first(dir: &Path) -> String {
    let kat: Value = serde_json::from_slice(&fs::read(json_of(dir, "timed")).unwrap()).unwrap();
    kat["digests"][1]["found"].as_str().unwrap().to_owned()
}

fn manifest(dir: &Path) -> String {
    let kat: Value = serde_json::from_slice(&fs::read(json_of(dir, "timed")).unwrap()).unwrap();
    kat["manifest_sha256"].as_str().unwrap().to_owned()
}

/// Rules that are broken.
fn broken(dir: &Path) -> Vec<String> {
    let findings = audit(dir).findings;
    let errors = findings.iter().filter(|f| f.severity == Severity::Error);
    errors.map(|finding| finding.to_string()).collect()
}

#[test]
fn forged_known_answers_are_found_although_all_digests_agree() {
    let mut missed = Vec::new();
    for (name, forge, rule) in FORGERIES {
        let (_home, dir) = small();
        forge(&dir);
        seal(&dir);
        let broken = broken(&dir);
        if !broken.iter().any(|finding| finding.contains(rule)) {
            missed.push(format!("{name}: no `{rule}` in {broken:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The forger's tools leave a sound dataset sound: what the test above finds is what was forged.
#[test]
fn a_sound_dataset_that_was_sealed_again_has_no_findings() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("nothing", |_| {}),
        ("one more stream", add_nolen),
        ("a manifest that was changed since", |dir| {
            let folder = dir.parent().unwrap().join("performance/kat");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("sign-09.sha256"), "").unwrap();
        }),
    ];
    for (name, change) in changes {
        let (_home, dir) = small();
        change(&dir);
        seal(&dir);
        assert_eq!(broken(&dir), [""; 0], "{name}");
    }
}

#[test]
fn expected_digests_are_held_against_the_manifest_of_the_project() {
    let (_home, dir) = small();
    let text = format!(
        "# one stream\n{} strict dove_a_128/KAT_SIG_a.txt\n",
        published()
    );
    let folder = dir.parent().unwrap().join("performance/kat");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sign-09.sha256"), &text).unwrap();
    let digest = sha256(text.as_bytes());
    for kind in ["timed", "profile", "memory"] {
        edit(&json_of(&dir, kind), |kat| {
            kat["manifest_sha256"] = digest.clone().into()
        });
        replace(
            &log_of(&dir, kind),
            &format!("manifest {}", published()),
            &format!("manifest {digest}"),
        );
    }
    seal(&dir);
    assert_eq!(broken(&dir), [""; 0]);
    // Evidence and log may agree about another answer: the manifest does not.
    let other = "6".repeat(64);
    both(&dir, "timed", &published(), &other);
    seal(&dir);
    let broken = broken(&dir);
    assert!(
        broken
            .iter()
            .any(|f| f.contains("are those of the manifest")),
        "{broken:?}"
    );
}
