#include "port/nodes/binding.h"

#include <ferry/error.h>

#include "base/error.h"

int fy_nodes_failed(const fy_nodes_binding *binding, const char *call, int error)
{
    char text[256];
    binding->describe(error, text, sizeof(text));
    return fy_error_set(FERRY_ELAUNCH, "open: %s: %s", call, text);
}
