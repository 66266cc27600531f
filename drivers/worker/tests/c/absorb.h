/* See absorb.c. */
#ifndef TOY_ABSORB_H
#define TOY_ABSORB_H

#include <stddef.h>
#include <stdint.h>

/* Appends to a hash in progress (iccs_sm3_ctx). */
void shake256_inc_absorb(void *state, const uint8_t *input, size_t length);

#endif
