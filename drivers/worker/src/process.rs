//! This process, as the kernel sees it: session, parent, CPU, memory and time used.
//!
//! Protections are `isolation`'s, counters are `counters`'.

use crate::error::{Result, WorkerError};
use protocol::Usage;
use std::ffi::CString;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Own session and process group, and an end together with the parent. Call it first.
pub fn detach() -> Result<()> {
    let parent = nix::unistd::getppid();
    // A group leader (a worker started by hand from a shell) cannot start a session: it has a
    // group of its own already.
    match nix::unistd::setsid() {
        Ok(_) | Err(nix::errno::Errno::EPERM) => {}
        Err(errno) => return Err(WorkerError::io("starting a session")(errno.into())),
    }
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .map_err(|errno| WorkerError::io("asking for the parent's death signal")(errno.into()))?;
    if nix::unistd::getppid() != parent {
        return Err(WorkerError::Request(
            "the orchestrator ended before the worker began".to_owned(),
        ));
    }
    Ok(())
}

/// Takes the name that it was called by: a program started by its descriptor is named after that
/// descriptor's number.
pub fn take_name() {
    let called = std::env::args_os().next().map(PathBuf::from);
    let name = called.as_deref().and_then(Path::file_name);
    if let Some(name) = name.and_then(|name| CString::new(name.as_bytes()).ok()) {
        // For those who look at the list of processes; nothing depends on it.
        let _ = nix::sys::prctl::set_name(&name);
    }
}

/// Pins the calling thread to `cpu`, and verifies it.
pub fn pin(cpu: u32) -> Result<()> {
    let mut set = nix::sched::CpuSet::new();
    let refused = |text: String| {
        WorkerError::Pin(format!(
            "CPU {cpu} cannot be used: {text}; allowed are {}",
            allowed_cpus()
        ))
    };
    set.set(cpu as usize)
        .map_err(|_| refused("its number is beyond the largest CPU set".to_owned()))?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).map_err(|errno| {
        refused(format!(
            "it is offline or outside the allowed set ({errno})"
        ))
    })?;
    let found = current_cpu()?;
    if found != cpu {
        return Err(refused(format!(
            "after pinning the thread ran on CPU {found}"
        )));
    }
    Ok(())
}

/// Verifies that the calling thread still runs on `cpu` and nowhere else, after a library had its
/// turn. Another affinity is the library's doing (`Contract`); another CPU under the same affinity
/// is the machine's (`Pin`).
pub fn verify_pin(cpu: u32) -> Result<()> {
    let found = current_cpu()?;
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .map_err(|errno| WorkerError::io("reading the affinity")(errno.into()))?;
    let only = (0..nix::sched::CpuSet::count())
        .all(|other| set.is_set(other).unwrap_or(false) == (other == cpu as usize));
    match (only, found == cpu) {
        (true, true) => Ok(()),
        (true, false) => Err(WorkerError::Pin(format!(
            "CPU {cpu} was taken away: the thread runs on CPU {found}"
        ))),
        (false, _) => Err(WorkerError::Contract(format!(
            "the affinity was changed: the thread was pinned to CPU {cpu} and may now use CPUs {}",
            allowed_cpus()
        ))),
    }
}

/// CPU that the calling thread runs on.
pub fn current_cpu() -> Result<u32> {
    nix::sched::sched_getcpu()
        .map(|cpu| cpu as u32)
        .map_err(|errno| WorkerError::io("asking for the current CPU")(errno.into()))
}

/// Whether the affinity leaves no choice.
pub fn only_one_cpu() -> bool {
    allowed_cpus().parse::<u32>().is_ok()
}

fn allowed_cpus() -> String {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|text| field(&text, "Cpus_allowed_list").map(str::to_owned))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// `/proc/self/status`, held open so that it can be read under any isolation.
#[derive(Debug)]
pub struct Status(File);

/// Figures of [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFigures {
    /// VmRSS, bytes.
    pub rss_bytes: u64,
    /// VmHWM: the largest VmRSS so far, bytes.
    pub peak_rss_bytes: u64,
    /// Threads.
    pub threads: u32,
}

impl Status {
    /// Opens the file.
    pub fn open() -> Result<Status> {
        File::open("/proc/self/status")
            .map(Status)
            .map_err(WorkerError::io("opening /proc/self/status"))
    }

    /// Reads the figures now.
    pub fn read(&self) -> Result<StatusFigures> {
        let mut bytes = [0u8; 8192];
        let read = self
            .0
            .read_at(&mut bytes, 0)
            .map_err(WorkerError::io("reading /proc/self/status"))?;
        let text = String::from_utf8_lossy(&bytes[..read]);
        parse_status(&text).ok_or_else(|| {
            WorkerError::Contract(
                "VmRSS, VmHWM or Threads is missing in /proc/self/status; the library has closed or \
                 replaced the open file"
                    .to_owned(),
            )
        })
    }
}

fn parse_status(text: &str) -> Option<StatusFigures> {
    let kib = |name| -> Option<u64> {
        let value: u64 = field(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
        Some(value * 1024)
    };
    Some(StatusFigures {
        rss_bytes: kib("VmRSS")?,
        peak_rss_bytes: kib("VmHWM")?,
        threads: field(text, "Threads")?.parse().ok()?,
    })
}

/// Value of a `Name:   value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Writes out what the library left in the buffers of C's streams, so that it is captured.
pub fn flush_streams() {
    // SAFETY: a null argument means all open output streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Ends the process at once: no destructors of the library run after its last event.
pub fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// What the process has used so far.
pub fn usage() -> Result<Usage> {
    let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)
        .map_err(|errno| WorkerError::io("getrusage")(errno.into()))?;
    let ns = |time: nix::sys::time::TimeVal| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000
    };
    Ok(Usage {
        user_ns: ns(used.user_time()),
        system_ns: ns(used.system_time()),
        voluntary_switches: used.voluntary_context_switches() as u64,
        involuntary_switches: used.involuntary_context_switches() as u64,
        minor_faults: used.minor_page_faults() as u64,
        major_faults: used.major_page_faults() as u64,
        migrations: None,
    })
}

/// CPU time of all threads of the process so far, nanoseconds: the same as in [`usage`], which has it
/// in microseconds only.
pub fn cpu_ns() -> u64 {
    crate::timing::read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the other threads of the process so far, those that have ended included, nanoseconds:
/// at least and at most this much, since the two clocks cannot be read at once.
pub fn others_cpu_ns() -> RangeInclusive<u64> {
    let own = || crate::timing::read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
    let (before, all, after) = (own(), cpu_ns(), own());
    all.saturating_sub(after)..=all.saturating_sub(before)
}

/// What was used between two readings.
pub fn used(before: Usage, after: Usage) -> Usage {
    Usage {
        user_ns: after.user_ns.saturating_sub(before.user_ns),
        system_ns: after.system_ns.saturating_sub(before.system_ns),
        voluntary_switches: after
            .voluntary_switches
            .saturating_sub(before.voluntary_switches),
        involuntary_switches: after
            .involuntary_switches
            .saturating_sub(before.involuntary_switches),
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        migrations: match (before.migrations, after.migrations) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ => None,
        },
    }
}

/// `/proc/self/sched`, where the kernel has it: the number of migrations.
#[derive(Debug)]
pub struct Migrations(Option<File>);

impl Migrations {
    /// Opens the file; a kernel without it gives `None` for every reading.
    pub fn open() -> Migrations {
        Migrations(File::open("/proc/self/sched").ok())
    }

    /// Migrations to another CPU so far.
    pub fn read(&self) -> Option<u64> {
        let mut bytes = [0u8; 8192];
        let read = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = String::from_utf8_lossy(&bytes[..read]);
        field(&text, "se.nr_migrations")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_status_file_are_bytes() {
        let text = "Name:\tworker\nVmHWM:\t    2004 kB\nVmRSS:\t    1929 kB\nThreads:\t3\n";
        let figures = parse_status(text).unwrap();
        assert_eq!(figures.rss_bytes, 1929 * 1024);
        assert_eq!(figures.peak_rss_bytes, 2004 * 1024);
        assert_eq!(figures.threads, 3);
        assert_eq!(parse_status("VmHWM:\t1 kB\n"), None);
        assert_eq!(
            field("se.nr_migrations    :     12\n", "se.nr_migrations"),
            Some("12")
        );
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused_with_the_allowed_ones() {
        let error = pin(1023).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::Pin);
        assert!(error.to_string().contains("allowed are 0"), "{error}");
    }
}
