/* Calls a function that nobody has. */
int nobody_has_this(void);
#define BEFORE_VERIFY    \
    if (sn_len == 12345) \
        return nobody_has_this();
#include "scheme.h"
