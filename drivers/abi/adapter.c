/*
 * Compiled into every candidate library, with the candidate's own flags: the generator that the ICCS API expects
 * from its driver, and what the worker asks of any library. Declared and explained in campaign_abi.h.
 *
 * Set by the build: -DCAMPAIGN_LABEL="..." (parameter set), -DCAMPAIGN_KIND="timed" (or profile, memory, stream),
 * and, for a candidate that counts its rejected draws, -DCAMPAIGN_REJECTED=symbol.
 */
#include "campaign_abi.h"

#include <stddef.h>

#include "drng.h"

#ifndef CAMPAIGN_LABEL
#error "CAMPAIGN_LABEL must be defined as a string: the label of the instance"
#endif
#ifndef CAMPAIGN_KIND
#error "CAMPAIGN_KIND must be defined as a string: timed, profile, memory or stream"
#endif

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

#ifdef __clang__
#define COMPILER __VERSION__ /* begins with the compiler's name */
#else
#define COMPILER "gcc " __VERSION__
#endif

#if __SIZEOF_LONG__ == 8
#define LONG_BITS "64"
#elif __SIZEOF_LONG__ == 4
#define LONG_BITS "32"
#else
#error "unexpected size of long"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ENDIAN "little"
#else
#define ENDIAN "big"
#endif

CAMPAIGN_EXPORT DRNG_ctx drng_algorithm;

static campaign_generator *other_generator;
static void *other_context;

const char *campaign_meta(void)
{
    return "abi=" TEXT(CAMPAIGN_ABI) "\n"
           "instance=" CAMPAIGN_LABEL "\n"
           "kind=" CAMPAIGN_KIND "\n"
           "compiler=" COMPILER "\n"
           "long_bits=" LONG_BITS "\n"
           "endian=" ENDIAN "\n";
}

int campaign_seed(const unsigned char *seed, unsigned long long seed_bytes)
{
    if (seed == NULL && seed_bytes != 0) {
        return -1;
    }
    return init_random_number(&drng_algorithm, seed, seed_bytes);
}

void campaign_random(campaign_generator *f, void *ctx)
{
    other_generator = f;
    other_context = ctx;
}

int campaign_draw(unsigned char *out, unsigned long long bits)
{
    if (other_generator != NULL) {
        return other_generator(other_context, out, bits);
    }
    return get_random_number(&drng_algorithm, out, bits);
}

#ifdef CAMPAIGN_REJECTED
/* Weak: the same define serves all parameter sets of a candidate, and not each of them draws again. */
extern unsigned long long CAMPAIGN_REJECTED __attribute__((weak));

unsigned long long campaign_rejected(void)
{
    return &CAMPAIGN_REJECTED != NULL ? CAMPAIGN_REJECTED : 0;
}
#else
unsigned long long campaign_rejected(void)
{
    return 0;
}
#endif

int campaign_drng(const unsigned char *seed, unsigned long long seed_bytes, unsigned char *out,
                  unsigned long long out_bits, unsigned long long requests)
{
    const unsigned long long out_bytes = out_bits / 8 + (out_bits % 8 != 0);
    DRNG_ctx own;
    int code = init_random_number(&own, seed, seed_bytes);

    for (unsigned long long i = 0; code == 0 && i < requests; i++) {
        code = get_random_number(&own, out + i * out_bytes, out_bits);
    }
    return code;
}
