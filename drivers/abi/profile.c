/*
 * The table of a profile library: how often each wrapped function was called with which lengths, and how many
 * ticks that took. Filled by the wrappers of wrap.c.in, read by the worker (campaign_abi.h).
 *
 * A call made inside another wrapped call belongs to that one: a depth for each thread decides, and only the
 * outermost call is counted and timed. Rows are found by hashing into a fixed table; any number of threads may
 * enter calls at the same time, and nothing is allocated. A call that finds no room is counted in `overflow`.
 *
 * Ticks are those of a constant-rate counter, never core cycles.
 */
#include "profile.h"

#include <stddef.h>
#include <string.h>

#define SLOTS 256u /* a power of two */

enum { SLOT_FREE, SLOT_CLAIMED, SLOT_READY };

typedef struct {
    int state;
    unsigned order;
    campaign_profile_row row;
} slot;

typedef struct {
    slot slots[SLOTS];
    unsigned used;
    unsigned long long overflow;
} table;

/* Calibration has rows of its own, so that it can run at any time between two operations. */
static table measured, calibration;

/* Initial-exec: a plain offset from the thread pointer, so that the first use in a thread allocates nothing. */
static __thread int depth __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)

/* rdtscp waits for the instructions before it, lfence keeps those behind it from starting earlier. */
static inline unsigned long long read_ticks(void)
{
    unsigned low, high;

    __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return (unsigned long long)high << 32 | low;
}

const char *campaign_profile_tick_source(void)
{
    return "tsc";
}

unsigned long long campaign_profile_tick_hz(void)
{
    return 0;
}

#elif defined(__aarch64__)

/* isb on both sides orders the read of the virtual counter against the code around it. */
static inline unsigned long long read_ticks(void)
{
    unsigned long long ticks;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}

const char *campaign_profile_tick_source(void)
{
    return "cntvct";
}

unsigned long long campaign_profile_tick_hz(void)
{
    unsigned long long hz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

#else
#error "no tick counter is known for this architecture: add one to profile.c"
#endif

unsigned long long campaign_profile_ticks(void)
{
    return read_ticks();
}

/* ---- the table ---- */

static unsigned slot_of(unsigned fn, unsigned long long in_bits, unsigned long long out_bits)
{
    /* Odd multipliers (from the golden ratio and its neighbours) spread lengths, which are multiples of 8. */
    const unsigned long long mix = in_bits * 0x9E3779B97F4A7C15ULL ^ out_bits * 0xC2B2AE3D27D4EB4FULL ^
                                   (fn + 1ULL) * 0x165667B19E3779F9ULL;

    return (unsigned)(mix >> 56) & (SLOTS - 1);
}

/* Takes a free slot for a new row. Returns 0 when another thread was faster. */
static int claim(table *t, slot *s, unsigned fn, unsigned long long in_bits, unsigned long long out_bits)
{
    int state = SLOT_FREE;

    if (!__atomic_compare_exchange_n(&s->state, &state, SLOT_CLAIMED, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    s->order = __atomic_fetch_add(&t->used, 1, __ATOMIC_RELAXED);
    s->row.fn = fn;
    s->row.in_bits = in_bits;
    s->row.out_bits = out_bits;
    __atomic_store_n(&s->state, SLOT_READY, __ATOMIC_RELEASE);
    return 1;
}

/* The slot of this call shape, taken if there is none yet; NULL when the table is full. */
static slot *find(table *t, unsigned fn, unsigned long long in_bits, unsigned long long out_bits)
{
    const unsigned home = slot_of(fn, in_bits, out_bits);

    for (unsigned i = 0; i < SLOTS; i++) {
        slot *s = &t->slots[(home + i) & (SLOTS - 1)];
        int state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

        if (state == SLOT_FREE && claim(t, s, fn, in_bits, out_bits)) {
            return s;
        }
        while ((state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE)) == SLOT_CLAIMED) {
            /* another thread is writing the three words of the key */
        }
        if (s->row.fn == fn && s->row.in_bits == in_bits && s->row.out_bits == out_bits) {
            return s;
        }
    }
    return NULL;
}

static void enter(table *t, unsigned fn, unsigned long long in_bits, unsigned long long out_bits,
                  unsigned long long ticks)
{
    slot *s = find(t, fn, in_bits, out_bits);

    if (s == NULL) {
        __atomic_fetch_add(&t->overflow, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&s->row.calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->row.ticks, ticks, __ATOMIC_RELAXED);
}

/* ---- for the wrappers ---- */

void campaign_call_begin(campaign_call *call)
{
    call->outermost = depth++ == 0;
    call->start = call->outermost ? read_ticks() : 0;
}

unsigned long long campaign_call_end(campaign_call *call)
{
    const unsigned long long ticks = call->outermost ? read_ticks() - call->start : 0;

    depth--;
    return ticks;
}

void campaign_call_enter(const campaign_call *call, unsigned fn, unsigned long long in_bits,
                         unsigned long long out_bits, unsigned long long ticks)
{
    if (call->outermost) {
        enter(fn == CAMPAIGN_CALIBRATION ? &calibration : &measured, fn, in_bits, out_bits, ticks);
    }
}

/* ---- for the worker ---- */

unsigned campaign_profile_functions(void)
{
    return campaign_wrapped_count;
}

const char *campaign_profile_name(unsigned fn)
{
    return fn < campaign_wrapped_count ? campaign_wrapped_list[fn].name : NULL;
}

const char *campaign_profile_symbol(unsigned fn)
{
    return fn < campaign_wrapped_count ? campaign_wrapped_list[fn].symbol : NULL;
}

const char *campaign_profile_group(unsigned fn)
{
    return fn < campaign_wrapped_count ? campaign_wrapped_list[fn].group : NULL;
}

void campaign_profile_reset(void)
{
    memset(&measured, 0, sizeof measured);
    depth = 0; /* an operation that was left by longjmp must not silence the next */
}

unsigned campaign_profile_rows(campaign_profile_row *rows, unsigned max)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const slot *s = &measured.slots[i];

        if (s->state == SLOT_READY && s->order < max) {
            rows[s->order] = s->row;
        }
    }
    return measured.used;
}

unsigned long long campaign_profile_overflow(void)
{
    return measured.overflow;
}

/* ---- what a wrapper costs ---- */

#define BATCHES 501u /* odd: the median is one of them */
#define BATCH 64u

static struct {
    int known;
    unsigned long long inside, around; /* thousandths of a tick */
} cost;

void campaign_empty_function(void)
{
    __asm__ volatile("" : : : "memory"); /* keeps the calls of an empty function */
}

/* Ticks of BATCH calls. */
static unsigned long long time_batch(void (*volatile f)(void))
{
    const unsigned long long start = read_ticks();

    for (unsigned i = 0; i < BATCH; i++) {
        f();
    }
    return read_ticks() - start;
}

static unsigned long long median(unsigned long long *values, unsigned n)
{
    /* insertion sort: n is small and this runs once */
    for (unsigned i = 1; i < n; i++) {
        const unsigned long long v = values[i];
        unsigned j = i;

        for (; j > 0 && values[j - 1] > v; j--) {
            values[j] = values[j - 1];
        }
        values[j] = v;
    }
    return values[n / 2];
}

/* Sums over batches, so that a counter slower than a call still gives fractions; medians, so that interrupts do not. */
static void calibrate(void)
{
    static unsigned long long inside[BATCHES], wrapped[BATCHES], plain[BATCHES];
    unsigned long long with, without;

    memset(&calibration, 0, sizeof calibration);
    campaign_empty_wrapper(); /* takes the row: later calls find it */
    for (unsigned i = 0; i < BATCHES; i++) {
        slot *s = find(&calibration, CAMPAIGN_CALIBRATION, 0, 0);

        s->row.ticks = 0;
        wrapped[i] = time_batch(campaign_empty_wrapper);
        inside[i] = s->row.ticks;
        plain[i] = time_batch(campaign_empty_function);
    }
    with = median(wrapped, BATCHES);
    without = median(plain, BATCHES);
    cost.inside = median(inside, BATCHES) * 1000 / BATCH;
    cost.around = with > without ? (with - without) * 1000 / BATCH : 0;
    cost.known = 1;
}

unsigned long long campaign_profile_cost_inside(void)
{
    if (!cost.known) {
        calibrate();
    }
    return cost.inside;
}

unsigned long long campaign_profile_cost_around(void)
{
    if (!cost.known) {
        calibrate();
    }
    return cost.around;
}

unsigned long long campaign_profile_cost(void)
{
    return (campaign_profile_cost_inside() + 500) / 1000;
}
