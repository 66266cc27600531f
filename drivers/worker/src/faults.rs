//! What the worker does with a fault: its own are named or gone on from, the library's ends the
//! process by its signal, as without a handler.

use crate::counters;
use crate::error::{Result, WorkerError};
use crate::memory;

/// Signals that a fault may raise.
pub const SIGNALS: [(i32, &str); 3] = [
    (libc::SIGSEGV, "the handler of SIGSEGV"),
    (libc::SIGBUS, "the handler of SIGBUS"),
    (libc::SIGILL, "the handler of SIGILL"),
];

/// Installs the handler, which runs on the alternate stack where there is one.
pub fn install() -> Result<()> {
    for (signal, _) in SIGNALS {
        // SAFETY: the action is a valid sigaction with an async-signal-safe handler.
        let code = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if code != 0 {
            let error = std::io::Error::last_os_error();
            return Err(WorkerError::io("installing the handler of faults")(error));
        }
    }
    Ok(())
}

/// Address of the handler of `signal` now.
pub fn handler(signal: i32) -> usize {
    // SAFETY: a null new action only asks; `action` is a valid place for the answer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action.sa_sigaction
    }
}

/// Async-signal-safe: atomics, write, _exit, sigaction, raise.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler that was installed with SA_SIGINFO.
    let (address, sent) = unsafe { ((*info).si_addr() as usize, (*info).si_code <= 0) };
    // SAFETY: the third argument of such a handler is the interrupted context, ours to change until
    // the handler returns.
    let instruction = unsafe { instruction(&mut *context.cast()) };
    if !sent {
        if let Some(next) = counters::contain(*instruction as usize) {
            *instruction = next as _;
            return;
        }
        memory::contain(address);
    }
    // SAFETY: both are async-signal-safe; the default action is restored, and the fault happens
    // again when the handler returns, so that the process ends by the signal itself.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        // A signal that was sent (not a fault) would not come again by itself.
        if sent {
            libc::raise(signal);
        }
    }
}

/// The instruction that was interrupted, and where the thread goes on.
#[cfg(target_arch = "x86_64")]
fn instruction(context: &mut libc::ucontext_t) -> &mut i64 {
    &mut context.uc_mcontext.gregs[libc::REG_RIP as usize]
}

/// The instruction that was interrupted, and where the thread goes on.
#[cfg(target_arch = "aarch64")]
fn instruction(context: &mut libc::ucontext_t) -> &mut u64 {
    &mut context.uc_mcontext.pc
}
