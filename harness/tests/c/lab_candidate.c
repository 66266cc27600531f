/*
 * The candidate of the tests that run whole campaigns: fast, deterministic, and no signature at all (whoever has the
 * public key can sign). -DLAB_ID gives each parameter set outputs of its own.
 *
 *   sk = 32 random bytes, pk = SM3(sk || LAB_ID), sn = SM3(pk || m)    (the secret key of the API is sk || pk)
 *
 * -DLAB_SPIN_MS=N makes each signature take N ms; -DLAB_HEAP=N makes it hold N bytes of heap; -DLAB_SHARE=N makes
 * it spend N percent of its time in sm3hash, the rest in the same computation past it; -DLAB_BAD names something that
 * goes wrong.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "auxfunc.h"
#include "drng.h"
#include "sig_api.h"
#include "sm3.h"

#define FINE 0
#define SIGN_CRASHES 1
#define SIGN_HANGS 2
#define SIGN_FAILS 3
#define KEYGEN_EXITS 4
#define PRINTS 5
#define TIMED_CRASHES 6 /* the 12th signature of a process: known answers pass, a trial does not */
/* Each hangs in one phase only. A KAT makes 11 signatures, one with other libraries; a calibration at most 37. */
#define PREPARING_HANGS 7 /* only there, the worker may write a file */
#define CALIBRATING_HANGS 8
#define TIMED_HANGS 9
#define MEMORY_HANGS 10
#define PROFILE_HANGS 11
#define LONG_MESSAGE_HANGS 12 /* only a study has any */

#ifndef LAB_BAD
#define LAB_BAD FINE
#endif
#ifndef LAB_SPIN_MS
#define LAB_SPIN_MS 0
#endif
#ifndef LAB_HEAP
#define LAB_HEAP 0
#endif
#ifndef LAB_SHARE
#define LAB_SHARE 0
#endif

extern DRNG_ctx drng_algorithm;
const char *campaign_meta(void);

static unsigned signatures;

static void hang_if(int bad)
{
    static volatile unsigned turns;

    while (bad) {
        turns++;
    }
}

static int may_write(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != 0;
}

/* Whether this is the library of that kind, as its adapter says: `kind=memory`. */
static int is_kind(const char *kind)
{
    return strstr(campaign_meta(), kind) != NULL;
}

static void spin(void)
{
    struct timespec start, now;

    if (LAB_SPIN_MS == 0) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < LAB_SPIN_MS);
}

/* A hundred equal pieces of work, LAB_SHARE of them by sm3hash. */
static void work(void)
{
    static const unsigned char text[4096];
    unsigned char out[32];
    iccs_sm3_ctx c;

    for (int i = 0; LAB_SHARE != 0 && i < 100; i++) {
        if (i < LAB_SHARE) {
            sm3hash(256, text, sizeof text * 8, out);
        } else {
            iccs_sm3_init(&c);
            iccs_sm3_update(&c, text, sizeof text * 8);
            iccs_sm3_final(&c, out);
        }
    }
}

/* LAB_HEAP bytes, held for a moment. Returns 0 when there are none. */
static int hold(void)
{
    static void *volatile held; /* a block that nobody reads could be left out */

    if (LAB_HEAP == 0) {
        return 1;
    }
    held = malloc(LAB_HEAP);
    if (held == NULL) {
        return 0;
    }
    free(held);
    return 1;
}

unsigned long long sig_get_pk_len_bytes(void)
{
    return 32;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return 64;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return 32;
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    unsigned char seed[33];

    if (LAB_BAD == KEYGEN_EXITS) {
        _exit(0);
    }
    hang_if(LAB_BAD == PREPARING_HANGS && may_write());
    if (get_random_number(&drng_algorithm, seed, 256) != 0) {
        return -1;
    }
    seed[32] = LAB_ID;
    if (sm3hash(256, seed, sizeof seed * 8, pk) != 0) {
        return -1;
    }
    memcpy(sk, seed, 32);
    memcpy(sk + 32, pk, 32);
    *pk_len = 32;
    *sk_len = 64;
    return 0;
}

static int digest(const unsigned char *pk, const unsigned char *m, unsigned long long m_len, unsigned char *out)
{
    unsigned char text[32 + 65536];

    if (m_len > 65536) {
        return -2;
    }
    memcpy(text, pk, 32);
    memcpy(text + 32, m, (size_t)m_len);
    return sm3hash(256, text, (32 + m_len) * 8, out);
}

int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    if (sk_len != 64) {
        return -2;
    }
    signatures++;
    if (LAB_BAD == SIGN_CRASHES || (LAB_BAD == TIMED_CRASHES && signatures == 12)) {
        raise(SIGSEGV);
    }
    hang_if(LAB_BAD == SIGN_HANGS);
    hang_if(LAB_BAD == CALIBRATING_HANGS && signatures > 11);
    hang_if(LAB_BAD == TIMED_HANGS && signatures > 40);
    hang_if(LAB_BAD == MEMORY_HANGS && is_kind("kind=memory") && signatures > 1);
    hang_if(LAB_BAD == PROFILE_HANGS && is_kind("kind=profile") && signatures > 1);
    hang_if(LAB_BAD == LONG_MESSAGE_HANGS && m_len > 1000);
    if (LAB_BAD == SIGN_FAILS) {
        return -7;
    }
    if (LAB_BAD == PRINTS) {
        puts("PASS");
        fflush(stdout);
    }
    spin();
    work();
    if (!hold()) {
        return -3;
    }
    *sn_len = 32;
    return digest(sk + 32, m, m_len, sn);
}

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    unsigned char expected[32];

    if (pk_len != 32 || sn_len != 32 || digest(pk, m, m_len, expected) != 0) {
        return -2;
    }
    return memcmp(expected, sn, 32) == 0 ? 0 : -1;
}
