/*
 * A toy signature scheme for the worker's tests, with one behaviour a build can ask for (-DBEHAVIOUR=NAME). It is
 * no signature at all: whoever has the public key can sign. What matters is that it has the API's shape.
 *
 *   sk = 32 random bytes; pk = SM3(sk) || SM3(pk's first half || "pk"), 64 bytes
 *   sn = SM3(nonce || pk || m) || nonce, 48 bytes; the nonce is 16 random bytes
 *   (the secret key that the API sees is sk || pk, 96 bytes)
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absorb.h"
#include "auxfunc.h"
#include "campaign_abi.h"
#include "sm3.h"

#define CORRECT 0
#define SIGN_FAILS 1            /* for one message in twelve */
#define SIGN_OUTSIDE 2          /* one byte beyond the signature */
#define SIGN_BEFORE 3           /* one byte before it */
#define SIGN_LONGER 4           /* returns a longer length */
#define SIGN_UNTOUCHED 5        /* success without writing */
#define SIGN_HALF 6             /* writes the first half only */
#define SIGN_CHANGES_MESSAGE 7
#define SIGN_CHANGES_KEY 8
#define SIGN_UNSTABLE 9         /* differs from call to call with equal randomness */
#define SIGN_WRONG 10           /* a signature that does not verify */
#define VERIFY_ALL 11           /* accepts everything */
#define VERIFY_NONE 12          /* accepts nothing */
#define VERIFY_STALE 13         /* answers what the stack happened to hold */
#define VERIFY_PREFIX 14        /* looks at the first half of the message only */
#define KEYGEN_SAME 15          /* ignores its randomness */
#define KEYGEN_FAILS 16
#define LENGTH_ZERO 17
#define LENGTH_HUGE 18
#define LENGTH_CHANGES 19
#define KEYGEN_CRASHES 20
#define KEYGEN_EXITS 21
#define KEYGEN_RECURSES 22
#define LOAD_CRASHES 23
#define UNLOAD_CRASHES 24
#define LOAD_RECURSES 25
#define FORGES_EVENTS 26        /* writes a made-up answer to every descriptor */
#define CLOSES_DESCRIPTORS 27
#define MOVES_AWAY 28           /* changes its affinity while it signs */
#define PRINTS 29
#define STACK_4K 30
#define STACK_100K 31
#define STACK_1M 32
#define HEAP_20K 33
#define HEAP_3M 34
#define HEAP_MAP 35             /* a mapping of 1 MiB beside 1000 bytes */
#define HEAP_LEAKS 36           /* 32 bytes an operation */
#define MISSES_SYMBOL 37
#define STACK_20M 38
#define VERIFY_CHANGES_KEY 39
#define ROUNDS 40               /* sets the rounding mode */
#define BLOCKS_SIGNALS 41
#define NICE 42
#define LEAVES_THREAD 43
#define CHANGES_FOLDER 44
#define SIGN_OUTSIDE_LATER 45   /* one byte beyond, in the 20th call */
#define SLOW_SIGN 46            /* 60 ms a call */
#define ABORTS 47
#define LOCALE 48
#define VERIFY_LONGER 50        /* takes a longer signature for its beginning */
#define HANDLES_FAULTS 49       /* takes SIGSEGV for itself */
#define JOINS_THREAD 51         /* one that works and has ended when the call returns */

#ifndef BEHAVIOUR
#define BEHAVIOUR CORRECT
#endif
#define IS(name) (BEHAVIOUR == (name))

/* -DPADDING=N makes the public key N bytes longer; the bytes repeat the key and are not looked at. */
#ifndef PADDING
#define PADDING 0
#endif

#define PK 64
#define SK 96
#define SN 48

unsigned long long sig_get_pk_len_bytes(void);
unsigned long long sig_get_sk_len_bytes(void);
unsigned long long sig_get_sn_len_bytes(void);
int sig_keygen(unsigned char *, unsigned long long *, unsigned char *, unsigned long long *);
int sig_sign(unsigned char *, unsigned long long, unsigned char *, unsigned long long, unsigned char *,
             unsigned long long *);
int sig_verify(unsigned char *, unsigned long long, unsigned char *, unsigned long long, unsigned char *,
               unsigned long long);

unsigned long long toy_rejected; /* named by -DCAMPAIGN_REJECTED */

static volatile unsigned calls;

static int recurse(int depth)
{
    volatile unsigned char frame[512];

    frame[depth % 512] = (unsigned char)depth;
    return depth == -1 ? frame[3] : recurse(depth + 1) + frame[depth % 512];
}

static void crash(void)
{
    volatile int *nowhere = (volatile int *)8;

    *nowhere = 1;
}

__attribute__((constructor)) static void at_load(void)
{
    if (IS(LOAD_CRASHES)) {
        crash();
    }
    if (IS(LOAD_RECURSES)) {
        calls = (unsigned)recurse(0);
    }
}

__attribute__((destructor)) static void at_unload(void)
{
    if (IS(UNLOAD_CRASHES)) {
        crash();
    }
}

unsigned long long sig_get_pk_len_bytes(void)
{
    return IS(LENGTH_ZERO) ? 0 : PK + PADDING;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return IS(LENGTH_HUGE) ? 1ULL << 63 : SK;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return IS(LENGTH_CHANGES) ? SN + calls++ : SN;
}

static void expand(const unsigned char *sk, unsigned char *pk)
{
    unsigned char half[34];

    sm3hash(256, sk, 256, pk);
    memcpy(half, pk, 32);
    memcpy(half + 32, "pk", 2);
    sm3hash(256, half, 272, pk + 32);
}

static void *idle(void *argument)
{
    for (;;) {
        sleep(1);
    }
    return argument;
}

static void *work(void *argument)
{
    static volatile unsigned turns;

    for (turns = 0; turns < 100000; turns++) {
    }
    return argument;
}

static void forge(void)
{
    static const char line[] = "{\"token\":\"\",\"seq\":2,\"event\":\"done\"}\n";

    for (int fd = 3; fd < 70000; fd++) {
        if (write(fd, line, sizeof line - 1) < 0) {
            continue;
        }
    }
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    calls++;
    if (IS(KEYGEN_FAILS)) {
        return -7;
    }
    if (IS(KEYGEN_CRASHES)) {
        crash();
    }
    if (IS(ABORTS)) {
        abort();
    }
    if (IS(KEYGEN_EXITS)) {
        exit(0);
    }
    if (IS(KEYGEN_RECURSES)) {
        return recurse(0) + 1;
    }
    if (IS(FORGES_EVENTS)) {
        forge();
    }
    if (IS(CLOSES_DESCRIPTORS)) {
        for (int fd = 3; fd < 70000; fd++) {
            close(fd);
        }
    }
    if (IS(PRINTS)) {
        printf("key %u", calls); /* no line end: stays in the buffer */
        fputs("keygen speaks\n", stderr);
    }
    if (IS(ROUNDS)) {
        fesetround(FE_UPWARD);
    }
    if (IS(BLOCKS_SIGNALS)) {
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
    }
    if (IS(NICE) && setpriority(PRIO_PROCESS, 0, 5) != 0) {
        return -8;
    }
    if (IS(CHANGES_FOLDER) && chdir("/") != 0) {
        return -9;
    }
    if (IS(LOCALE) && setlocale(LC_ALL, "C.UTF-8") == NULL) {
        return -11;
    }
    if (IS(HANDLES_FAULTS)) {
        signal(SIGSEGV, SIG_IGN);
    }
    if (IS(JOINS_THREAD)) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) {
            return -10;
        }
    }
    if (IS(LEAVES_THREAD)) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, idle, NULL) != 0) {
            return -10;
        }
    }
    if (*pk_len < PK + PADDING || *sk_len < SK) {
        return -2;
    }
    if (campaign_draw(sk, 256) != 0) {
        return -3;
    }
    if (IS(KEYGEN_SAME)) {
        memset(sk, 3, 32);
    }
    expand(sk, pk);
    memcpy(sk + 32, pk, PK);
    for (unsigned long i = 0; i < PADDING; i++) {
        pk[PK + i] = pk[i];
    }
    *pk_len = PK + PADDING;
    *sk_len = SK;
    return 0;
}

static void digest(const unsigned char *pk, const unsigned char *nonce, unsigned char *m, unsigned long long m_len,
                   unsigned char *out)
{
    iccs_sm3_ctx state;

    iccs_sm3_init(&state);
    shake256_inc_absorb(&state, nonce, 16);
    shake256_inc_absorb(&state, pk, PK);
    shake256_inc_absorb(&state, m, (size_t)(IS(VERIFY_PREFIX) ? m_len / 2 : m_len));
    iccs_sm3_final(&state, out);
}

/* Writes all of n bytes of its own stack frame. */
#define USE_STACK(n)                              \
    do {                                          \
        volatile unsigned char block[n];          \
        for (unsigned long i = 0; i < (n); i++) { \
            block[i] = (unsigned char)(i ^ calls);\
        }                                         \
    } while (0)

static __attribute__((noinline)) void use_stack(void)
{
#if IS(STACK_4K)
    USE_STACK(4096UL);
#elif IS(STACK_100K)
    USE_STACK(102400UL);
#elif IS(STACK_1M)
    USE_STACK(1048576UL);
#elif IS(STACK_20M)
    USE_STACK(20971520UL);
#endif
}

static int use_heap(void)
{
    if (IS(HEAP_20K)) {
        void *volatile a = malloc(12000), *volatile b = calloc(8, 1000);

        a = realloc(a, 12480);
        free(b);
        free(a);
        return a == NULL || b == NULL;
    }
    if (IS(HEAP_3M)) {
        void *block = NULL;

        if (posix_memalign(&block, 4096, 3145728) != 0) {
            return 1;
        }
        /* A memset before free is left out by the compiler. */
        for (size_t i = 0; i < 3145728; i += 4096) {
            ((volatile unsigned char *)block)[i] = 1;
        }
        free(block);
    }
    if (IS(HEAP_MAP)) {
        void *volatile small = malloc(1000);
        void *map = mmap(NULL, 1048576, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (map == MAP_FAILED || munmap(map, 1048576) != 0) {
            return 1;
        }
        free(small);
    }
    if (IS(HEAP_LEAKS)) {
        void *volatile lost = malloc(32);

        return lost == NULL;
    }
    return 0;
}

static void outside(unsigned char *place)
{
    *place = (unsigned char)~*place;
}

#if BEHAVIOUR != MISSES_SYMBOL
int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    calls++;
    if (sk_len != SK || *sn_len < SN) {
        return -2;
    }
    if (IS(SIGN_FAILS) && m_len > 0 && m[0] % 12 == 0) {
        return -6;
    }
    if (IS(SIGN_UNTOUCHED)) {
        return 0;
    }
    if (IS(SLOW_SIGN)) {
        usleep(60000);
    }
    if (campaign_draw(sn + 32, 128) != 0) {
        return -3;
    }
    if (sn[32] < 128) {
        toy_rejected++; /* as if half of all draws were made twice */
    }
    digest(sk + 32, sn + 32, m, m_len, sn);
    use_stack();
    if (use_heap() != 0) {
        return -5;
    }
    if (IS(SIGN_UNSTABLE)) {
        sn[40] ^= (unsigned char)calls;
        digest(sk + 32, sn + 32, m, m_len, sn);
    }
    if (IS(SIGN_WRONG)) {
        sn[5] ^= 1;
    }
    if (IS(SIGN_HALF)) {
        for (int i = 24; i < SN; i++) {
            sn[i] = sn[i - 24];
        }
    }
    if (IS(SIGN_OUTSIDE) || (IS(SIGN_OUTSIDE_LATER) && calls == 20)) {
        outside(sn + SN);
    }
    if (IS(SIGN_BEFORE)) {
        outside(sn - 1);
    }
    if (IS(SIGN_CHANGES_MESSAGE)) {
        outside(m);
    }
    if (IS(SIGN_CHANGES_KEY)) {
        outside(sk);
    }
    if (IS(MOVES_AWAY)) {
        cpu_set_t all;

        memset(&all, 0xff, sizeof all);
        sched_setaffinity(0, sizeof all, &all);
    }
    *sn_len = IS(SIGN_LONGER) ? SN + 1 : SN;
    return 0;
}
#endif

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    unsigned char expected[32];

    calls++;
    if (IS(VERIFY_ALL)) {
        return 0;
    }
    if (IS(VERIFY_NONE)) {
        return -1;
    }
    if (IS(VERIFY_CHANGES_KEY)) {
        outside(pk + 3);
    }
    if (IS(VERIFY_STALE)) {
        volatile unsigned char stale[64]; /* read without having been written, on purpose */

        return stale[17] == 0 ? 0 : -1;
    }
    if (pk_len != PK + PADDING || (IS(VERIFY_LONGER) ? sn_len < SN : sn_len != SN)) {
        return -2;
    }
    digest(pk, sn + 32, m, m_len, expected);
    return memcmp(expected, sn, 32) == 0 ? 0 : -1;
}
