/* ferry scale: simulates the tasks of a traced run on other numbers of ranks. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/report/trace.h"
#include "cmd/scale/scale.h"
#include "cmd/sim.h"

enum { NAME_BYTES = 256, LIST_MAX = 32, RANKS_MAX = 65536 };

static const char help[] =
    "usage: ferry scale TRACE -n RANKS[,RANKS]... [OPTION]...\n"
    "\n"
    "Simulates the tasks of a traced run on other numbers of ranks and under other schedulers.\n"
    "TRACE is the folder that FERRY_TRACE named in the run. Prints the run time, the efficiency,\n"
    "what bounds the run time, and the best choice.\n"
    "\n"
    "  -n, --ranks LIST       numbers of ranks, 1 to 65536\n"
    "  -S, --scheduler LIST   schedulers; ferry,stealing,diffusion,none by default\n"
    "  -N, --net NET          the network, as for ferry sim; shm by default\n"
    "  -C, --cores N          how many processors there are; ranks share them if there are more\n"
    "                         ranks; by default one for each rank\n"
    "  -s, --seed S           seed of the simulations; 0 by default\n"
    "  -b, --bytes N          size of an object in bytes, 0 to 1073741824, which the trace does\n"
    "                         not contain; 1024 by default\n"
    "  -j, --json             print JSON\n"
    "  -h, --help             print this text\n"
    "\n"
    "Exit status: 0; 1 if TRACE cannot be read or a simulation fails; 2 for wrong usage.\n";

typedef struct result {
    int ranks;
    const char *scheduler;
    double makespan, efficiency, least; /* least: a lower bound of every schedule */
    double free_makespan;               /* if messages took no time; 0: not simulated */
    const char *bound;
    uint64_t moves, ran;
} result;

typedef struct request {
    int ranks[LIST_MAX];
    char schedulers[LIST_MAX][NAME_BYTES];
    int rank_count, scheduler_count;
    uint64_t bytes, cores; /* bytes: of an object. cores: 0 is one for each rank */
    bool json;
    result results[LIST_MAX * LIST_MAX];
    int result_count;
} request;

static bool read_ranks(const char *command, int letter, char *text, void *arg)
{
    request *r = arg;
    (void)letter;
    return cmd_read_list(command, text, LIST_MAX, RANKS_MAX, r->ranks, &r->rank_count);
}

static bool read_schedulers(const char *command, int letter, char *text, void *arg)
{
    request *r = arg;
    r->scheduler_count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= NAME_BYTES || r->scheduler_count == LIST_MAX) {
            fprintf(stderr,
                    "ferry %s: -%c %s: expected at most %d names of schedulers, with commas "
                    "between them\n",
                    command, letter, text, LIST_MAX);
            return false;
        }
        (void)snprintf(r->schedulers[r->scheduler_count++], NAME_BYTES, "%.*s", (int)length, at);
        at += length;
        if (*at == '\0')
            return true;
    }
}

static bool read_number(const char *command, int letter, char *text, void *arg)
{
    request *r = arg;
    const uint64_t min = letter == 'b' ? 0 : 1, max = letter == 'b' ? 1 << 30 : RANKS_MAX;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number < min || number > max) {
        fprintf(stderr, "ferry %s: -%c %s: expected a number from %" PRIu64 " to %" PRIu64 "\n",
                command, letter, text, min, max);
        return false;
    }
    *(letter == 'b' ? &r->bytes : &r->cores) = number;
    return true;
}

static int scale_read_options(int argc, char **argv, request *r)
{
    const cmd_option list[] = {
        {"ranks", 'n', .read = read_ranks},  {"scheduler", 'S', .read = read_schedulers},
        {"net", 'N', .read = cmd_sim_net},   {"seed", 's', .read = cmd_sim_option},
        {"cores", 'C', .read = read_number}, {"bytes", 'b', .read = read_number},
        {"json", 'j', .flag = &r->json},     {.name = NULL},
    };
    return cmd_read_options(argc, argv, &(cmd_options){"scale", help, list, .arg = r});
}

enum { NEAR_PERCENT = 5 };

static bool is_near(double makespan, double least)
{
    return makespan <= least * (1 + NEAR_PERCENT / 100.0);
}

/* The seconds that a rank takes for a second of work, if ranks share processors. */
static double slowness(const request *r, int ranks)
{
    return r->cores > 0 && (uint64_t)ranks > r->cores ? (double)ranks / (double)r->cores : 1;
}

/* Names what bounds the run. If the run time is near `least`, that is what `least` was computed
 * from: the work, an object or a chain. Else it is the messages or the balance. */
static const char *bound_of(const scale_trace *t, const result *one, double even, double slow)
{
    if (is_near(one->makespan, one->least))
        return even >= t->chain * slow          ? "work"
               : is_near(t->chain, t->heaviest) ? "object"
                                                : "chain";
    return one->free_makespan > 0 && !is_near(one->makespan, one->free_makespan) ? "messages"
                                                                                 : "balance";
}

/* Simulates one case. If neither work nor a chain bounds the run, it is simulated again without a
 * network, to see whether messages do. */
static int judge(const request *r, const scale_trace *t, result *one)
{
    int status = scale_replay(t, one->ranks, one->scheduler, false);
    if (status != 0)
        return status;
    double slow = slowness(r, one->ranks), even = t->seconds * slow / one->ranks;
    one->makespan = (double)t->plan->makespan_ns * 1e-9;
    one->moves = t->plan->moves;
    one->ran = t->plan->ran;
    one->least = fmax(even, t->chain * slow);
    one->efficiency = one->makespan > 0 ? even / one->makespan : 1;
    if (t->plan->sends > 0 && !is_near(one->makespan, one->least)) {
        status = scale_replay(t, one->ranks, one->scheduler, true);
        one->free_makespan = (double)t->plan->makespan_ns * 1e-9;
    }
    one->bound = bound_of(t, one, even, slow);
    return status;
}

/* The run with the fewest ranks among those within 1% of the shortest. */
static const result *best_of(const request *r)
{
    double least = INFINITY;
    const result *best = NULL;
    for (int i = 0; i < r->result_count; i++)
        least = fmin(least, r->results[i].makespan);
    for (int i = 0; i < r->result_count; i++) {
        const result *one = &r->results[i];
        if (one->makespan <= least * 1.01 &&
            (best == NULL || one->ranks < best->ranks ||
             (one->ranks == best->ranks && one->makespan < best->makespan)))
            best = one;
    }
    return best;
}

static void scale_print(const request *r, const scale_trace *t)
{
    const scale_plan *plan = t->plan;
    printf("%" PRIu64 " tasks of %" PRIu64 " objects, %.6g s together, on %d ranks; the heaviest "
           "object %.6g s\n",
           plan->tasks, plan->objects, t->seconds, plan->ranks, t->heaviest);
    printf("%" PRIu64 " messages between tasks, %" PRIu32 " phase%s; the longest chain %.6g s\n",
           plan->sends, plan->phases, plan->phases == 1 ? "" : "s", t->chain);
    if (t->missed > 0)
        printf("the trace lacks %" PRIu64 " messages; their tasks wait from the start\n",
               t->missed);
    if (t->late > 0)
        printf("tasks create %" PRIu64 " of the %" PRIu64
               " objects; on other numbers of ranks they "
               "may create others\n",
               t->late, plan->objects);
    if (t->left_out > 0.01 * t->seconds)
        printf("not replayed: %.6g s of tasks and handlers without an object\n", t->left_out);
    printf("\n%7s  %-18s %12s %12s %10s %9s  %s\n", "ranks", "scheduler", "run time", "least",
           "efficiency", "moves", "bound by");
    for (int i = 0; i < r->result_count; i++) {
        const result *one = &r->results[i];
        printf("%7d  %-18s %10.6g s %10.6g s %9.1f%% %9" PRIu64 "  %s\n", one->ranks,
               one->scheduler, one->makespan, one->least, one->efficiency * 100, one->moves,
               one->bound);
        if (one->ran != plan->tasks)
            printf("         %" PRIu64 " of %" PRIu64
                   " tasks did not run: the clocks of the traced "
                   "ranks disagree\n",
                   plan->tasks - one->ran, plan->tasks);
    }
    const result *best = best_of(r);
    printf("\nbest: %d ranks, scheduler %s: %.6g s\n", best->ranks, best->scheduler,
           best->makespan);
}

static void print_name(const char *name)
{
    putchar('"');
    for (; *name != '\0'; name++)
        if (*name == '"' || *name == '\\')
            printf("\\%c", *name);
        else
            putchar((unsigned char)*name < ' ' ? '?' : *name);
    putchar('"');
}

static void print_json(const request *r, const scale_trace *t)
{
    const result *best = best_of(r);
    printf("{\"tasks\": %" PRIu64 ", \"objects\": %" PRIu64 ", \"seconds\": %.9g, "
           "\"traced_ranks\": %d, \"heaviest\": %.9g, \"left_out\": %.9g, \"messages\": %" PRIu64
           ", \"phases\": %" PRIu32 ", \"chain\": %.9g, \"missed\": %" PRIu64
           ", \"created\": %" PRIu64 ",\n \"runs\": [",
           t->plan->tasks, t->plan->objects, t->seconds, t->plan->ranks, t->heaviest, t->left_out,
           t->plan->sends, t->plan->phases, t->chain, t->missed, t->late);
    for (int i = 0; i < r->result_count; i++) {
        const result *one = &r->results[i];
        printf("%s\n  {\"ranks\": %d, \"scheduler\": ", i > 0 ? "," : "", one->ranks);
        print_name(one->scheduler);
        printf(", \"makespan\": %.9g, \"least\": %.9g, \"efficiency\": %.6g, \"moves\": %" PRIu64
               ", \"bound\": \"%s\", \"best\": %s}",
               one->makespan, one->least, one->efficiency, one->moves, one->bound,
               one == best ? "true" : "false");
    }
    printf("]}\n");
}

/* If ranks share processors, makes each simulated rank slower. */
static void set_speeds(const request *r, int ranks)
{
    char text[64];
    if (r->cores == 0)
        return;
    (void)snprintf(text, sizeof text, "0-%d=%.9g", ranks - 1, 1 / slowness(r, ranks));
    setenv("FERRY_SIM_SPEEDS", text, 1);
}

static int simulate(request *r, const scale_trace *trace)
{
    for (int i = 0; i < r->rank_count; i++)
        for (int k = 0; k < r->scheduler_count; k++) {
            result *one = &r->results[r->result_count++];
            *one = (result){.ranks = r->ranks[i], .scheduler = r->schedulers[k]};
            set_speeds(r, one->ranks);
            int status = judge(r, trace, one);
            if (status != 0)
                return status == CMD_USAGE_STATUS ? status : EXIT_FAILURE;
        }
    return 0;
}

/* Reads the trace, simulates and prints. Returns the exit status. If it is not 0, a line on
 * standard error says why. */
static int scale_run(request *r, const char *folder)
{
    scale_trace trace;
    char error[SCALE_ERROR_BYTES];
    if (!scale_trace_read(folder, r->bytes, &trace, error)) {
        fprintf(stderr, "ferry scale: %s\n", error);
        return EXIT_FAILURE;
    }
    trace_strangers_tell("scale", folder, trace.strangers);
    int status = simulate(r, &trace);
    if (status == 0 && r->json)
        print_json(r, &trace);
    else if (status == 0)
        scale_print(r, &trace);
    return status;
}

static int command(int argc, char **argv, request *r)
{
    char schedulers[] = "ferry,stealing,diffusion,none";
    r->bytes = 1024;
    read_schedulers("scale", 'S', schedulers, r);
    int status = scale_read_options(argc, argv, r);
    if (status != CMD_GO)
        return status;
    if (argc - optind != 1)
        fprintf(stderr, "ferry scale: %d traces: expected one\n", argc - optind);
    else if (r->rank_count == 0)
        fprintf(stderr, "ferry scale: expected -n with one or more numbers of ranks\n");
    if (argc - optind != 1 || r->rank_count == 0)
        return cmd_wrong_usage("scale");
    return scale_run(r, argv[optind]);
}

int cmd_scale(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "replay") == 0)
        return scale_replay_main(argc, argv);
    request *r = calloc(1, sizeof *r);
    if (r == NULL) {
        fprintf(stderr, "ferry scale: no memory for a request of %zu bytes\n", sizeof *r);
        return EXIT_FAILURE;
    }
    int status = command(argc, argv, r);
    free(r);
    return status;
}
