//! No new privileges, no capabilities, and no way for others of the same user to look inside.

use super::{because, Outcome};
use nix::sys::prctl;
use std::io;

/// Version of the capability calls with 64 bits (linux/capability.h, _LINUX_CAPABILITY_VERSION_3).
const VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`; process 0 is the calling thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`; one for each 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// No program that is executed from here gains anything; landlock and seccomp ask for it.
pub fn no_new() -> Outcome {
    prctl::set_no_new_privs().map_err(|error| because("PR_SET_NO_NEW_PRIVS")(&error))?;
    Ok("set".to_owned())
}

/// Empties all five sets. The bounding set needs a capability to shrink, which an ordinary user has
/// only inside a user namespace; without the others it grants nothing.
pub fn drop_capabilities() -> Outcome {
    let bounding = drop_bounding();
    // SAFETY: takes numbers only.
    let ambient = unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    };
    set_empty().map_err(|error| because("capset")(&error))?;
    let left = held().map_err(|error| because("capget")(&error))?;
    if left.iter().any(|sets| *sets != Sets::default()) {
        return Err("capset succeeded, but capabilities are left".to_owned());
    }
    let of_bounding = match bounding {
        Ok(count) => format!("bounding set empty ({count} dropped)"),
        Err(error) => format!("bounding set kept ({error}), which grants nothing by itself"),
    };
    let of_ambient = if ambient == 0 { ", ambient" } else { "" };
    Ok(format!(
        "effective, permitted, inheritable{of_ambient} sets empty; {of_bounding}"
    ))
}

/// Drops each capability that the kernel knows from the bounding set; how many there were.
fn drop_bounding() -> io::Result<u32> {
    for capability in 0..64 {
        // SAFETY: takes numbers only.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == 0 {
            continue;
        }
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            // One past the last capability of this kernel.
            Some(libc::EINVAL) => Ok(capability),
            _ => Err(error),
        };
    }
    Ok(64)
}

fn set_empty() -> io::Result<()> {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let empty = [Sets::default(); 2];
    // SAFETY: both structures are laid out as the kernel's and outlive the call.
    match unsafe { libc::syscall(libc::SYS_capset, &mut header, empty.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn held() -> io::Result<[Sets; 2]> {
    let mut header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut sets = [Sets::default(); 2];
    // SAFETY: as above; version 3 writes two elements.
    match unsafe { libc::syscall(libc::SYS_capget, &mut header, sets.as_mut_ptr()) } {
        0 => Ok(sets),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Not dumpable: other processes of the same user can neither trace this one nor open its memory.
/// It keeps workers apart that run at the same time; it does not protect the orchestrator.
pub fn hide() -> Outcome {
    prctl::set_dumpable(false).map_err(|error| because("PR_SET_DUMPABLE")(&error))?;
    Ok("other processes of this user can neither trace it nor open its memory".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::contained;
    use std::time::Duration;

    #[test]
    fn no_capability_is_left_and_none_comes_back() {
        let (outcome, status, again) = contained(Duration::from_secs(60), || {
            let outcome = drop_capabilities();
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let header = Header {
                version: VERSION_3,
                pid: 0,
            };
            let mut all = [Sets::default(); 2];
            all[0] = Sets {
                effective: 1,
                permitted: 1,
                inheritable: 0,
            };
            // SAFETY: as in `set_empty`.
            let again = unsafe { libc::syscall(libc::SYS_capset, &header, all.as_ptr()) };
            (outcome, status, again)
        })
        .unwrap();
        assert!(outcome.is_ok(), "{outcome:?}");
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(
                status.contains(&format!("{name}:\t0000000000000000")),
                "{name}: {status}"
            );
        }
        assert_eq!(again, -1);
    }

    #[test]
    fn a_hidden_process_still_opens_its_own_files() {
        let (outcome, dumpable, link) = contained(Duration::from_secs(60), || {
            let file = std::fs::File::open("/proc/self/status").unwrap();
            let outcome = hide();
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            (
                outcome,
                prctl::get_dumpable().unwrap(),
                std::fs::File::open(path).is_ok(),
            )
        })
        .unwrap();
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!((dumpable, link), (false, true));
    }
}
