/* Functions to wrap. They are apart from their callers, so that the calls cross the link. */
#include "profile_functions.h"

int mix(unsigned char *out, const unsigned char *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (unsigned char)(in[i] + i);
    }
    return (int)n;
}

unsigned long long half(unsigned long long bits)
{
    return bits / 2;
}

static volatile unsigned long long sink;

/* A chain of dependent multiplications: its time is proportional to the units. Out of line: one loop for both. */
__attribute__((noinline)) static void turn(unsigned units)
{
    unsigned long long x = sink;

    for (unsigned i = 0; i < units; i++) {
        x = x * 6364136223846793005ULL + 1;
    }
    sink = x;
}

void spin(unsigned units)
{
    turn(units);
}

void rest(unsigned units)
{
    turn(units);
}
