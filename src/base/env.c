#include "base/env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ferry/error.h>

#include "base/error.h"
#include "base/log.h"

extern char **environ;

#define BIT(n) (UINT64_C(1) << (n))

/* A variable that Ferry knows; ferry(1) says what each means. A name that ends in '_' stands for
 * all names that begin with it. */
typedef struct known_variable {
    const char *name;
    uint64_t min, max; /* range of a number; `max` 0: not a number, or the port decides */
} known_variable;

static const known_variable known[] = {
    {"FERRY_RANKS", 0, 0},
    {"FERRY_RANKS_MAX", 0, 0},
    {"FERRY_RANKS_JOIN", 0, 0},
    {"FERRY_THREADS", 0, 1},
    {"FERRY_PORT", 0, 0},
    {"FERRY_PLUGIN_PATH", 0, 0},
    {"FERRY_MPI", 0, 0},
    {"FERRY_MPI_SHM", 0, 1},
    {"FERRY_LOOPBACK_NODES", 0, 0},
    {"FERRY_HEAP_BYTES", BIT(20), BIT(46)},
    {"FERRY_RING_SLOTS", 2, 65536},
    {"FERRY_RING_BYTES", BIT(10), BIT(26)},
    {"FERRY_BACKLOG_BYTES", 1, BIT(46)},
    {"FERRY_WAITING_BYTES", 1, BIT(46)},
    {"FERRY_MEMORY_BUDGET", 1, BIT(46)},
    {"FERRY_SERVERS", 0, 65535},
    {"FERRY_DIRECTORY", 0, 0},
    {"FERRY_SCHEDULER", 0, 0},
    {"FERRY_SCHEDULER_", 0, 0},
    {"FERRY_STEER", 0, 1},
    {"FERRY_HELPER", 0, 1},
    {"FERRY_QUANTUM_US", 1, 1000000},
    {"FERRY_SEED", 0, UINT64_MAX},
    {"FERRY_PROFILE", 0, 0},
    {"FERRY_TRACE", 0, 0},
    {"FERRY_STALL_S", 0, 1000000},
    {"FERRY_COMPUTE", 0, 0},
    {"FERRY_SIM_SEED", 0, UINT64_MAX},
    {"FERRY_SIM_NET", 0, 0},
    {"FERRY_SIM_FAULTS", 0, 0},
    {"FERRY_SIM_DISK", 0, 0},
    {"FERRY_SIM_SPEEDS", 0, 0},
    {"FERRY_SIM_QUANTUM_NS", 0, BIT(62)},
    {"FERRY_SIM_CPU_PERMILLE", 0, 1000000},
    {"FERRY_SIM_STACK_BYTES", BIT(14), BIT(30)},
    {"FERRY_SIM_TIME_LIMIT_NS", 0, UINT64_MAX},
    {"FERRY_SIM_MEMORY_BYTES", 0, BIT(63)},
    {"FERRY_SIM_TAPE", 0, 0},
    {"FERRY_SIM_REPORT", 0, 1},
    {"FERRY_JOIN", 0, 0},
    {"FERRY_JOB_FD", 0, INT32_MAX},
    {"FERRY_JOB_SOCKET", 0, INT32_MAX},
    {"FERRY_JOB_PROCESS", 0, INT32_MAX},
    {FY_ENV_JOB_OPENED, 0, 0},
    {"FERRY_RANK", 0, 0},
    {NULL, 0, 0},
};

static const char *text_of(const char *value)
{
    return value != NULL && *value != '\0' ? value : NULL;
}

const char *fy_env_get(const char *name)
{
    /* The variables of a launcher say which rank this process is. */
    bool ours = strncmp(name, "FERRY_", 6) == 0 && strncmp(name, "FERRY_JOB_", 10) != 0;
    return text_of(ours ? secure_getenv(name) : getenv(name));
}

/* The power of two of a size suffix; 0: no suffix, -1: no valid one. */
static int suffix_shift(const char *suffix)
{
    static const char units[] = "KMGT";
    if (*suffix == '\0')
        return 0;
    const char *unit = suffix[1] == '\0' ? strchr(units, *suffix) : NULL;
    return unit == NULL ? -1 : (int)(unit - units + 1) * 10;
}

int fy_env_number_within(const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
    const char *text = text_of(getenv(name));
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
        return fy_error_set(FERRY_EINVAL, "%s is \"%s\"; expected a number from %llu to %llu%s",
                            name, text, (unsigned long long)min, (unsigned long long)max,
                            shift < 0 && max >= 1024 ? "; it may end with K, M, G or T" : "");
    *value = number;
    return 0;
}

int fy_env_number(const char *name, uint64_t *value)
{
    const known_variable *entry = known;
    while (strcmp(entry->name, name) != 0)
        entry++;
    return fy_env_number_within(name, entry->min, entry->max, value);
}

uint64_t fy_env_number_or(const char *name, uint64_t otherwise)
{
    (void)fy_env_number(name, &otherwise);
    return otherwise;
}

/* Variables that take only these words, as a message lists them. */
static const char words[][2][24] = {{"FERRY_COMPUTE", "none, sleep or spin"}};

/* Whether `text` is one of the words in `list`, such as "none, sleep or spin". */
static bool is_word(const char *text, const char *list)
{
    size_t length = strlen(text);
    const char *at = strstr(list, text);
    return at != NULL && (at == list || at[-1] == ' ') && strchr(", ", at[length]) != NULL &&
           strcmp(text, "or") != 0;
}

int fy_env_check(void)
{
    int error = 0;
    uint64_t value;
    for (const known_variable *entry = known; error == 0 && entry->name != NULL; entry++)
        if (entry->max != 0)
            error = fy_env_number(entry->name, &value);
    for (size_t i = 0; error == 0 && i < sizeof(words) / sizeof(words[0]); i++) {
        const char *text = fy_env_get(words[i][0]);
        if (text != NULL && !is_word(text, words[i][1]))
            error = fy_error_set(FERRY_EINVAL, "%s is \"%s\"; expected %s", words[i][0], text,
                                 words[i][1]);
    }
    return error;
}

static int check_ring(const char *names, uint32_t size, uint32_t min, uint32_t max)
{
    if ((size & (size - 1)) == 0 && (size == 0 || (size >= min && size <= max)))
        return 0;
    return fy_error_set(FERRY_EINVAL, "%s is %u; expected a power of two, %u to %u", names, size,
                        min, max);
}

int fy_env_check_rings(uint32_t slots, uint32_t bytes)
{
    int error = check_ring("ring_slots (FERRY_RING_SLOTS)", slots, 2, 65536);
    return error != 0 ? error : check_ring("ring_bytes (FERRY_RING_BYTES)", bytes, 1024, 64 << 20);
}

int fy_env_refuse_join(void)
{
    if (fy_env_get("FERRY_RANKS_JOIN") == NULL)
        return 0;
    return fy_error_set(FERRY_ELAUNCH, "FERRY_RANKS_JOIN is set: only ranks can be joined that are "
                                       "processes of port shm");
}

int fy_env_say_opened(void)
{
    const char *text = getenv(FY_ENV_JOB_OPENED);
    static const char opened = FY_ENV_OPENED;
    int fd = text != NULL ? atoi(text) : -1;
    unsetenv(FY_ENV_JOB_OPENED);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* a program that replaces this one ends the ranks */
    return send(fd, &opened, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? fd : -1;
}

const char *fy_env_next(const char *prefix, size_t *index)
{
    while (environ != NULL && environ[*index] != NULL) {
        const char *entry = environ[(*index)++];
        if (strncmp(entry, prefix, strlen(prefix)) == 0)
            return entry;
    }
    return NULL;
}

/* Whether Ferry reads the variable `name` of `length` bytes. */
static bool is_known(const char *name, size_t length)
{
    for (const known_variable *entry = known; entry->name != NULL; entry++) {
        size_t known_length = strlen(entry->name);
        bool prefix = entry->name[known_length - 1] == '_';
        if (strncmp(name, entry->name, known_length) == 0 &&
            (known_length == length || (prefix && length > known_length)))
            return true;
    }
    return false;
}

enum { NAME_MAX_BYTES = 64 };

/* Least number of inserted, removed and changed characters between two names. */
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
    size_t best = SIZE_MAX, compared = length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES;
    for (const known_variable *entry = known; entry->name != NULL; entry++) {
        size_t apart = distance(name, compared, entry->name);
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
        if (strncmp(*entry, "FERRY_", 6) == 0 && !is_known(*entry, length))
            warn_unknown(*entry, length);
    }
}

/* Reads a count of ranks. Returns false if there is none. */
static bool read_count(const char *name, uint64_t *ranks, const char **variable)
{
    if (fy_env_get(name) == NULL || fy_env_number_within(name, 1, INT32_MAX, ranks) != 0)
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
    /* SLURM_NTASKS is set in a batch script too, where the program runs alone. Only a job step has
     * a SLURM_STEP_ID and a task number. */
    if (ranks <= 1 && fy_env_get("SLURM_STEP_ID") != NULL && fy_env_get("SLURM_PROCID") != NULL)
        found = read_count("SLURM_NTASKS", &ranks, variable) || found;
    if (found)
        return ranks;
    /* PMIx alone says which rank this is, not how many there are: so assume more than one. */
    if (fy_env_get("PMIX_NAMESPACE") == NULL || fy_env_get("PMIX_RANK") == NULL)
        return 1;
    uint64_t rank = 0;
    *variable = "PMIX_RANK";
    return fy_env_number_within("PMIX_RANK", 0, INT32_MAX, &rank) == 0 && rank > 0 ? rank + 1 : 2;
}
