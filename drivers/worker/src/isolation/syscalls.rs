//! Which system calls a computation needs, and which it is refused by name.
//!
//! Three answers: what is in [`NEEDED`] works; what is in [`REFUSED`] fails with EPERM; all the rest,
//! calls of later kernels included, fails with ENOSYS, as on a kernel that lacks them, so that the C
//! library takes its older way (`clone3` to `clone`, for instance). Some calls are needed in one form
//! only; `filter` has these conditions.

use libc::c_long;

/// Calls that work: memory, threads of this process, reading, clocks, its own signals.
#[rustfmt::skip]
pub const NEEDED: &[c_long] = &[
    // Reading, and writing to what is open already.
    libc::SYS_read, libc::SYS_readv, libc::SYS_pread64, libc::SYS_preadv, libc::SYS_preadv2,
    libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_pwritev2,
    libc::SYS_openat, libc::SYS_close, libc::SYS_close_range, libc::SYS_lseek,
    libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_faccessat, libc::SYS_faccessat2,
    libc::SYS_readlinkat, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_fadvise64,
    libc::SYS_readahead, libc::SYS_dup, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_ppoll, libc::SYS_pselect6,
    // Memory.
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_madvise,
    libc::SYS_brk, libc::SYS_mincore, libc::SYS_msync, libc::SYS_mlock, libc::SYS_mlock2,
    libc::SYS_munlock, libc::SYS_mlockall, libc::SYS_munlockall, libc::SYS_membarrier,
    libc::SYS_pkey_mprotect, libc::SYS_pkey_alloc, libc::SYS_pkey_free,
    // Threads of this process, and their end.
    libc::SYS_clone, libc::SYS_futex, libc::SYS_futex_waitv, libc::SYS_set_tid_address,
    libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_rseq, libc::SYS_sched_yield,
    libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid,
    // Its own signals.
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait, libc::SYS_sigaltstack,
    libc::SYS_restart_syscall, libc::SYS_kill, libc::SYS_tgkill,
    // Clocks and randomness.
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_clock_nanosleep, libc::SYS_nanosleep,
    libc::SYS_gettimeofday, libc::SYS_times, libc::SYS_getrandom,
    // Facts about itself and the machine.
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getpgid, libc::SYS_getsid,
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getresuid,
    libc::SYS_getresgid, libc::SYS_getgroups, libc::SYS_capget, libc::SYS_getrusage,
    libc::SYS_getpriority, libc::SYS_getcpu, libc::SYS_sched_getaffinity, libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler, libc::SYS_sched_getattr, libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min, libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_umask,
    libc::SYS_prlimit64, libc::SYS_prctl,
    // Installs the second half of the filter, which then refuses it.
    libc::SYS_seccomp,
];

/// Older forms that only x86-64 has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub const NEEDED_HERE: &[c_long] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink,
    libc::SYS_dup2, libc::SYS_poll, libc::SYS_select, libc::SYS_pause, libc::SYS_time,
    libc::SYS_getrlimit, libc::SYS_getpgrp,
    // Permission for the tile registers (AMX).
    libc::SYS_arch_prctl,
];

/// Older forms that only x86-64 has.
#[cfg(not(target_arch = "x86_64"))]
pub const NEEDED_HERE: &[c_long] = &[];

/// Calls that fail with EPERM, whatever their arguments.
#[rustfmt::skip]
pub const REFUSED: &[c_long] = &[
    // Other programs and processes.
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_ptrace, libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev, libc::SYS_process_madvise, libc::SYS_process_mrelease, libc::SYS_kcmp,
    libc::SYS_pidfd_open, libc::SYS_pidfd_getfd, libc::SYS_pidfd_send_signal, libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo, libc::SYS_setpgid, libc::SYS_setsid,
    // Another view of the system.
    libc::SYS_setns, libc::SYS_unshare, libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root,
    libc::SYS_chroot, libc::SYS_move_mount, libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig,
    libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr, libc::SYS_chdir, libc::SYS_fchdir,
    libc::SYS_personality,
    // Sockets and messages.
    libc::SYS_socket, libc::SYS_socketpair, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen,
    libc::SYS_accept, libc::SYS_accept4, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg,
    libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_getsockopt,
    libc::SYS_setsockopt, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_shutdown,
    libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_mq_notify, libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive, libc::SYS_mq_getsetattr, libc::SYS_msgget, libc::SYS_msgsnd,
    libc::SYS_msgrcv, libc::SYS_msgctl, libc::SYS_semget, libc::SYS_semop, libc::SYS_semtimedop,
    libc::SYS_semctl, libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmdt, libc::SYS_shmctl,
    // The clock of the machine.
    libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_settimeofday, libc::SYS_adjtimex,
    // The kernel itself.
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_keyctl,
    libc::SYS_add_key, libc::SYS_request_key, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register, libc::SYS_io_setup, libc::SYS_io_submit, libc::SYS_kexec_load,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_reboot,
    libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_quotactl, libc::SYS_syslog,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_vhangup, libc::SYS_fanotify_init,
    libc::SYS_inotify_init1, libc::SYS_name_to_handle_at, libc::SYS_open_by_handle_at,
    libc::SYS_ioctl, libc::SYS_seccomp, libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self,
    // Who it is.
    libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid,
    libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_capset,
    // Where and how it is scheduled: pinning and priority are the worker's.
    libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam,
    libc::SYS_sched_setattr, libc::SYS_setpriority, libc::SYS_ioprio_set, libc::SYS_mbind,
    libc::SYS_set_mempolicy, libc::SYS_set_mempolicy_home_node, libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Changing files.
    libc::SYS_openat2, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_mkdirat, libc::SYS_mknodat,
    libc::SYS_linkat, libc::SYS_symlinkat, libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown,
    libc::SYS_fchownat, libc::SYS_truncate, libc::SYS_ftruncate, libc::SYS_fallocate,
    libc::SYS_utimensat, libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr,
    libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr, libc::SYS_flock,
    libc::SYS_sync, libc::SYS_syncfs, libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee,
    libc::SYS_vmsplice, libc::SYS_copy_file_range, libc::SYS_memfd_create, libc::SYS_memfd_secret,
];

/// Older forms that only x86-64 has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub const REFUSED_HERE: &[c_long] = &[
    libc::SYS_fork, libc::SYS_vfork, libc::SYS_creat, libc::SYS_unlink, libc::SYS_rename,
    libc::SYS_renameat, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_mknod, libc::SYS_link,
    libc::SYS_symlink, libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime,
    libc::SYS_utimes, libc::SYS_futimesat, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt,
    libc::SYS_inotify_init, libc::SYS_setrlimit, libc::SYS_kexec_file_load,
];

/// `renameat` of the table that newer architectures share (asm-generic/unistd.h); the crate `libc`
/// does not name it, and C libraries use it.
#[cfg(not(target_arch = "x86_64"))]
const SYS_RENAMEAT: c_long = 38;

/// Calls that are not named on all architectures.
#[cfg(not(target_arch = "x86_64"))]
pub const REFUSED_HERE: &[c_long] = &[libc::SYS_kexec_file_load, SYS_RENAMEAT];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all(lists: [&[c_long]; 2]) -> (usize, BTreeSet<c_long>) {
        let calls = lists.concat();
        (calls.len(), calls.into_iter().collect())
    }

    #[test]
    fn no_call_is_named_twice_and_only_the_filter_s_own_is_in_both_lists() {
        let (needed, needed_set) = all([NEEDED, NEEDED_HERE]);
        let (refused, refused_set) = all([REFUSED, REFUSED_HERE]);
        assert_eq!((needed, refused), (needed_set.len(), refused_set.len()));
        let both: Vec<_> = needed_set.intersection(&refused_set).copied().collect();
        assert_eq!(both, [libc::SYS_seccomp]);
    }

    #[test]
    fn what_the_design_forbids_is_refused_by_name() {
        let (_, refused) = all([REFUSED, REFUSED_HERE]);
        for call in [
            libc::SYS_execve,
            libc::SYS_ptrace,
            libc::SYS_mount,
            libc::SYS_clock_settime,
            libc::SYS_adjtimex,
            libc::SYS_settimeofday,
            libc::SYS_socket,
            libc::SYS_bpf,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_reboot,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_process_vm_writev,
            libc::SYS_keyctl,
            libc::SYS_userfaultfd,
            libc::SYS_io_uring_setup,
            libc::SYS_pidfd_open,
            libc::SYS_perf_event_open,
            libc::SYS_sched_setaffinity,
        ] {
            assert!(refused.contains(&call), "call {call}");
        }
    }
}
