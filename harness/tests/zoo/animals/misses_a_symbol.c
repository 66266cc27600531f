/* Has no sig_sign. */
#define sig_sign not_sig_sign
#include "scheme.h"
