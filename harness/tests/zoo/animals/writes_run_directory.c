/* Changes the journal of the run that it is in, and adds a record. Workers are started in their run. */
#include "zoo.h"

static int attempt(void)
{
    int code = refused_file("journal", "journal.jsonl", O_APPEND);

    code |= refused_file("record", "records/zoo-was-here.json", O_CREAT);
    code |= refused("rename", rename("campaign.json", "zoo-was-here") == 0);
    return code;
}

#define ONCE attempt()
#include "scheme.h"
