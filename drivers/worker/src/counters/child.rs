//! Runs a function in a throw-away child and brings its result back.
//!
//! Reading a counter register can be an illegal instruction or a general protection fault, and a
//! counter that hangs would hang the worker: the child takes that. It is a plain fork, so it must be
//! made before a library is loaded, and it works under user-mode emulation, where running this
//! program again is not possible.

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, SigHandler, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{fork, ForkResult, Pid};
use serde::{de::DeserializeOwned, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How a child ended that brought no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// A signal killed it.
    #[error("the test process was killed by {0}")]
    Signal(Signal),
    /// It ended without a result.
    #[error("the test process ended with status {0} and without a result")]
    Status(i32),
    /// It took too long and was killed.
    #[error("the test process gave no result in {0:?} and was ended")]
    Timeout(Duration),
    /// Fork, pipe or wait failed.
    #[error("the test process could not be run: {0}")]
    System(#[from] std::io::Error),
}

impl From<nix::Error> for ChildError {
    fn from(error: nix::Error) -> Self {
        ChildError::System(error.into())
    }
}

/// Result of `work`, computed in a child process, at most `limit` later.
pub fn contained<T>(limit: Duration, work: impl FnOnce() -> T) -> Result<T, ChildError>
where
    T: Serialize + DeserializeOwned,
{
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // SAFETY: the child runs `work` on its own copy of this thread, writes and ends with _exit: it
    // runs no destructor and no exit handler of the parent. The C library makes its allocator
    // usable in the child of a process with several threads.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop(reader);
            child(writer, work)
        }
        ForkResult::Parent { child } => {
            drop(writer);
            collect(child, reader, limit)
        }
    }
}

fn child<T: Serialize>(writer: OwnedFd, work: impl FnOnce() -> T) -> ! {
    for signal in [
        Signal::SIGILL,
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGTERM,
    ] {
        // SAFETY: installs no handler, only the default action.
        let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
    }
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let written = result.is_ok_and(|result| {
        let bytes = serde_json::to_vec(&result).unwrap_or_default();
        File::from(writer).write_all(&bytes).is_ok()
    });
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(i32::from(!written)) }
}

fn collect<T: DeserializeOwned>(
    child: Pid,
    reader: OwnedFd,
    limit: Duration,
) -> Result<T, ChildError> {
    let bytes = read_until(reader, Instant::now() + limit);
    if !matches!(bytes, Ok(Some(_))) {
        let _ = kill(child, Signal::SIGKILL);
    }
    let status = wait(child)?;
    let Some(bytes) = bytes? else {
        return Err(ChildError::Timeout(limit));
    };
    match (serde_json::from_slice(&bytes), status) {
        (Ok(result), WaitStatus::Exited(_, 0)) => Ok(result),
        (_, WaitStatus::Signaled(_, signal, _)) => Err(ChildError::Signal(signal)),
        (_, WaitStatus::Exited(_, status)) => Err(ChildError::Status(status)),
        (_, other) => Err(ChildError::System(std::io::Error::other(format!(
            "{other:?}"
        )))),
    }
}

fn wait(child: Pid) -> Result<WaitStatus, ChildError> {
    loop {
        match waitpid(child, None) {
            Err(nix::Error::EINTR) => continue,
            other => return Ok(other?),
        }
    }
}

/// All bytes until the other end closes; `None` when `deadline` comes first.
fn read_until(reader: OwnedFd, deadline: Instant) -> std::io::Result<Option<Vec<u8>>> {
    let mut reader = File::from(reader);
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .as_millis()
            + 1;
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(reader.as_fd(), PollFlags::POLLIN)], left) {
            Err(nix::Error::EINTR) => continue,
            Ok(0) => return Ok(None),
            other => other?,
        };
        match reader.read(&mut chunk)? {
            0 => return Ok(Some(bytes)),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_result_comes_back_whatever_its_size() {
        let text = "x".repeat(300_000);
        assert_eq!(contained(LONG, || text.clone()).unwrap(), text);
    }

    #[test]
    fn an_illegal_instruction_ends_the_child_only() {
        let error = contained(LONG, illegal).unwrap_err();
        assert!(
            matches!(error, ChildError::Signal(Signal::SIGILL)),
            "{error}"
        );
    }

    fn illegal() {
        // SAFETY: raises SIGILL; nothing runs after it.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("ud2")
        };
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!("udf #0")
        };
    }

    #[test]
    fn an_early_exit_and_a_panic_are_no_results() {
        // SAFETY: ends the child at once.
        let exit = contained(LONG, || -> () { unsafe { libc::_exit(0) } });
        assert!(matches!(exit, Err(ChildError::Status(0))), "{exit:?}");
        let panic = contained(LONG, || {
            std::panic::set_hook(Box::new(|_| ()));
            assert!(std::env::args().count() == usize::MAX);
        });
        assert!(matches!(panic, Err(ChildError::Status(1))), "{panic:?}");
    }

    #[test]
    fn a_child_that_hangs_is_ended() {
        let limit = Duration::from_millis(20);
        let hung = contained(limit, || loop {
            std::thread::sleep(LONG);
        });
        assert!(
            matches!(hung, Err::<(), _>(ChildError::Timeout(_))),
            "{hung:?}"
        );
    }
}
