//! Faults planted in real candidates: the known-answer test must find each of them, and nothing in
//! the unchanged ones.

use crate::support::lab::{json, Lab};
use crate::support::{have, root};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the files of a folder that are C.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text.ends_with(".c") || text.ends_with(".h") {
            fs::copy(entry.path(), to.join(&name)).unwrap();
        }
    }
}

/// Replaces the one place in a file; a plant that changes nothing would prove nothing.
fn plant(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "`{old}` is not in {}", file.display());
    fs::write(file, text.replacen(old, new, 1)).unwrap();
}

/// A campaign of DOVE's smallest set, from a copy of its sources, against the published digest.
fn dove() -> Lab {
    let lab = Lab::bare();
    for folder in ["dove", "iccs"] {
        copy(&root().join("drivers").join(folder), &lab.path(folder));
    }
    fs::copy(
        root().join("performance/kat/sign-09.sha256"),
        lab.path("lab.sha256"),
    )
    .unwrap();
    let table = r#"
[build.reference]
cflags = "-std=c99 -Wpedantic -Wall -Wextra -O2"
[[candidate]]
id = "sign-09"
name = "DOVE"
origin = "independent"
kat = { flow = "iccs", manifest = "lab.sha256" }
[[candidate.code]]
name = "ref"
sources = ["dove/*.c", "iccs/*.c"]
include = ["dove", "iccs"]
defines = ["DOVE_CLASSIC", "DOVE_LEVEL=128"]
builds = ["reference"]
[[candidate.instance]]
label = "dove_classic_128"
unauthenticated_signature_bytes = "112.."
"#;
    fs::write(lab.path("campaign.toml"), table).unwrap();
    lab
}

/// The timed library's KAT evidence.
fn evidence(lab: &Lab, candidate: &str, label: &str, code: &str) -> Value {
    json(
        &lab.run_dir(1),
        &format!("kat/{candidate}/{label}.{code}.reference.timed.json"),
    )
}

#[test]
fn a_changed_constant_in_dove_is_a_mismatch() {
    let lab = dove();
    // Another number in the expansion of every P_i2: a scheme as good as the original, and another one.
    plant(&lab.path("dove/expand.c"), "DOVE_L + i", "DOVE_L + 1 + i");
    let end = lab.campaign(&["kat"]).expect(1);
    assert!(end.stdout.contains("MISMATCH"), "{end}");
    let kat = evidence(&lab, "sign-09", "dove_classic_128", "ref");
    assert_eq!(kat["result"], "MISMATCH");
    assert_ne!(kat["digests"][0]["found"], kat["digests"][0]["expected"]);
}

#[test]
fn one_digit_changed_in_the_text_only_is_a_mismatch() {
    let lab = dove();
    let texts = lab.path("texts");
    let end = lab
        .campaign(&["kat", "--keep-text", texts.to_str().unwrap()])
        .expect(0);
    assert!(end.stdout.contains("PASS"), "{end}");
    let kept = find(&texts).expect("the text was kept");
    let text = fs::read_to_string(kept).unwrap();
    // The canonical form, made here: no empty lines, no trailing blanks, LF.
    let digest = |text: &str| {
        let lines: String = text
            .lines()
            .map(|line| line.trim_end_matches([' ', '\t', '\r']))
            .filter(|line| !line.is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        const_hex::encode(Sha256::digest(lines))
    };
    let published = fs::read_to_string(lab.path("lab.sha256")).unwrap();
    assert!(published.starts_with(&digest(&text)), "the control");
    let at = text.rfind("Sn = ").unwrap() + 5;
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    let mut changed = text.clone();
    changed.replace_range(at..=at, digit);
    let line = format!(
        "{} strict dove_classic_128/KAT_SIG_dove_classic_128.txt\n",
        digest(&changed)
    );
    fs::write(lab.path("lab.sha256"), line).unwrap();
    let end = lab.campaign(&["kat", "--run", "runs/again"]).expect(1);
    assert!(end.stdout.contains("MISMATCH"), "{end}");
}

/// The first text below a folder.
fn find(folder: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path) {
                return Some(found);
            }
        } else if path.extension().is_some_and(|e| e == "txt") {
            return Some(path);
        }
    }
    None
}

/// Folder of the registry crate that holds the C of round-3 Dilithium.
fn round3() -> Option<PathBuf> {
    if !have("cargo", "cargo") {
        return None;
    }
    let manifest = root().join("drivers/dilithium/sources/Cargo.toml");
    let metadata = |offline: bool| {
        let mut command = Command::new("cargo");
        command.args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--manifest-path",
        ]);
        command.arg(&manifest);
        if offline {
            command.arg("--offline");
        }
        command.output().unwrap()
    };
    let mut output = metadata(true);
    if !output.status.success() {
        output = metadata(false);
    }
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = value["packages"].as_array().unwrap();
    let package = packages
        .iter()
        .find(|p| p["name"] == "pqcrypto-dilithium")
        .unwrap();
    let path = PathBuf::from(package["manifest_path"].as_str().unwrap());
    Some(path.parent().unwrap().to_owned())
}

/// A campaign of Dilithium2 from a copy of its sources.
fn dilithium(package: &Path) -> Lab {
    let lab = Lab::bare();
    let scheme = package.join("pqclean/crypto_sign/dilithium2/clean");
    copy(&scheme, &lab.path("scheme"));
    copy(&package.join("pqclean/common"), &lab.path("common"));
    copy(&root().join("drivers/iccs"), &lab.path("iccs"));
    copy(&root().join("drivers/dilithium"), &lab.path("adapter"));
    fs::copy(
        root().join("performance/kat/dilithium.sha256"),
        lab.path("lab.sha256"),
    )
    .unwrap();
    let table = r#"
[build.reference]
cflags = "-std=c99 -Wpedantic -Wall -Wextra -O2"
[[candidate]]
id = "dilithium"
name = "CRYSTALS-Dilithium (round 3)"
origin = "upstream"
kat = { flow = "nist", manifest = "lab.sha256" }
[[candidate.code]]
name = "clean"
sources = ["scheme/*.c", "common/fips202.c", "adapter/adapter.c", "iccs/*.c"]
include = ["scheme", "common", "iccs"]
defines = ["SCHEME={LABEL}", "IMPL=CLEAN"]
builds = ["reference"]
[[candidate.instance]]
label = "dilithium2"
"#;
    fs::write(lab.path("campaign.toml"), table).unwrap();
    lab
}

#[test]
fn a_rejection_bound_moved_by_one_passes_the_first_vector_and_fails_the_hundred() {
    let Some(package) = round3() else { return };
    let lab = dilithium(&package);
    // The first place is the signer's; the verifier keeps its bound, and accepts.
    plant(
        &lab.path("scheme/sign.c"),
        "GAMMA1 - BETA)",
        "GAMMA1 - BETA - 1)",
    );
    let end = lab.campaign(&["kat"]).expect(1);
    assert!(end.stdout.contains("MISMATCH"), "{end}");
    let kat = evidence(&lab, "dilithium", "dilithium2", "clean");
    let digest = |mode: &str| {
        let all = kat["digests"].as_array().unwrap();
        all.iter().find(|d| d["mode"] == mode).unwrap().clone()
    };
    let (one, hundred) = (digest("nistkat"), digest("rsp"));
    assert_eq!(
        one["found"], one["expected"],
        "the fault is not in the first vector"
    );
    assert_ne!(hundred["found"], hundred["expected"]);
}

#[test]
fn unchanged_sources_pass() {
    let Some(package) = round3() else { return };
    let end = dilithium(&package).campaign(&["kat"]).expect(0);
    assert!(end.stdout.contains("PASS"), "{end}");
}
