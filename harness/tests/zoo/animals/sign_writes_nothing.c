/* Returns success at once: neither signature nor length. */
#define BEFORE_SIGN            \
    if (signatures != 0) {     \
        return 0;              \
    }
#include "scheme.h"
