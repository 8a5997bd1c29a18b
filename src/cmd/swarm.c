/* ferry swarm: runs a program with many seeds, each with faults of its own. It shrinks the first
 * run that fails: it takes away ranks, then faults, while the run still fails in the same way. */
#include "cmd/swarm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "cmd/cmd.h"
#include "cmd/sim.h"

enum { SHRINK_RUNS_MAX = 300, SHRINK_S = 60 };

static const char help[] =
    "usage: ferry swarm [-n N] [--seeds A..B] [OPTION]... PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM, which uses ferry_main, on N simulated ranks once for each seed. The seed "
    "chooses\n"
    "faults at random. Stops at the first run that fails: an exit status other than 0, a signal, "
    "a\n"
    "deadlock, a lost, doubled or overtaken message, or too long a run. Then looks for a failing\n"
    "run with fewer ranks and faults, and prints the command that repeats it.\n"
    "\n"
    "  -s, --seeds A..B        which seeds; 1..100 by default\n" CMD_SIM_HELP
    "  -a, --all               also deaths of ranks, and allocations from the shared heap that\n"
    "                          fail; for programs that call ferry_peer_watch on every rank\n"
    "  -o, --out-of-memory     also allocations of Ferry's own that fail; a run may then end with\n"
    "                          an error of PROGRAM that names memory\n"
    "  -R, --starve RANK       as --out-of-memory, but only on this rank\n"
    "  -u, --unreadable        also reads of disks that fail so often that objects cannot be "
    "read;\n"
    "                          a run may then end with an error of PROGRAM that names the object\n"
    "  -2, --twice             run each seed twice and compare hash, status and output\n"
    "  -k, --keep-going        run all seeds and count the failures; do not look for a smaller "
    "run\n"
    "  -x, --no-shrink         do not look for a smaller run that fails\n"
    "  -e, --effort SECONDS    real time to look for a smaller run; 60 by default\n"
    "  -l, --limit SECONDS     processor time that a run may take; 60 by default\n"
    "  -h, --help              print this text\n"
    "\n" CMD_SIM_UNITS
    "Exit status: 0 when every run was good; 1 when one failed; 2 for wrong usage; 127 when\n"
    "PROGRAM could not be executed.\n";

static bool read_seeds(const char *command, int letter, char *text, void *arg)
{
    swarm *s = arg;
    unsigned long long first = 0, last = 0;
    const char *dots = strstr(text, "..");
    char *end = NULL;
    errno = 0;
    if (*text >= '0' && *text <= '9' && dots != NULL && dots[2] >= '0' && dots[2] <= '9') {
        first = strtoull(text, &end, 10);
        last = end == dots ? strtoull(dots + 2, &end, 10) : 0;
    }
    if (end == NULL || *end != '\0' || errno != 0 || last < first) {
        fprintf(stderr, "ferry %s: --seeds %s: expected A..B, with A at most B\n", command, text);
        return false;
    }
    (void)letter;
    s->first = first;
    s->last = last;
    return true;
}

static bool read_seconds(const char *command, int letter, char *text, void *arg)
{
    swarm *s = arg;
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds > 0 && seconds < 1e6)) {
        fprintf(stderr, "ferry %s: -%c %s: expected seconds, more than 0 and less than a million\n",
                command, letter, text);
        return false;
    }
    *(letter == 'l' ? &s->limit_s : &s->shrink_s) = seconds;
    return true;
}

/* Checks the rank of --starve. Called after all options were read, since -n may come later. */
static bool check_starved(const swarm *s)
{
    uint64_t ranks = 1, rank = 0;
    char *end = NULL;
    if (s->starved == NULL)
        return true;
    if (fy_env_number_within("FERRY_RANKS", 1, INT32_MAX, &ranks) == 0 &&
        fy_env_number_within("FERRY_RANKS_MAX", 1, INT32_MAX, &ranks) == 0) {
        errno = 0;
        rank = strtoull(s->starved, &end, 10);
        if (*s->starved >= '0' && *s->starved <= '9' && *end == '\0' && errno == 0 && rank < ranks)
            return true;
    }
    fprintf(stderr, "ferry swarm: --starve %s: expected a rank from 0 to %" PRIu64 "\n", s->starved,
            ranks - 1);
    return false;
}

/* Checks what all runs have in common. The variables here are those that each run replaces. */
static bool check_run(void)
{
    static const char *const replaced[] = {"FERRY_SIM_SEED", "FERRY_SIM_FAULTS", "FERRY_SIM_REPORT",
                                           "FERRY_SIM_TAPE"};
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        (void)unsetenv(replaced[i]);
    return cmd_sim_check("swarm");
}

static int swarm_read_options(int argc, char **argv, swarm *s)
{
    const cmd_option list[] = {
        CMD_SIM_OPTIONS,
        {"seeds", 's', .read = read_seeds},
        {"all", 'a', .flag = &s->all},
        {"out-of-memory", 'o', .flag = &s->starves},
        {"starve", 'R', .flag = &s->starves, .text = &s->starved},
        {"unreadable", 'u', .flag = &s->unreadable},
        {"twice", '2', .flag = &s->twice},
        {"keep-going", 'k', .flag = &s->keep_going},
        {"no-shrink", 'x', .flag = &s->no_shrink},
        {"effort", 'e', .read = read_seconds},
        {"limit", 'l', .read = read_seconds},
        {.name = NULL},
    };
    const cmd_options what = {"swarm", help, list, .arg = s, .program = true};
    return cmd_read_options(argc, argv, &what);
}

/* A plan, split at its commas. */
typedef struct items {
    char **texts;
    size_t count;
} items;

static bool split(char *plan, items *out)
{
    size_t count = 1;
    for (const char *at = plan; *at != '\0'; at++)
        count += *at == ',';
    *out = (items){.texts = calloc(count, sizeof(char *))};
    if (out->texts == NULL)
        return false;
    char *rest = NULL;
    for (char *item = strtok_r(plan, ",\n", &rest); item != NULL;
         item = strtok_r(NULL, ",\n", &rest))
        out->texts[out->count++] = item;
    return true;
}

/* Writes the plan without items [from, to) to SWARM_PLAN. */
static bool write_plan(const swarm *s, const items *all, size_t from, size_t to)
{
    char path[SWARM_PATH_BYTES];
    swarm_path(s, SWARM_PLAN, path);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    for (size_t i = 0; i < all->count; i++)
        if (i < from || i >= to)
            fprintf(file, "%s\n", all->texts[i]);
    return fclose(file) == 0;
}

/* Whether the run fails in the same way without items [from, to). */
static bool still_fails(swarm *s, uint64_t seed, const items *all, size_t from, size_t to,
                        int status)
{
    char plan[SWARM_PATH_BYTES + 1] = "@";
    swarm_end end;
    if (!write_plan(s, all, from, to))
        return false;
    swarm_path(s, SWARM_PLAN, plan + 1);
    return swarm_run(s, seed, plan, &end) && end.status == status && !end.excused;
}

/* Removes pieces of the plan without which the run still fails: first large ones, then smaller
 * ones, down to single items. */
static void shrink_items(swarm *s, uint64_t seed, items *all, int status, double end_s)
{
    uint64_t limit = s->runs + SHRINK_RUNS_MAX;
    for (size_t piece = all->count; piece > 0 && s->runs < limit && swarm_now_s() < end_s;) {
        bool smaller = false;
        for (size_t from = 0; from < all->count && s->runs < limit && swarm_now_s() < end_s;) {
            size_t to = from + piece < all->count ? from + piece : all->count;
            if (still_fails(s, seed, all, from, to, status)) {
                memmove(all->texts + from, all->texts + to,
                        (all->count - to) * sizeof(*all->texts));
                all->count -= to - from;
                smaller = true;
            } else {
                from = to;
            }
        }
        if (!smaller || piece > all->count)
            piece = piece == 1 && smaller ? 1 : piece / 2;
    }
}

static void shrink_ranks(swarm *s, uint64_t seed, const char *plan, int status, double end_s)
{
    const char *text = fy_env_get("FERRY_RANKS");
    int ranks = text == NULL ? 1 : atoi(text);
    char number[16];
    swarm_end end;
    for (int fewer = 2; fewer < ranks && swarm_now_s() < end_s; fewer += fewer < 8 ? 1 : fewer) {
        snprintf(number, sizeof(number), "%d", fewer);
        if (setenv("FERRY_RANKS", number, 1) != 0)
            return;
        if (swarm_run(s, seed, plan, &end) && end.status == status && !end.excused)
            return;
    }
    snprintf(number, sizeof(number), "%d", ranks);
    setenv("FERRY_RANKS", number, 1);
}

static const char *status_describe(int status)
{
    switch (status) {
    case SWARM_LATE:
        return "did not end in time";
    case 120:
        return "is stuck: ranks wait forever";
    case 121:
        return "broke a promise";
    default:
        return status > 128 ? "was killed by a signal" : "failed";
    }
}

/* Prints a blank and a word of a command for a shell: in quotes, unless it needs none. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        printf(" %s", word);
        return;
    }
    printf(" '");
    for (; *word != '\0'; word++)
        if (*word == '\'')
            printf("'\\''");
        else
            putchar(*word);
    printf("'");
}

/* `faults`: the plan, or NULL: the faults of `all`. */
static void print_repeat(const swarm *s, uint64_t seed, const char *faults, const items *all)
{
    static const struct {
        const char *variable, *option;
    } options[] = {{"FERRY_RANKS", "-n"},           {"FERRY_RANKS_MAX", "-m"},
                   {"FERRY_SERVERS", "-d"},         {"FERRY_SIM_TIME_LIMIT_NS", "-T"},
                   {"FERRY_SIM_NET", "--net"},      {"FERRY_SIM_SPEEDS", "-c"},
                   {"FERRY_SIM_DISK", "--disk"},    {"FERRY_SIM_QUANTUM_NS", "-q"},
                   {"FERRY_SIM_STACK_BYTES", "-S"}, {"FERRY_SIM_MEMORY_BYTES", "-M"}};
    printf("repeat it with:\n  ferry sim --seed %" PRIu64, seed);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        const char *value = fy_env_get(options[i].variable);
        if (value == NULL)
            continue;
        printf(" %s", options[i].option);
        print_word(value);
    }
    const char *permille = fy_env_get("FERRY_SIM_CPU_PERMILLE");
    if (permille != NULL)
        printf(" -C %g", strtod(permille, NULL) / 1000);
    if (faults != NULL)
        printf(" --faults %s", faults);
    for (size_t i = 0; faults == NULL && i < all->count; i++)
        printf("%s%s", i == 0 ? " --faults " : ",", all->texts[i]);
    for (char **argument = s->argv; *argument != NULL; argument++)
        print_word(*argument);
    printf("\n");
}

static void print_errors(const swarm *s)
{
    char *text = swarm_read(s, SWARM_ERR);
    if (text == NULL)
        return;
    int lines = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL && lines < 40;
         line = strtok_r(NULL, "\n", &rest), lines++)
        printf("  | %s\n", line);
    free(text);
}

/* Whether a command can have these faults as an argument, and a person may read them. */
static bool fits_line(const items *all)
{
    enum { BYTES_MAX = 64 * 1024 };
    size_t bytes = 0;
    for (size_t i = 0; i < all->count; i++)
        bytes += strlen(all->texts[i]) + 1;
    return bytes < BYTES_MAX;
}

/* Shrinks a failing run and prints the command that repeats it. */
static void swarm_explain(swarm *s, uint64_t seed, const char *plan, int status)
{
    printf("seed %" PRIu64 " %s (status %d); shrinking\n", seed, status_describe(status), status);
    fflush(stdout);
    double end_s = swarm_now_s() + s->shrink_s;
    s->doing = "shrinking";
    shrink_ranks(s, seed, plan, status, end_s);
    swarm_end end;
    if (!swarm_run(s, seed, plan, &end) || end.status != status) {
        printf("the run does not repeat: the program depends on more than its seed\n");
        return;
    }
    char *tape = swarm_read(s, SWARM_TAPE);
    items all = {0};
    if (tape == NULL || !split(tape, &all)) {
        free(tape);
        return;
    }
    size_t before = all.count;
    if (still_fails(s, seed, &all, 0, 0, status))
        shrink_items(s, seed, &all, status, end_s);
    bool fails = still_fails(s, seed, &all, 0, 0, status), fits = fits_line(&all);
    printf("%zu of %zu faults are left%s%s\n", all.count, before,
           swarm_now_s() < end_s ? "" : ", and the time for shrinking is over (--effort)",
           !fails  ? "; with these faults alone the run does not fail"
           : !fits ? ", too many for a command"
                   : "");
    fails = fails && fits;
    if (!fails) /* for its standard error */
        (void)swarm_run(s, seed, plan, &end);
    print_repeat(s, seed, fails ? NULL : plan, &all);
    printf("its standard error:\n");
    print_errors(s);
    free(all.texts);
    free(tape);
}

/* Runs the seed again. Returns whether that run ends in the same way. */
static bool repeats(swarm *s, uint64_t seed, const char *plan, const swarm_end *first)
{
    char *before = swarm_read(s, SWARM_OUT);
    swarm_end second;
    bool same = swarm_run(s, seed, plan, &second) && second.status == first->status &&
                strcmp(second.hash, first->hash) == 0;
    char *after = swarm_read(s, SWARM_OUT);
    same = same && before != NULL && after != NULL && strcmp(before, after) == 0;
    if (!same)
        printf("seed %" PRIu64 " does not repeat: hash %s, then %s\n", seed, first->hash,
               second.hash);
    free(before);
    free(after);
    return same;
}

static int run_seeds(swarm *s)
{
    static const char *const plans[2][2] = {{"random", "random-all"},
                                            {"random,random-malloc", "random-all,random-malloc"}};
    char plan[96];
    snprintf(plan, sizeof(plan), "%s%s%s%.20s", plans[s->starves][s->all],
             s->unreadable ? ",random-disk" : "", s->starved != NULL ? ",starve=" : "",
             s->starved != NULL ? s->starved : "");
    uint64_t failures = 0, excused = 0, count = s->last - s->first + 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t seed = s->first + i;
        swarm_end end;
        if (!swarm_run(s, seed, plan, &end))
            return EXIT_FAILURE;
        if (end.status == SWARM_UNUSABLE) {
            print_errors(s);
            return SWARM_UNUSABLE;
        }
        if (end.status == 0 && !end.opened) {
            cmd_say_unopened("swarm", s->argv[0]);
            return EXIT_FAILURE;
        }
        excused += end.excused;
        bool good = (end.status == 0 || end.excused) && (!s->twice || repeats(s, seed, plan, &end));
        if (good)
            continue;
        failures++;
        if (end.early)
            cmd_say_unended("swarm", s->argv[0]);
        if (s->keep_going || s->no_shrink)
            printf("seed %" PRIu64 " %s (status %d)\n", seed, status_describe(end.status),
                   end.status);
        if (s->keep_going)
            continue;
        if (end.status != 0 && !s->no_shrink)
            swarm_explain(s, seed, plan, end.status);
        printf("failed at seed %" PRIu64 ", number %" PRIu64 " of %" PRIu64 "\n", seed, i + 1,
               count);
        return EXIT_FAILURE;
    }
    printf("%" PRIu64 " of %" PRIu64 " seeds failed, from %" PRIu64 " to %" PRIu64, failures, count,
           s->first, s->last);
    if (s->starves || s->unreadable)
        printf("; %" PRIu64 " ended with an error that names %s%s%s", excused,
               s->starves ? "memory" : "", s->starves && s->unreadable ? " or " : "",
               s->unreadable ? "the object" : "");
    printf("\n");
    return failures == 0 ? 0 : EXIT_FAILURE;
}

int cmd_swarm(int argc, char **argv)
{
    swarm s = {.limit_s = 60, .shrink_s = SHRINK_S, .first = 1, .last = 100, .doing = "running"};
    int status = swarm_read_options(argc, argv, &s);
    if (status != CMD_GO)
        return status;
    if (!cmd_has_program("swarm", argv[optind]) || !check_starved(&s) || !check_run())
        return cmd_wrong_usage("swarm");
    s.argv = argv + optind;
    for (char **argument = s.argv + 1; *argument != NULL; argument++)
        if (strncmp(*argument, "--seeds", strlen("--seeds")) == 0)
            fprintf(stderr,
                    "ferry swarm: %s after the program is the program's; options of "
                    "ferry swarm come before it\n",
                    *argument);
    if (!swarm_open(&s))
        return EXIT_FAILURE;
    status = run_seeds(&s);
    swarm_close(&s);
    return status;
}
