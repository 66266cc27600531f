//! Shared by the worker's tests: the one way to skip a test, and C libraries made on the spot.
#![allow(dead_code)] // each helper is used by some test programs only

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says that a test cannot run here, and why. Where `CAMPAIGN_NO_SKIP` is set (CI), that is a
/// failure.
pub fn skip(reason: &str) {
    let strict = std::env::var_os("CAMPAIGN_NO_SKIP").is_some_and(|v| !v.is_empty());
    assert!(!strict, "must not be skipped here: {reason}");
    // To standard error itself: of what `eprintln` writes, the output of a test that passes shows nothing.
    let test = std::thread::current();
    let name = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
}

/// A path that was compiled in, or, where `CAMPAIGN_TEST_ROOT` names a copy of the checkout (the tests as
/// an ordinary user), its place there.
pub fn here(compiled_in: &str, below: &str) -> PathBuf {
    match std::env::var_os("CAMPAIGN_TEST_ROOT") {
        Some(copy) => Path::new(&copy).join(below),
        None => compiled_in.into(),
    }
}

/// Compiles `source` to `folder/name`, a shared object that any user may read. `None`, after saying
/// so, where there is no C compiler for the architecture of this test.
pub fn library(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (text, object) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&text, source).expect("the folder of the test is writable");
    let compiler = match std::env::consts::ARCH {
        "aarch64" => "aarch64-linux-gnu-gcc",
        _ => "cc",
    };
    let made = Command::new(compiler)
        .args([
            "-std=c99", "-Wall", "-Wextra", "-O2", "-shared", "-fPIC", "-o",
        ])
        .arg(&object)
        .arg(&text)
        .args(flags)
        .status();
    match made {
        Ok(status) => assert!(status.success(), "{compiler}: {status}"),
        Err(error) => {
            skip(&format!("{compiler} cannot be run: {error}; install gcc"));
            return None;
        }
    }
    Some(object)
}
