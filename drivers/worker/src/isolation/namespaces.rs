//! A user namespace, and in it a network without any interface.
//!
//! The network namespace closes what landlock leaves open on older kernels (UDP, other protocols);
//! the user namespace is what lets an ordinary user have one, and it keeps this process from tracing
//! processes outside even of the same user. The user keeps its own number inside, so files stay
//! readable as before.

use super::{because, Outcome};
use nix::sched::{unshare, CloneFlags};
use nix::unistd::{Gid, Uid};
use std::fmt::Display;

/// Enters both; a network namespace alone where only that is permitted (root, user namespaces off).
pub fn enter() -> Outcome {
    let (user, group) = (Uid::effective(), Gid::effective());
    match unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET) {
        Ok(()) => Ok(match map(user, group) {
            Ok(()) => "user and network namespaces; no network interface is up".to_owned(),
            Err(text) => {
                format!("user and network namespaces, without a name for its user ({text})")
            }
        }),
        Err(both) => match unshare(CloneFlags::CLONE_NEWNET) {
            Ok(()) => Ok(format!("network namespace only; user namespace: {both}")),
            Err(_) => Err(refused(both)),
        },
    }
}

fn refused(error: nix::Error) -> String {
    let hint = match error {
        nix::Error::ENOSPC => "user.max_user_namespaces or max_net_namespaces is used up or 0",
        nix::Error::EPERM => {
            "the system forbids them to this user (sysctl, AppArmor, a container's filter)"
        }
        nix::Error::EINVAL => {
            "the process has several threads (user-mode emulation), or the kernel lacks them"
        }
        nix::Error::ENOSYS => "the kernel or emulator lacks them",
        _ => "unexpected",
    };
    format!("{error}; {hint}")
}

/// Gives the user and group their own numbers inside; groups must be frozen first (user_namespaces(7)).
fn map(user: Uid, group: Gid) -> Result<(), String> {
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))
}

fn write(path: &str, text: String) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| because(path)(&error as &dyn Display))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::contained;
    use std::time::Duration;

    /// What some modules put into each network namespace of their own accord, down and without address.
    const FALLBACK: [&str; 9] = [
        "erspan0", "gre0", "gretap0", "ip6_vti0", "ip6gre0", "ip6tnl0", "ip_vti0", "sit0", "tunl0",
    ];

    #[test]
    fn inside_there_is_no_network_and_the_user_is_the_same() {
        let user = Uid::effective().as_raw();
        let (outcome, inside, devices) = contained(Duration::from_secs(60), || {
            let outcome = enter();
            let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap();
            (outcome, Uid::effective().as_raw(), devices)
        })
        .unwrap();
        match outcome {
            // A line for each below two of heading; a new namespace has a loopback interface of its own.
            Ok(text) => {
                let lines = devices.lines().skip(2);
                let names = lines.filter_map(|line| Some(line.split_once(':')?.0.trim()));
                let names: Vec<&str> = names.filter(|name| !FALLBACK.contains(name)).collect();
                assert_eq!(names, ["lo"], "{text}");
                assert_eq!(inside, user, "{text}");
            }
            Err(text) => assert!(text.contains("; "), "a refusal carries its hint: {text}"),
        }
    }

    #[test]
    fn every_refusal_has_its_own_hint() {
        let errors = [
            nix::Error::ENOSPC,
            nix::Error::EPERM,
            nix::Error::EINVAL,
            nix::Error::ENOSYS,
        ];
        let texts: std::collections::BTreeSet<String> = errors.into_iter().map(refused).collect();
        assert_eq!(texts.len(), 4);
    }
}
