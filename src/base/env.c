#include "base/env.h"

#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#include "base/error.h"
#include "base/log.h"

extern char **environ;

static const fy_env_variable known[] = {
    {"FERRY_RANKS", "number of ranks that the program starts on this machine, 1 to 1024"},
    {"FERRY_RANKS_MAX", "how many ranks there may be when some join during the run (member.h)"},
    {"FERRY_RANKS_JOIN", "folder to make, by which others may join them"},
    {"FERRY_THREADS", "1: the ranks of FERRY_RANKS are threads of one process"},
    {"FERRY_PORT", "the port to use: shm, mpi, or sim to simulate the ranks in one process"},
    {"FERRY_PLUGIN_PATH", "folders with plug-ins (ferry-*.so), with ':' between"},
    {"FERRY_MPI", "the MPI library of port mpi: openmpi or mpich"},
    {"FERRY_MPI_SHM", "0: the ranks of a node use MPI between them too"},
    {"FERRY_HEAP_BYTES", "shared heap of a rank, reserved not committed"},
    {"FERRY_RING_SLOTS", "requests in flight per peer and lane, a power of two"},
    {"FERRY_RING_BYTES", "payload bytes in flight per peer and lane"},
    {"FERRY_BACKLOG_BYTES", "replies kept for a peer without room before its requests are left"},
    {"FERRY_DIRECTORY", "how ranks learn where objects are: lazy, home or eager"},
    {"FERRY_SCHEDULER", "scheduler that balances objects: a name, or the path of a shared object"},
    {"FERRY_SCHEDULER_", "FERRY_SCHEDULER_<NAME>: a parameter of the scheduler"},
    {"FERRY_HELPER", "0: no helper thread; control messages wait for the task to end"},
    {"FERRY_QUANTUM_US", "how often the helper looks for messages between nodes; 200"},
    {"FERRY_SEED", "seed of the random numbers that schedulers use"},
    {"FERRY_PROFILE", "1, or a file: what each operation cost is written at ferry_close"},
    {"FERRY_TRACE",
     "a folder: at ferry_close each rank writes there what it did, for ferry report"},
    {"FERRY_STALL_S", "seconds without change after which ferry_quiesce prints what ranks do"},
    {"FERRY_COMPUTE", "what ferry_compute does: none, sleep or spin"},
    {"FERRY_SIM_SEED", "seed of a simulated run"},
    {"FERRY_SIM_NET", "network of a simulated run: a preset or a file"},
    {"FERRY_SIM_FAULTS", "faults of a simulated run: a plan, or @FILE"},
    {"FERRY_SIM_SPEEDS", "speeds of simulated ranks: FIRST[-LAST]=FACTOR[@TIME],..."},
    {"FERRY_SIM_QUANTUM_NS", "how often a simulated helper looks; 0: it is woken"},
    {"FERRY_SIM_CPU_PERMILLE", "how much measured processor time counts in virtual time"},
    {"FERRY_SIM_STACK_BYTES", "stack of a simulated rank"},
    {"FERRY_SIM_TIME_LIMIT_NS", "virtual time after which a simulated run is ended"},
    {"FERRY_SIM_MEMORY_BYTES", "memory that a simulated run may have in use beyond its start"},
    {"FERRY_SIM_TAPE", "file to which a simulated run writes the faults that struck"},
    {"FERRY_SIM_REPORT", "1: a simulated run ends with a report and its hash"},
    {"FERRY_JOIN", "folder of a running job that this process joins (ferry run --join)"},
    {"FERRY_JOB_FD", "set by the launcher for its ranks: the job's segment"},
    {"FERRY_JOB_SOCKET", "set by the launcher for its ranks: where they ask for more ranks"},
    {"FERRY_RANK", "set by the launcher for its ranks: the rank's number"},
    {NULL, NULL},
};

const fy_env_variable *fy_env_variables(void)
{
    return known;
}

const char *fy_env_get(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* The power of two that a size suffix stands for; 0 for none, -1 when it is not one. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "KMGT";
    if (*suffix == '\0')
        return 0;
    const char *letter = suffix[1] == '\0' ? strchr(letters, *suffix) : NULL;
    return letter == NULL ? -1 : (int)(letter - letters + 1) * 10;
}

int fy_env_number(const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
    const char *text = fy_env_get(name);
    if (text == NULL)
        return 0;
    uint64_t number = 0;
    const char *at = text;
    bool fits = *at >= '0' && *at <= '9';
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        fits = fits && number <= (UINT64_MAX - digit) / 10;
        number = number * 10 + digit;
    }
    int shift = suffix_shift(at);
    fits = fits && shift >= 0 && number <= UINT64_MAX >> (shift < 0 ? 0 : shift);
    if (fits)
        number <<= shift;
    if (!fits || number < min || number > max)
        return fy_error_set(FERRY_EINVAL, "%s is \"%s\"; expected a number from %llu to %llu", name,
                            text, (unsigned long long)min, (unsigned long long)max);
    *value = number;
    return 0;
}

/* Whether `name` of `length` bytes is one that Ferry reads. */
static bool is_known(const char *name, size_t length)
{
    for (const fy_env_variable *entry = known; entry->name != NULL; entry++) {
        size_t known_length = strlen(entry->name);
        bool prefix = entry->name[known_length - 1] == '_';
        if (strncmp(name, entry->name, known_length) == 0 &&
            (known_length == length || (prefix && length > known_length)))
            return true;
    }
    return false;
}

enum { NAME_MAX_BYTES = 64 };

/* Least number of inserted, removed and changed letters between two names. */
static size_t distance(const char *a, size_t a_length, const char *b)
{
    size_t row[NAME_MAX_BYTES + 1];
    size_t b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[b_length];
}

static void warn_unknown(const char *name, size_t length)
{
    const char *nearest = known[0].name;
    size_t best = SIZE_MAX;
    for (const fy_env_variable *entry = known; entry->name != NULL; entry++) {
        size_t apart = distance(name, length, entry->name);
        if (apart < best) {
            best = apart;
            nearest = entry->name;
        }
    }
    fy_log_line(-1, "warning: unknown variable %.*s is ignored; the nearest known name is %s",
                (int)length, name, nearest);
}

void fy_env_warn_unknown(void)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "FERRY_", 6) == 0 && length <= NAME_MAX_BYTES &&
            !is_known(*entry, length))
            warn_unknown(*entry, length);
    }
}

/* Reads a count of ranks; false when there is none. */
static bool read_count(const char *name, uint64_t *ranks, const char **variable)
{
    if (fy_env_get(name) == NULL || fy_env_number(name, 1, INT32_MAX, ranks) != 0)
        return false;
    *variable = name;
    return true;
}

uint64_t fy_env_foreign_ranks(const char **variable)
{
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                         "PMIX_SIZE", "MV2_COMM_WORLD_SIZE"};
    bool found = false;
    uint64_t ranks = 1;
    *variable = NULL;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && ranks <= 1; i++)
        found = read_count(counts[i], &ranks, variable) || found;
    /* SLURM_NTASKS is set in a batch script too, where the program is alone; only a step has a
     * SLURM_STEP_ID and a task number. */
    if (ranks <= 1 && fy_env_get("SLURM_STEP_ID") != NULL && fy_env_get("SLURM_PROCID") != NULL)
        found = read_count("SLURM_NTASKS", &ranks, variable) || found;
    if (found)
        return ranks;
    /* PMIx alone says who this is, not how many there are: more than one, as far as is known. */
    if (fy_env_get("PMIX_NAMESPACE") == NULL || fy_env_get("PMIX_RANK") == NULL)
        return 1;
    uint64_t rank = 0;
    *variable = "PMIX_RANK";
    return fy_env_number("PMIX_RANK", 0, INT32_MAX, &rank) == 0 && rank > 0 ? rank + 1 : 2;
}
