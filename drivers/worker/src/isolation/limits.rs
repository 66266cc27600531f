//! Resource limits: memory, CPU time, files, processes.
//!
//! Limits are only ever lowered, hard together with soft, so that the library cannot raise them
//! again. They bound what a candidate can use; what it may do is decided by the other layers.

use super::{because, filter, layer, Outcome};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::Uid;
use protocol::{Isolation, Layer};
use std::io;

/// Address space, CPU time, file size as asked for, and no core files.
pub fn install(wanted: &Isolation) -> Layer {
    let limits = [
        ("core files", Resource::RLIMIT_CORE, Some(0)),
        (
            "address space",
            Resource::RLIMIT_AS,
            wanted.address_space_bytes,
        ),
        ("CPU seconds", Resource::RLIMIT_CPU, wanted.cpu_seconds),
        ("file bytes", Resource::RLIMIT_FSIZE, wanted.file_bytes),
    ];
    let asked = limits
        .into_iter()
        .filter_map(|(name, resource, limit)| Some((name, resource, limit?)));
    let (mut held, mut lost) = (Vec::new(), Vec::new());
    for (name, resource, limit) in asked {
        match lower(resource, limit) {
            Ok(set) => held.push(format!("{name} {set}")),
            Err(error) => lost.push(because(name)(&error)),
        }
    }
    let held = held.join(", ");
    let outcome = match lost.is_empty() {
        true => Ok(held),
        false => Err(format!("{}; in force: {held}", lost.join(", "))),
    };
    layer("rlimits", outcome)
}

/// The last step before calls of the library: no further files, and no further processes where no
/// filter forbids them already. What is to be read afterwards (`/proc/self/status`) must be open.
pub fn close(wanted: &Isolation) -> Vec<Layer> {
    if *wanted == Isolation::NONE {
        return Vec::new();
    }
    vec![
        layer("open_files", no_files()),
        layer("processes", no_processes()),
    ]
}

fn no_files() -> Outcome {
    let set = lower(Resource::RLIMIT_NOFILE, 0).map_err(|error| because("open files")(&error))?;
    Ok(format!("limit {set}: what is open stays open"))
}

/// RLIMIT_NPROC counts threads, so it would break a candidate that starts one; where the filter is
/// in force it already refuses processes and leaves threads, which are counted.
fn no_processes() -> Outcome {
    if filter::in_force() {
        return Ok("refused by the filter; threads are allowed and counted".to_owned());
    }
    if Uid::effective().is_root() {
        return Err("no filter, and the process limit does not bind root".to_owned());
    }
    let set = lower(Resource::RLIMIT_NPROC, 0).map_err(|error| because("processes")(&error))?;
    Ok(format!("limit {set}, threads included: there is no filter"))
}

/// Lowers both limits to `limit`, or leaves what is lower already; the limit in force. User-mode
/// emulation takes a limit of the address space and forgets it, so it is read back.
fn lower(resource: Resource, limit: u64) -> io::Result<u64> {
    let (_, hard) = getrlimit(resource)?;
    let limit = limit.min(hard);
    setrlimit(resource, limit, limit)?;
    match getrlimit(resource)? {
        (_, kept) if kept > limit => {
            Err(io::Error::other("accepted and not kept, as emulators do"))
        }
        _ => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::contained;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn limits_are_lowered_and_said_and_cannot_be_raised_again() {
        let wanted = Isolation {
            cpu_seconds: Some(1000),
            file_bytes: Some(4096),
            ..Isolation::NONE
        };
        let (layer, limits) = contained(LIMIT, || {
            let layer = install(&wanted);
            let limits = [
                Resource::RLIMIT_CORE,
                Resource::RLIMIT_CPU,
                Resource::RLIMIT_FSIZE,
            ]
            .map(|resource| getrlimit(resource).unwrap());
            (layer, limits)
        })
        .unwrap();
        assert!(layer.active, "{}", layer.detail);
        assert_eq!(limits, [(0, 0), (1000, 1000), (4096, 4096)]);
        assert_eq!(
            layer.detail,
            "core files 0, CPU seconds 1000, file bytes 4096"
        );
    }

    #[test]
    fn a_lower_limit_stays() {
        let limits = contained(LIMIT, || {
            setrlimit(Resource::RLIMIT_FSIZE, 10, 10).unwrap();
            (
                lower(Resource::RLIMIT_FSIZE, 4096).unwrap(),
                getrlimit(Resource::RLIMIT_FSIZE).unwrap(),
            )
        });
        assert_eq!(limits.unwrap(), (10, (10, 10)));
    }

    #[test]
    fn after_closing_no_file_opens_and_an_open_one_still_reads() {
        let wanted = Isolation {
            file_bytes: Some(1 << 20),
            ..Isolation::NONE
        };
        let (layers, opened, read) = contained(LIMIT, || {
            let status = std::fs::File::open("/proc/self/status").unwrap();
            let layers = close(&wanted);
            let opened = std::fs::File::open("/proc/self/stat")
                .map(drop)
                .map_err(|e| e.raw_os_error());
            let mut text = [0; 64];
            let read = std::os::unix::fs::FileExt::read_at(&status, &mut text, 0).unwrap();
            (layers, opened, read)
        })
        .unwrap();
        assert_eq!(layers[0].name, "open_files");
        assert!(layers[0].active, "{}", layers[0].detail);
        assert_eq!((opened, read), (Err(Some(libc::EMFILE)), 64));
    }

    #[test]
    fn without_isolation_nothing_is_closed() {
        assert_eq!(close(&Isolation::NONE), Vec::new());
    }
}
