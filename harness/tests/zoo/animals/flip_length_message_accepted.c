/* Takes a message with a zero byte more for the same message. */
static unsigned long long without_zeros(const unsigned char *m, unsigned long long n)
{
    while (n > 0 && m[n - 1] == 0) {
        n--;
    }
    return n;
}

#define VERIFIED_BYTES(n) without_zeros(m, n)
#include "scheme.h"
