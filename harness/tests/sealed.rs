//! What has a seal is shown as it was sealed or not at all, and nobody's tables get into it.

use crate::support::datasets::small;
use crate::support::{copy_tree, root};
use harness::audit::audit;
use harness::evidence::{store, RefusedCount, TimingRecord};
use harness::testing::sealed;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A copy of a published dataset with its seal, as `copy` in a folder.
fn copied(folder: &Path) {
    let data = root().join("performance/data/arm_1");
    copy_tree(&data.join("public-2026"), &folder.join("copy"), &[]);
    fs::copy(data.join("public-2026.seal"), folder.join("copy.seal")).unwrap();
}

fn campaign(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin("campaign"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Status and standard error.
fn ended(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = campaign(folder, arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr)
}

/// A file of the dataset with a digit that can be changed without breaking its form.
fn record(folder: &Path) -> std::path::PathBuf {
    let records = folder.join("copy/records/sign-09");
    let mut files: Vec<_> = fs::read_dir(records).unwrap().flatten().collect();
    files.sort_by_key(|file| file.file_name());
    files[0].path()
}

#[test]
fn a_sealed_dataset_that_was_changed_is_not_shown() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("a digit", |folder| {
            let file = record(folder);
            let text = fs::read_to_string(&file).unwrap();
            let at = text.find("\"mean_s\": ").unwrap() + "\"mean_s\": ".len();
            let mut changed = text.into_bytes();
            let last = changed[at..].iter().position(|&b| b == b',').unwrap() + at - 1;
            changed[last] = if changed[last] == b'1' { b'2' } else { b'1' };
            fs::write(file, changed).unwrap();
        }),
        ("a file less", |folder| {
            fs::remove_file(record(folder)).unwrap()
        }),
        ("a file more", |folder| {
            fs::write(folder.join("copy/more.json"), "{}").unwrap();
        }),
        ("another seal", |folder| {
            fs::write(folder.join("copy.seal"), format!("{}\n", "0".repeat(64))).unwrap();
        }),
    ];
    for (what, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        copied(folder.path());
        let (status, stderr) = ended(folder.path(), &["report", "copy"]);
        assert_eq!(status, Some(0), "{stderr}");
        change(folder.path());
        let original = root().join("performance/data/x86_1/public-2026");
        let original = original.to_str().unwrap();
        for arguments in [
            &["report", "copy"][..],
            &["compare", original, "copy"],
            &["export", "--csv", "copy", "--to", "tables"],
        ] {
            let (status, stderr) = ended(folder.path(), arguments);
            assert_eq!(status, Some(3), "{what}: {arguments:?}\n{stderr}");
            assert!(
                stderr.contains("is not what was sealed"),
                "{what}: {stderr}"
            );
            assert!(stderr.contains("campaign audit"), "{what}: {stderr}");
        }
        assert!(!folder.path().join("tables").exists());
    }
}

#[test]
fn tables_do_not_get_into_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path());
    for to in ["copy", "copy/records/new/tables"] {
        let (status, stderr) = ended(folder.path(), &["export", "--csv", "copy", "--to", to]);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains("--to"), "{stderr}");
    }
    let (status, stderr) = ended(folder.path(), &["audit", "copy"]);
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
fn a_dataset_is_not_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path());
    let (status, stderr) = ended(folder.path(), &["compare", "copy", "./copy/../copy"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("named twice"), "{stderr}");
}

#[test]
fn a_comparison_with_a_published_dataset_stands_beside_the_run() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path());
    let published = root().join("performance/data/x86_1/public-2026");
    let before = fs::read_dir(published.parent().unwrap()).unwrap().count();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let arguments = [
        "compare",
        published.to_str().unwrap(),
        copy.to_str().unwrap(),
    ];
    let (status, stderr) = ended(elsewhere.path(), &arguments);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(folder.path().join("compare").is_dir());
    let after = fs::read_dir(published.parent().unwrap()).unwrap().count();
    assert_eq!(before, after, "nothing new among the published datasets");
}

#[test]
fn a_folder_without_templates_is_said() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path());
    fs::create_dir(folder.path().join("empty")).unwrap();
    for templates in ["empty", "absent"] {
        let arguments = ["report", "copy", "--templates", templates];
        let (status, stderr) = ended(folder.path(), &arguments);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains("campaign templates export"), "{stderr}");
    }
}

#[test]
fn a_file_name_cannot_forge_a_line_of_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    copied(folder.path());
    let name = "a\nforged: holds: every number\u{1b}[8m";
    fs::write(folder.path().join("copy").join(name), "").unwrap();
    let output = campaign(folder.path(), &["audit", "copy"]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
    assert!(
        !stdout.lines().any(|line| line.starts_with("forged")),
        "{stdout}"
    );
    assert!(stdout.contains("a\\nforged"), "{stdout}");
}

/// The raw integers of a refused count are no figures: the audit takes nothing from them, and them as they
/// are.
#[test]
fn a_refused_count_in_an_attempt_is_no_finding() {
    let (_home, dir) = small();
    let path = dir.join("records/sign-09/dove_a_128.ref.reference__sign.json");
    let mut record: TimingRecord = store::read_json(&path).unwrap();
    record.trials[0].attempts[0].refused = Some(RefusedCount {
        value: Some((1 << 60) + 1),
        instructions: None,
        time_enabled: Some(9),
        time_running: Some(4),
    });
    fs::write(&path, store::json(&path, &record).unwrap()).unwrap();
    sealed::reseal(&dir).unwrap();
    assert_eq!(audit(&dir).findings, []);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("1152921504606846977"), "{text}");
}
