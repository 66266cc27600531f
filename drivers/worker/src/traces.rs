//! What a library may leave behind in the process: settings of thread and process that no function
//! of the API has any business with. Compared before loading and after the task.

use crate::error::{Result, WorkerError};
use crate::faults;

/// Settings at one moment, each with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(Vec<(&'static str, String)>);

impl Settings {
    /// The settings now. What a protection forbids to ask is the same refusal both times.
    pub fn now() -> Settings {
        let mut settings = vec![
            ("the floating-point control word", floating_point()),
            ("the signal mask", signal_mask()),
            ("the working directory", working_directory()),
            ("the priority", priority()),
            ("the scheduling policy", policy()),
            ("the locale", locale()),
        ];
        let handlers = faults::SIGNALS.iter();
        settings.extend(handlers.map(|&(signal, name)| {
            let handler = faults::handler(signal);
            (name, format!("{handler:x}"))
        }));
        Settings(settings)
    }

    /// A `Contract` error that names every setting that is another one now.
    pub fn check(&self) -> Result<()> {
        let changes: Vec<String> = self
            .0
            .iter()
            .zip(Settings::now().0)
            .filter(|((_, before), (_, now))| before != now)
            .map(|((name, before), (_, now))| format!("{name} (from {before} to {now})"))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        Err(WorkerError::Contract(format!(
            "the library changed settings of the process: {}",
            changes.join(", ")
        )))
    }
}

/// Control bits of MXCSR (rounding, masks, flush to zero); the lowest six are results, not settings.
#[cfg(target_arch = "x86_64")]
fn floating_point() -> String {
    let (mut mxcsr, mut x87) = (0u32, 0u16);
    // SAFETY: both instructions only store a control register to the given memory.
    unsafe {
        std::arch::asm!(
            "stmxcsr [{mxcsr}]",
            "fnstcw [{x87}]",
            mxcsr = in(reg) &mut mxcsr,
            x87 = in(reg) &mut x87,
            options(nostack, preserves_flags)
        );
    }
    format!("{:04x}/{x87:04x}", mxcsr & !0x3f)
}

/// FPCR: rounding, flush to zero, traps.
#[cfg(target_arch = "aarch64")]
fn floating_point() -> String {
    let fpcr: u64;
    // SAFETY: reads a control register that user mode may read.
    unsafe {
        std::arch::asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack, preserves_flags));
    }
    format!("{fpcr:08x}")
}

fn signal_mask() -> String {
    use nix::sys::signal::{SigSet, Signal};
    match SigSet::thread_get_mask() {
        Ok(mask) => {
            let blocked = Signal::iterator().filter(|&signal| mask.contains(signal));
            format!("{:?}", blocked.map(|s| s.as_str()).collect::<Vec<_>>())
        }
        Err(errno) => errno.to_string(),
    }
}

fn working_directory() -> String {
    match nix::unistd::getcwd() {
        Ok(path) => protocol::path_to_text(&path),
        Err(errno) => errno.to_string(),
    }
}

fn priority() -> String {
    nix::errno::Errno::clear();
    // SAFETY: takes numbers and returns one.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    match nix::errno::Errno::last_raw() {
        0 => nice.to_string(),
        errno => nix::errno::Errno::from_raw(errno).to_string(),
    }
}

fn policy() -> String {
    // SAFETY: takes a number and returns one.
    unsafe { libc::sched_getscheduler(0) }.to_string()
}

fn locale() -> String {
    // SAFETY: a null locale only asks; the answer is a static text of the C library, read at once
    // while nothing else of this thread calls it.
    unsafe {
        let name = libc::setlocale(libc::LC_ALL, std::ptr::null());
        if name.is_null() {
            return "unknown".to_owned();
        }
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_signal_mask_is_named_and_nothing_else() {
        use nix::sys::signal::{SigSet, Signal};
        let before = Settings::now();
        before.check().unwrap();
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGUSR2);
        blocked.thread_block().unwrap();
        let error = before.check().unwrap_err();
        blocked.thread_unblock().unwrap();
        assert_eq!(error.code(), protocol::FailureCode::Contract);
        let text = error.to_string();
        assert!(
            text.contains("the signal mask") && text.contains("SIGUSR2"),
            "{text}"
        );
        assert!(
            !text.contains("locale") && !text.contains("priority"),
            "{text}"
        );
        before.check().unwrap();
    }
}
