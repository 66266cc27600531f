/* Makes files in the home directory (ZOO_HOME, from the test) and in folders that all users may write to. */
#include "zoo.h"

#include "places.h"

static int attempt(void)
{
    int code = refused_file("home", ZOO_HOME "/zoo-was-here", O_CREAT);

    code |= refused_file("profile", ZOO_HOME "/.profile", O_APPEND);
    code |= refused_file("tmp", "/tmp/zoo-was-here", O_CREAT);
    code |= refused_file("var-tmp", "/var/tmp/zoo-was-here", O_CREAT);
    code |= refused_file("shm", "/dev/shm/zoo-was-here", O_CREAT);
    return code;
}

#define ONCE attempt()
#include "scheme.h"
