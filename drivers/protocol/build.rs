//! Computes the build id that tells whether a worker binary belongs to an orchestrator binary:
//! SHA-256 over the sources that decide what a worker does. Equal sources, equal id, whatever the
//! profile or the target.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let drivers = here.parent().expect("drivers/protocol has a parent");
    let mut files = Vec::new();
    for folder in ["protocol/src", "worker/src"] {
        collect(&drivers.join(folder), &mut files);
        println!("cargo:rerun-if-changed={}", drivers.join(folder).display());
    }
    for file in ["worker/Cargo.toml", "protocol/Cargo.toml", "../Cargo.lock"] {
        files.push(drivers.join(file));
        println!("cargo:rerun-if-changed={}", drivers.join(file).display());
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(drivers).unwrap_or(&file);
        hash.update(name.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(std::fs::read(&file).unwrap_or_default());
        hash.update([0]);
    }
    let id: String = hash.finalize()[..8]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    println!("cargo:rustc-env=CAMPAIGN_BUILD_ID={id}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}
