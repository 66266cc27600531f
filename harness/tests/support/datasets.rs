//! Sealed datasets to be copied and damaged.

use super::files;
use harness::testing::{sealed, Synthetic, SyntheticCandidate};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Name of [`small`].
pub const SMALL: &str = "x86_1-guide-1";

/// A small sealed run of a registered system with its seal: one instance, all phases. Made once, and
/// written anew for each caller.
pub fn small() -> (tempfile::TempDir, PathBuf) {
    static FILES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    let home = tempfile::tempdir().unwrap();
    for (path, bytes) in FILES.get_or_init(small_files) {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let dir = home.path().join(SMALL);
    (home, dir)
}

fn small_files() -> Vec<(PathBuf, Vec<u8>)> {
    let home = tempfile::tempdir().unwrap();
    let instance = SyntheticCandidate::new("sign-09", "DOVE", &[("dove_a_128", 128)]);
    let spec = Synthetic {
        candidates: vec![instance],
        ..Synthetic::default()
    };
    sealed::write(&spec, &home.path().join(SMALL)).unwrap();
    let read = |path: PathBuf| {
        let bytes = fs::read(home.path().join(&path)).unwrap();
        (path, bytes)
    };
    files(home.path()).into_iter().map(read).collect()
}

/// Where the seal of a dataset lies.
pub fn seal_of(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".seal");
    name.into()
}
