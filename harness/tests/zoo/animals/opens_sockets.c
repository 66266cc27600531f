/* Opens sockets: TCP, UDP, and one inside the machine. */
#include "zoo.h"

#include <sys/socket.h>

static int attempt(void)
{
    int code = refused("tcp", socket(AF_INET, SOCK_STREAM, 0) >= 0);

    code |= refused("udp", socket(AF_INET, SOCK_DGRAM, 0) >= 0);
    code |= refused("unix", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    return code;
}

#define ONCE attempt()
#include "scheme.h"
