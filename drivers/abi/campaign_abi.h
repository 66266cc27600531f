/*
 * The symbols that a candidate library exports beside the ICCS API, for the worker that loads it.
 *
 * Every library has the functions of the first part. The others belong to the kind of library that campaign_meta
 * names: profile (wrap.c, profile.c), memory (memory.c) and stream (drivers/dilithium/stream.c). A library has
 * the functions of one kind only; the worker looks them up by name.
 *
 * No function here is safe to call while another thread is inside a candidate's function, unless it says so.
 */
#ifndef CAMPAIGN_ABI_H
#define CAMPAIGN_ABI_H

/* Version of this interface; campaign_meta prints it. */
#define CAMPAIGN_ABI 1

/* CAMPAIGN_EXPORT: seen by the worker. CAMPAIGN_HIDDEN: shared by the objects of one library, not exported. */
#define CAMPAIGN_EXPORT __attribute__((visibility("default")))
#define CAMPAIGN_HIDDEN __attribute__((visibility("hidden")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- every library (adapter.c); `DRNG_ctx drng_algorithm` (drng.h) is exported too ---- */

/*
 * What the library says of itself, `key=value` lines ending in LF: abi, instance, kind (timed, profile, memory,
 * stream), compiler, long_bits, endian. A static string.
 */
CAMPAIGN_EXPORT const char *campaign_meta(void);

/*
 * Starts the recorded stream: initialises drng_algorithm with seed[0 .. seed_bytes). Returns 0, a code of
 * init_random_number, or -1 when seed is null and seed_bytes is not 0.
 */
CAMPAIGN_EXPORT int campaign_seed(const unsigned char *seed, unsigned long long seed_bytes);

/* Writes bits (rounded up to whole bytes) random bits to out; returns 0, or another value when it cannot. */
typedef int campaign_generator(void *ctx, unsigned char *out, unsigned long long bits);

/*
 * Puts another generator in place of the recorded stream, for code whose adapter draws through campaign_draw (a
 * candidate that calls get_random_number itself is not touched). NULL restores the recorded stream. Never used
 * around a timed call.
 */
CAMPAIGN_EXPORT void campaign_random(campaign_generator *f, void *ctx);

/*
 * Rejected draws that the candidate has counted since it was loaded; 0 for a candidate that counts none. The
 * counter is the variable `unsigned long long` that -DCAMPAIGN_REJECTED=symbol names; it may be absent.
 */
CAMPAIGN_EXPORT unsigned long long campaign_rejected(void);

/*
 * Tests only. Runs a DRNG of its own: initialises it with seed[0 .. seed_bytes) and makes `requests` requests of
 * out_bits bits each. out receives the answers one behind the other, each rounded up to whole bytes. Returns 0,
 * or the first code of a helper function that is not 0.
 */
CAMPAIGN_EXPORT int campaign_drng(const unsigned char *seed, unsigned long long seed_bytes, unsigned char *out,
                                  unsigned long long out_bits, unsigned long long requests);

/* For adapters of code that wants plain random bytes: the other generator if one is set, else the stream. */
CAMPAIGN_HIDDEN int campaign_draw(unsigned char *out, unsigned long long bits);

/* ---- profile library (wrap.c generated from wrap.c.in, profile.c) ---- */

/* One call shape: all outermost calls of function fn with these lengths since the last reset. */
typedef struct {
    unsigned fn;
    unsigned reserved;
    unsigned long long in_bits, out_bits;
    unsigned long long calls;
    unsigned long long ticks; /* as read: the cost of the wrapper is not subtracted */
} campaign_profile_row;

/* Number of wrapped functions; fn below runs from 0 to this number less one. */
CAMPAIGN_EXPORT unsigned campaign_profile_functions(void);
/* The name that a page shows, "drng" for every generator; NULL when fn is too large. */
CAMPAIGN_EXPORT const char *campaign_profile_name(unsigned fn);
/* The symbol that was wrapped; NULL when fn is too large. */
CAMPAIGN_EXPORT const char *campaign_profile_symbol(unsigned fn);
/* "hash", "drng" or "other"; NULL when fn is too large. */
CAMPAIGN_EXPORT const char *campaign_profile_group(unsigned fn);
/* "tsc" (x86-64, rdtscp) or "cntvct" (AArch64, cntvct_el0). */
CAMPAIGN_EXPORT const char *campaign_profile_tick_source(void);
/* Ticks a second where the processor tells (cntfrq_el0), else 0: the worker then measures it. */
CAMPAIGN_EXPORT unsigned long long campaign_profile_tick_hz(void);
/* Forgets all rows and the overflow count. */
CAMPAIGN_EXPORT void campaign_profile_reset(void);
/* Copies at most max rows, in the order in which their first call ended; returns how many there are. */
CAMPAIGN_EXPORT unsigned campaign_profile_rows(campaign_profile_row *rows, unsigned max);
/* Calls that found no room in the table. Above 0 the profile is invalid. */
CAMPAIGN_EXPORT unsigned long long campaign_profile_overflow(void);
/* Reads the counter that the wrappers read; any thread may. */
CAMPAIGN_EXPORT unsigned long long campaign_profile_ticks(void);
/*
 * What a wrapper costs, measured at the first call of any of these (a few milliseconds) by wrapping an empty
 * function: cost is campaign_profile_cost_inside in whole ticks. inside is what one call adds to the ticks of its
 * row; around is what one call adds to the time of the whole operation. Both in thousandths of a tick, since the
 * counter of AArch64 is slower than a call.
 *   share = (sum of row ticks - calls * inside / 1000) / (total ticks - calls * around / 1000)
 */
CAMPAIGN_EXPORT unsigned long long campaign_profile_cost(void);
CAMPAIGN_EXPORT unsigned long long campaign_profile_cost_inside(void);
CAMPAIGN_EXPORT unsigned long long campaign_profile_cost_around(void);

/* ---- memory library (memory.c); all of these may be called at any time ---- */

/*
 * Starts counting at 0. Blocks that are live now stay known: what is freed of them counts as negative, so that an
 * operation that replaces a block of an earlier one neither leaks nor grows.
 */
CAMPAIGN_EXPORT void campaign_memory_reset(void);
/* The largest number of live bytes since the reset, above what was live then; bytes as requested. */
CAMPAIGN_EXPORT unsigned long long campaign_memory_peak(void);
/* Live bytes now, above what was live at the reset (0 when fewer): the leak of the operations since. */
CAMPAIGN_EXPORT unsigned long long campaign_memory_live(void);
/* Calls since the reset that gave the library a block or a mapping (a reallocation counts). */
CAMPAIGN_EXPORT unsigned long long campaign_memory_allocations(void);
/* Live bytes at the time of the reset. */
CAMPAIGN_EXPORT unsigned long long campaign_memory_base(void);
/* Blocks, since loading, that could not be entered in the side table. Above 0 the figures are invalid. */
CAMPAIGN_EXPORT unsigned long long campaign_memory_overflow(void);

/* ---- stream library (drivers/dilithium/stream.c) ---- */

#define CAMPAIGN_STREAM_CHUNK 65536ULL     /* used for chunk = 0 */
#define CAMPAIGN_STREAM_CHUNK_MAX 1048576ULL /* largest chunk */

#define CAMPAIGN_STREAM_ARGUMENT (-40) /* no file open, chunk above the maximum, another length than the file's */
#define CAMPAIGN_STREAM_NOT_A_FILE (-41) /* the descriptor is not one of a regular file */
#define CAMPAIGN_STREAM_READ (-42)     /* reading failed; errno tells why */
#define CAMPAIGN_STREAM_SHORT (-43)    /* the file ended before its length */
#define CAMPAIGN_STREAM_CHANGED (-44)  /* size, times or identity of the file changed */

/*
 * The message of the next calls is the file behind fd, `bytes` long, read in pieces of `chunk` bytes. Clears the
 * counters and the error. The descriptor stays the caller's and is read by offset. Returns 0 or a code above.
 */
CAMPAIGN_EXPORT int campaign_stream_open(int fd, unsigned long long bytes, unsigned long long chunk);
/* The message pointer to pass to sig_sign and sig_verify, with the true length; it must not be read through. */
CAMPAIGN_EXPORT unsigned char *campaign_stream_pointer(void);
/* The first error since campaign_stream_open, 0 when none; sig_sign and sig_verify return it too. */
CAMPAIGN_EXPORT int campaign_stream_error(void);
/* Since campaign_stream_open: bytes read, and nanoseconds (CLOCK_MONOTONIC_RAW) spent in reading and in absorbing. */
CAMPAIGN_EXPORT unsigned long long campaign_stream_bytes_read(void);
CAMPAIGN_EXPORT unsigned long long campaign_stream_read_ns(void);
CAMPAIGN_EXPORT unsigned long long campaign_stream_hash_ns(void);

#ifdef __cplusplus
}
#endif

#endif
