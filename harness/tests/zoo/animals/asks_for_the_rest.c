/*
 * Asks the kernel for everything else that no candidate has any business with, where it needs no file, socket or
 * process. The arguments are such that a call that gets through fails all the same, with another number.
 */
#include "zoo.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

static int denied(const char *what, long number, long a, long b, long c, long d)
{
    const long result = syscall(number, a, b, c, d, 0L, 0L);

    return refused(what, result != -1 || (errno != EPERM && errno != EACCES));
}

static int attempt(void)
{
    int code = 0;

    code |= denied("mounting", SYS_mount, 8, 8, 8, 0);
    code |= denied("leaving its namespaces", SYS_unshare, 0x00020000, 0, 0, 0);
    code |= denied("entering other namespaces", SYS_setns, -1, 0, 0, 0);
    code |= denied("loading a BPF program", SYS_bpf, 5, 0, 0, 0);
    code |= denied("loading a module", SYS_init_module, 8, 0, 8, 0);
    code |= denied("loading a kernel", SYS_kexec_load, 0, -1, 0, 0);
    code |= denied("rebooting", SYS_reboot, 0, 0, 0, 0);
    code |= denied("opening a counter", SYS_perf_event_open, 8, 0, -1, -1);
    code |= denied("using keys", SYS_keyctl, -1, 0, 0, 0);
    code |= denied("setting up io_uring", SYS_io_uring_setup, 0, 8, 0, 0);
    code |= denied("watching page faults", SYS_userfaultfd, -1, 0, 0, 0);
    code |= denied("truncating a file", SYS_truncate, 8, 3, 0, 0);
    code |= denied("getting capabilities", SYS_capset, 8, 8, 0, 0);
    code |= denied("becoming another user", SYS_setresuid, 1, 1, 1, 0);
    code |= denied("becoming dumpable", SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0);
    return code;
}

#define ONCE attempt()
#include "scheme.h"
