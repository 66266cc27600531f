/*
 * SM3, GB/T 32905-2016. Bytes are assembled by shifts, so the code does not
 * depend on the machine's byte order; nothing branches on message bits or uses
 * them as an index, so secret input is hashed in constant time.
 */
#include "sm3.h"

#include <string.h>

/* x <<< n for 0 <= n < 32; the masks keep both shifts below the width at n = 0. */
#define ROTL(x, n) (((x) << ((n) & 31)) | ((x) >> ((32 - (n)) & 31)))

/* Section 4.4: the permutations of the compression and of the expansion. */
#define P0(x) ((x) ^ ROTL(x, 9) ^ ROTL(x, 17))
#define P1(x) ((x) ^ ROTL(x, 15) ^ ROTL(x, 23))

/* Section 4.3: the Boolean functions, rounds 0..15 and 16..63. The second pair
 * is written with fewer operations: maj(x,y,z) and x ? y : z, bit by bit. */
#define FF0(x, y, z) ((x) ^ (y) ^ (z))
#define FF1(x, y, z) (((x) & (y)) | (((x) | (y)) & (z)))
#define GG0(x, y, z) ((x) ^ (y) ^ (z))
#define GG1(x, y, z) ((((y) ^ (z)) & (x)) ^ (z))

/* Section 4.2: the round constants, rounds 0..15 and 16..63. */
#define T0 UINT32_C(0x79cc4519)
#define T1 UINT32_C(0x7a879d8a)

/*
 * One round of section 5.3.3. The eight words are renamed from round to round
 * instead of moved: B and F are rotated in place, D becomes TT1, H becomes
 * P0(TT2), and the caller shifts the argument list. W'(j) is W(j) ^ W(j+4).
 */
#define ROUND(a, b, c, d, e, f, g, h, j, T, FF, GG)                                                \
    do {                                                                                           \
        const uint32_t a12 = ROTL(a, 12);                                                          \
        const uint32_t ss1 = ROTL(a12 + (e) + ROTL(T, (j) % 32), 7);                               \
        const uint32_t tt2 = GG(e, f, g) + (h) + ss1 + w[j];                                       \
        (d) += FF(a, b, c) + (ss1 ^ a12) + (w[j] ^ w[(j) + 4]);                                    \
        (b) = ROTL(b, 9);                                                                          \
        (f) = ROTL(f, 19);                                                                         \
        (h) = P0(tt2);                                                                             \
    } while (0)

#define ROUNDS4(j, T, FF, GG)                                                                      \
    do {                                                                                           \
        ROUND(a, b, c, d, e, f, g, h, (j), T, FF, GG);                                             \
        ROUND(d, a, b, c, h, e, f, g, (j) + 1, T, FF, GG);                                         \
        ROUND(c, d, a, b, g, h, e, f, (j) + 2, T, FF, GG);                                         \
        ROUND(b, c, d, a, f, g, h, e, (j) + 3, T, FF, GG);                                         \
    } while (0)

#define ROUNDS16(j, T, FF, GG)                                                                     \
    do {                                                                                           \
        ROUNDS4((j), T, FF, GG);                                                                   \
        ROUNDS4((j) + 4, T, FF, GG);                                                               \
        ROUNDS4((j) + 8, T, FF, GG);                                                               \
        ROUNDS4((j) + 12, T, FF, GG);                                                              \
    } while (0)

static uint32_t load_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static void store_be32(unsigned char *p, uint32_t x)
{
    p[0] = (unsigned char)(x >> 24); /* the casts keep the low byte, as meant */
    p[1] = (unsigned char)(x >> 16);
    p[2] = (unsigned char)(x >> 8);
    p[3] = (unsigned char)x;
}

/* Section 5.3.2: 68 words from one block; W' is formed in the rounds. */
static void expand(uint32_t w[68], const unsigned char *block)
{
    int j;

    for (j = 0; j < 16; j++)
        w[j] = load_be32(block + 4 * j);
    for (j = 16; j < 68; j++) {
        const uint32_t x = w[j - 16] ^ w[j - 9] ^ ROTL(w[j - 3], 15);
        w[j] = P1(x) ^ ROTL(w[j - 13], 7) ^ w[j - 6];
    }
}

/* Section 5.3.3: V(i+1) = CF(V(i), B(i)) for the 64 bytes at block. */
static void compress(iccs_sm3_ctx *ctx, const unsigned char *block)
{
    uint32_t *const s = ctx->state;
    const uint32_t *const w = ctx->schedule;
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3];
    uint32_t e = s[4], f = s[5], g = s[6], h = s[7];

    expand(ctx->schedule, block);
    ROUNDS16(0, T0, FF0, GG0);
    ROUNDS16(16, T1, FF1, GG1);
    ROUNDS16(32, T1, FF1, GG1);
    ROUNDS16(48, T1, FF1, GG1);
    s[0] ^= a;
    s[1] ^= b;
    s[2] ^= c;
    s[3] ^= d;
    s[4] ^= e;
    s[5] ^= f;
    s[6] ^= g;
    s[7] ^= h;
}

void iccs_sm3_init(iccs_sm3_ctx *c)
{
    /* Section 4.1: the initial value. */
    static const uint32_t iv[8] = {
        UINT32_C(0x7380166f), UINT32_C(0x4914b2b9), UINT32_C(0x172442d7), UINT32_C(0xda8a0600),
        UINT32_C(0xa96f30bc), UINT32_C(0x163138aa), UINT32_C(0xe38dee4d), UINT32_C(0xb0fb0e4e),
    };

    memcpy(c->state, iv, sizeof iv);
    c->bits = 0;
}

void iccs_sm3_fork(iccs_sm3_ctx *to, const iccs_sm3_ctx *from)
{
    memcpy(to->state, from->state, sizeof to->state);
    /* A block that lacks only bits of its last byte still counts as 64 bytes. */
    memcpy(to->block, from->block, (size_t)((from->bits % (8 * ICCS_SM3_BLOCK_BYTES) + 7) / 8));
    to->bits = from->bits;
}

/* Appends the top n bits of a byte (1 <= n <= 8) at any bit position. */
static void append_bits(iccs_sm3_ctx *c, unsigned byte, unsigned n)
{
    const unsigned at = (unsigned)(c->bits / 8 % ICCS_SM3_BLOCK_BYTES);
    const unsigned used = (unsigned)(c->bits % 8);

    byte &= 0xff00u >> n & 0xffu;
    if (used == 0)
        c->block[at] = (unsigned char)byte; /* below 256 by the mask */
    else
        c->block[at] = (unsigned char)(c->block[at] | byte >> used);
    c->bits += n;
    if (used + n < 8)
        return;
    if (at == ICCS_SM3_BLOCK_BYTES - 1)
        compress(c, c->block);
    if (used + n > 8) /* the rest of the byte; the cast drops what went before */
        c->block[(at + 1) % ICCS_SM3_BLOCK_BYTES] = (unsigned char)(byte << (8 - used));
}

/* Appends n whole bytes; c->bits is a multiple of 8. */
static void append_bytes(iccs_sm3_ctx *c, const unsigned char *data, unsigned long long n)
{
    while (n > 0) {
        const unsigned at = (unsigned)(c->bits / 8 % ICCS_SM3_BLOCK_BYTES);
        const unsigned room = ICCS_SM3_BLOCK_BYTES - at;
        const unsigned take = n < room ? (unsigned)n : room;

        if (take == ICCS_SM3_BLOCK_BYTES) {
            compress(c, data);
        } else {
            memcpy(c->block + at, data, take);
            if (take == room)
                compress(c, c->block);
        }
        c->bits += 8 * (uint64_t)take;
        data += take;
        n -= take;
    }
}

void iccs_sm3_update(iccs_sm3_ctx *c, const unsigned char *data, unsigned long long bits)
{
    const unsigned long long bytes = bits / 8;
    const unsigned rest = (unsigned)(bits % 8);
    unsigned long long i;

    if (c->bits % 8 == 0)
        append_bytes(c, data, bytes);
    else
        for (i = 0; i < bytes; i++)
            append_bits(c, data[i], 8);
    if (rest != 0)
        append_bits(c, data[bytes], rest);
}

void iccs_sm3_final(iccs_sm3_ctx *c, unsigned char digest[ICCS_SM3_DIGEST_BYTES])
{
    const uint64_t length = c->bits;
    unsigned at, j;

    /* Section 5.2: a one, zeros up to 448 modulo 512, the length in 64 bits. */
    append_bits(c, 0x80, 1);
    at = (unsigned)((c->bits + 7) / 8 % ICCS_SM3_BLOCK_BYTES);
    /* `at` is 0 when the one filled the block, or when it is still in the last
     * byte; only in the second case does that block wait for compression. */
    if (at == 0 && c->bits % 8 != 0)
        compress(c, c->block);
    if (at > ICCS_SM3_BLOCK_BYTES - 8) {
        memset(c->block + at, 0, ICCS_SM3_BLOCK_BYTES - at);
        compress(c, c->block);
        at = 0;
    }
    memset(c->block + at, 0, ICCS_SM3_BLOCK_BYTES - 8 - at);
    store_be32(c->block + 56, (uint32_t)(length >> 32));
    store_be32(c->block + 60, (uint32_t)(length & UINT32_C(0xffffffff)));
    compress(c, c->block);
    for (j = 0; j < 8; j++)
        store_be32(digest + 4 * j, c->state[j]);
}

void iccs_mask_tail(unsigned char *out, unsigned long long bits)
{
    const unsigned rest = (unsigned)(bits % 8);

    if (rest != 0)
        out[bits / 8] = (unsigned char)(out[bits / 8] & 0xff00u >> rest);
}

void iccs_wipe(void *p, size_t n)
{
    /* A call through a volatile pointer cannot be proved to be a dead store. */
    static void *(*const volatile set)(void *, int, size_t) = memset;

    set(p, 0, n);
}
