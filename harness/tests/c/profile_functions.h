#ifndef PROFILE_FUNCTIONS_H
#define PROFILE_FUNCTIONS_H

#include <stddef.h>

int mix(unsigned char *out, const unsigned char *in, size_t n);
unsigned long long half(unsigned long long bits);

/* Calls mix twice: inner calls, which must not be counted. */
void twice(unsigned char *out, const unsigned char *in, size_t n);

/* The same work per unit: calls of spin are wrapped, those of rest are not. */
void spin(unsigned units);
void rest(unsigned units);

#endif
