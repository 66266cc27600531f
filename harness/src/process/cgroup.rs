//! A cgroup (version 2) of its own for each worker, where one is delegated to this process: memory and
//! processes of a worker are bounded together, and all that it has started ends with it.
//!
//! The kernel gives controllers only to groups without processes of their own, so this process moves
//! into a child of the group it was started in, and workers go into other children. Where anything of
//! that cannot be had, there is a reason instead, and the other layers have to do.

use nix::unistd::{access, AccessFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Controllers that are needed.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Child of the own group that this process moves into.
const ORCHESTRATOR: &str = "campaign";
/// Pause between two tries to remove a group whose last process is still being taken down.
const TRY_AGAIN: Duration = Duration::from_millis(2);
/// Tries.
const TRIES: u32 = 500;

/// What a group may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory, bytes.
    pub memory: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// A delegated group, in which others can be made.
#[derive(Debug, Clone)]
pub struct Delegation(Arc<Parent>);

#[derive(Debug)]
struct Parent {
    folder: PathBuf,
    limits: Limits,
    next: AtomicU64,
}

impl Delegation {
    /// Takes over the group that this process is in, if it is delegated with the controllers; else says
    /// why it cannot be used.
    pub fn take(limits: Limits) -> Result<Delegation, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let folder = own_group(&mounts, &own)?;
        Delegation::of(&folder, std::process::id(), limits)
    }

    /// Takes over `folder`, the group of the process `me`.
    fn of(folder: &Path, me: u32, limits: Limits) -> Result<Delegation, String> {
        let file = |name: &str| folder.join(name);
        let read = |name: &str| fs::read_to_string(file(name)).map_err(because(name));
        let there = read("cgroup.controllers")?;
        let missing: Vec<&str> = CONTROLLERS
            .into_iter()
            .filter(|wanted| !there.split_whitespace().any(|c| c == *wanted))
            .collect();
        if !missing.is_empty() {
            return Err(format!("cgroup v2 without {}", missing.join(" and ")));
        }
        for name in ["cgroup.procs", "cgroup.subtree_control"] {
            let writable = access(&file(name), AccessFlags::W_OK);
            writable.map_err(|errno| format!("not delegated: {name}: {errno}"))?;
        }
        let others = read("cgroup.procs")?;
        if others.split_whitespace().any(|pid| pid != me.to_string()) {
            return Err("other processes are in the same cgroup".to_owned());
        }
        let own = file(ORCHESTRATOR);
        make(&own).map_err(because(ORCHESTRATOR))?;
        fs::write(own.join("cgroup.procs"), me.to_string()).map_err(because("cgroup.procs"))?;
        let wanted = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(file("cgroup.subtree_control"), wanted)
            .map_err(because("cgroup.subtree_control"))?;
        Ok(Delegation(Arc::new(Parent {
            folder: folder.to_owned(),
            limits,
            next: AtomicU64::new(0),
        })))
    }

    /// What holds for each group, in words.
    pub fn describe(&self) -> String {
        let Limits { memory, pids } = self.0.limits;
        format!("memory {memory} bytes, {pids} processes and threads, killed as a whole")
    }

    /// A new group, with its limits.
    pub(super) fn group(&self) -> io::Result<Group> {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.0.folder.join(format!("worker-{number}"));
        make(&folder)?;
        let group = Group { folder };
        let limits = self.0.limits;
        fs::write(group.folder.join("memory.max"), limits.memory.to_string())?;
        fs::write(group.folder.join("pids.max"), limits.pids.to_string())?;
        // Without swap accounting the file is not there; the memory is bounded all the same.
        let swap = group.folder.join("memory.swap.max");
        if swap.exists() {
            fs::write(swap, "0")?;
        }
        Ok(group)
    }
}

/// A group of one worker; its processes are killed and it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Moves a process into it.
    pub(super) fn add(&self, pid: nix::unistd::Pid) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Kernels before 5.14 have no such file; the group and session were swept before.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        for _ in 0..TRIES {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(nix::libc::EBUSY) => {
                    std::thread::sleep(TRY_AGAIN);
                }
                _ => return,
            }
        }
    }
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn because(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Folder of the own group, from the texts of `/proc/self/mounts` and `/proc/self/cgroup`.
fn own_group(mounts: &str, own: &str) -> Result<PathBuf, String> {
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(place)
    });
    let below = own.lines().find_map(|line| line.strip_prefix("0::/"));
    match (mount, below) {
        (Some(mount), Some(below)) => Ok(Path::new(mount).join(below)),
        _ => Err("no cgroup v2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory: 1 << 30,
        pids: 64,
    };

    /// Files as the kernel shows them in a group.
    fn shown(controllers: &str, processes: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.procs", processes),
            ("cgroup.subtree_control", ""),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn the_own_group_is_found_below_the_mount() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let found = own_group(mounts, "1:name=x:/a\n0::/user.slice/x.scope\n");
        assert_eq!(
            found.unwrap(),
            Path::new("/sys/fs/cgroup/user.slice/x.scope")
        );
        assert_eq!(own_group("", "0::/\n"), Err("no cgroup v2".into()));
        assert_eq!(
            own_group(mounts, "4:memory:/\n"),
            Err("no cgroup v2".into())
        );
    }

    #[test]
    fn a_group_without_the_controllers_or_with_others_in_it_is_left_alone() {
        for (controllers, processes, why) in [
            ("hugetlb\n", "7\n", "cgroup v2 without memory and pids"),
            ("cpu memory\n", "7\n", "cgroup v2 without pids"),
            (
                "memory pids\n",
                "7\n8\n",
                "other processes are in the same cgroup",
            ),
        ] {
            let dir = shown(controllers, processes);
            assert_eq!(Delegation::of(dir.path(), 7, LIMITS).unwrap_err(), why);
            assert!(!dir.path().join(ORCHESTRATOR).exists());
            let control = fs::read_to_string(dir.path().join("cgroup.subtree_control"));
            assert_eq!(control.unwrap(), "");
        }
    }

    #[test]
    fn a_worker_is_put_into_a_group_with_its_limits() {
        let dir = shown("cpu memory pids\n", "7\n");
        let delegation = Delegation::of(dir.path(), 7, LIMITS).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("campaign/cgroup.procs"), "7");
        assert_eq!(read("cgroup.subtree_control"), "+memory +pids");
        let group = delegation.group().unwrap();
        group.add(nix::unistd::Pid::from_raw(42)).unwrap();
        assert_eq!(read("worker-0/memory.max"), "1073741824");
        assert_eq!(read("worker-0/pids.max"), "64");
        assert_eq!(read("worker-0/cgroup.procs"), "42");
        drop(group);
        // A folder that is no cgroup keeps its files; in a cgroup this ends all that is in it.
        assert_eq!(read("worker-0/cgroup.kill"), "1");
        let second = delegation.group().unwrap();
        assert!(second.folder.ends_with("worker-1"));
    }
}
