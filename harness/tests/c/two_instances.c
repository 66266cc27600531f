/*
 * Loads two candidate libraries into one process, and checks that each computes
 * the same when the other runs between its calls.
 *
 * usage: two_instances LIBRARY LIBRARY
 *
 * Prints one line a library: its public key length, whether the outputs were the
 * same, and whether its count of rejected draws moved only with its own calls.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* POSIX wants a function pointer to fit where dlsym's result does; C99 has no
 * cast for it, so the bytes are copied. */
#define SYMBOL(into, library, name)                                                                \
    do {                                                                                           \
        void *const found = dlsym((library), (name));                                              \
        if (found == NULL)                                                                         \
            die(dlerror());                                                                        \
        memcpy(&(into), &found, sizeof(into));                                                     \
    } while (0)

typedef unsigned long long u64;

typedef struct {
    u64 (*pk_len)(void), (*sk_len)(void), (*sn_len)(void), (*rejected)(void);
    int (*seed)(const unsigned char *, u64);
    int (*keygen)(unsigned char *, u64 *, unsigned char *, u64 *);
    int (*sign)(unsigned char *, u64, unsigned char *, u64, unsigned char *, u64 *);
    int (*verify)(unsigned char *, u64, unsigned char *, u64, unsigned char *, u64);
} library;

typedef struct {
    unsigned char *pk, *sk, *sn;
    u64 pk_len, sk_len, sn_len;
} outputs;

#define MESSAGES 400 /* one draw in some 256 is rejected */

static unsigned char message[64];

static void die(const char *text)
{
    fprintf(stderr, "two_instances: %s\n", text);
    exit(1);
}

static library open_library(const char *path)
{
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    library l;

    if (handle == NULL)
        die(dlerror());
    SYMBOL(l.pk_len, handle, "sig_get_pk_len_bytes");
    SYMBOL(l.sk_len, handle, "sig_get_sk_len_bytes");
    SYMBOL(l.sn_len, handle, "sig_get_sn_len_bytes");
    SYMBOL(l.rejected, handle, "campaign_rejected");
    SYMBOL(l.seed, handle, "campaign_seed");
    SYMBOL(l.keygen, handle, "sig_keygen");
    SYMBOL(l.sign, handle, "sig_sign");
    SYMBOL(l.verify, handle, "sig_verify");
    if (dlsym(handle, "dove_rejected_draws") != NULL)
        die("the counter of rejected draws is exported");
    return l;
}

static void make_key(const library *l, outputs *o)
{
    static const unsigned char seed[64] = {1};

    o->pk_len = l->pk_len();
    o->sk_len = l->sk_len();
    o->pk = malloc((size_t)o->pk_len);
    o->sk = malloc((size_t)o->sk_len);
    if (o->pk == NULL || o->sk == NULL || l->seed(seed, sizeof seed) != 0 ||
        l->keygen(o->pk, &o->pk_len, o->sk, &o->sk_len) != 0)
        die("key generation failed");
}

static void sign(const library *l, outputs *o)
{
    o->sn_len = l->sn_len();
    o->sn = malloc((size_t)o->sn_len);
    if (o->sn == NULL ||
        l->sign(o->sk, o->sk_len, message, sizeof message, o->sn, &o->sn_len) != 0)
        die("signing failed");
}

static void verify(const library *l, outputs *o)
{
    if (l->verify(o->pk, o->pk_len, o->sn, o->sn_len, message, sizeof message) != 0)
        die("verification failed");
}

static int same(const outputs *a, const outputs *b)
{
    return a->pk_len == b->pk_len && a->sk_len == b->sk_len && a->sn_len == b->sn_len &&
           memcmp(a->pk, b->pk, (size_t)a->pk_len) == 0 &&
           memcmp(a->sk, b->sk, (size_t)a->sk_len) == 0 &&
           memcmp(a->sn, b->sn, (size_t)a->sn_len) == 0;
}

static void release(outputs *o)
{
    free(o->pk);
    free(o->sk);
    free(o->sn);
}

/* Signs until the library counts a rejection; the other must not count it. */
static int counts_alone(const library *l, const library *other, outputs *o)
{
    const u64 before = l->rejected(), elsewhere = other->rejected();
    int i;

    for (i = 0; i < MESSAGES && l->rejected() == before; i++) {
        message[0] = (unsigned char)(i & 0xff);
        message[1] = (unsigned char)(i >> 8);
        free(o->sn);
        sign(l, o);
    }
    memset(message, 0, sizeof message);
    return l->rejected() == before + 1 && other->rejected() == elsewhere;
}

int main(int argc, char **argv)
{
    outputs alone[2], mixed[2];
    library l[2];
    int i;

    if (argc != 3)
        return 2;
    for (i = 0; i < 2; i++)
        l[i] = open_library(argv[1 + i]);
    for (i = 0; i < 2; i++) {
        make_key(&l[i], &alone[i]);
        sign(&l[i], &alone[i]);
        verify(&l[i], &alone[i]);
    }
    for (i = 0; i < 2; i++)
        make_key(&l[i], &mixed[i]);
    for (i = 0; i < 2; i++)
        sign(&l[i], &mixed[i]);
    for (i = 0; i < 2; i++)
        verify(&l[i], &mixed[i]);
    for (i = 0; i < 2; i++) {
        printf("pk_len=%llu same=%d", alone[i].pk_len, same(&alone[i], &mixed[i]));
        printf(" counts_alone=%d\n", counts_alone(&l[i], &l[1 - i], &alone[i]));
    }
    for (i = 0; i < 2; i++) {
        release(&alone[i]);
        release(&mixed[i]);
    }
    return 0;
}
