/* Fails for 8% of the messages (one in twelve). */
#define BEFORE_SIGN                    \
    if (m_len > 0 && m[0] % 12 == 0) { \
        return -6;                     \
    }
#include "scheme.h"
