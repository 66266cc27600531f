//! Landlock: what the process may still open.
//!
//! Every right that the kernel and the crate both know is handled, so everything that has no rule is
//! refused: writing anywhere, running programs, TCP, signals to others. Reading is left where the
//! dynamic loader, the C library and the worker itself need it, and on the files handed in. Files that
//! are open already stay as they are. Kernels before 5.13 have none of this, older ones less.

use super::Outcome;
use landlock::{
    Access, AccessFs, AccessNet, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, ABI,
};
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Newest version whose rights are known here; the crate asks for what the kernel has of them.
const KNOWN: ABI = ABI::V10;

/// Files and folders that may be read: loader, C library (number of CPUs, randomness, allocator
/// tuning), the process itself.
const READABLE: [&str; 17] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

/// Restricts this thread to reading [`READABLE`], `folders` (of the libraries loaded already), and
/// `files`.
pub fn restrict(files: &[BorrowedFd<'_>], folders: &BTreeSet<PathBuf>) -> Outcome {
    let status = enforce(files, folders).map_err(|error| error.to_string())?;
    describe(&status)
}

fn enforce(
    files: &[BorrowedFd<'_>],
    folders: &BTreeSet<PathBuf>,
) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let folders = folders.iter().map(PathBuf::as_path);
    for path in READABLE.iter().map(Path::new).chain(folders) {
        allow_path(&mut ruleset, path)?;
    }
    for file in files {
        // A sealed file in memory can have no rule and needs none: it belongs to no file system.
        let _ = (&mut ruleset).add_rule(PathBeneath::new(file, AccessFs::ReadFile));
    }
    ruleset.restrict_self()
}

/// A path that this machine lacks needs no rule.
fn allow_path(ruleset: &mut RulesetCreated, path: &Path) -> Result<(), RulesetError> {
    let Ok(opened) = PathFd::new(path) else {
        return Ok(());
    };
    let rights = match path.is_dir() {
        true => AccessFs::ReadFile | AccessFs::ReadDir,
        false => AccessFs::ReadFile.into(),
    };
    ruleset.add_rule(PathBeneath::new(opened, rights)).map(drop)
}

/// Folders of the shared objects loaded now: a system may keep its C library elsewhere.
pub fn loaded_folders() -> BTreeSet<PathBuf> {
    folders_in(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// Folders of the shared objects in a `maps` text.
fn folders_in(maps: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    let objects = maps
        .lines()
        .filter_map(path)
        .filter(|path| is_shared_object(path));
    objects
        .filter_map(|path| path.parent().map(Path::to_path_buf))
        .collect()
}

fn is_shared_object(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

fn describe(status: &RestrictionStatus) -> Outcome {
    let abi = match status.landlock {
        landlock::LandlockStatus::NotEnabled => {
            return Err("this kernel has landlock switched off (boot parameter lsm=)".to_owned())
        }
        landlock::LandlockStatus::NotImplemented => {
            return Err(
                "this kernel has no landlock (Linux 5.13 and later, if built with it)".to_owned(),
            )
        }
        landlock::LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
    };
    match status.ruleset {
        RulesetStatus::NotEnforced => {
            Err(format!("not enforced, although the kernel has ABI {abi}"))
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Ok(format!("ABI {abi}: {}", covered(abi)))
        }
    }
}

/// What a version covers (Documentation/userspace-api/landlock.rst), and the gaps that matter here.
fn covered(abi: u32) -> String {
    let since = [
        (1, "reading, writing and running files"),
        (3, "truncating"),
        (4, "TCP"),
        (5, "device requests"),
        (6, "signals and abstract sockets"),
        (9, "path sockets"),
        (10, "UDP"),
    ];
    let names = |held: bool| {
        let chosen = since
            .iter()
            .filter(|(version, _)| (*version <= abi) == held);
        chosen.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    match names(false).as_str() {
        "" => names(true),
        left => format!("{}; left to the other layers: {left}", names(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_loaded_objects_are_found_and_those_of_programs_are_not() {
        let maps = "\
            7f00-7f01 r-xp 00000000 fe:01 12 /nix/store/x-glibc/lib/libc.so.6\n\
            7f01-7f02 r-xp 00000000 fe:01 13 /opt/with space/libm.so\n\
            5500-5501 r-xp 00000000 fe:01 14 /home/u/target/worker\n\
            7ffd-7ffe rw-p 00000000 00:00 0 [stack]\n";
        let expected = ["/nix/store/x-glibc/lib", "/opt/with space"].map(PathBuf::from);
        assert_eq!(folders_in(maps), expected.into());
    }

    #[test]
    fn a_version_says_what_it_leaves_open() {
        let third = covered(3);
        assert!(
            third.starts_with("reading, writing and running files, truncating; left"),
            "{third}"
        );
        assert!(
            third
                .ends_with("TCP, device requests, signals and abstract sockets, path sockets, UDP"),
            "{third}"
        );
        assert!(!covered(10).contains("left"));
    }
}
