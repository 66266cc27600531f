/* Writes the first half of the signature only. */
#define AFTER_SIGN memcpy(sn + 24, kept, 24);
#define BEFORE_SIGN                \
    unsigned char kept[24];        \
    memcpy(kept, sn + 24, 24);
#include "scheme.h"
