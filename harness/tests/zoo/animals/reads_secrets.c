/*
 * Reads files that are none of its business: those of the system, the journal of the run. While it is loaded: later
 * no file is opened at all.
 */
#include "zoo.h"

static int attempt(void)
{
    int code = refused("passwd", open("/etc/passwd", O_RDONLY) >= 0);

    code |= refused("journal", open("journal.jsonl", O_RDONLY) >= 0);
    return code;
}

#define AT_LOAD attempt();
#include "scheme.h"
