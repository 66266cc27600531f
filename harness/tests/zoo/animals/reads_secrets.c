/* Reads files that are none of its business: those of the system, the journal of the run. */
#include "zoo.h"

static int attempt(void)
{
    int code = refused("passwd", open("/etc/passwd", O_RDONLY) >= 0);

    code |= refused("journal", open("journal.jsonl", O_RDONLY) >= 0);
    return code;
}

#define ONCE attempt()
#include "scheme.h"
