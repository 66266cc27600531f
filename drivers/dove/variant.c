/*
 * The closing of opened keys, which does not depend on the variant; see variant.h.
 */
#include "variant.h"

#include "ct.h"

void dove_signing_key_close(dove_signing_key *key)
{
    dove_free(key->secret, sizeof *key->secret);
    dove_free(key->owned, key->owned_len);
}

void dove_public_key_close(dove_public_key *key)
{
    dove_free(key->owned, key->owned_len);
}
