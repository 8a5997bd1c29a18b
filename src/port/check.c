#include "base/error.h"
#include "port/port.h"

int fy_port_check(const fy_port *port)
{
    const fy_port_ops *ops = port->ops;
    const struct {
        const char *name;
        uint32_t version, expected;
    } tables[] = {
        {"all", ops->version, FY_PORT_VERSION},
        {"transport", ops->transport.version, FY_TRANSPORT_VERSION},
        {"host", ops->host.version, FY_HOST_VERSION},
        {"heap", ops->heap.version, FY_HEAP_VERSION},
        {"members", ops->members.version, FY_MEMBERS_VERSION},
        {"diagnosis", ops->diagnosis.version, FY_DIAGNOSIS_VERSION},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (tables[i].version != tables[i].expected)
            return fy_error_set(FERRY_ELAUNCH,
                                "port %s: table \"%s\" has version %u; expected %u: build the port "
                                "with this Ferry",
                                ops->name, tables[i].name, (unsigned)tables[i].version,
                                (unsigned)tables[i].expected);
    return 0;
}
