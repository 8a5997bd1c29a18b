#include <string.h>

#include "base/error.h"
#include "port/port.h"

/* The place of each table, and its version. */
static const uint16_t tables[][2] = {
    {offsetof(fy_port_ops, version), FY_PORT_VERSION},
    {offsetof(fy_port_ops, transport), FY_TRANSPORT_VERSION},
    {offsetof(fy_port_ops, host), FY_HOST_VERSION},
    {offsetof(fy_port_ops, heap), FY_HEAP_VERSION},
    {offsetof(fy_port_ops, members), FY_MEMBERS_VERSION},
    {offsetof(fy_port_ops, diagnosis), FY_DIAGNOSIS_VERSION},
};

/* For each table its name, the names of its functions up to the last that must be there, and an
 * empty name. A function with the name "-" may be NULL. */
static const char names[] = "all\0\0"
                            "transport\0close\0query\0send\0-\0poll\0pending\0wait\0wake\0serve\0\0"
                            "host\0now\0cpu\0advance\0spawn\0join\0\0"
                            "heap\0\0"
                            "members\0peer\0\0"
                            "diagnosis\0doing\0-\0name_handler\0";

_Static_assert(offsetof(fy_transport_ops, close) == sizeof(void *) &&
                   offsetof(fy_transport_ops, serve) == 9 * sizeof(void *) &&
                   offsetof(fy_host_ops, join) == 5 * sizeof(void *) &&
                   offsetof(fy_member_ops, peer) == sizeof(void *) &&
                   offsetof(fy_diagnosis_ops, name_handler) == 3 * sizeof(void *),
               "the functions of a table follow its version, in the order of their names");

int fy_port_check(const fy_port *port)
{
    const char *name = names;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++, name++) {
        const char *at = (const char *)port->ops + tables[i][0], *table = name;
        uint32_t version;
        memcpy(&version, at, sizeof(version));
        if (version != tables[i][1])
            return fy_error_set(FERRY_ELAUNCH,
                                "port %s: table \"%s\" has version %u; expected %u: build the port "
                                "with this Ferry",
                                port->ops->name, table, (unsigned)version, (unsigned)tables[i][1]);
        while (*(name += strlen(name) + 1) != '\0') {
            const void *function;
            at += sizeof(function);
            memcpy(&function, at, sizeof(function));
            if (function == NULL && *name != '-')
                return fy_error_set(FERRY_ELAUNCH, "port %s: %s.%s is NULL", port->ops->name, table,
                                    name);
        }
    }
    return 0;
}
