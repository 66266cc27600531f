//! aarch64 from a machine of another architecture: the cross-built worker, user-mode emulation,
//! and the emulated machine of `scripts/arm-machine.sh`.
//!
//! What is missing here comes back as `Err(reason)`, for [`super::skip`]; what is there and does
//! not work is a panic, because a test that cannot tell the two apart proves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Target triple of everything that is cross-built.
pub const TARGET: &str = "aarch64-unknown-linux-gnu";

fn script(name: &str) -> Command {
    let mut command = Command::new(super::root().join("scripts").join(name));
    command.current_dir(super::root()).stdin(Stdio::null());
    command
}

/// Runs `scripts/NAME check`; its words are the reason to skip.
fn checked(name: &str) -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("the cross tools are for an x86-64 machine".to_owned());
    }
    let output = script(name).arg("check").output().expect("bash runs");
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(text(&output.stderr).trim().to_owned()),
        _ => panic!("scripts/{name} check ended with {output:?}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The worker for aarch64, built from this checkout once per test process.
pub fn worker() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build("worker", "worker", &[]));
    built.as_deref().map_err(Clone::clone)
}

/// The program itself for aarch64. It is not optimised, for compiling it would take longer than all
/// that is done with it here; what it calls is.
pub fn program() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let plain = ["--config", "profile.release.package.harness.opt-level=0"];
    let built = BUILT.get_or_init(|| build("harness", "campaign", &plain));
    built.as_deref().map_err(Clone::clone)
}

fn build(package: &str, binary: &str, options: &[&str]) -> Result<PathBuf, String> {
    checked("cross-toolchain.sh")?;
    // Where the program itself builds the worker of that system.
    let target_dir = super::root().join("target/worker-arm_1");
    let output = script("cross-toolchain.sh")
        .env("CARGO_TARGET_DIR", &target_dir)
        .args(["exec", "cargo", "build", "--quiet", "--release", "--locked"])
        .args(["-p", package, "--bin", binary, "--target", TARGET])
        .args(options)
        .output()
        .expect("bash runs");
    assert!(
        output.status.success(),
        "{binary} does not build for {TARGET}:\n{}",
        text(&output.stderr)
    );
    Ok(target_dir.join(TARGET).join("release").join(binary))
}

/// `program` under user-mode emulation, as a real core would run it.
pub fn emulated(program: &Path) -> Command {
    let mut command = Command::new("qemu-aarch64-static");
    command.args(["-cpu", "neoverse-n1", "-L", "/usr/aarch64-linux-gnu"]);
    command.arg(program);
    command
}

/// What the guest will find in its working directory.
pub struct Guest {
    share: tempfile::TempDir,
}

/// What a boot brought back. Everything is in memory: no directory outlives it.
pub struct Boot {
    /// Status of `run.sh`.
    pub status: i32,
    /// Files of `$OUT`, by name.
    pub out: BTreeMap<String, Vec<u8>>,
    /// Console of the guest, and what the script said.
    pub console: String,
}

impl Guest {
    /// An empty working directory.
    pub fn new() -> Result<Guest, String> {
        checked("arm-machine.sh")?;
        let share = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(share.path().join("in")).expect("a fresh directory");
        Ok(Guest { share })
    }

    /// Where to put files for the guest.
    pub fn input(&self) -> PathBuf {
        self.share.path().join("in")
    }

    /// Adds a file with this content.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.input().join(name), content).expect("the share is writable");
    }

    /// Adds a copy of `file` with its permissions.
    pub fn copy(&self, file: &Path) {
        let name = file.file_name().expect("a file has a name");
        std::fs::copy(file, self.input().join(name)).expect("the file can be copied");
    }

    /// Boots the machine and runs `commands`; `options` as `scripts/arm-machine.sh run` takes them.
    pub fn boot(self, options: &[&str], commands: &str) -> Boot {
        self.write("run.sh", commands);
        let output = script("arm-machine.sh")
            .arg("run")
            .args(options)
            .arg(self.share.path())
            .output()
            .expect("bash runs");
        Boot {
            status: output.status.code().expect("the script was not killed"),
            out: files(&self.share.path().join("out")),
            console: console(&output),
        }
    }
}

impl Boot {
    /// Content of one file of `$OUT` as text.
    pub fn text(&self, name: &str) -> String {
        let Some(bytes) = self.out.get(name) else {
            panic!("the guest left no {name}; its console:\n{}", self.console)
        };
        text(bytes)
    }
}

fn console(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("the script makes the directory `out`");
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    paths
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().expect("an entry has a name");
            let bytes = std::fs::read(&path).expect("a readable file");
            (name.to_string_lossy().into_owned(), bytes)
        })
        .collect()
}
