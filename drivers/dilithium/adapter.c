/*
 * The ICCS signature API over PQClean's Dilithium (round 3) and ML-DSA: one file for all of them. The build names
 * the code with -DSCHEME=DILITHIUM2 (3, 5; MLDSA44, 65, 87) and -DIMPL=CLEAN (AVX2, AARCH64), and puts that
 * code's folder on the include path, so that "api.h" is its header.
 *
 * In ML-DSA the functions without a context are macros of api.h; a function-like macro is expanded after the name
 * is pasted, so the calls below serve both families.
 *
 * Randomness: PQClean draws through PQCLEAN_randombytes, which is defined here over campaign_draw. PQClean does
 * not look at its result, so a failure is remembered and makes the operation fail.
 *
 * Every function returns 0 or a code below. On an error all outputs are zero, and so are their lengths. Message and
 * output must not overlap.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "campaign_abi.h"
#include "sig_api.h"

#define PASTE_NAME(scheme, impl, rest) PQCLEAN_##scheme##_##impl##_##rest
#define NAME(scheme, impl, rest) PASTE_NAME(scheme, impl, rest)

#define PK_BYTES NAME(SCHEME, IMPL, CRYPTO_PUBLICKEYBYTES)
#define SK_BYTES NAME(SCHEME, IMPL, CRYPTO_SECRETKEYBYTES)
#define SN_BYTES NAME(SCHEME, IMPL, CRYPTO_BYTES)

/* Error codes of this candidate; -1 is kept for "the signature is not valid". */
#define ERROR_ARGUMENT (-2) /* a null pointer, or a message length beyond the address space */
#define ERROR_KEY_LENGTH (-3) /* the key has not the length of this parameter set */
#define ERROR_ROOM (-4)     /* the length on entry is below the one needed */
#define ERROR_RANDOM (-5)   /* the random generator failed */
#define ERROR_SCHEME (-6)   /* the scheme's own function failed */

/* Present in a stream library only, where a pointer of its own stands for a file as the message. */
extern unsigned char *campaign_stream_pointer(void) __attribute__((weak));
extern int campaign_stream_error(void) __attribute__((weak));

static int random_failed;

/* PQClean's header of this function is not included: it would bring the system's randomness into view. */
int PQCLEAN_randombytes(uint8_t *output, size_t n);

int PQCLEAN_randombytes(uint8_t *output, size_t n)
{
    if (campaign_draw(output, 8ULL * n) != 0) {
        memset(output, 0, n);
        random_failed = 1;
        return -1;
    }
    return 0;
}

unsigned long long sig_get_pk_len_bytes(void)
{
    return PK_BYTES;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return SK_BYTES;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return SN_BYTES;
}

/* What went wrong around the scheme during an operation on message m: the generator, or the file behind m. */
static int failure(const unsigned char *m)
{
    if (random_failed) {
        return ERROR_RANDOM;
    }
    if (campaign_stream_pointer != NULL && m == campaign_stream_pointer()) {
        return campaign_stream_error();
    }
    return 0;
}

/* Zeroes as much of an output as the caller gave room for, and its length. */
static void clear(unsigned char *out, unsigned long long *length, unsigned long long most)
{
    if (length != NULL) {
        if (out != NULL) {
            memset(out, 0, (size_t)(*length < most ? *length : most));
        }
        *length = 0;
    }
}

static int message_is_bad(const unsigned char *m, unsigned long long m_len)
{
    return (m == NULL && m_len != 0) || (size_t)m_len != m_len;
}

/* pk_len, sk_len: room on entry, PK_BYTES and SK_BYTES on return. */
int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    int code;

    if (pk == NULL || pk_len == NULL || sk == NULL || sk_len == NULL) {
        code = ERROR_ARGUMENT;
    } else if (*pk_len < PK_BYTES || *sk_len < SK_BYTES) {
        code = ERROR_ROOM;
    } else {
        random_failed = 0;
        code = NAME(SCHEME, IMPL, crypto_sign_keypair)(pk, sk) == 0 ? failure(NULL) : ERROR_SCHEME;
    }
    if (code != 0) {
        clear(pk, pk_len, PK_BYTES);
        clear(sk, sk_len, SK_BYTES);
        return code;
    }
    *pk_len = PK_BYTES;
    *sk_len = SK_BYTES;
    return 0;
}

/* sn_len: room on entry, SN_BYTES on return. Round 3 draws nothing, ML-DSA 32 bytes. */
int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    size_t written = 0;
    int code;

    if (sk == NULL || sn == NULL || sn_len == NULL || message_is_bad(m, m_len)) {
        code = ERROR_ARGUMENT;
    } else if (sk_len != SK_BYTES) {
        code = ERROR_KEY_LENGTH;
    } else if (*sn_len < SN_BYTES) {
        code = ERROR_ROOM;
    } else {
        random_failed = 0;
        code = NAME(SCHEME, IMPL, crypto_sign_signature)(sn, &written, m, (size_t)m_len, sk);
        code = code == 0 && written == SN_BYTES ? failure(m) : ERROR_SCHEME;
    }
    if (code != 0) {
        clear(sn, sn_len, SN_BYTES);
        return code;
    }
    *sn_len = SN_BYTES;
    return 0;
}

/* 0 valid, -1 not valid (a signature of another length among them), else an error. */
int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    int code, valid;

    if (pk == NULL || sn == NULL || message_is_bad(m, m_len)) {
        return ERROR_ARGUMENT;
    }
    if (pk_len != PK_BYTES) {
        return ERROR_KEY_LENGTH;
    }
    if (sn_len != SN_BYTES) {
        return -1;
    }
    random_failed = 0;
    valid = NAME(SCHEME, IMPL, crypto_sign_verify)(sn, SN_BYTES, m, (size_t)m_len, pk) == 0;
    code = failure(m);
    return code != 0 ? code : valid ? 0 : -1;
}
