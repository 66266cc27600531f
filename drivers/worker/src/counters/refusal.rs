//! Why the kernel refused a counter, as five reasons with five remedies.
//!
//! An errno alone sends people the wrong way: "not found" on a virtual machine, "denied" by a
//! container's filter and "denied" by a distribution's stricter `perf_event_paranoid` need different
//! steps. So the reason names what was read on this machine: the paranoid level and what it means,
//! the effective capabilities, the seccomp mode, and the PMUs that the kernel lists. Deciding
//! whether a row may do without cycles is the orchestrator's part.

use std::path::Path;

/// Bit of CAP_SYS_ADMIN in a capability mask (linux/capability.h).
const CAP_SYS_ADMIN: u32 = 21;
/// Bit of CAP_PERFMON, since Linux 5.8.
const CAP_PERFMON: u32 = 38;

/// What decides about access to counters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permission {
    /// `kernel.perf_event_paranoid`; `None` when it cannot be read.
    pub paranoid: Option<i64>,
    /// Effective capabilities of the process.
    pub effective: Option<u64>,
    /// Seccomp mode: 0 off, 1 strict, 2 filter.
    pub seccomp: Option<u8>,
    /// What [`super::pmu::Pmus::describe`] says.
    pub pmus: String,
}

impl Permission {
    /// Reads it below `root` (`/`, or a copy for tests).
    pub fn read(root: &Path, pmus: String) -> Permission {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).ok();
        let status = text("proc/self/status").unwrap_or_default();
        let field = |name: &str| super::facts::status_field(&status, name).map(str::to_owned);
        Permission {
            paranoid: text("proc/sys/kernel/perf_event_paranoid")
                .and_then(|t| t.trim().parse().ok()),
            effective: field("CapEff").and_then(|mask| u64::from_str_radix(&mask, 16).ok()),
            seccomp: field("Seccomp").and_then(|mode| mode.parse().ok()),
            pmus,
        }
    }

    fn may_count(&self) -> bool {
        let has = |bit: u32| self.effective.is_some_and(|mask| mask >> bit & 1 == 1);
        has(CAP_PERFMON) || has(CAP_SYS_ADMIN)
    }

    fn capabilities(&self) -> String {
        let held = |held| if held { "held" } else { "not held" };
        match self.effective {
            Some(mask) => format!(
                "CapEff {mask:016x} (CAP_PERFMON or CAP_SYS_ADMIN: {})",
                held(self.may_count())
            ),
            None => "CapEff unknown".to_owned(),
        }
    }

    fn seccomp_mode(&self) -> &'static str {
        match self.seccomp {
            Some(0) => "seccomp mode 0 (off)",
            Some(1) => "seccomp mode 1 (strict)",
            Some(2) => "seccomp mode 2 (a filter is installed)",
            Some(_) => "an unknown seccomp mode",
            None => "seccomp mode unknown",
        }
    }
}

/// What a level of `kernel.perf_event_paranoid` means (Documentation/admin-guide/sysctl/kernel.rst;
/// levels 3 and 4 are patches of Debian, Ubuntu and Android).
pub fn paranoid_meaning(level: Option<i64>) -> String {
    let Some(level) = level else {
        return "kernel.perf_event_paranoid cannot be read".to_owned();
    };
    let meaning = match level {
        ..=-1 => "everybody may use almost all events",
        0 => "no raw tracepoints for ordinary users",
        1 => "ordinary users may count their own processes, kernel included",
        2 => "ordinary users may count their own processes in user mode, which is enough here",
        3 => "no events at all for ordinary users: Debian's own level and default, unknown to other kernels",
        _ => "no events at all for ordinary users: Ubuntu's own level and default",
    };
    format!("kernel.perf_event_paranoid is {level} ({meaning})")
}

/// Reason code of the record and text with the remedy, for an error of `perf_event_open` on an
/// event that counts user mode only.
pub fn reason(errno: i32, permission: &Permission) -> (&'static str, String) {
    match errno {
        libc::ENOENT => ("no_counter_enoent", enoent(permission)),
        libc::ENOSYS => ("no_counter_enosys", enosys(permission)),
        libc::EACCES => ("no_counter_eacces", eacces(permission)),
        libc::EPERM => ("no_counter_eperm", eperm(permission)),
        libc::EOPNOTSUPP => ("no_counter_eopnotsupp", eopnotsupp(permission)),
        other => ("not_recorded", unexpected(other, permission)),
    }
}

/// What may have a part in a refusal, whatever its error: a filter can answer with any of them.
fn state(permission: &Permission) -> String {
    format!(
        "{}; {}; {}",
        permission.seccomp_mode(),
        permission.capabilities(),
        paranoid_meaning(permission.paranoid)
    )
}

/// What has to be done about a filter, as far as one is known.
fn filter(permission: &Permission) -> Option<&'static str> {
    match permission.seccomp {
        Some(0) => None,
        Some(_) => Some(
            "the filter may be what refuses the call: start the container with a profile that allows \
             perf_event_open (docker: `--security-opt seccomp=PROFILE` and `--cap-add PERFMON`)",
        ),
        None => Some(
            "whether a filter refuses the call is not known here: inside a container, allow \
             perf_event_open in its seccomp profile",
        ),
    }
}

/// The remedies in the order in which they should be tried.
fn remedies(first: Option<&str>, then: &str) -> String {
    match first {
        Some(first) => format!("{first}; if it does not, {then}"),
        None => then.to_owned(),
    }
}

fn enoent(permission: &Permission) -> String {
    format!(
        "ENOENT: the kernel has no hardware cycle event here; {}; {}. On a virtual machine the host has to \
         give the guest a virtual PMU (KVM: `-cpu host,pmu=on`; VMware: virtualised CPU performance \
         counters; clouds: a bare-metal or full-size instance); on a real machine the kernel lacks the \
         driver of its PMU",
        permission.pmus,
        state(permission)
    )
}

fn enosys(permission: &Permission) -> String {
    let remedy = remedies(
        filter(permission),
        "measure on a real kernel, and not under a user-mode emulator (qemu-user never has the call) or on \
         a sandbox kernel such as gVisor, or boot a kernel with CONFIG_PERF_EVENTS",
    );
    format!(
        "ENOSYS: perf_event_open is answered as if it did not exist; {}. Remedy: {remedy}",
        state(permission)
    )
}

fn eacces(permission: &Permission) -> String {
    let denied_by_level = permission.paranoid.is_some_and(|level| level > 2);
    let remedy = if denied_by_level && !permission.may_count() {
        "`campaign tune`, or as root `sysctl kernel.perf_event_paranoid=2`; or give the worker CAP_PERFMON"
            .to_owned()
    } else {
        let module =
            "look for a security module (SELinux class perf_event, AppArmor) and allow perf_event \
                      for this user there";
        let module = match permission.paranoid {
            Some(_) => format!("the level does not explain it: {module}"),
            None => format!(
                "the level is not known and may explain it (2 is low enough); else {module}"
            ),
        };
        remedies(filter(permission), &module)
    };
    format!(
        "EACCES: not permitted; {}. Remedy: {remedy}",
        state(permission)
    )
}

fn eperm(permission: &Permission) -> String {
    let remedy = match filter(permission) {
        Some(filter) => format!("{filter}; the level on the host counts as well"),
        None => "no filter is installed, so the kernel refuses the combination for this user: measure as a \
                 user with CAP_PERFMON, and look for a lockdown or security module that forbids counting"
            .to_owned(),
    };
    format!("EPERM: refused; {}. Remedy: {remedy}", state(permission))
}

fn eopnotsupp(permission: &Permission) -> String {
    format!(
        "EOPNOTSUPP: the PMU is there but cannot count this way (user mode only, together with \
         instructions); {}; {}. Measure on a CPU whose PMU can tell user mode from kernel, or with a newer \
         kernel driver for it",
        permission.pmus,
        state(permission)
    )
}

fn unexpected(errno: i32, permission: &Permission) -> String {
    format!(
        "perf_event_open failed with an error that is none of the known five: {}; {}; {}",
        std::io::Error::from_raw_os_error(errno),
        permission.pmus,
        state(permission)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: [(i32, &str); 5] = [
        (libc::ENOENT, "no_counter_enoent"),
        (libc::ENOSYS, "no_counter_enosys"),
        (libc::EACCES, "no_counter_eacces"),
        (libc::EPERM, "no_counter_eperm"),
        (libc::EOPNOTSUPP, "no_counter_eopnotsupp"),
    ];

    fn user(paranoid: i64, seccomp: u8) -> Permission {
        Permission {
            paranoid: Some(paranoid),
            effective: Some(0),
            seccomp: Some(seccomp),
            pmus: "core PMUs: cpu (all CPUs)".to_owned(),
        }
    }

    #[test]
    fn five_errors_have_five_codes_and_five_texts() {
        let texts: std::collections::BTreeSet<String> = FIVE
            .iter()
            .map(|&(errno, code)| {
                let (found, text) = reason(errno, &user(3, 0));
                assert_eq!(found, code);
                text
            })
            .collect();
        assert_eq!(texts.len(), 5);
        assert_eq!(reason(libc::EINVAL, &user(3, 0)).0, "not_recorded");
    }

    #[test]
    fn a_strict_level_is_named_with_its_distribution_and_lowered_by_the_remedy() {
        let (_, text) = reason(libc::EACCES, &user(3, 0));
        assert!(text.contains("perf_event_paranoid is 3"), "{text}");
        assert!(text.contains("Debian"), "{text}");
        assert!(
            text.contains("sysctl kernel.perf_event_paranoid=2"),
            "{text}"
        );
        let (_, text) = reason(libc::EACCES, &user(4, 0));
        assert!(text.contains("Ubuntu"), "{text}");
    }

    #[test]
    fn a_lenient_level_is_not_blamed() {
        let (_, text) = reason(libc::EACCES, &user(2, 0));
        assert!(text.contains("security module"), "{text}");
        assert!(!text.contains("sysctl"), "{text}");
    }

    #[test]
    fn a_filter_is_blamed_only_where_there_is_one() {
        assert!(reason(libc::EPERM, &user(2, 2))
            .1
            .contains("seccomp=PROFILE"));
        let without = reason(libc::EPERM, &user(2, 0)).1;
        assert!(!without.contains("seccomp=PROFILE"), "{without}");
        assert!(
            without.contains("CAP_PERFMON or CAP_SYS_ADMIN: not held"),
            "{without}"
        );
    }

    /// A filter may answer with any error, so what is known of one belongs to every reason.
    #[test]
    fn every_reason_tells_filter_and_capabilities_and_none_names_a_cause_that_is_not_known() {
        let errors = FIVE
            .map(|(errno, _)| errno)
            .into_iter()
            .chain([libc::EINVAL]);
        for errno in errors {
            for (seccomp, words) in [
                (Some(0), "seccomp mode 0 (off)"),
                (Some(2), "seccomp mode 2 (a filter is installed)"),
                (None, "seccomp mode unknown"),
            ] {
                let permission = Permission {
                    seccomp,
                    ..user(2, 0)
                };
                let (_, text) = reason(errno, &permission);
                assert!(text.contains(words), "{text}");
                assert!(text.contains("CAP_SYS_ADMIN: not held"), "{text}");
                let may_be_filtered = [libc::ENOSYS, libc::EACCES, libc::EPERM].contains(&errno);
                let named = text.contains("allows perf_event_open")
                    || text.contains("is not known here: inside a container");
                assert_eq!(named, may_be_filtered && seccomp != Some(0), "{text}");
            }
        }
        // Without the level nothing can be said to explain the refusal, or not to.
        let (_, text) = reason(
            libc::EACCES,
            &Permission {
                paranoid: None,
                ..user(2, 0)
            },
        );
        assert!(text.contains("may explain it"), "{text}");
        assert!(!text.contains("does not explain"), "{text}");
    }

    #[test]
    fn either_capability_counts_as_held() {
        for (mask, held) in [
            (1u64 << 38, true),
            (1 << 21, true),
            (1 << 37, false),
            (0, false),
        ] {
            let permission = Permission {
                effective: Some(mask),
                ..Permission::default()
            };
            assert_eq!(permission.may_count(), held, "{mask:x}");
        }
    }

    #[test]
    fn every_level_has_a_meaning_and_none_is_said_when_unread() {
        for level in [-1, 0, 1, 2, 3, 4] {
            assert!(paranoid_meaning(Some(level)).contains(&format!("is {level} (")));
        }
        assert!(paranoid_meaning(None).contains("cannot be read"));
    }

    #[test]
    fn the_files_of_a_machine_are_read_below_the_root_given() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        std::fs::create_dir_all(proc.join("self")).unwrap();
        std::fs::create_dir_all(proc.join("sys/kernel")).unwrap();
        std::fs::write(proc.join("sys/kernel/perf_event_paranoid"), "4\n").unwrap();
        let status = "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        std::fs::write(proc.join("self/status"), status).unwrap();
        let read = Permission::read(root.path(), "none".to_owned());
        assert_eq!(
            (read.paranoid, read.effective, read.seccomp),
            (Some(4), Some(1 << 38), Some(2))
        );
        assert!(read.may_count());
    }
}
