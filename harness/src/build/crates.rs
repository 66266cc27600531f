//! Registry crates as sources of C: where cargo has unpacked them, and what the lock file says of them.
//!
//! Cargo is asked, because neither the layout of its registry nor its variables are an interface. It
//! is asked without the network first. Nothing of these crates is compiled as Rust.

use crate::process::{run_blocking, Command, End, Stop};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of one question to cargo, which may have to download.
const LIMIT: Duration = Duration::from_secs(600);
/// The description of the whole dependency tree is some 100 KiB.
const KEEP_BYTES: usize = 64 << 20;

/// Crates by the names that the manifest gives them.
pub type SourceCrates = BTreeMap<String, CrateSource>;

/// One crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrateSource {
    /// Where it is unpacked.
    pub dir: PathBuf,
    /// Its own name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// Checksum in the lock file; `-` for a crate that has none (a path).
    pub checksum: String,
}

/// Source crates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CratesError {
    /// Cargo is not there.
    #[error("cargo is needed to find the source crates of `{manifest}` and is not here: install the package cargo (Debian, Ubuntu) or rustup")]
    NoCargo {
        /// The manifest.
        manifest: String,
    },
    /// Cargo was asked and did not answer.
    #[error("cargo cannot find the source crates of `{manifest}`; offline and online it said:\n{log}\nIs the network reachable, or are the crates vendored?")]
    Refused {
        /// The manifest.
        manifest: String,
        /// Both answers.
        log: String,
    },
    /// The answer makes no sense.
    #[error("what cargo says of `{manifest}` cannot be understood: {why}")]
    Answer {
        /// The manifest.
        manifest: String,
        /// What is wrong with it.
        why: String,
    },
    /// A stop was asked for.
    #[error("interrupted")]
    Interrupted,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    root: Option<String>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    pkg: String,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Finds the direct dependencies of the detached manifest `root/manifest`.
pub fn find(root: &Path, manifest: &Path, stop: &Stop) -> Result<SourceCrates, CratesError> {
    let name = manifest.display().to_string();
    let answer = |why: String| CratesError::Answer {
        manifest: name.clone(),
        why,
    };
    let text = ask(root, manifest, &name, stop)?;
    let metadata: Metadata = serde_json::from_slice(&text).map_err(|e| answer(e.to_string()))?;
    let lock_path = root.join(manifest).with_file_name("Cargo.lock");
    let lock = std::fs::read_to_string(&lock_path)
        .map_err(|e| answer(format!("its Cargo.lock cannot be read: {e}")))?;
    let lock: Lock = toml::from_str(&lock).map_err(|e| answer(format!("its Cargo.lock: {e}")))?;
    resolve(metadata, &lock).map_err(answer)
}

/// Joins cargo's answer and the lock file.
fn resolve(metadata: Metadata, lock: &Lock) -> Result<SourceCrates, String> {
    let root = metadata.resolve.root.ok_or("it has no root package")?;
    let node = metadata
        .resolve
        .nodes
        .iter()
        .find(|node| node.id == root)
        .ok_or("its root package is not in the tree")?;
    let mut crates = SourceCrates::new();
    for dependency in &node.deps {
        let package = metadata
            .packages
            .iter()
            .find(|package| package.id == dependency.pkg)
            .ok_or_else(|| format!("`{}` is not among the packages", dependency.name))?;
        let dir = package
            .manifest_path
            .parent()
            .ok_or_else(|| format!("`{}` has no folder", dependency.name))?;
        let checksum = lock
            .package
            .iter()
            .find(|p| p.name == package.name && p.version == package.version)
            .and_then(|p| p.checksum.clone());
        crates.insert(
            dependency.name.clone(),
            CrateSource {
                dir: dir.to_owned(),
                name: package.name.clone(),
                version: package.version.clone(),
                checksum: checksum.unwrap_or_else(|| "-".to_owned()),
            },
        );
    }
    Ok(crates)
}

/// Asks offline, then online.
fn ask(root: &Path, manifest: &Path, name: &str, stop: &Stop) -> Result<Vec<u8>, CratesError> {
    let mut log = String::new();
    for offline in [true, false] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let command = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(offline.then_some("--offline"))
            .arg("--manifest-path")
            .arg(manifest)
            .inherit_env()
            .cwd(root)
            .keep(KEEP_BYTES)
            .deadline(LIMIT);
        let outcome = run_blocking(command, stop);
        match outcome.end {
            End::Finished { status: 0 } => return Ok(outcome.stdout.head().to_vec()),
            End::Interrupted => return Err(CratesError::Interrupted),
            ref end if end.is_missing_program() => {
                return Err(CratesError::NoCargo {
                    manifest: name.to_owned(),
                })
            }
            ref end => log += &format!("cargo {end}: {}\n", outcome.stderr.text().trim()),
        }
    }
    Err(CratesError::Refused {
        manifest: name.to_owned(),
        log: log.trim_end().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_get_their_own_names_and_their_checksums() {
        let metadata = r#"{
            "packages": [
                {"id": "root", "name": "s", "version": "0.0.0", "manifest_path": "/c/Cargo.toml"},
                {"id": "a", "name": "pq-a", "version": "1.0.0", "manifest_path": "/r/pq-a/Cargo.toml"},
                {"id": "b", "name": "pq-a", "version": "2.0.0", "manifest_path": "/r/pq-b/Cargo.toml"}
            ],
            "resolve": {"root": "root", "nodes": [
                {"id": "root", "deps": [{"name": "old", "pkg": "a"}, {"name": "new", "pkg": "b"}]}
            ]}
        }"#;
        let lock =
            "version = 4\n[[package]]\nname = \"pq-a\"\nversion = \"2.0.0\"\nchecksum = \"cc\"\n";
        let crates = resolve(
            serde_json::from_str(metadata).unwrap(),
            &toml::from_str(lock).unwrap(),
        )
        .unwrap();
        assert_eq!(crates["old"].dir, Path::new("/r/pq-a"));
        assert_eq!(crates["old"].checksum, "-");
        assert_eq!(crates["new"].version, "2.0.0");
        assert_eq!(crates["new"].checksum, "cc");
        assert_eq!(crates.len(), 2);
    }
}
