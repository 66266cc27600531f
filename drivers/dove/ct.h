/*
 * What keeps secrets secret: masks instead of branches, erasure, and the marks
 * of the places where a secret becomes public.
 *
 * Secret are seed_sk, T, B_k, C_k, the vinegar v, x_k, y_k, w, L, and everything
 * computed from them up to a mark. No branch and no index depends on a secret;
 * the tests run key generation and signing under a memory checker that treats
 * secret bytes as undefined and reports each branch or index made of them.
 *
 * Erased after use are all heap blocks and the named local variables that held
 * secrets. Registers, and stack slots that the compiler chose for itself, are not:
 * C99 has no means for that, and no claim is made. Nor is any made on processors
 * whose AND, XOR and shift take a time that depends on their operands.
 */
#ifndef DOVE_CT_H
#define DOVE_CT_H

#include <stddef.h>
#include <stdint.h>

/*
 * DOVE_DECLASSIFY(p, n): the n bytes at p are public from here on. It generates
 * no code; with -DDOVE_CT_TEST it tells the memory checker. Each use stands
 * below a comment that argues why publishing the value is acceptable.
 */
#ifdef DOVE_CT_TEST
#include <valgrind/memcheck.h>
#define DOVE_DECLASSIFY(p, n) ((void)VALGRIND_MAKE_MEM_DEFINED((p), (n)))
#else
#define DOVE_DECLASSIFY(p, n) ((void)(p), (void)(n))
#endif

/*
 * x, with its value hidden from the optimizer. Without it a compiler may notice
 * that a mask is 0 or all ones, and turn "and with the mask" into a branch.
 * (`__asm__` is the spelling that pedantic C99 accepts; a compiler without it
 * gets the plain value, and the test of the generated code must be run there.)
 */
static inline uint64_t dove_ct_hide(uint64_t x)
{
#if defined(__GNUC__)
    __asm__("" : "+r"(x));
#endif
    return x;
}

/* All ones when bit `bit` of byte c is set, else 0. */
static inline uint64_t dove_ct_bit_mask(unsigned c, unsigned bit)
{
    return dove_ct_hide((uint64_t)0 - (c >> bit & 1u));
}

/* All ones when byte c (below 256) is zero, else 0: c - 1 borrows only from 0. */
static inline uint64_t dove_ct_zero_mask(unsigned c)
{
    return dove_ct_hide((uint64_t)0 - ((c - 1u) >> 8 & 1u));
}

/* Overwrites n bytes at p with zero in a way that the compiler must keep. */
void dove_wipe(void *p, size_t n);

/* Allocates n > 0 zeroed bytes, aligned for any type; NULL when there are none. */
void *dove_alloc(size_t n);

/* Erases and frees what dove_alloc(n) gave; p may be NULL. */
void dove_free(void *p, size_t n);

#endif
