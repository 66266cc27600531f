/* Sets the locale, while files for it can still be read. */
#include "zoo.h"

#include <locale.h>

#define AT_LOAD                                   \
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {   \
        abort();                                  \
    }
#include "scheme.h"
