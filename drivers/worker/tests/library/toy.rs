//! Libraries made of `tests/c/toy.c`, the adapter and the helper functions.

use crate::support::skip;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A built library in its own folder, which goes when this is dropped.
pub struct Toy {
    folder: tempfile::TempDir,
    /// Its path.
    pub path: PathBuf,
}

/// Kind of library to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Timed,
    Memory,
}

/// A timed library with a behaviour of `toy.c`; `None`, after saying so, without a C compiler.
pub fn toy(behaviour: &str) -> Option<Toy> {
    build(behaviour, Kind::Timed, &[])
}

/// A library of any kind; `-DNAME` texts in `defines`.
pub fn build(behaviour: &str, kind: Kind, defines: &[&str]) -> Option<Toy> {
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("toy.so");
    let word = match kind {
        Kind::Timed => "timed",
        Kind::Memory => "memory",
    };
    let mut command = Command::new(compiler());
    command
        .args(["-std=c99", "-Wall", "-Wextra", "-O1", "-fPIC", "-shared"])
        // `crash` writes to address 8 and `stale` reads what it did not write, both on purpose.
        .args(["-Wno-array-bounds", "-Wno-uninitialized"])
        .args(["-Wno-infinite-recursion", "-fno-optimize-sibling-calls"])
        .arg(format!("-DBEHAVIOUR={behaviour}"))
        .arg("-DCAMPAIGN_LABEL=\"toy\"")
        .arg(format!("-DCAMPAIGN_KIND=\"{word}\""))
        .arg("-DCAMPAIGN_REJECTED=toy_rejected")
        .args(defines)
        .arg("-I")
        .arg(drivers.join("abi"))
        .arg("-I")
        .arg(drivers.join("abi/include"))
        .arg(drivers.join("worker/tests/c/toy.c"))
        .args(["auxfunc.c", "drng.c", "sm3.c"].map(|f| drivers.join("iccs").join(f)))
        .arg(drivers.join("abi/adapter.c"))
        .arg("-o")
        .arg(&path)
        .args(["-Wl,-z,noexecstack", "-lm", "-lpthread"]);
    if kind == Kind::Memory {
        let wrapped = [
            "malloc",
            "calloc",
            "realloc",
            "free",
            "aligned_alloc",
            "posix_memalign",
            "mmap",
            "munmap",
            "mremap",
        ];
        command.arg(drivers.join("abi/memory.c"));
        command.args(wrapped.map(|f| format!("-Wl,--wrap={f}")));
    }
    match command.output() {
        Ok(made) => assert!(
            made.status.success(),
            "{behaviour}: {}",
            String::from_utf8_lossy(&made.stderr)
        ),
        Err(error) => {
            skip(&format!(
                "{} cannot be run: {error}; install gcc",
                compiler()
            ));
            return None;
        }
    }
    Some(Toy { folder, path })
}

/// C compiler for the architecture of the tests.
fn compiler() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "aarch64-linux-gnu-gcc",
        _ => "cc",
    }
}

impl Toy {
    /// The library as a request names it.
    pub fn file(&self) -> protocol::LibraryFile {
        named(&self.path)
    }

    /// Folder of the library, for other files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A file as a request names it.
pub fn named(path: &Path) -> protocol::LibraryFile {
    let content = std::fs::read(path).expect("the file is there");
    protocol::LibraryFile {
        path: protocol::path_to_text(path),
        sha256: const_hex::encode(Sha256::digest(content)),
    }
}
