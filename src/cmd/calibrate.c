/* ferry calibrate: measures two ranks of this machine. Writes a network file for the simulator,
 * which has the parameters of `ferry model` too. It measures by the public calls what a request
 * costs its sender, its receiver, and the network between them. So Ferry's own cost is part of the
 * figures. Each is the least of many rounds, since other work on the machine can only add to it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ferry/ferry.h>
#include <ferry/launch.h>

#include "cmd/calibrate.h"
#include "cmd/cmd.h"

enum {
    ROUNDS = 3000, /* of a ping-pong */
    BURST = 64,    /* requests that fit into the rings */
    BURSTS = 300,
    BIG_BYTES = 32 * 1024,
    BIG_ROUNDS = 300,
    PATIENT_POLLS = 2000,
    BATCH = 20,
    PHASE_NS = 500000000,
    QUICK_PHASE_NS = 50000000,
};

static const char help[] =
    "usage: ferry calibrate [--quick] [-o FILE]\n"
    "\n"
    "Measures messages between two ranks of this machine for some seconds. Writes a file for\n"
    "`ferry sim --net FILE`, which also has every parameter for `ferry model -p FILE`.\n"
    "\n"
    "  -o, --output FILE  where to write; the standard output by default\n"
    "  -q, --quick        take fewer samples, for a first look\n"
    "  -h, --help         print this text\n"
    "\n"
    "Exit status: 0; 1 if the ranks could not be started or FILE could not be written; 2 for "
    "wrong\n"
    "usage.\n";

typedef struct probe {
    ferry_handler count;
    uint64_t counted;
    uint64_t expected; /* `counted` at the end of this round. Counting on from `counted` would be
                          wrong: a collective may handle requests of the next round */
    char *data;
    uint64_t phase_ns; /* how long one measurement may take */
} probe;

static void on_count(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    ((probe *)ferry_user_data(f))->counted++;
}

void calibrate_must(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "ferry calibrate: %s: %s\n", what, ferry_strerror(error));
    exit(EXIT_FAILURE);
}

static void calibrate_send(ferry *f, const probe *p, size_t size_bytes)
{
    ferry_message message = {.handler = p->count, .data = p->data, .size_bytes = size_bytes};
    calibrate_must(ferry_request_send(f, 1 - ferry_rank(f), &message, NULL), "send");
}

/* Polls until the requests are here. After PATIENT_POLLS another program wants the processor: then
 * it sleeps, and the round is too slow to be the least. */
static void calibrate_await(ferry *f, const probe *p, uint64_t count)
{
    for (int polls = 0; p->counted < count; polls++)
        if (polls < PATIENT_POLLS)
            ferry_poll(f);
        else
            ferry_wait(f, 1000000);
}

/* Whether both ranks go on with a phase that began at `start_ns`. Rank 0 decides. On a busy machine
 * each round takes a time slice, so few rounds fit into a phase. */
static bool is_early(ferry *f, const probe *p, uint64_t start_ns)
{
    uint64_t early = ferry_now(f) - start_ns < p->phase_ns;
    calibrate_must(ferry_broadcast(f, 0, &early, sizeof(early)), "broadcast");
    return early != 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The least half round trip of `size_bytes`. `median`: gets the median; may be NULL. */
static uint64_t half_round(ferry *f, probe *p, int rounds, size_t size_bytes, uint64_t *median)
{
    _Static_assert(BIG_ROUNDS <= ROUNDS, "room for every round");
    uint64_t halves[ROUNDS];
    int count = 0;
    uint64_t best = UINT64_MAX, phase_ns = ferry_now(f);
    for (int i = 0; i < rounds && (i % BATCH != 0 || i == 0 || is_early(f, p, phase_ns)); i++) {
        uint64_t target = ++p->expected;
        uint64_t start = ferry_now(f);
        if (ferry_rank(f) == 0)
            calibrate_send(f, p, size_bytes);
        calibrate_await(f, p, target);
        if (ferry_rank(f) == 1)
            calibrate_send(f, p, size_bytes);
        halves[count++] = (ferry_now(f) - start) / 2;
        best = least(best, halves[count - 1]);
    }
    if (median != NULL)
        *median = calibrate_median(halves, count);
    return best;
}

/* The least cost of sending one request of a burst (on rank 0) and of receiving one (on rank 1). */
static void bursts(ferry *f, probe *p, uint64_t *send_ns, uint64_t *receive_ns)
{
    *send_ns = *receive_ns = UINT64_MAX;
    uint64_t phase_ns = ferry_now(f);
    for (int i = 0; i < BURSTS && (i == 0 || is_early(f, p, phase_ns)); i++) {
        p->expected += ferry_rank(f) == 1 ? BURST : 0;
        ferry_barrier(f);
        uint64_t start = ferry_now(f);
        for (int k = 0; k < BURST && ferry_rank(f) == 0; k++)
            calibrate_send(f, p, 0);
        if (ferry_rank(f) == 0)
            *send_ns = least(*send_ns, (ferry_now(f) - start) / BURST);
        uint64_t pause_end = start + 20000;
        while (ferry_now(f) < pause_end) {
        }
        if (ferry_rank(f) == 0)
            continue;
        start = ferry_now(f);
        uint64_t before = p->counted;
        ferry_poll(f);
        if (p->counted - before == BURST)
            *receive_ns = least(*receive_ns, (ferry_now(f) - start) / BURST);
        calibrate_await(f, p, p->expected);
    }
}

/* The least time per request of a long stream from rank 0; rank 1 waits for the last one. */
static uint64_t stream_gap(ferry *f, probe *p)
{
    uint64_t best = UINT64_MAX, phase_ns = ferry_now(f);
    for (int i = 0; i < 20 && (i == 0 || is_early(f, p, phase_ns)); i++) {
        p->expected += ferry_rank(f) == 1 ? 10000 : 0;
        ferry_barrier(f);
        uint64_t start = ferry_now(f);
        for (int k = 0; k < 10000 && ferry_rank(f) == 0; k++)
            calibrate_send(f, p, 0);
        calibrate_await(f, p, p->expected);
        best = least(best, (ferry_now(f) - start) / 10000);
    }
    return best;
}

static int say_error(const char *name)
{
    fprintf(stderr, "ferry calibrate: %s: %s\n", name, strerror(errno));
    return EXIT_FAILURE;
}

static void print_network(FILE *file, uint64_t half, uint64_t big, const uint64_t *cost,
                          const calibrate_costs *costs)
{
    uint64_t overhead = cost[0] + cost[1];
    fprintf(file,
            "# Measured by ferry calibrate: half a round trip of %" PRIu64 " ns, of %d bytes "
            "%" PRIu64 " ns\n"
            "topology flat\nmemory shared\nlatency %" PRIu64 "ns\nsend %" PRIu64
            "ns\nreceive %" PRIu64 "ns\ngap %" PRIu64 "ns\nbyte %" PRIu64 "ps\n",
            half, BIG_BYTES, big, half > overhead ? half - overhead : 1, cost[0], cost[1], cost[2],
            big > half ? (big - half) * 1000 / BIG_BYTES : 0);
    calibrate_costs_write(file, costs);
}

/* `word` is the descriptor of a file in memory, which cmd_calibrate copies. NULL: the standard
 * output, whose errors main tells. */
static int output_write(const char *word, uint64_t half, uint64_t big, const uint64_t *cost,
                        const calibrate_costs *costs)
{
    FILE *file = word == NULL ? stdout : fdopen(atoi(word), "w");
    if (file == NULL)
        return say_error("its output");
    print_network(file, half, big, cost, costs);
    return file != stdout && fclose(file) != 0 ? say_error("its output") : 0;
}

static int calibrate_measure(ferry *f, int argc, char **argv)
{
    bool quick = strcmp(argv[2], "quick") == 0;
    probe p = {.data = calloc(1, BIG_BYTES), .phase_ns = quick ? QUICK_PHASE_NS : PHASE_NS};
    if (p.data == NULL)
        calibrate_must(FERRY_ENOMEM, "buffer");
    ferry_user_data_set(f, &p);
    calibrate_must(ferry_handler_register(f, "calibrate", on_count, &p.count), "register");
    ferry_barrier(f);
    uint64_t cost[3]; /* send, receive, gap */
    calibrate_costs costs = {0};
    uint64_t half = half_round(f, &p, ROUNDS, 0, &costs.startup);
    uint64_t big = half_round(f, &p, BIG_ROUNDS, BIG_BYTES, NULL);
    bursts(f, &p, &cost[0], &cost[1]);
    cost[2] = stream_gap(f, &p);
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, cost, cost, 3);
    calibrate_must(error, "allreduce");
    if (cost[1] == UINT64_MAX)
        cost[1] = cost[0];
    free(p.data);
    calibrate_costs_measure(f, quick, &costs);
    (void)argc;
    return ferry_rank(f) != 0 ? 0 : output_write(argv[3], half, big, cost, &costs);
}

/* The output, which is opened before anything is measured, and a file in memory that the ranks
 * inherit and write. So an output that cannot be written is no end of a rank. */
typedef struct output {
    const char *name;
    int fd, memory;
    bool is_new; /* the file was not there */
} output;

static bool output_open(output *o, const char *name)
{
    *o = (output){.name = name};
    o->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    o->is_new = o->fd >= 0;
    if (o->fd < 0)
        o->fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    o->memory = o->fd < 0 ? -1 : memfd_create("ferry-calibrate", 0);
    if (o->memory < 0)
        (void)say_error(name);
    return o->memory >= 0;
}

/* Copies what the ranks have written. The file keeps what it had until now. */
static bool output_copy(const output *o)
{
    char text[4096];
    off_t at = 0;
    ssize_t count;
    if (ftruncate(o->fd, 0) != 0 && errno != EINVAL) /* EINVAL: a pipe or a device */
        return false;
    for (; (count = pread(o->memory, text, sizeof(text), at)) > 0; at += count)
        for (ssize_t done = 0, wrote; done < count; done += wrote)
            if ((wrote = write(o->fd, text + done, (size_t)(count - done))) < 0)
                return false;
    return count == 0;
}

/* Ends a job with `status`. Returns the status of the command. */
static int output_end(const output *o, int status)
{
    if (status == 0 && (!output_copy(o) || close(o->fd) != 0))
        status = say_error(o->name);
    if (status != 0 && o->is_new)
        (void)unlink(o->name);
    return status;
}

/* Starts this program again as two ranks, with the word "rank" as its first argument. Others are
 * "quick" or "full", and the descriptor of the output. */
int cmd_calibrate(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "rank") == 0)
        return ferry_main(argc, argv, calibrate_measure, NULL);
    bool quick = false;
    const char *name = NULL;
    output o;
    const cmd_option list[] = {
        {"output", 'o', .text = &name}, {"quick", 'q', .flag = &quick}, {.name = NULL}};
    int status = cmd_read_options(
        argc, argv, &(cmd_options){.command = "calibrate", .help = help, .list = list});
    if (status != CMD_GO)
        return status;
    if (optind < argc) {
        fprintf(stderr, "ferry calibrate: %s: expected no arguments\n", argv[optind]);
        return CMD_USAGE_STATUS;
    }
    char self[] = "/proc/self/exe", word[] = "calibrate", rank[] = "rank", extent[8] = "full";
    char fd[16];
    if (quick)
        strcpy(extent, "quick");
    if (name != NULL && !output_open(&o, name))
        return EXIT_FAILURE;
    if (name != NULL)
        snprintf(fd, sizeof(fd), "%d", o.memory);
    char *const ranks[] = {self, word, rank, extent, name == NULL ? NULL : fd, NULL};
    ferry_launch_options options = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    options.ranks = 2;
    status = ferry_launch(&options, ranks);
    if (status < 0)
        fprintf(stderr, "ferry calibrate: %s\n", ferry_error_message(NULL));
    status = status < 0 ? 125 : status;
    return name == NULL ? status : output_end(&o, status);
}
