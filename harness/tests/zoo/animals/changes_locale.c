/* Sets the locale. */
#include "zoo.h"

#include <locale.h>

#define ONCE (setlocale(LC_ALL, "C.UTF-8") != NULL ? 0 : -5)
#include "scheme.h"
