/*
 * Between the generated wrappers (wrap.c.in) and the table that they write to (profile.c). What the worker reads
 * is in campaign_abi.h.
 */
#ifndef CAMPAIGN_PROFILE_H
#define CAMPAIGN_PROFILE_H

#include "campaign_abi.h"

/* One wrapped function. */
typedef struct {
    const char *symbol; /* the name that the linker wraps */
    const char *name;   /* the name on a page */
    const char *group;  /* hash, drng, other */
} campaign_wrapped;

/* Written by the generated file; `functions` entries and one of NULLs. */
extern const campaign_wrapped campaign_wrapped_list[] CAMPAIGN_HIDDEN;
extern const unsigned campaign_wrapped_count CAMPAIGN_HIDDEN;

/* One call under way: whether it is the outermost wrapped call of its thread, and when it began. */
typedef struct {
    unsigned long long start;
    int outermost;
} campaign_call;

/* Begins a call: the last thing that it does is to read the counter. */
CAMPAIGN_HIDDEN void campaign_call_begin(campaign_call *call);
/* Ends it: reads the counter first and returns the ticks since; 0 and nothing to enter for an inner call. */
CAMPAIGN_HIDDEN unsigned long long campaign_call_end(campaign_call *call);
/* Adds an outermost call of function fn to the table; does nothing for an inner one. */
CAMPAIGN_HIDDEN void campaign_call_enter(const campaign_call *call, unsigned fn, unsigned long long in_bits,
                                         unsigned long long out_bits, unsigned long long ticks);

/* The wrapper of the generated file around the empty function, for calibration; it enters its calls as this one. */
#define CAMPAIGN_CALIBRATION 0xffffffffU
CAMPAIGN_HIDDEN void campaign_empty_function(void);
CAMPAIGN_HIDDEN void campaign_empty_wrapper(void);

#endif
