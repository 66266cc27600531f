//! Where the worker comes from: `--worker`, the pack, beside the running binary, or built now.
//!
//! A worker found beside the running binary or built from the checkout must have the build id of
//! this program; otherwise figures could come from other code than the evidence names.
//!
//! The file is read once. What is hashed then is what every session starts, as an image in memory,
//! whatever becomes of the file. Three cannot be started so, and are started by their path right after
//! a look at the file: a worker under a runner (which opens the file itself), a script, and a worker on
//! a machine that forbids programs in memory.

use crate::config::{Arch, System};
use crate::hash;
use crate::process::cgroup::{Delegation, Limits};
use crate::process::{self, Command, Image, Stop};
use protocol::Layer;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for `worker --build-id`.
const ID_LIMIT: Duration = Duration::from_secs(20);
/// Time for cargo, which may fetch and compile the worker's dependencies.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// Folder of the cross toolchain instead of `.cross` in the checkout.
pub const CROSS_DIR: &str = "CAMPAIGN_CROSS_DIR";

/// What a worker may use in all: above its address space, and more threads than any candidate starts.
const CGROUP: Limits = Limits {
    memory: 5 << 30,
    pids: 1024,
};

/// There is no worker to work with.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Processes of a worker outlived SIGKILL.
    #[error(transparent)]
    Survivors(#[from] process::Survivors),
    /// The file named is not there or cannot be read.
    #[error("{path}: this worker cannot be read; name another with --worker", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was replaced while the campaign ran.
    #[error("{path}: the worker was changed while the campaign ran; restore it and run again to resume", path = path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// There is no source to build one from.
    #[error("no worker: none beside {beside}, and no checkout with drivers/worker to build it from; name one with --worker", beside = beside.display())]
    NoSource {
        /// The running binary.
        beside: PathBuf,
    },
    /// Cargo is not here.
    #[error("the worker cannot be built: `cargo` was not found; install Rust, or name a built worker with --worker")]
    NoCargo,
    /// The cross toolchain is not here.
    #[error("{path}: no Rust toolchain for {arch}; run scripts/cross-toolchain.sh, or name a built worker with --worker", path = path.display(), arch = arch.word())]
    NoCross {
        /// Its environment file.
        path: PathBuf,
        /// The architecture wanted.
        arch: Arch,
    },
    /// Cargo failed.
    #[error("`{what}` could not be built: cargo {end}\n{log}")]
    Build {
        /// What.
        what: &'static str,
        /// How it ended.
        end: String,
        /// End of what it said.
        log: String,
    },
    /// The source is another than this program's.
    #[error("{path}: the worker built from the checkout is another version (build id {theirs}, this program is {ours}); build this program again", path = path.display(), ours = protocol::BUILD_ID)]
    AnotherVersion {
        /// The file.
        path: PathBuf,
        /// Its build id, or what it said instead.
        theirs: String,
    },
    /// It is there and cannot do the least of its tasks here.
    #[error("{path}: this worker cannot work here: {why}", path = path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// A stop was asked for.
    #[error("interrupted while the worker was built")]
    Interrupted,
}

/// A worker that can be started.
#[derive(Debug, Clone)]
pub struct Worker {
    path: PathBuf,
    sha256: String,
    runner: Vec<String>,
    stamp: FileStamp,
    /// What is started; `None` where that is the file itself.
    image: Option<Image>,
    cgroups: Result<Delegation, String>,
}

/// What changes when a file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(data: &Metadata) -> Self {
        FileStamp {
            device: data.dev(),
            inode: data.ino(),
            bytes: data.size(),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl Worker {
    /// A worker at `path`, started under `runner` (empty: directly).
    pub fn at(path: &Path, runner: &[String]) -> Result<Self, WorkerError> {
        let unreadable = |source| WorkerError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(unreadable)?;
        let (stamp, bytes) = read(&path).map_err(unreadable)?;
        let image = match runner {
            [] => Image::of(&bytes).ok(),
            _ => None,
        };
        Ok(Worker {
            sha256: hash::sha256(&bytes),
            runner: runner.to_vec(),
            path,
            stamp,
            image,
            cgroups: Err("not asked for".to_owned()),
        })
    }

    /// The same worker, each of its processes in a cgroup of its own where that can be had.
    pub fn bounded(mut self) -> Self {
        self.cgroups = Delegation::take(CGROUP);
        self
    }

    /// What there is of cgroups, as a layer of the isolation.
    pub fn cgroup_layer(&self) -> Layer {
        let (active, detail) = match &self.cgroups {
            Ok(delegation) => (true, delegation.describe()),
            Err(why) => (false, why.clone()),
        };
        Layer {
            name: "cgroup".to_owned(),
            active,
            detail,
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SHA-256 of the binary.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The command that starts it, after a look whether it is still the same file: one that was replaced
    /// is somebody's mistake or worse, even where its image would still be what was hashed.
    pub fn command(&self) -> Result<Command, WorkerError> {
        match std::fs::metadata(&self.path) {
            Ok(data) if FileStamp::of(&data) == self.stamp => {}
            Ok(_) => {
                return Err(WorkerError::Replaced {
                    path: self.path.clone(),
                })
            }
            Err(source) => {
                return Err(WorkerError::Unreadable {
                    path: self.path.clone(),
                    source,
                })
            }
        }
        let words = self.runner.iter().map(std::ffi::OsStr::new);
        let words = words.chain(std::iter::once(self.path.as_os_str()));
        let mut command = Command::from_words(words).expect("the worker itself is a word");
        if let Some(image) = &self.image {
            command = command.image(image.clone());
        }
        if let Ok(delegation) = &self.cgroups {
            command = command.in_cgroup_of(delegation.clone());
        }
        Ok(command)
    }

    /// What its `--build-id` prints, or why it prints nothing.
    fn build_id(&self, stop: &Stop) -> Result<String, WorkerError> {
        let command = self.command()?.arg("--build-id").deadline(ID_LIMIT);
        let outcome = process::run_blocking(command, stop);
        Ok(match outcome.end.is_success() {
            true => outcome.stdout.text().trim().to_owned(),
            false => format!("none, it {}", outcome.end),
        })
    }

    /// The command as the evidence names it: without the folders of this machine.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.runner();
        words.push(base_name(&self.path));
        words
    }

    /// The runner in that form; empty where the worker runs as it is.
    pub fn runner(&self) -> Vec<String> {
        let names = self.runner.iter().map(|word| match word.starts_with('/') {
            true => base_name(Path::new(word)),
            false => word.clone(),
        });
        names.collect()
    }
}

/// The bytes of a file, and what it was before they were read.
fn read(path: &Path) -> io::Result<(FileStamp, Vec<u8>)> {
    let mut file = File::open(path)?;
    let stamp = FileStamp::of(&file.metadata()?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((stamp, bytes))
}

fn base_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// What kind of worker is wanted, and where it may come from.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// `--worker`.
    pub explicit: Option<&'a Path>,
    /// Folder of an unpacked campaign.
    pub pack: Option<&'a Path>,
    /// Folder of the configuration; a checkout there is preferred to the one this program was built from.
    pub root: &'a Path,
    /// Id of the system, or `local`.
    pub system_id: &'a str,
    /// Architecture of the libraries.
    pub arch: Arch,
    /// Command that runs them here; empty where they run as they are.
    pub runner: &'a [String],
}

/// Finds or builds the worker. `say` hears what takes long.
pub fn find(wanted: Wanted, stop: &Stop, say: &dyn Fn(&str)) -> Result<Worker, WorkerError> {
    if let Some(path) = wanted.explicit {
        return Worker::at(path, wanted.runner);
    }
    if let Some(pack) = wanted.pack {
        return Worker::at(&pack.join("worker"), wanted.runner);
    }
    if let Some(worker) = beside(&wanted, stop) {
        return Ok(worker);
    }
    say("building the worker");
    let path = build(&wanted, Package::Worker, stop)?;
    let worker = Worker::at(&path, wanted.runner)?;
    match worker.build_id(stop)? {
        id if id == protocol::BUILD_ID => Ok(worker),
        theirs => Err(WorkerError::AnotherVersion { path, theirs }),
    }
}

/// The program itself for the architecture that is wanted: this one, or one that is cross-built now.
pub fn program(wanted: Wanted, stop: &Stop, say: &dyn Fn(&str)) -> Result<PathBuf, WorkerError> {
    if Some(wanted.arch) == Arch::host() {
        // The file that runs, even where another has been put in its place.
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    say("building the program for the system's architecture, which takes some minutes the first time");
    build(&wanted, Package::Program, stop)
}

/// What is built with cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Package {
    Worker,
    Program,
}

impl Package {
    /// Name of the crate, and of its binary.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Package::Worker => ("worker", "worker"),
            Package::Program => ("harness", "campaign"),
        }
    }
}

/// The runner of a system: empty where the host has its architecture.
pub fn runner(system: Option<&System>) -> Vec<String> {
    match system {
        Some(system) if Some(system.arch) != Arch::host() => system.runner.clone(),
        _ => Vec::new(),
    }
}

/// The worker beside the running binary, if it is this program's.
fn beside(wanted: &Wanted, stop: &Stop) -> Option<Worker> {
    if Some(wanted.arch) != Arch::host() {
        return None;
    }
    let path = std::env::current_exe().ok()?.with_file_name("worker");
    let worker = Worker::at(&path, &[]).ok()?;
    let found = worker.build_id(stop).ok()?;
    (found == protocol::BUILD_ID).then_some(worker)
}

/// The checkout to build from.
fn checkout(root: &Path) -> Option<PathBuf> {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    [Some(root), built_from]
        .into_iter()
        .flatten()
        .find(|dir| dir.join("drivers/worker/Cargo.toml").is_file())
        .map(Path::to_owned)
}

/// Builds the worker or the program with cargo and returns where it lies. One at a time: together they
/// would share the features of their dependencies, and be other files.
fn build(wanted: &Wanted, package: Package, stop: &Stop) -> Result<PathBuf, WorkerError> {
    let (krate, binary) = package.names();
    let checkout = checkout(wanted.root).ok_or_else(|| WorkerError::NoSource {
        beside: std::env::current_exe().unwrap_or_default(),
    })?;
    let target = checkout.join(format!("target/worker-{}", wanted.system_id));
    let mut command = Command::new("cargo")
        .args([
            "build",
            "-p",
            krate,
            "--bin",
            binary,
            "--release",
            "--locked",
            "--target-dir",
        ])
        .arg(&target)
        .cwd(&checkout)
        .inherit_env()
        .deadline(BUILD_LIMIT);
    let mut folder = target.join("release");
    if Some(wanted.arch) != Arch::host() {
        let triple = format!("{}-unknown-linux-gnu", wanted.arch.word());
        for (name, value) in cross_environment(&checkout, wanted.arch)? {
            command = command.env(name, value);
        }
        folder = target.join(&triple).join("release");
        command = command.args(["--target", &triple]);
    }
    let outcome = process::run_blocking(command, stop);
    match outcome.end {
        process::End::Finished { status: 0 } => Ok(folder.join(binary)),
        process::End::Interrupted => Err(WorkerError::Interrupted),
        end if end.is_missing_program() => Err(WorkerError::NoCargo),
        end => Err(WorkerError::Build {
            what: binary,
            end: end.to_string(),
            log: outcome.stderr.text(),
        }),
    }
}

/// Variables of the cross toolchain, from the file that its script writes.
fn cross_environment(checkout: &Path, arch: Arch) -> Result<Vec<(String, String)>, WorkerError> {
    let folder = match std::env::var_os(CROSS_DIR).filter(|v| !v.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => checkout.join(".cross"),
    };
    let path = folder.join("env");
    let text = std::fs::read_to_string(&path).map_err(|_| WorkerError::NoCross {
        path: path.clone(),
        arch,
    })?;
    Ok(text.lines().filter_map(exported).collect())
}

/// `export NAME='VALUE'`.
fn exported(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
    let value = value.strip_prefix('\'')?.strip_suffix('\'')?;
    Some((name.to_owned(), value.replace("'\\''", "'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("worker");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_worker_that_is_replaced_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let path = script(dir.path(), "true");
        let worker = Worker::at(&path, &[]).unwrap();
        assert!(worker.command().is_ok());
        script(dir.path(), "false");
        assert!(matches!(
            worker.command(),
            Err(WorkerError::Replaced { .. })
        ));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            worker.command(),
            Err(WorkerError::Unreadable { .. })
        ));
    }

    #[test]
    fn the_build_id_is_what_it_prints_or_why_it_prints_none() {
        let dir = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        // Under a runner: a file that was just written cannot always be executed itself.
        let sh = ["sh".to_owned()];
        let id = |text: &str| {
            let worker = Worker::at(&script(dir.path(), text), &sh).unwrap();
            worker.build_id(&stop).unwrap()
        };
        assert_eq!(id("echo 0123abcd"), "0123abcd");
        assert_eq!(id("exit 3"), "none, it ended with status 3");
    }

    /// Where a look at the path cannot help: between the look and the start.
    #[test]
    fn what_was_hashed_is_started_whatever_is_at_its_path_then() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker");
        let shell = std::fs::read("/bin/sh").unwrap();
        let by_rename = |bytes: &[u8]| {
            let draft = dir.path().join("draft");
            std::fs::write(&draft, bytes).unwrap();
            std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::rename(&draft, &path).unwrap();
        };
        let in_place = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();
        for change in [&by_rename as &dyn Fn(&[u8]), &in_place] {
            change(&shell);
            let command = Worker::at(&path, &[]).unwrap().command().unwrap();
            change(b"#!/bin/sh\nexit 3\n");
            let outcome = process::run_blocking(command.args(["-c", "exit 7"]), &Stop::new());
            let ended = matches!(outcome.end, process::End::Finished { status: 7 });
            assert!(ended, "it {}", outcome.end);
        }
    }

    #[test]
    fn evidence_names_the_command_without_folders_of_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        let path = script(dir.path(), "true");
        let runner = ["/usr/bin/qemu-aarch64-static", "-cpu", "neoverse-n1"];
        let worker = Worker::at(&path, &runner.map(str::to_owned)).unwrap();
        assert_eq!(
            worker.words(),
            ["qemu-aarch64-static", "-cpu", "neoverse-n1", "worker"]
        );
    }

    #[test]
    fn the_environment_file_of_the_cross_toolchain_is_read() {
        assert_eq!(
            exported("export A_B='x y -L /usr'"),
            Some(("A_B".into(), "x y -L /usr".into()))
        );
        assert_eq!(
            exported("export A='it'\\''s'"),
            Some(("A".into(), "it's".into()))
        );
        for other in ["", "# comment", "A=b", "export A=b"] {
            assert_eq!(exported(other), None, "{other}");
        }
    }
}
