//! `campaign plan` on small campaigns in a temporary folder: what it prints, what it refuses, and that
//! it writes nothing.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

const CAMPAIGN: &str = r#"
[build.reference]
cflags = "-O2"
[build.special]
cflags = "-O3"
requires.x86_64 = ["no_such_feature"]
requires.aarch64 = ["no_such_feature"]

[[candidate]]
id = "toy"
name = "TOY"
origin = "independent"
kat = { flow = "iccs", manifest = "toy.sha256" }

[[candidate.code]]
name = "ref"
sources = ["my sources/*.c"]
builds = ["reference", "special"]

[[candidate.instance]]
label = "toy-1"
"#;

/// A folder with a campaign.
fn folder(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("my sources")).unwrap();
    fs::write(dir.path().join("my sources/toy.c"), "").unwrap();
    fs::write(dir.path().join("toy.sha256"), "").unwrap();
    fs::write(dir.path().join("campaign.toml"), text).unwrap();
    dir
}

/// Status, standard output, standard error.
fn campaign(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("campaign")
        .unwrap()
        .current_dir(dir)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn the_plan_shows_what_takes_part_and_why_the_rest_does_not_and_writes_nothing() {
    let dir = folder(CAMPAIGN);
    let before = entries(dir.path());
    let (status, quick, _) = campaign(dir.path(), &["plan"]);
    assert_eq!(status, 0);
    assert!(quick.contains("Plan quick, system local"), "{quick}");
    assert!(quick.contains("toy/toy-1/ref/reference  keygen"), "{quick}");
    assert!(quick.contains("Skipped, not_in_plan"), "{quick}");
    let (_, guide, _) = campaign(dir.path(), &["plan", "--plan", "guide"]);
    assert!(
        guide.contains("Skipped, cpu_feature: the CPU lacks no_such_feature"),
        "{guide}"
    );
    assert_eq!(entries(dir.path()), before);
}

#[test]
fn the_plan_as_json_has_every_operation() {
    let dir = folder(CAMPAIGN);
    let (_, text, _) = campaign(dir.path(), &["plan", "--json", "--only", "/(sign|verify)$"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let operations = json["operations"].as_array().unwrap();
    let words: Vec<_> = operations
        .iter()
        .map(|o| o["operation"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["sign", "verify"]);
    assert_eq!(operations[0]["trials"], 5);
    assert!(operations[0]["iterations"].is_null());
    assert_eq!(json["skipped"][0]["reason"]["code"], "not_in_plan");
}

#[test]
fn the_file_is_found_from_below_and_named_by_config() {
    let dir = folder(CAMPAIGN);
    let below = dir.path().join("my sources");
    assert_eq!(campaign(&below, &["plan"]).0, 0);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = dir.path().join("campaign.toml");
    let named = ["plan", "--config", file.to_str().unwrap()];
    assert_eq!(campaign(elsewhere.path(), &named).0, 0);
}

#[test]
fn a_wrong_request_is_status_2_and_says_what_there_is() {
    let dir = folder(CAMPAIGN);
    for (arguments, said) in [
        (&["plan", "--plan", "gude"][..], "there is no plan `gude`"),
        (&["plan", "--system", "x86_9"], "there is no system `x86_9`"),
        (
            &["plan", "--cpu", "65000"],
            "CPU 65000 cannot be measured on",
        ),
        (&["plan", "--only", "("], "--only <REGEX>"),
        (
            &["plan", "--only", "tyo"],
            "`tyo` matches no candidate/label",
        ),
        (&["plan", "--config", "none.toml"], "cannot read none.toml"),
        (&["plan", "--run", "my sources"], "no run directory"),
        (&["plan", "--colour"], "unexpected argument"),
        (&[], "Usage: campaign"),
    ] {
        let (status, out, error) = campaign(dir.path(), arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn a_configuration_with_mistakes_is_status_2_and_all_are_said() {
    let dir = folder(
        &CAMPAIGN
            .replace("my sources/", "mysources/")
            .replace("label", "lable"),
    );
    let (status, out, error) = campaign(dir.path(), &["plan"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(
        error.contains("campaign.toml:21:1: unknown key `lable`"),
        "{error}"
    );
    assert!(error.contains("lacks the key `label`"), "{error}");
    assert!(
        error.contains("campaign.toml:17:12: no file matches `mysources/*.c`"),
        "{error}"
    );
    assert!(error.contains("did you mean `my sources`?"), "{error}");
}
