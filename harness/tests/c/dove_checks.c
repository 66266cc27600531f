/*
 * Behaviour of one DOVE instance, right and wrong: prints facts, one line each,
 * which the test compares with what they must be.
 *
 * usage: dove_checks COMMAND
 *   sizes      name of the instance and its claimed lengths
 *   counts     calls of pseudoXOF and of the DRNG per operation
 *   rejected   a signature that needed a second draw, and what it counted
 *   flips      single-bit changes of message, signature, salt and public key
 *   unaligned  every buffer at each offset from 1 to 7: same outputs
 *   lengths    wrong lengths, null pointers, the empty message
 *   memory     each allocation made to fail in turn
 *   xof        each call of pseudoXOF made to fail in turn
 *   random     the DRNG made to fail
 *   singular   every draw made singular
 *
 * Linked with --wrap for the allocator, pseudoXOF and get_random_number. Buffers
 * are allocated with exactly the claimed length, so that the sanitizers see a
 * byte read or written beyond it. Blocks of the candidate must be erased when
 * they are freed.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "SIG_AlgorithmInstance.h"
#include "auxfunc.h"
#include "drng.h"
#include "sign.h"

#define M_LEN 64
#define CANARY 0xa5

DRNG_ctx drng_algorithm;

/* ---- the wrapped functions ---- */

#define NEVER ULLONG_MAX
#define BLOCKS 16

static struct {
    int inside;               /* the candidate is running */
    unsigned long long calls; /* of this kind, since `inside` was set */
    unsigned long long fail;  /* number of the call that fails, from 0; or NEVER */
} memory = {0, 0, NEVER}, xof = {0, 0, NEVER}, drng = {0, 0, NEVER};

static struct {
    void *p;
    size_t n;
} blocks[BLOCKS];
static unsigned live;       /* blocks of the candidate that are not freed */
static unsigned dirty;      /* blocks that were freed without being erased */
static int zero_vinegar;    /* output of the length of a vinegar becomes zero */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
int __real_pseudoXOF(unsigned long long out_bits, const unsigned char *m, unsigned long long m_bits,
                     unsigned char *out);
int __real_get_random_number(DRNG_ctx *d, unsigned char *out, unsigned long long out_bits);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
int __wrap_pseudoXOF(unsigned long long out_bits, const unsigned char *m, unsigned long long m_bits,
                     unsigned char *out);
int __wrap_get_random_number(DRNG_ctx *d, unsigned char *out, unsigned long long out_bits);

static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void *note(void *p, size_t n)
{
    unsigned i;

    if (p == NULL)
        return NULL;
    for (i = 0; i < BLOCKS && blocks[i].p != NULL; i++)
        ;
    if (i == BLOCKS)
        die("more than %d live blocks", BLOCKS);
    blocks[i].p = p;
    blocks[i].n = n;
    live++;
    return p;
}

static void forget(void *p)
{
    unsigned i;
    size_t j;

    for (i = 0; i < BLOCKS && blocks[i].p != p; i++)
        ;
    if (i == BLOCKS)
        die("freed a block that is not its own");
    for (j = 0; j < blocks[i].n && ((unsigned char *)p)[j] == 0; j++)
        ;
    if (j < blocks[i].n)
        dirty++;
    blocks[i].p = NULL;
    live--;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (!memory.inside)
        return __real_calloc(n, size);
    if (memory.calls++ == memory.fail)
        return NULL;
    return note(__real_calloc(n, size), n * size);
}

void *__wrap_malloc(size_t n)
{
    if (!memory.inside)
        return __real_malloc(n);
    if (memory.calls++ == memory.fail)
        return NULL;
    return note(__real_malloc(n), n);
}

void *__wrap_realloc(void *p, size_t n)
{
    if (memory.inside)
        die("realloc may leave a secret behind");
    return __real_realloc(p, n);
}

void __wrap_free(void *p)
{
    if (memory.inside && p != NULL)
        forget(p);
    __real_free(p);
}

int __wrap_pseudoXOF(unsigned long long out_bits, const unsigned char *m, unsigned long long m_bits,
                     unsigned char *out)
{
    if (xof.calls++ == xof.fail)
        return -5;
    if (zero_vinegar && out_bits == 8 * DOVE_V) {
        memset(out, 0, DOVE_V);
        return 0;
    }
    return __real_pseudoXOF(out_bits, m, m_bits, out);
}

int __wrap_get_random_number(DRNG_ctx *d, unsigned char *out, unsigned long long out_bits)
{
    if (drng.calls++ == drng.fail)
        return -1;
    return __real_get_random_number(d, out, out_bits);
}

/* ---- calls of the candidate ---- */

typedef struct {
    unsigned char *pk, *sk, *sn, *m;
    unsigned long long pk_len, sk_len, sn_len;
} keys;

static unsigned char *take(size_t n)
{
    unsigned char *const p = malloc(n);

    if (p == NULL)
        die("out of memory");
    memset(p, CANARY, n);
    return p;
}

static void seed_drng(unsigned char with)
{
    unsigned char seed[64];

    memset(seed, with, sizeof seed);
    init_random_number(&drng_algorithm, seed, sizeof seed);
}

static void enter(void)
{
    memory.inside = 1;
    memory.calls = xof.calls = drng.calls = 0;
}

static int leave(int rc)
{
    memory.inside = 0;
    if (live != 0)
        die("leak: %u blocks, return code %d", live, rc);
    if (dirty != 0)
        die("%u blocks were freed without being erased, return code %d", dirty, rc);
    return rc;
}

static int keygen(keys *k)
{
    k->pk_len = DOVE_PK_BYTES;
    k->sk_len = DOVE_SK_BYTES;
    enter();
    return leave(sig_keygen(k->pk, &k->pk_len, k->sk, &k->sk_len));
}

static int sign(keys *k)
{
    k->sn_len = DOVE_SIG_BYTES;
    enter();
    return leave(sig_sign(k->sk, DOVE_SK_BYTES, k->m, M_LEN, k->sn, &k->sn_len));
}

static int verify(keys *k)
{
    enter();
    return leave(sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, k->m, M_LEN));
}

/* Buffers, with a message that counts up. */
static void open_keys(keys *k)
{
    int i;

    k->pk = take(DOVE_PK_BYTES);
    k->sk = take(DOVE_SK_BYTES);
    k->sn = take(DOVE_SIG_BYTES);
    k->m = take(M_LEN);
    for (i = 0; i < M_LEN; i++)
        k->m[i] = (unsigned char)i;
    seed_drng(1);
}

static void close_keys(keys *k)
{
    free(k->pk);
    free(k->sk);
    free(k->sn);
    free(k->m);
}

static void must(const char *what, int rc)
{
    if (rc != 0)
        die("%s returned %d", what, rc);
}

/* A key pair and a signature that verifies. */
static void make_all(keys *k)
{
    open_keys(k);
    must("sig_keygen", keygen(k));
    must("sig_sign", sign(k));
    must("sig_verify", verify(k));
    if (k->pk_len != DOVE_PK_BYTES || k->sk_len != DOVE_SK_BYTES || k->sn_len != DOVE_SIG_BYTES)
        die("an actual length differs from the claimed one");
}

static int all_are(const unsigned char *p, size_t n, unsigned char value)
{
    while (n > 0 && p[n - 1] == value)
        n--;
    return n == 0;
}

/* ---- commands ---- */

static void sizes(void)
{
    printf("%s %llu %llu %llu\n", ALGORITHM_INSTANCE, sig_get_pk_len_bytes(),
           sig_get_sk_len_bytes(), sig_get_sn_len_bytes());
}

static void counts(void)
{
    const unsigned long long before = dove_rejected_draws;
    keys k;

    open_keys(&k);
    must("sig_keygen", keygen(&k));
    printf("keygen xof=%llu drng=%llu\n", xof.calls, drng.calls);
    must("sig_sign", sign(&k));
    if (dove_rejected_draws != before)
        die("this message needs more than one draw: choose another");
    printf("sign xof=%llu drng=%llu\n", xof.calls, drng.calls);
    must("sig_verify", verify(&k));
    printf("verify xof=%llu drng=%llu\n", xof.calls, drng.calls);
    close_keys(&k);
}

static void rejected(void)
{
    unsigned i = 0;
    keys k;

    make_all(&k);
    dove_rejected_draws = 0;
    while (dove_rejected_draws == 0 && i < 65536) {
        k.m[0] = (unsigned char)(i & 0xff);
        k.m[1] = (unsigned char)(i >> 8);
        i++;
        must("sig_sign", sign(&k));
    }
    printf("rejected=%llu xof=%llu", dove_rejected_draws, xof.calls);
    printf(" verify=%d\n", verify(&k));
    fprintf(stderr, "message %u was the first to be rejected\n", i - 1);
    close_keys(&k);
}

/* Changes one bit in each of `tries` bytes, spread evenly over n, one at a time,
 * and counts which result came out. */
static void flip_each(keys *k, const char *what, unsigned char *bytes, size_t n, size_t tries)
{
    unsigned invalid = 0, valid = 0;
    size_t i;

    for (i = 0; i < tries; i++) {
        unsigned char *const byte = bytes + i * n / tries;
        const unsigned char bit = (unsigned char)(1u << (i + i / 8) % 8);
        int rc;

        *byte ^= bit;
        rc = verify(k);
        *byte ^= bit;
        invalid += rc == -1;
        valid += rc == 0;
    }
    printf("%s tried=%d invalid=%u valid=%u\n", what, (int)tries, invalid, valid);
}

static void flips(void)
{
    const size_t body = DOVE_V + DOVE_O;
    keys k;

    make_all(&k);
    flip_each(&k, "message", k.m, M_LEN, M_LEN);
    flip_each(&k, "signature", k.sn, body, body);
    flip_each(&k, "salt", k.sn + body, DOVE_SALT, DOVE_SALT);
    flip_each(&k, "seed_pk", k.pk, DOVE_SEED_PK, DOVE_SEED_PK);
    flip_each(&k, "key", k.pk, DOVE_PK_BYTES, 64);
    must("sig_verify", verify(&k));
    close_keys(&k);
}

static void unaligned(void)
{
    keys k, u;
    size_t at;

    make_all(&k);
    for (at = 1; at < 8; at++) {
        open_keys(&u);
        u.pk = realloc(u.pk, DOVE_PK_BYTES + at);
        u.sk = realloc(u.sk, DOVE_SK_BYTES + at);
        u.sn = realloc(u.sn, DOVE_SIG_BYTES + at);
        u.m = realloc(u.m, M_LEN + at);
        if (u.pk == NULL || u.sk == NULL || u.sn == NULL || u.m == NULL)
            die("out of memory");
        u.pk += at;
        u.sk += at;
        u.sn += at;
        u.m += at;
        memcpy(u.m, k.m, M_LEN);
        must("sig_keygen", keygen(&u));
        must("sig_sign", sign(&u));
        must("sig_verify", verify(&u));
        printf("offset %d pk=%d sk=%d sn=%d\n", (int)at, !memcmp(u.pk, k.pk, DOVE_PK_BYTES),
               !memcmp(u.sk, k.sk, DOVE_SK_BYTES), !memcmp(u.sn, k.sn, DOVE_SIG_BYTES));
        u.pk -= at;
        u.sk -= at;
        u.sn -= at;
        u.m -= at;
        close_keys(&u);
    }
    close_keys(&k);
}

/* Output buffers must still be as they were, and the lengths be 0. */
static void untouched(const char *what, int rc, const unsigned char *p, size_t n,
                      unsigned long long len)
{
    printf("%s rc=%d untouched=%d len=%llu\n", what, rc, all_are(p, n, CANARY), len);
}

static void keygen_lengths(keys *k)
{
    static const int delta[] = {-1, 1};
    size_t i;

    memset(k->pk, CANARY, DOVE_PK_BYTES);
    memset(k->sk, CANARY, DOVE_SK_BYTES);
    for (i = 0; i < 2; i++) {
        unsigned long long pk_len = DOVE_PK_BYTES + (unsigned long long)delta[i];
        unsigned long long sk_len = DOVE_SK_BYTES;
        int rc = sig_keygen(k->pk, &pk_len, k->sk, &sk_len);

        untouched("keygen pk_len", rc, k->pk, DOVE_PK_BYTES, pk_len);
        untouched("keygen pk_len", rc, k->sk, DOVE_SK_BYTES, sk_len);
        pk_len = DOVE_PK_BYTES;
        sk_len = DOVE_SK_BYTES + (unsigned long long)delta[i];
        rc = sig_keygen(k->pk, &pk_len, k->sk, &sk_len);
        untouched("keygen sk_len", rc, k->pk, DOVE_PK_BYTES, pk_len);
        untouched("keygen sk_len", rc, k->sk, DOVE_SK_BYTES, sk_len);
    }
}

static void sign_lengths(keys *k)
{
    static const int delta[] = {-1, 1};
    unsigned long long sn_len;
    size_t i;
    int rc;

    memset(k->sn, CANARY, DOVE_SIG_BYTES);
    for (i = 0; i < 2; i++) {
        const unsigned long long d = (unsigned long long)delta[i];

        sn_len = DOVE_SIG_BYTES;
        rc = sig_sign(k->sk, DOVE_SK_BYTES + d, k->m, M_LEN, k->sn, &sn_len);
        untouched("sign sk_len", rc, k->sn, DOVE_SIG_BYTES, sn_len);
        sn_len = DOVE_SIG_BYTES + d;
        rc = sig_sign(k->sk, DOVE_SK_BYTES, k->m, M_LEN, k->sn, &sn_len);
        untouched("sign sn_len", rc, k->sn, DOVE_SIG_BYTES, sn_len);
    }
    sn_len = DOVE_SIG_BYTES;
    rc = sig_sign(k->sk, DOVE_SK_BYTES, NULL, 1, k->sn, &sn_len);
    untouched("sign m=NULL", rc, k->sn, DOVE_SIG_BYTES, sn_len);
    sn_len = DOVE_SIG_BYTES;
    rc = sig_sign(k->sk, DOVE_SK_BYTES, k->m, ULLONG_MAX / 8 + 1, k->sn, &sn_len);
    printf("sign m_len=2^61 rc=%d zero=%d len=%llu\n", rc, all_are(k->sn, DOVE_SIG_BYTES, 0),
           sn_len);
}

static void verify_lengths(keys *k)
{
    printf("verify rc=%d %d %d %d %d %d\n",
           sig_verify(k->pk, DOVE_PK_BYTES - 1, k->sn, DOVE_SIG_BYTES, k->m, M_LEN),
           sig_verify(k->pk, DOVE_PK_BYTES + 1, k->sn, DOVE_SIG_BYTES, k->m, M_LEN),
           sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES - 1, k->m, M_LEN),
           sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES + 1, k->m, M_LEN),
           sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, NULL, 1),
           sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, k->m, ULLONG_MAX / 8 + 1));
}

static void null_pointers(keys *k)
{
    unsigned long long pk_len = DOVE_PK_BYTES, sk_len = DOVE_SK_BYTES, sn_len = DOVE_SIG_BYTES;

    printf("null keygen rc=%d", sig_keygen(NULL, &pk_len, k->sk, &sk_len));
    pk_len = DOVE_PK_BYTES;
    sk_len = DOVE_SK_BYTES;
    printf(" %d", sig_keygen(k->pk, NULL, k->sk, &sk_len));
    sk_len = DOVE_SK_BYTES;
    printf(" %d", sig_keygen(k->pk, &pk_len, NULL, &sk_len));
    pk_len = DOVE_PK_BYTES;
    printf(" %d\n", sig_keygen(k->pk, &pk_len, k->sk, NULL));
    printf("null sign rc=%d", sig_sign(NULL, DOVE_SK_BYTES, k->m, M_LEN, k->sn, &sn_len));
    sn_len = DOVE_SIG_BYTES;
    printf(" %d", sig_sign(k->sk, DOVE_SK_BYTES, k->m, M_LEN, NULL, &sn_len));
    printf(" %d\n", sig_sign(k->sk, DOVE_SK_BYTES, k->m, M_LEN, k->sn, NULL));
    printf("null verify rc=%d %d\n",
           sig_verify(NULL, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, k->m, M_LEN),
           sig_verify(k->pk, DOVE_PK_BYTES, NULL, DOVE_SIG_BYTES, k->m, M_LEN));
}

static void empty_message(keys *k)
{
    unsigned long long sn_len = DOVE_SIG_BYTES;
    const int signed_as = sig_sign(k->sk, DOVE_SK_BYTES, NULL, 0, k->sn, &sn_len);

    printf("empty message sign=%d verify=%d", signed_as,
           sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, NULL, 0));
    printf(" other=%d\n", sig_verify(k->pk, DOVE_PK_BYTES, k->sn, DOVE_SIG_BYTES, k->m, 1));
}

static void lengths(void)
{
    keys k;

    make_all(&k);
    verify_lengths(&k);
    sign_lengths(&k);
    empty_message(&k);
    null_pointers(&k);
    keygen_lengths(&k);
    close_keys(&k);
}

/* Prints how an operation failed: outputs must be zero, also their lengths. */
static int zeroed(const keys *k, int op)
{
    if (op == 0)
        return all_are(k->pk, DOVE_PK_BYTES, 0) && all_are(k->sk, DOVE_SK_BYTES, 0) &&
               k->pk_len == 0 && k->sk_len == 0;
    return op != 1 || (all_are(k->sn, DOVE_SIG_BYTES, 0) && k->sn_len == 0);
}

/* Lets call 0, 1, 2, ... of one kind fail, until the operation needs no more. */
static void fail_in_turn(const char *what, unsigned long long *fail)
{
    static const char *const names[] = {"keygen", "sign", "verify"};
    static int (*const operations[])(keys *) = {keygen, sign, verify};
    int op;

    for (op = 0; op < 3; op++) {
        unsigned long long n;
        int rc = -1, wrong = 0, code = 0;
        keys k;

        make_all(&k);
        for (n = 0; rc != 0; n++) {
            if (op == 0) {
                memset(k.pk, CANARY, DOVE_PK_BYTES);
                memset(k.sk, CANARY, DOVE_SK_BYTES);
            } else if (op == 1) {
                memset(k.sn, CANARY, DOVE_SIG_BYTES);
            }
            *fail = n;
            rc = operations[op](&k);
            *fail = NEVER;
            if (rc != 0) {
                wrong += !zeroed(&k, op) || (n > 0 && rc != code);
                code = rc;
            }
        }
        printf("%s %s failures=%llu rc=%d wrong=%d\n", names[op], what, n - 1, code, wrong);
        close_keys(&k);
    }
}

static void singular(void)
{
    keys k;
    int rc;

    make_all(&k);
    memset(k.sn, CANARY, DOVE_SIG_BYTES);
    dove_rejected_draws = 0;
    zero_vinegar = 1;
    rc = sign(&k);
    zero_vinegar = 0;
    printf("rc=%d zero=%d rejected=%llu\n", rc, zeroed(&k, 1), dove_rejected_draws);
    must("sig_sign", sign(&k));
    must("sig_verify", verify(&k));
    close_keys(&k);
}

int main(int argc, char **argv)
{
    const char *const command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "sizes") == 0)
        sizes();
    else if (strcmp(command, "counts") == 0)
        counts();
    else if (strcmp(command, "rejected") == 0)
        rejected();
    else if (strcmp(command, "flips") == 0)
        flips();
    else if (strcmp(command, "unaligned") == 0)
        unaligned();
    else if (strcmp(command, "lengths") == 0)
        lengths();
    else if (strcmp(command, "memory") == 0)
        fail_in_turn("memory", &memory.fail);
    else if (strcmp(command, "xof") == 0)
        fail_in_turn("xof", &xof.fail);
    else if (strcmp(command, "random") == 0)
        fail_in_turn("random", &drng.fail);
    else if (strcmp(command, "singular") == 0)
        singular();
    else
        return 2;
    return 0;
}
