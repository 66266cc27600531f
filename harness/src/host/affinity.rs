//! Which CPUs this process may use, which of them to measure on, and keeping away from these.

use super::facts::{self, Root};
use crate::values::number_list;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet, Pid};
use std::io;

/// The measured CPUs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AffinityError {
    /// One that was asked for may not be used.
    #[error("CPU {cpu} cannot be measured on: it is {why}; these can: {usable}")]
    NotUsable {
        /// Its number.
        cpu: u32,
        /// `offline` or `outside the CPUs allowed for this process`.
        why: &'static str,
        /// Those that can, as a list.
        usable: String,
    },
    /// One that was asked for may be used, and the kernel does not move a thread there all the same.
    #[error("CPU {cpu} cannot be measured on: a thread cannot be pinned to it; name another with --cpu, or none to have one chosen")]
    NotPinned {
        /// Its number.
        cpu: u32,
        /// Why.
        source: io::Error,
    },
    /// None is left.
    #[error("no CPU can be measured on: none is online, allowed for this process, and takes a thread that is pinned to it")]
    None,
    /// The kernel does not tell.
    #[error("the CPUs allowed for this process cannot be found out")]
    Unknown(#[source] io::Error),
}

/// CPUs that this process may use now, by the call alone; [`allowed_on`] knows a second source.
pub fn allowed() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect())
}

/// [`allowed`] on the machine itself; of a copy of a machine's files, and where the call fails, what the
/// status file of this process says.
pub fn allowed_on(root: &Root) -> io::Result<Vec<u32>> {
    let listed = || {
        let status = root.text("proc/self/status")?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(facts::parse_cpu_list(list))
    };
    match root.is_live() {
        true => allowed().or_else(|error| listed().ok_or(error)),
        // A copy without that file is of a machine on which everything is allowed.
        false => Ok(listed().unwrap_or_else(|| facts::online(root))),
    }
}

/// The CPUs to measure on: those asked for, all of them usable; else one, of the strongest kind, the
/// first thread of its core (the other goes when SMT is switched off), and with the highest number of
/// these (the lowest ones get the interrupts of most machines). On the machine itself each is tried: a
/// container may list CPUs that it does not have. The choice then falls on the next; one that was asked
/// for is not replaced.
pub fn choose(
    root: &Root,
    allowed: &[u32],
    asked: Option<&[u32]>,
) -> Result<Vec<u32>, AffinityError> {
    match root.is_live() {
        true => choose_with(root, allowed, asked, &try_pin),
        false => choose_with(root, allowed, asked, &|_| Ok(())),
    }
}

/// [`choose`], with what tries whether a thread can be pinned to a CPU.
fn choose_with(
    root: &Root,
    allowed: &[u32],
    asked: Option<&[u32]>,
    try_pin: &dyn Fn(u32) -> io::Result<()>,
) -> Result<Vec<u32>, AffinityError> {
    let online = facts::online(root);
    let is_online = |cpu: &u32| online.is_empty() || online.contains(cpu);
    let usable: Vec<u32> = allowed.iter().copied().filter(is_online).collect();
    let Some(asked) = asked else {
        let strength = |cpu: u32| {
            let facts = facts::cpu(root, cpu);
            let big = facts.core_type.as_deref() != Some("cpu_atom");
            let first = facts::is_first_thread(root, cpu);
            (big, facts.capacity, facts.hardware_max_khz, first, cpu)
        };
        let mut by_strength = usable;
        by_strength.sort_by_cached_key(|&cpu| std::cmp::Reverse(strength(cpu)));
        let first = by_strength.into_iter().find(|&cpu| try_pin(cpu).is_ok());
        return first.map(|cpu| vec![cpu]).ok_or(AffinityError::None);
    };
    if let Some(&cpu) = asked.iter().find(|cpu| !usable.contains(cpu)) {
        return Err(AffinityError::NotUsable {
            cpu,
            why: match is_online(&cpu) {
                false => "offline or absent",
                true => "outside the CPUs allowed for this process",
            },
            usable: number_list(&usable),
        });
    }
    for &cpu in asked {
        try_pin(cpu).map_err(|source| AffinityError::NotPinned { cpu, source })?;
    }
    Ok(asked.to_vec())
}

/// Pins a thread of its own to a CPU and looks whether it runs there. The threads of this process stay
/// where they are.
fn try_pin(cpu: u32) -> io::Result<()> {
    let pin = move || -> io::Result<()> {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        sched_setaffinity(None, &set)?;
        match sched_getcpu() {
            on if on == cpu as usize => Ok(()),
            on => Err(io::Error::other(format!("it runs on CPU {on} instead"))),
        }
    };
    let thread = std::thread::Builder::new().spawn(pin)?;
    thread.join().unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that was to be pinned panicked",
        ))
    })
}

/// Moves all threads of this process to the allowed CPUs that are not measured; where every allowed
/// CPU is measured, nothing changes. Threads and children started later inherit it. Returns the CPUs
/// used from now on.
pub fn keep_away(allowed: &[u32], measured: &[u32]) -> io::Result<Vec<u32>> {
    let rest: Vec<u32> = allowed
        .iter()
        .copied()
        .filter(|cpu| !measured.contains(cpu))
        .collect();
    let used = match rest.is_empty() {
        true => allowed.to_vec(),
        false => rest,
    };
    let mut set = CpuSet::new();
    for &cpu in &used {
        set.set(cpu as usize);
    }
    for entry in std::fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        let Some(thread) = name.to_str().and_then(|text| text.parse().ok()) else {
            continue;
        };
        match sched_setaffinity(Pid::from_raw(thread), &set) {
            // The thread has ended in the meantime.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("sys/devices").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn the_strongest_cpu_is_chosen_and_not_one_that_is_offline() {
        let (_dir, root) = machine(&[
            ("system/cpu/online", "0-5\n"),
            ("cpu_core/cpus", "0-3\n"),
            ("cpu_atom/cpus", "4-7\n"),
        ]);
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(choose(&root, &all, None).unwrap(), [3]);
        let (_dir, root) = machine(&[
            ("system/cpu/online", "0-3\n"),
            ("system/cpu/cpu0/cpu_capacity", "1024\n"),
            ("system/cpu/cpu1/cpu_capacity", "1024\n"),
            ("system/cpu/cpu2/cpu_capacity", "446\n"),
            ("system/cpu/cpu3/cpu_capacity", "446\n"),
        ]);
        assert_eq!(choose(&root, &all, None).unwrap(), [1]);
        assert_eq!(choose(&root, &[2, 3], None).unwrap(), [3]);
    }

    #[test]
    fn the_second_thread_of_a_core_is_not_chosen() {
        let (_dir, root) = machine(&[
            ("system/cpu/online", "0-3\n"),
            ("system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
            ("system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
            ("system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
            ("system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
        ]);
        assert_eq!(choose(&root, &[0, 1, 2, 3], None).unwrap(), [1]);
        assert_eq!(choose(&root, &[2, 3], None).unwrap(), [3], "nothing better");
    }

    #[test]
    fn a_copy_tells_the_allowed_cpus_by_its_status_file() {
        let (dir, root) = machine(&[("system/cpu/online", "0-3\n")]);
        assert_eq!(allowed_on(&root).unwrap(), [0, 1, 2, 3]);
        let own = dir.path().join("proc/self");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("status"), "Name:\tx\nCpus_allowed_list:\t1,3\n").unwrap();
        assert_eq!(allowed_on(&root).unwrap(), [1, 3]);
    }

    #[test]
    fn a_cpu_that_cannot_be_used_is_named_with_those_that_can() {
        let (_dir, root) = machine(&[("system/cpu/online", "0-3\n")]);
        let text = |allowed: &[u32], asked: u32| {
            choose(&root, allowed, Some(&[asked]))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            text(&[0, 1], 5),
            "CPU 5 cannot be measured on: it is offline or absent; these can: 0,1"
        );
        assert_eq!(
            text(&[0, 1], 2),
            "CPU 2 cannot be measured on: it is outside the CPUs allowed for this process; these can: 0,1"
        );
        assert_eq!(choose(&root, &[0, 1], Some(&[1, 0])).unwrap(), [1, 0]);
        assert!(matches!(choose(&root, &[], None), Err(AffinityError::None)));
    }

    /// Try, verify, next; but what a user names is not replaced by something else.
    #[test]
    fn a_cpu_that_takes_no_thread_leads_to_the_next_unless_it_was_asked_for() {
        let (_dir, root) = machine(&[
            ("system/cpu/online", "0-3\n"),
            ("cpu_core/cpus", "1-3\n"),
            ("cpu_atom/cpus", "0\n"),
        ]);
        let tried = std::cell::RefCell::new(Vec::new());
        let only = |good: &'static [u32]| {
            let tried = &tried;
            move |cpu: u32| -> io::Result<()> {
                tried.borrow_mut().push(cpu);
                match good.contains(&cpu) {
                    true => Ok(()),
                    false => Err(rustix::io::Errno::INVAL.into()),
                }
            }
        };
        let all = [0, 1, 2, 3];
        assert_eq!(choose_with(&root, &all, None, &only(&[0, 1])).unwrap(), [1]);
        assert_eq!(tried.take(), [3, 2, 1]);
        let none = choose_with(&root, &all, None, &only(&[]));
        assert!(matches!(none, Err(AffinityError::None)));
        assert_eq!(tried.take(), [3, 2, 1, 0]);
        let asked = choose_with(&root, &all, Some(&[1, 3]), &only(&[0, 1, 2]));
        let error = asked.unwrap_err();
        assert!(matches!(error, AffinityError::NotPinned { cpu: 3, .. }));
        assert!(error.to_string().starts_with("CPU 3 cannot be measured on"));
        let root = Root::default();
        let ours = allowed().unwrap();
        assert!(ours.contains(&choose(&root, &ours, None).unwrap()[0]));
        assert!(try_pin(ours[0]).is_ok());
        assert!(try_pin(1000).is_err(), "no machine of ours has that many");
    }

    #[test]
    fn this_process_may_use_some_cpu() {
        assert!(!allowed().unwrap().is_empty());
    }
}
