/*
 * sm3hash, pseudohash and pseudoXOF, the hash helpers of the NGCC programme.
 *
 * Source: the programme's auxfunc.h, restated in drivers/abi/include/auxfunc.h;
 * SM3 is GB/T 32905-2016, HMAC is RFC 2104 with a block of 64 bytes, the
 * counter mode is GB/T 32918.4-2016, 5.4.3. Bit-exact with the programme's own
 * placeholders, for lengths that are no multiple of 8 too.
 */
#include "auxfunc.h"

#include <stdio.h>
#include <string.h>

#include "sm3.h"

#define ERR_DIGEST_BITS (-4) /* fixed by the programme */
#define ERR_LENGTH (-5)

#define DIGEST ICCS_SM3_DIGEST_BYTES
#define DIGEST_BITS (8 * DIGEST)
#define KEY_BYTES ICCS_SM3_BLOCK_BYTES /* K fills the HMAC block exactly */
#define TAG_BITS 16

/* Appends a digest-sized value. */
static void absorb(iccs_sm3_ctx *c, const unsigned char *digest)
{
    iccs_sm3_update(c, digest, DIGEST_BITS);
}

int sm3hash(int digest_bits, const unsigned char *m, unsigned long long m_bits,
            unsigned char *digest)
{
    iccs_sm3_ctx c;

    if (digest_bits != DIGEST_BITS) {
        fprintf(stderr, "sm3hash: digest_bits is %d, must be 256\n", digest_bits);
        return ERR_DIGEST_BITS;
    }
    iccs_sm3_init(&c);
    iccs_sm3_update(&c, m, m_bits);
    iccs_sm3_final(&c, digest);
    iccs_wipe(&c, sizeof c);
    return 0;
}

/* K = SM3("3.14159265358979") || SM3("2.71828182845904"), the fixed HMAC key. */
static void hmac_key(unsigned char key[KEY_BYTES])
{
    static const char pi[] = "3.14159265358979";
    static const char e[] = "2.71828182845904";
    iccs_sm3_ctx c;

    iccs_sm3_init(&c);
    iccs_sm3_update(&c, (const unsigned char *)pi, 8 * (sizeof pi - 1));
    iccs_sm3_final(&c, key);
    iccs_sm3_init(&c);
    iccs_sm3_update(&c, (const unsigned char *)e, 8 * (sizeof e - 1));
    iccs_sm3_final(&c, key + DIGEST);
}

/* Starts SM3 over K with each byte XORed by pad (RFC 2104: ipad or opad). */
static void hmac_pad(iccs_sm3_ctx *c, unsigned char pad)
{
    unsigned char key[KEY_BYTES];
    size_t i;

    hmac_key(key);
    for (i = 0; i < sizeof key; i++)
        key[i] ^= pad;
    iccs_sm3_init(c);
    iccs_sm3_update(c, key, 8 * sizeof key);
}

static void hmac_start(iccs_sm3_ctx *c)
{
    hmac_pad(c, 0x36);
}

static void hmac_end(iccs_sm3_ctx *c, unsigned char out[DIGEST])
{
    iccs_sm3_final(c, out);
    hmac_pad(c, 0x5c);
    absorb(c, out);
    iccs_sm3_final(c, out);
}

/* out = HMAC(x) for a digest-sized x. */
static void hmac_digest(iccs_sm3_ctx *c, const unsigned char x[DIGEST], unsigned char out[DIGEST])
{
    hmac_start(c);
    absorb(c, x);
    hmac_end(c, out);
}

/* out = SM3(x || y) for digest-sized x and y. */
static void hash_pair(iccs_sm3_ctx *c, const unsigned char x[DIGEST], const unsigned char y[DIGEST],
                      unsigned char out[DIGEST])
{
    iccs_sm3_init(c);
    absorb(c, x);
    absorb(c, y);
    iccs_sm3_final(c, out);
}

/* The values of one pseudohash call; k[i], h[i] are k_(i+1), h_(i+1). */
typedef struct {
    iccs_sm3_ctx c;
    unsigned char k[4][DIGEST];
    unsigned char h[4][DIGEST];
} pseudohash_work;

/* k1 = HMAC(t || m), h1 = SM3(m || t): common to the three lengths. */
static void pseudohash_first(pseudohash_work *s, const unsigned char tag[TAG_BITS / 8],
                             const unsigned char *m, unsigned long long m_bits)
{
    hmac_start(&s->c);
    iccs_sm3_update(&s->c, tag, TAG_BITS);
    iccs_sm3_update(&s->c, m, m_bits);
    hmac_end(&s->c, s->k[0]);

    iccs_sm3_init(&s->c);
    iccs_sm3_update(&s->c, m, m_bits);
    iccs_sm3_update(&s->c, tag, TAG_BITS);
    iccs_sm3_final(&s->c, s->h[0]);
}

int pseudohash(int digest_bits, const unsigned char *m, unsigned long long m_bits,
               unsigned char *digest)
{
    unsigned char tag[TAG_BITS / 8];
    pseudohash_work s;

    if (digest_bits != 512 && digest_bits != 768 && digest_bits != 1024) {
        fprintf(stderr, "pseudohash: digest_bits is %d, must be 512, 768 or 1024\n", digest_bits);
        return ERR_DIGEST_BITS;
    }
    tag[0] = (unsigned char)(digest_bits / 256); /* 2, 3 or 4 */
    tag[1] = 0;
    pseudohash_first(&s, tag, m, m_bits);
    hash_pair(&s.c, s.k[0], s.h[0], s.h[1]);
    if (digest_bits >= 768) {
        hmac_digest(&s.c, s.h[0], s.k[1]);
        hash_pair(&s.c, s.h[1], s.k[1], s.h[2]);
    }
    if (digest_bits == 1024) {
        hmac_digest(&s.c, s.h[1], s.k[2]);
        hmac_digest(&s.c, s.h[2], s.k[3]);
        /* h4 = SM3(k3 || h3 || k4), three digests */
        iccs_sm3_init(&s.c);
        absorb(&s.c, s.k[2]);
        absorb(&s.c, s.h[2]);
        absorb(&s.c, s.k[3]);
        iccs_sm3_final(&s.c, s.h[3]);
    }
    memcpy(digest, s.h, (size_t)digest_bits / 8);
    iccs_wipe(&s, sizeof s);
    return 0;
}

int pseudoXOF(unsigned long long out_bits, const unsigned char *m, unsigned long long m_bits,
              unsigned char *out)
{
    const unsigned long long bytes = out_bits / 8 + (out_bits % 8 != 0);
    iccs_sm3_ctx prefix, c;
    unsigned char digest[DIGEST], counter[4];
    unsigned long long done;
    uint32_t ct = 0;

    if (out_bits > DIGEST_BITS * (unsigned long long)UINT32_MAX)
        return ERR_LENGTH;
    iccs_sm3_init(&prefix);
    iccs_sm3_update(&prefix, m, m_bits);
    for (done = 0; done < bytes; done += DIGEST) {
        ct++;
        counter[0] = (unsigned char)(ct >> 24);
        counter[1] = (unsigned char)(ct >> 16);
        counter[2] = (unsigned char)(ct >> 8);
        counter[3] = (unsigned char)ct;
        iccs_sm3_fork(&c, &prefix);
        iccs_sm3_update(&c, counter, 8 * sizeof counter);
        iccs_sm3_final(&c, digest);
        memcpy(out + done, digest, bytes - done < DIGEST ? (size_t)(bytes - done) : DIGEST);
    }
    iccs_mask_tail(out, out_bits);
    iccs_wipe(&prefix, sizeof prefix);
    iccs_wipe(&c, sizeof c);
    iccs_wipe(digest, sizeof digest);
    return 0;
}
