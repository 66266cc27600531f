/*
 * The hash helpers of the NGCC programme, as a candidate sees them.
 *
 * ICCS ships these three functions as placeholders, and a candidate takes all
 * of its hashing from them. This header only declares them; an implementation
 * comes with the sources of the candidate (ours is in drivers/iccs).
 *
 * Messages are bit strings, most significant bit of a byte first, and ALL
 * LENGTHS ARE IN BITS. A length that is no multiple of 8 uses the top bits of
 * the last byte: the low bits of an input's last byte are not read, those of an
 * output's last byte are written as zero.
 *
 * Source: NGCC Round 1, helper functions (auxfunc.h); GB/T 32905-2016 (SM3);
 * GB/T 32918.4-2016, 5.4.3 (key derivation function).
 */
#ifndef AUXFUNC_H
#define AUXFUNC_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * SM3 (GB/T 32905-2016).
 *
 * digest_bits  256, the only length there is
 * m, m_bits    message; m may be NULL when m_bits is 0
 * digest       32 bytes, written; must not overlap m
 *
 * Returns 0, or -4 for another digest_bits (one line on stderr, no output).
 */
int sm3hash(int digest_bits, const unsigned char *m, unsigned long long m_bits,
            unsigned char *digest);

/*
 * The longer hash of the programme, made of SM3 and HMAC-SM3.
 *
 * digest_bits  512, 768 or 1024
 * m, m_bits    message; m may be NULL when m_bits is 0
 * digest       digest_bits / 8 bytes, written; must not overlap m
 *
 * Returns 0, or -4 for another digest_bits (one line on stderr, no output).
 */
int pseudohash(int digest_bits, const unsigned char *m, unsigned long long m_bits,
               unsigned char *digest);

/*
 * The KDF of GB/T 32918.4-2016, 5.4.3, used as an extendable-output function.
 *
 * out_bits     output length, at most 256 * (2^32 - 1): the counter has 32 bits
 * m, m_bits    message; m may be NULL when m_bits is 0
 * out          ceil(out_bits / 8) bytes, written; must not overlap m
 *
 * Returns 0, or -5 when out_bits exceeds what the counter can number (no output).
 */
int pseudoXOF(unsigned long long out_bits, const unsigned char *m, unsigned long long m_bits,
              unsigned char *out);

#ifdef __cplusplus
}
#endif

#endif
