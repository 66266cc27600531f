/*
 * DOVE_ASSERT(condition): checks a bound that a comment promises, in builds with
 * -DDOVE_DEBUG (the sanitizer tests). Elsewhere it generates no code, and the
 * condition is compiled but never evaluated. Conditions speak of public values.
 */
#ifndef DOVE_DEBUG_H
#define DOVE_DEBUG_H

#ifdef DOVE_DEBUG
#include <assert.h>
#define DOVE_ASSERT(condition) assert(condition)
#else
#define DOVE_ASSERT(condition) ((void)sizeof(!(condition)))
#endif

#endif
