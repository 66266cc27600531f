/*
 * SM3 as a stream of bits, for the helper functions of this folder only.
 *
 * Candidates hash through auxfunc.h. The helpers call these functions and not
 * each other, so that a wrapper around a helper counts what a candidate asked
 * for, once.
 *
 * Source: GB/T 32905-2016; comments cite its sections.
 */
#ifndef ICCS_SM3_H
#define ICCS_SM3_H

#include <stddef.h>
#include <stdint.h>

#define ICCS_SM3_BLOCK_BYTES 64 /* 512 bits, section 5.1 */
#define ICCS_SM3_DIGEST_BYTES 32 /* 256 bits, section 5.1 */

/*
 * A hash in progress. May hold secrets, in the message schedule too, which is a
 * member for that reason: one iccs_wipe of the context leaves nothing behind.
 */
typedef struct {
    uint32_t state[8];                         /* V(i), section 5.3 */
    uint32_t schedule[68];                     /* scratch of one compression */
    unsigned char block[ICCS_SM3_BLOCK_BYTES]; /* the block being filled */
    uint64_t bits;                             /* message bits so far, modulo 2^64 */
} iccs_sm3_ctx;

/* Starts a hash: c is written, its former content does not matter. */
void iccs_sm3_init(iccs_sm3_ctx *c);

/* Continues `from` in `to` as well (a common prefix is then hashed once). */
void iccs_sm3_fork(iccs_sm3_ctx *to, const iccs_sm3_ctx *from);

/*
 * Appends the first `bits` bits of data, at any bit position reached so far.
 * data may be NULL when bits is 0; reads ceil(bits / 8) bytes.
 */
void iccs_sm3_update(iccs_sm3_ctx *c, const unsigned char *data, unsigned long long bits);

/* Pads, writes the digest, and leaves c unusable until the next init or fork. */
void iccs_sm3_final(iccs_sm3_ctx *c, unsigned char digest[ICCS_SM3_DIGEST_BYTES]);

/* Clears the low bits of a last byte when `bits` is no multiple of 8. */
void iccs_mask_tail(unsigned char *out, unsigned long long bits);

/* Overwrites n bytes with zero in a way that the compiler must keep. */
void iccs_wipe(void *p, size_t n);

#endif
