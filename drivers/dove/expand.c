/*
 * XOF and the expansions of seeds and messages; see expand.h.
 */
#include "expand.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "auxfunc.h"
#include "ct.h"
#include "debug.h"

int dove_xof(unsigned char *out, size_t out_len, const unsigned char *in, size_t in_len)
{
    if (pseudoXOF(8ULL * out_len, in, 8ULL * in_len, out) == 0)
        return 0;
    dove_wipe(out, out_len);
    return DOVE_ERR_XOF;
}

/* out = XOF(seed_pk, index, out_len); index is public and below 2^16. */
static int expand_public(unsigned char *out, size_t out_len, const unsigned char *seed_pk,
                         unsigned index)
{
    unsigned char in[DOVE_SEED_PK + 2];

    DOVE_ASSERT(index < 0x10000);
    memcpy(in, seed_pk, DOVE_SEED_PK);
    in[DOVE_SEED_PK] = (unsigned char)(index & 0xff);
    in[DOVE_SEED_PK + 1] = (unsigned char)(index >> 8);
    return dove_xof(out, out_len, in, sizeof in);
}

int dove_expand_a(unsigned char *out, const unsigned char seed_pk[DOVE_SEED_PK], unsigned k)
{
    DOVE_ASSERT(k < DOVE_L);
    return expand_public(out, DOVE_A_BYTES, seed_pk, k);
}

int dove_expand_p2(unsigned char *out, const unsigned char seed_pk[DOVE_SEED_PK], unsigned i)
{
    DOVE_ASSERT(i < DOVE_O);
    return expand_public(out, DOVE_P2_BYTES, seed_pk, DOVE_L + i);
}

int dove_expand_secret(unsigned char *out, const unsigned char seed_sk[DOVE_SEED_SK])
{
    return dove_xof(out, DOVE_SECRET_BYTES, seed_sk, DOVE_SEED_SK);
}

int dove_hash_message(unsigned char t[DOVE_O], const unsigned char *m, unsigned long long m_len,
                      const unsigned char seed_pk[DOVE_SEED_PK])
{
    unsigned char *in;
    size_t in_len;
    int rc;

    memset(t, 0, DOVE_O);
    if (m_len > ULLONG_MAX / 8 - DOVE_SEED_PK || m_len > SIZE_MAX - DOVE_SEED_PK)
        return DOVE_ERR_ARGUMENT;
    in_len = (size_t)m_len + DOVE_SEED_PK; /* fits, as just checked */
    in = dove_alloc(in_len);
    if (in == NULL)
        return DOVE_ERR_MEMORY;
    if (m_len > 0)
        memcpy(in, m, (size_t)m_len);
    memcpy(in + m_len, seed_pk, DOVE_SEED_PK);
    rc = dove_xof(t, DOVE_O, in, in_len);
    dove_free(in, in_len);
    return rc;
}
