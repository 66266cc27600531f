//! Shared by all integration tests: where the checkout is, and the one way to skip a test.
#![allow(dead_code)] // each helper is used by some modules only

pub mod arm;
pub mod cc;
pub mod objects;

use std::path::{Path, PathBuf};

/// Root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("harness/ lies in the root")
        .to_owned()
}

/// Says that a test cannot run here, and why. Where `CAMPAIGN_NO_SKIP` is set (CI), that is a
/// failure.
pub fn skip(reason: &str) {
    let strict = std::env::var_os("CAMPAIGN_NO_SKIP").is_some_and(|v| !v.is_empty());
    assert!(!strict, "must not be skipped here: {reason}");
    eprintln!("skipped: {reason}");
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
