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
    Profile,
    Stream,
}

impl Kind {
    /// The word of `campaign_meta`.
    fn word(self) -> &'static str {
        match self {
            Kind::Timed => "timed",
            Kind::Memory => "memory",
            Kind::Profile => "profile",
            Kind::Stream => "stream",
        }
    }

    /// Functions whose calls arrive at the kind's own wrappers: those that its sources define as
    /// `__wrap_F`.
    fn wrapped(self, drivers: &Path) -> Vec<String> {
        match self {
            Kind::Timed => Vec::new(),
            Kind::Profile => vec!["shake256_inc_absorb".into(), "get_random_number".into()],
            Kind::Stream => vec!["shake256_inc_absorb".into()],
            Kind::Memory => {
                let source =
                    std::fs::read_to_string(drivers.join("abi/memory.c")).expect("a source");
                let names = source
                    .split("WRAP(")
                    .skip(1)
                    .filter_map(|rest| rest.split_once(')'));
                let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
                names.retain(|name| name != "f"); // the macro's own parameter
                names.sort();
                names.dedup();
                names
            }
        }
    }

    /// Sources beside the candidate's.
    fn sources(self, drivers: &Path, folder: &Path) -> Vec<PathBuf> {
        match self {
            Kind::Timed => Vec::new(),
            Kind::Memory => vec![drivers.join("abi/memory.c")],
            Kind::Stream => vec![drivers.join("dilithium/stream.c")],
            Kind::Profile => {
                let wrappers = folder.join("wrap.c");
                std::fs::write(&wrappers, wrappers_of_the_toy(drivers)).expect("a writable folder");
                vec![wrappers, drivers.join("abi/profile.c")]
            }
        }
    }
}

/// The wrapper template, filled as the orchestrator fills it.
fn wrappers_of_the_toy(drivers: &Path) -> String {
    let template = std::fs::read_to_string(drivers.join("abi/wrap.c.in")).expect("the template");
    let functions = [
        minijinja::context! {
            symbol => "shake256_inc_absorb",
            name => "absorb",
            group => "hash",
            returns => "void",
            parameters => "void *state, const uint8_t *input, size_t length",
            arguments => "state, input, length",
            in_bits => "8ULL * length",
            out_bits => "0",
        },
        minijinja::context! {
            symbol => "get_random_number",
            name => "drng",
            group => "drng",
            returns => "int",
            parameters => "void *state, unsigned char *out, unsigned long long bits",
            arguments => "state, out, bits",
            in_bits => "0",
            out_bits => "bits",
        },
    ];
    minijinja::render!(&template, functions => functions)
}

/// A timed library with a behaviour of `toy.c`; `None`, after saying so, without a C compiler.
pub fn toy(behaviour: &str) -> Option<Toy> {
    build(behaviour, Kind::Timed, &[])
}

/// A library of any kind; `-DNAME` texts in `defines`.
pub fn build(behaviour: &str, kind: Kind, defines: &[&str]) -> Option<Toy> {
    let package = crate::support::here(env!("CARGO_MANIFEST_DIR"), "drivers/worker");
    let drivers = package.parent()?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("toy.so");
    let mut command = Command::new(compiler());
    command
        .args(["-std=c99", "-Wall", "-Wextra", "-O1", "-fPIC", "-shared"])
        // `crash` writes to address 8 and `stale` reads what it did not write, both on purpose.
        .args(["-Wno-array-bounds", "-Wno-uninitialized"])
        .args(["-Wno-infinite-recursion", "-fno-optimize-sibling-calls"])
        .arg(format!("-DBEHAVIOUR={behaviour}"))
        .arg("-DCAMPAIGN_LABEL=\"toy\"")
        .arg(format!("-DCAMPAIGN_KIND=\"{}\"", kind.word()))
        .arg("-DCAMPAIGN_REJECTED=toy_rejected")
        .args(defines)
        .arg("-I")
        .arg(drivers.join("abi"))
        .arg("-I")
        .arg(drivers.join("abi/include"))
        .arg("-I")
        .arg(drivers.join("iccs"))
        .args(["toy.c", "absorb.c"].map(|f| drivers.join("worker/tests/c").join(f)))
        .args(["auxfunc.c", "drng.c", "sm3.c"].map(|f| drivers.join("iccs").join(f)))
        .arg(drivers.join("abi/adapter.c"))
        .arg("-o")
        .arg(&path)
        .args(["-Wl,-z,noexecstack", "-lm", "-lpthread"]);
    command.args(kind.sources(drivers, folder.path())).args(
        kind.wrapped(drivers)
            .iter()
            .map(|f| format!("-Wl,--wrap={f}")),
    );
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
pub fn compiler() -> &'static str {
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
