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
