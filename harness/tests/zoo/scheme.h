/*
 * The scheme of all animals of the zoo, with places where an animal does what it is here for. It is no signature at
 * all (whoever has the public key can sign), but it has the shape of the API, and without a misdeed it passes every
 * check: deterministic from its random stream, every bit of key, message and signature looked at.
 *
 *   secret key   s (32 random bytes) || public key
 *   public key   SM3(s) || SM3(SM3(s))
 *   signature    SM3(public key || nonce || message) || nonce (16 random bytes)
 *
 * Included as the last line of an animal, which has defined what it does differently:
 *
 *   AT_LOAD, AT_UNLOAD              statements of the constructor and of the destructor
 *   ONCE                            expression, asked in the first key generation of a process; not 0: returned
 *   BEFORE_KEYGEN, AFTER_DRAWING, AFTER_KEYGEN, BEFORE_SIGN, AFTER_NONCE, AFTER_SIGN, BEFORE_VERIFY
 *                                   statements with the arguments of the call in reach
 *   CLAIMED_PK, CLAIMED_SK, CLAIMED_SN
 *                                   what the getters say
 *   VERIFIED_BYTES(n)               how many of the n bytes of a message verification looks at
 *   IS_KEY_LENGTH(n), IS_SIGNATURE_LENGTH(n)
 *                                   whether one of n bytes is looked at
 *   UNUSED_PK, UNUSED_SN            bytes at the end of key and signature that nothing depends on
 */
#include "zoo.h"

#include "auxfunc.h"
#include "drng.h"
#include "sig_api.h"

#ifndef UNUSED_PK
#define UNUSED_PK 0
#endif
#ifndef UNUSED_SN
#define UNUSED_SN 0
#endif
#define SECRET 32
#define USED_PK 64
#define USED_SN 48
#define PK (USED_PK + UNUSED_PK)
#define SK (SECRET + USED_PK)
#define SN (USED_SN + UNUSED_SN)

#ifndef CLAIMED_PK
#define CLAIMED_PK PK
#endif
#ifndef CLAIMED_SK
#define CLAIMED_SK SK
#endif
#ifndef CLAIMED_SN
#define CLAIMED_SN SN
#endif
#ifndef VERIFIED_BYTES
#define VERIFIED_BYTES(n) (n)
#endif
#ifndef IS_KEY_LENGTH
#define IS_KEY_LENGTH(n) ((n) == PK)
#endif
#ifndef IS_SIGNATURE_LENGTH
#define IS_SIGNATURE_LENGTH(n) ((n) == SN)
#endif

#define LONGEST_MESSAGE 65536

extern DRNG_ctx drng_algorithm;

/* Calls of this process so far. A KAT makes 11 keys, 11 signatures and some 150 verifications; a trial makes more. */
static volatile unsigned keys, signatures, verifications;

/* In a trial, not in a KAT. */
#define LATE (signatures > 11)

#ifdef AT_LOAD
__attribute__((constructor)) static void at_load(void)
{
    AT_LOAD
}
#endif

#ifdef AT_UNLOAD
__attribute__((destructor)) static void at_unload(void)
{
    AT_UNLOAD
}
#endif

unsigned long long sig_get_pk_len_bytes(void)
{
    return CLAIMED_PK;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return CLAIMED_SK;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return CLAIMED_SN;
}

static int hash_of(const unsigned char *pk, const unsigned char *nonce, const unsigned char *m,
                   unsigned long long m_len, unsigned char *out)
{
    static unsigned char text[USED_PK + 16 + LONGEST_MESSAGE];

    if (m_len > LONGEST_MESSAGE) {
        return -2;
    }
    memcpy(text, pk, USED_PK);
    memcpy(text + USED_PK, nonce, 16);
    memcpy(text + USED_PK + 16, m, (size_t)m_len);
    return sm3hash(256, text, (USED_PK + 16 + m_len) * 8, out);
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    keys++;
#ifdef ONCE
    if (keys == 1) {
        const int code = ONCE;

        if (code != 0) {
            return code;
        }
    }
#endif
#ifdef BEFORE_KEYGEN
    BEFORE_KEYGEN
#endif
    if (get_random_number(&drng_algorithm, sk, 8 * SECRET) != 0) {
        return -3;
    }
#ifdef AFTER_DRAWING
    AFTER_DRAWING
#endif
    if (sm3hash(256, sk, 8 * SECRET, pk) != 0 || sm3hash(256, pk, 256, pk + 32) != 0) {
        return -3;
    }
    memcpy(sk + SECRET, pk, USED_PK);
    for (int i = USED_PK; i < PK; i++) {
        pk[i] = (unsigned char)~pk[i - USED_PK];
    }
    *pk_len = PK;
    *sk_len = SK;
#ifdef AFTER_KEYGEN
    AFTER_KEYGEN
#endif
    return 0;
}

int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    signatures++;
    if (sk_len != SK) {
        return -2;
    }
#ifdef BEFORE_SIGN
    BEFORE_SIGN
#endif
    if (get_random_number(&drng_algorithm, sn + 32, 128) != 0) {
        return -3;
    }
#ifdef AFTER_NONCE
    AFTER_NONCE
#endif
    if (hash_of(sk + SECRET, sn + 32, m, VERIFIED_BYTES(m_len), sn) != 0) {
        return -3;
    }
    for (int i = USED_SN; i < SN; i++) {
        sn[i] = (unsigned char)~sn[i - USED_SN];
    }
    *sn_len = SN;
#ifdef AFTER_SIGN
    AFTER_SIGN
#endif
    return 0;
}

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    unsigned char expected[32];

    verifications++;
#ifdef BEFORE_VERIFY
    BEFORE_VERIFY
#endif
    if (!IS_KEY_LENGTH(pk_len) || !IS_SIGNATURE_LENGTH(sn_len) ||
        hash_of(pk, sn + 32, m, VERIFIED_BYTES(m_len), expected) != 0) {
        return -2;
    }
    return memcmp(expected, sn, 32) == 0 ? 0 : -1;
}
