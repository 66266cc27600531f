//! The seccomp filter: two halves made by the crate `seccompiler` from the lists of `syscalls`.
//!
//! The first half lets the needed calls pass and answers ENOSYS to all others; the second answers
//! EPERM to what is refused by name or by its arguments. Where both refuse, Linux takes the answer of
//! the half installed last. Threads of the process are allowed and counted by the worker; processes
//! are not. The halves are installed here and not by the crate, because of one flag: without
//! SPEC_ALLOW, kernels before 5.16 switch speculation off for the process and slow the very code that
//! is to be timed.

use super::syscalls::{NEEDED, NEEDED_HERE, REFUSED, REFUSED_HERE};
use super::Outcome;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_FORCE: AtomicBool = AtomicBool::new(false);

/// Whether [`install`] has succeeded in this process.
pub fn in_force() -> bool {
    IN_FORCE.load(Ordering::Relaxed)
}

/// Installs both halves for all threads of this process.
pub fn install() -> Outcome {
    let process = std::process::id();
    let halves = needed().and_then(|first| Ok((first, refused(process)?)));
    let (first, second) =
        halves.map_err(|error| format!("the filter does not compile: {error}"))?;
    let flags = apply(&first).map_err(unavailable)?;
    apply(&second).map_err(unavailable)?;
    IN_FORCE.store(true, Ordering::Relaxed);
    let speculation = match flags & libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW {
        0 => "; this kernel may have switched speculation off for it, which slows it",
        _ => "",
    };
    Ok(format!(
        "{} calls allowed, {} refused with EPERM, the rest with ENOSYS ({} instructions); threads allowed, \
         processes not{speculation}",
        NEEDED.len() + NEEDED_HERE.len() - 1,
        REFUSED.len() + REFUSED_HERE.len(),
        first.len() + second.len()
    ))
}

fn unavailable(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => {
            format!("the kernel or emulator has no seccomp filters ({error})")
        }
        _ => format!("the kernel refused the filter: {error}"),
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Compiled = Result<BpfProgram, seccompiler::BackendError>;

/// First half.
fn needed() -> Compiled {
    let calls = [NEEDED, NEEDED_HERE].concat();
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    compile(
        rules,
        SeccompAction::Errno(libc::ENOSYS as u32),
        SeccompAction::Allow,
    )
}

/// Second half, for the process of that number.
fn refused(process: u32) -> Compiled {
    let calls = [REFUSED, REFUSED_HERE].concat();
    let mut rules: Rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend(conditions(process)?);
    compile(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
    )
}

fn compile(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Compiled {
    SeccompFilter::new(rules, otherwise, matched, architecture()?)?.try_into()
}

fn architecture() -> Result<TargetArch, seccompiler::BackendError> {
    std::env::consts::ARCH.try_into()
}

/// Calls that are refused in some forms.
fn conditions(process: u32) -> Result<Vec<(c_long, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let process = u64::from(process);
    Ok(vec![
        // A new process: only threads carry CLONE_THREAD.
        (
            libc::SYS_clone,
            vec![rule(&[masked(0, libc::CLONE_THREAD, 0)])?],
        ),
        // Signals to others.
        (libc::SYS_kill, vec![rule(&[other_than(0, process)])?]),
        (libc::SYS_tgkill, vec![rule(&[other_than(0, process)])?]),
        // Limits of others.
        (
            libc::SYS_prlimit64,
            vec![rule(&[other_than(0, 0), other_than(0, process)])?],
        ),
        // F_SETOWN and F_SETSIG would signal others; locks and flags reach whoever shares the file.
        (libc::SYS_fcntl, vec![rule(&others(1, &FCNTL))?]),
        (libc::SYS_prctl, vec![rule(&others(0, &PRCTL))?]),
        (libc::SYS_openat, for_writing(2)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, for_writing(1)?),
    ])
}

/// Commands of `fcntl` that concern this process alone.
const FCNTL: [i32; 5] = [
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
];

/// Options of `prctl` that only name threads and memory, or ask.
const PRCTL: [i32; 9] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_VMA,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_SECCOMP,
    libc::PR_CAPBSET_READ,
    libc::PR_GET_TIMERSLACK,
];

/// Opening with any right to change the file, or making one.
fn for_writing(flags: u8) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    [
        (libc::O_ACCMODE, libc::O_WRONLY),
        (libc::O_ACCMODE, libc::O_RDWR),
        (libc::O_ACCMODE, libc::O_ACCMODE),
        (libc::O_CREAT, libc::O_CREAT),
        (libc::O_TRUNC, libc::O_TRUNC),
    ]
    .map(|(mask, value)| rule(&[masked(flags, mask, value)]))
    .into_iter()
    .collect()
}

/// A comparison of the lower half of an argument: all these arguments are C integers.
#[derive(Clone)]
struct Comparison(u8, SeccompCmpOp, u64);

fn masked(argument: u8, mask: i32, value: i32) -> Comparison {
    Comparison(argument, SeccompCmpOp::MaskedEq(mask as u64), value as u64)
}

fn other_than(argument: u8, value: u64) -> Comparison {
    Comparison(argument, SeccompCmpOp::Ne, value)
}

fn others(argument: u8, values: &[i32]) -> Vec<Comparison> {
    values
        .iter()
        .map(|&value| other_than(argument, value as u64))
        .collect()
}

/// A rule that holds when all comparisons do.
fn rule(comparisons: &[Comparison]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions: Result<Vec<_>, _> = comparisons
        .iter()
        .cloned()
        .map(|Comparison(argument, operator, value)| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        })
        .collect();
    SeccompRule::new(conditions?)
}

/// Installs a program for all threads; the flags that the kernel took.
fn apply(program: &BpfProgram) -> io::Result<libc::c_ulong> {
    let threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
    match seccomp(program, threads | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => seccomp(program, threads),
        other => other,
    }
}

fn seccomp(program: &BpfProgram, flags: libc::c_ulong) -> io::Result<libc::c_ulong> {
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|i| libc::sock_filter {
            code: i.code,
            jt: i.jt,
            jf: i.jf,
            k: i.k,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(io::Error::other)?,
        filter: instructions.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, whose length is that of the vector behind it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &program,
        )
    };
    match done {
        0 => Ok(flags),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!(
            "thread {thread} has a filter of its own"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: u32 = 4711;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    /// `struct seccomp_data`: number, architecture, instruction pointer, six arguments.
    fn data(architecture: u32, call: i64, arguments: [u64; 6]) -> Vec<u8> {
        let mut data = Vec::new();
        data.extend((call as u32).to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        data
    }

    /// The part of classic BPF that filters are made of (linux/filter.h).
    fn run(program: &BpfProgram, data: &[u8]) -> u32 {
        let (mut at, mut accumulator) = (0usize, 0u32);
        loop {
            let i = &program[at];
            at += 1;
            let jump = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
            match i.code {
                0x20 => {
                    let from = i.k as usize;
                    accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x54 => accumulator &= i.k,
                0x05 => at += i.k as usize,
                0x15 => at += jump(accumulator == i.k),
                0x25 => at += jump(accumulator > i.k),
                0x35 => at += jump(accumulator >= i.k),
                0x06 => return i.k,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    fn own_architecture() -> u32 {
        match std::env::consts::ARCH {
            "x86_64" => 0xC000_003E,
            _ => 0xC000_00B7,
        }
    }

    /// The answer of both halves: an error of the later one wins.
    fn answer_on(architecture: u32, call: i64, arguments: &[u64]) -> u32 {
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        let data = data(architecture, call, six);
        let later = run(&refused(PROCESS).unwrap(), &data);
        let earlier = run(&needed().unwrap(), &data);
        if KILL == later || KILL == earlier {
            return KILL;
        }
        if later == ALLOW {
            earlier
        } else {
            later
        }
    }

    fn answer(call: i64, arguments: &[u64]) -> u32 {
        answer_on(own_architecture(), call, arguments)
    }

    #[test]
    fn every_call_of_the_lists_is_answered_as_its_list_says() {
        for &call in [REFUSED, REFUSED_HERE].concat().iter() {
            assert_eq!(answer(call, &[]), EPERM, "call {call}");
        }
        let conditional: Vec<i64> = conditions(PROCESS)
            .unwrap()
            .iter()
            .map(|(call, _)| *call)
            .collect();
        for &call in [NEEDED, NEEDED_HERE].concat().iter() {
            if !conditional.contains(&call) && call != libc::SYS_seccomp {
                assert_eq!(answer(call, &[]), ALLOW, "call {call}");
            }
        }
    }

    #[test]
    fn threads_pass_and_processes_do_not() {
        let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;
        let process = libc::SIGCHLD | libc::CLONE_CHILD_SETTID;
        let vfork = libc::SIGCHLD | libc::CLONE_VM | libc::CLONE_VFORK;
        for (flags, expected) in [
            (thread, ALLOW),
            (process, EPERM),
            (vfork, EPERM),
            (0, EPERM),
        ] {
            assert_eq!(
                answer(libc::SYS_clone, &[flags as u64]),
                expected,
                "{flags:#x}"
            );
        }
        assert_eq!(
            answer(libc::SYS_clone3, &[0, 88]),
            ENOSYS,
            "the C library falls back to clone"
        );
    }

    #[test]
    fn signals_and_limits_reach_this_process_only() {
        let me = u64::from(PROCESS);
        for (call, target, expected) in [
            (libc::SYS_kill, me, ALLOW),
            (libc::SYS_kill, me + 1, EPERM),
            (libc::SYS_kill, 0, EPERM),
            (libc::SYS_kill, u64::MAX, EPERM),
            (libc::SYS_tgkill, me, ALLOW),
            (libc::SYS_tgkill, 1, EPERM),
            (libc::SYS_prlimit64, 0, ALLOW),
            (libc::SYS_prlimit64, me, ALLOW),
            (libc::SYS_prlimit64, 1, EPERM),
        ] {
            assert_eq!(
                answer(call, &[target, 9]),
                expected,
                "call {call} on {target}"
            );
        }
    }

    #[test]
    fn files_open_for_reading_and_for_nothing_else() {
        let read = libc::O_RDONLY | libc::O_CLOEXEC;
        for (flags, expected) in [
            (read, ALLOW),
            (read | libc::O_DIRECTORY, ALLOW),
            (libc::O_WRONLY, EPERM),
            (libc::O_RDWR, EPERM),
            (libc::O_ACCMODE, EPERM),
            (read | libc::O_CREAT, EPERM),
            (read | libc::O_TRUNC, EPERM),
            (libc::O_TMPFILE | libc::O_RDWR, EPERM),
        ] {
            assert_eq!(
                answer(libc::SYS_openat, &[0, 0, flags as u64]),
                expected,
                "{flags:#o}"
            );
            #[cfg(target_arch = "x86_64")]
            assert_eq!(
                answer(libc::SYS_open, &[0, flags as u64]),
                expected,
                "{flags:#o}"
            );
        }
    }

    #[test]
    fn commands_that_reach_beyond_the_process_are_refused() {
        for (command, expected) in [
            (libc::F_DUPFD_CLOEXEC, ALLOW),
            (libc::F_GETFL, ALLOW),
            (libc::F_SETOWN, EPERM),
            (libc::F_SETFL, EPERM),
            (libc::F_SETLK, EPERM),
        ] {
            assert_eq!(
                answer(libc::SYS_fcntl, &[1, command as u64]),
                expected,
                "fcntl {command}"
            );
        }
        for (option, expected) in [
            (libc::PR_SET_NAME, ALLOW),
            (libc::PR_GET_SECCOMP, ALLOW),
            (libc::PR_SET_DUMPABLE, EPERM),
            (libc::PR_SET_PDEATHSIG, EPERM),
            (libc::PR_SET_TSC, EPERM),
            (libc::PR_SET_SECCOMP, EPERM),
            (libc::PR_SET_PTRACER, EPERM),
        ] {
            assert_eq!(
                answer(libc::SYS_prctl, &[option as u64]),
                expected,
                "prctl {option}"
            );
        }
        let upper_half = 1 << 32 | libc::F_SETOWN as u64;
        assert_eq!(
            answer(libc::SYS_fcntl, &[1, upper_half]),
            EPERM,
            "the kernel reads the lower half"
        );
    }

    #[test]
    fn unknown_calls_and_foreign_call_tables_lead_nowhere() {
        assert_eq!(answer(9999, &[]), ENOSYS);
        #[cfg(target_arch = "x86_64")]
        for call in [
            libc::SYS_execve,
            libc::SYS_socket,
            libc::SYS_read,
            libc::SYS_open,
        ] {
            const X32: i64 = 0x4000_0000;
            assert_eq!(answer(call | X32, &[]), ENOSYS, "x32 form of {call}");
        }
        const I386: u32 = 0x4000_0003;
        assert_eq!(
            answer_on(I386, 11, &[]),
            KILL,
            "execve of another architecture"
        );
    }
}
