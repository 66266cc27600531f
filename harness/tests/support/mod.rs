//! Shared by all integration tests: where the checkout is, and the one way to skip a test.
#![allow(dead_code)] // each helper is used by some modules only

pub mod arm;
pub mod cc;
pub mod cells;
pub mod datasets;
pub mod host;
pub mod lab;
pub mod objects;

use std::io::Write;
use std::path::{Path, PathBuf};

/// Root of the checkout, or of the copy of it that `CAMPAIGN_TEST_ROOT` names (the tests as an ordinary
/// user).
pub fn root() -> PathBuf {
    if let Some(copy) = std::env::var_os("CAMPAIGN_TEST_ROOT") {
        return copy.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("harness/ lies in the root")
        .to_owned()
}

/// Says that a test cannot run here, and why. Where `CAMPAIGN_NO_SKIP` is set (CI), that is a
/// failure.
pub fn skip(reason: &str) {
    assert!(
        !is_set("CAMPAIGN_NO_SKIP"),
        "must not be skipped here: {reason}"
    );
    say_skipped(reason);
}

/// To standard error itself: of what `eprintln` writes, the output of a test that passes shows nothing.
fn say_skipped(reason: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}

/// Says that a test needs root, and for what. Where `CAMPAIGN_WITHOUT_ROOT` is set that is no failure even
/// under `CAMPAIGN_NO_SKIP`: root has run the test before, or whoever set it does without on purpose.
pub fn skip_without_root(why: &str) {
    assert!(!nix::unistd::geteuid().is_root(), "root is here");
    match is_set("CAMPAIGN_WITHOUT_ROOT") {
        true => say_skipped(&format!("{why} needs root, which is left out on purpose")),
        false => skip(&format!("{why} needs root")),
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether `program` is on PATH; says `skipped: ...` with the package to install when not.
pub fn have(program: &str, package: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !found {
        skip(&format!(
            "`{program}` is not here; install the package {package}"
        ));
    }
    found
}

/// Copies a folder; folders of the names in `without` are left out.
pub fn copy_tree(from: &Path, to: &Path, without: &[&str]) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            std::fs::copy(entry.path(), target).unwrap();
        } else if !without.iter().any(|name| entry.file_name() == *name) {
            copy_tree(&entry.path(), &target, without);
        }
    }
}

/// All files below a folder, as paths below it, in order.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    fn visit(root: &Path, below: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(root.join(below)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => visit(root, &path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    visit(dir, Path::new(""), &mut found);
    found.sort();
    found
}

/// Two folders hold the same files, byte for byte.
pub fn same_tree(a: &Path, b: &Path) {
    let all = files(a);
    assert_eq!(all, files(b));
    assert!(!all.is_empty(), "{}", a.display());
    for file in all {
        let read = |dir: &Path| std::fs::read(dir.join(&file)).unwrap();
        assert!(read(a) == read(b), "{} differs", file.display());
    }
}
