//! The protections of a worker, in layers, each reported as active or not with the reason.
//!
//! [`install`] runs after pinning and after every file and counter was opened, before the library
//! is loaded. [`close`] runs as soon as it is loaded, whatever the task. A layer that
//! this kernel or user does not allow is reported, never fatal: whether that is good enough is the
//! orchestrator's decision. Its own session, the clean environment, closed descriptors, cgroups and
//! time limits are the orchestrator's part; here is what a process can only do to itself.
//!
//! The order matters: namespaces need `/proc/self` writable and the capabilities of their user, the
//! capabilities must be gone before the filter forbids the calls that drop them, and the filter
//! comes last because each other layer needs calls that it refuses.

mod filter;
mod limits;
mod namespaces;
mod privileges;
mod ruleset;
mod syscalls;

pub use limits::close;

use nix::sys::prctl;
use nix::unistd::{getpid, getppid, getsid};
use protocol::{Isolation, Layer};
use std::fmt::Display;
use std::os::fd::BorrowedFd;

/// Installs what `wanted` asks for. `readable` are the files that the worker still has to open
/// again by `/proc/self/fd/N` (the library); everything else that it needs is open already. What
/// the dynamic loader needs (the system's library folders, `/proc/self`) stays readable.
///
/// Call it while the process has one thread: Linux keeps most of this per thread.
pub fn install(wanted: &Isolation, readable: &[BorrowedFd<'_>]) -> Vec<Layer> {
    let guardian = Guardian::note();
    // Before the limits: an emulator makes up `/proc/self/maps` in a file, and may write none then.
    let folders = ruleset::loaded_folders();
    let confined = wanted.drop_privileges || wanted.landlock || wanted.seccomp;
    let mut layers = vec![
        session(),
        asked(wanted.namespaces, "namespaces", namespaces::enter),
        asked(confined, "no_new_privs", privileges::no_new),
        asked(
            wanted.drop_privileges,
            "capabilities",
            privileges::drop_capabilities,
        ),
        asked(wanted.drop_privileges, "not_dumpable", privileges::hide),
        limits::install(wanted),
    ];
    guardian.stand_again();
    layers.push(asked(wanted.landlock, "landlock", || {
        ruleset::restrict(readable, &folders)
    }));
    layers.push(asked(wanted.seccomp, "seccomp", filter::install));
    layers
}

/// What a layer says when it is in force, or why it is not.
type Outcome = Result<String, String>;

fn asked(wanted: bool, name: &str, put: impl FnOnce() -> Outcome) -> Layer {
    match wanted {
        true => layer(name, put()),
        false => layer(name, Err("not asked for".to_owned())),
    }
}

fn layer(name: &str, outcome: Outcome) -> Layer {
    let active = outcome.is_ok();
    let (Ok(detail) | Err(detail)) = outcome;
    Layer {
        name: name.to_owned(),
        active,
        detail,
    }
}

/// What went wrong, with what it was about.
fn because(what: &str) -> impl Fn(&dyn Display) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Made by `main`, so that the orchestrator can end the whole group.
fn session() -> Layer {
    let outcome = match getsid(None) {
        Ok(leader) if leader == getpid() => {
            Ok("leads its own session and process group".to_owned())
        }
        Ok(_) => Err("belongs to the session of the process that started it".to_owned()),
        Err(error) => Err(because("getsid")(&error)),
    };
    layer("session", outcome)
}

/// The signal that ends this process with its parent. Linux clears it whenever credentials change,
/// so it is noted before the layers and set again after them.
struct Guardian {
    signal: Option<nix::sys::signal::Signal>,
    parent: nix::unistd::Pid,
}

impl Guardian {
    fn note() -> Guardian {
        Guardian {
            signal: prctl::get_pdeathsig().ok().flatten(),
            parent: getppid(),
        }
    }

    fn stand_again(&self) {
        let Some(signal) = self.signal else { return };
        let _ = prctl::set_pdeathsig(signal);
        if getppid() != self.parent {
            // The parent ended while nobody listened: do what the signal would have done.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::contained;
    use std::time::Duration;

    #[test]
    fn nothing_is_installed_that_was_not_asked_for() {
        let layers = contained(Duration::from_secs(60), || install(&Isolation::NONE, &[])).unwrap();
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        let all = [
            "session",
            "namespaces",
            "no_new_privs",
            "capabilities",
            "not_dumpable",
            "rlimits",
            "landlock",
            "seccomp",
        ];
        assert_eq!(names, all);
        for layer in layers
            .iter()
            .filter(|layer| !["session", "rlimits"].contains(&layer.name.as_str()))
        {
            assert_eq!(
                (layer.active, layer.detail.as_str()),
                (false, "not asked for"),
                "{}",
                layer.name
            );
        }
    }

    #[test]
    fn the_guardian_survives_the_layers() {
        let wanted = Isolation {
            drop_privileges: true,
            namespaces: true,
            ..Isolation::NONE
        };
        let signal = contained(Duration::from_secs(60), || {
            prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM).unwrap();
            install(&wanted, &[]);
            prctl::get_pdeathsig().unwrap().map(|signal| signal as i32)
        });
        assert_eq!(signal.unwrap(), Some(libc::SIGTERM));
    }
}
