//! Common to the fuzz targets: where seeds come from.

use harness::testing::{sealed, Synthetic, SyntheticCandidate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Seeds larger than this only slow the search down.
const LARGEST: usize = 64 * 1024;

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("fuzz/ lies in the root")
        .to_owned()
}

/// All files below a folder, by path.
fn files(folder: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read(entry.path()).expect("a seed"));
        }
    }
}

/// Every file of the published datasets and of a synthetic run with all phases.
pub fn evidence() -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(&root().join("performance/data"), "", &mut found);
    let home = tempfile::tempdir().expect("a temporary folder");
    let instance = SyntheticCandidate::new("c", "C", &[("l", 128)]);
    let spec = Synthetic {
        candidates: vec![instance],
        ..Synthetic::default()
    };
    sealed::write(&spec, &home.path().join("run")).expect("a synthetic run");
    files(home.path(), "", &mut found);
    found
}

/// The evidence of one instance in the public campaign's format, whole.
pub fn public_evidence() -> BTreeMap<String, Vec<u8>> {
    let source = root().join("harness/tests/data/arm_1");
    let home = tempfile::tempdir().expect("a temporary folder");
    sealed::copies(&source, home.path(), 1, 1).expect("a copy of one instance");
    let mut found = BTreeMap::new();
    files(home.path(), "", &mut found);
    found
}

/// Puts seeds into the corpus folder that libFuzzer was started with; called before it reads it.
pub fn seed(seeds: impl IntoIterator<Item = Vec<u8>>) {
    let corpus = std::env::args()
        .skip(1)
        .map(PathBuf::from)
        .find(|argument| argument.is_dir());
    let Some(corpus) = corpus else {
        return; // one input is tried again
    };
    let small = seeds.into_iter().filter(|seed| seed.len() <= LARGEST);
    for (index, seed) in small.enumerate() {
        std::fs::write(corpus.join(format!("seed-{index}")), seed).expect("a seed on disk");
    }
}
