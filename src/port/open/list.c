/* The only place with the names of ports. A process is a rank of the port that FERRY_PORT names,
 * where nothing but the name chooses that port. Else the first that detects its own rank has it,
 * else the one that is named, else the first of the list. So a program never runs as N jobs of one
 * rank. */
#include "port/open/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "launch/launch.h"
#include "port/plugin.h"
#include "port/sim/sim.h"

/* Those in the library, and those that programs linked to the static library have in them. */
static const struct {
    const char *name;
    const fy_port_entry *entry; /* NULL: find gives it */
    int (*find)(const fy_port_entry **out);
} ports[] = {
    {"shm", &fy_port_entry_shm, NULL},
    {"mpi", &fy_port_entry_mpi, NULL},
    {"sim", NULL, fy_sim_find},
};

enum { PORTS = sizeof(ports) / sizeof(ports[0]) };

bool fy_port_is_named(const char *name)
{
    const char *port = fy_env_get("FERRY_PORT");
    return port != NULL && strcmp(port, name) == 0;
}

static fy_compute read_compute(void)
{
    const char *text = fy_env_get("FERRY_COMPUTE");
    if (text == NULL || strcmp(text, "none") == 0)
        return FY_COMPUTE_NONE;
    return strcmp(text, "sleep") == 0 ? FY_COMPUTE_SLEEP : FY_COMPUTE_SPIN;
}

static int find_named(const char *name, const fy_port_entry **out)
{
    char plugin[64], reason[400];
    const void *table;
    for (int i = 0; i < PORTS; i++)
        if (strcmp(name, ports[i].name) == 0) {
            *out = ports[i].entry;
            return *out != NULL ? 0 : ports[i].find(out);
        }
    snprintf(plugin, sizeof(plugin), "port-%s", name);
    if (fy_plugin_open(plugin, FY_PORT_SYMBOL, FY_PORT_VERSION, false, &table) == 0) {
        *out = table;
        return (*out)->run != NULL || (*out)->open != NULL
                   ? 0
                   : fy_error_set(FERRY_ELAUNCH, "port %s has neither run nor open", name);
    }
    snprintf(reason, sizeof(reason), "%s", fy_error_text());
    return fy_error_set(
        FERRY_ELAUNCH,
        "FERRY_PORT is \"%s\"; expected shm, mpi or sim, or the name of a port in a "
        "plug-in, such as loopback: %s",
        name, reason);
}

static const fy_port_entry *detect(const fy_port_settings *settings)
{
    for (int i = 0; i < PORTS; i++)
        if (ports[i].entry != NULL && ports[i].entry->detect(settings))
            return ports[i].entry;
    return NULL;
}

/* Another launcher may have started this process as one of several ranks. Port `chosen` cannot
 * reach the others if it starts its own ranks, or if the environment names port shm all the same.
 */
static int check_launcher(const fy_port_settings *settings, const fy_port_entry *chosen)
{
    const char *variable;
    uint64_t ranks = fy_env_foreign_ranks(&variable);
    bool reaches = chosen == &fy_port_entry_mpi ? !fy_port_is_named("shm") : chosen->open != NULL;
    return ranks <= 1 || reaches || settings->communicator != NULL
               ? 0
               : fy_error_set(FERRY_ELAUNCH,
                              "the environment (%s) says that this is one of %" PRIu64
                              " ranks, but FERRY_PORT=%s cannot reach the others; start one "
                              "process, with FERRY_RANKS=%" PRIu64,
                              variable, ranks, fy_env_get("FERRY_PORT"), ranks);
}

int fy_port_find(fy_port_settings *settings, const fy_port_entry **out)
{
    const char *name = fy_env_get("FERRY_PORT");
    const fy_port_entry *named = ports[0].entry;
    uint64_t ranks = 1;
    fy_streams_reserve();
    int error = name == NULL ? 0 : find_named(name, &named);
    if (error == 0 && named->ranks_max > 0)
        error = fy_env_number_within(FY_ENV_RANKS, 1, named->ranks_max, &ranks);
    if (error != 0)
        return error;
    settings->ranks = (int)ranks;
    settings->compute = read_compute();
    const fy_port_entry *found = named->detect == NULL ? NULL : detect(settings);
    *out = found != NULL ? found : named;
    return check_launcher(settings, *out);
}
