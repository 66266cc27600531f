/*
 * Preloaded into the orchestrator: its clock of the day jumps, forth by more than a year and back, with every eleventh
 * reading; all other clocks are left alone. -DBACK makes it run three days late instead.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static volatile unsigned readings;
    const int code = (int)syscall(SYS_clock_gettime, clock, now);

    if (code == 0 && clock == CLOCK_REALTIME) {
#ifdef BACK
        now->tv_sec -= 3 * DAY;
#else
        const long jumps[] = {0, 400 * DAY, -2 * DAY};

        now->tv_sec += jumps[readings++ / 11 % 3];
#endif
    }
    (void)readings;
    return code;
}
