/* The instructions benchmark's side: ranks of one process, which one thread drives in turn, so that
 * nobody waits and what one operation executes is the same every time. Runs under callgrind, which
 * writes what each case named on the command line has executed, beside its name, the number of
 * operations, and how often counting began:
 *
 *   nothing            counting begins and ends
 *   poll-N             a poll of one of N ranks, to which each other has sent a message long ago
 *   request-8B-*       sent; taken by a poll each; or by polls that take many
 *   put, get           of the shared heap
 *   object-local       a message to an object of the same rank, sent and run; -sent: only that
 *   object-remote-*    likewise, of the other rank: sent, and run
 *   task               a message to an object that a scheduler has, sent and run; -sent: only that
 *   migrate-*          an object of 64 bytes, packed, sent, and what comes back; and unpacked
 *   track-8B           a request whose end a callback hears of: sent, and the callback
 *   broadcast, gatherv of two ranks, both counted: 8 bytes are sent, then taken
 *   reduce-value       one of many numbers of type double that are added up
 *   parcel             given to the other rank's cell, and taken there */
#include <ferry/ferry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

#include "core/options.h"
#include "core/rank.h"
#include "core/reduce.h"
#include "peers/check.h"
#include "port/shm/shm.h"

enum { PAIR = 2, RANKS_MAX = 128, ROUNDS = 16, BATCH = 32, OPERATIONS = ROUNDS * BATCH };

typedef struct item {
    unsigned char bytes[64];
} item;

typedef struct side {
    fy_segment *segment;
    int ranks;
    ferry *f[RANKS_MAX];
    ferry_handler on_request, on_message;
    ferry_object_type type;
    uint64_t arrived, begun;
} side;

static inline void begin(side *s)
{
    s->begun++;
    CALLGRIND_TOGGLE_COLLECT;
}

static inline void end(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static void on_request(ferry *f, int source, const ferry_message *m)
{
    side *s = ferry_user_data(f);
    (void)source, (void)m;
    s->arrived++;
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *m)
{
    side *s = ferry_user_data(f);
    (void)object, (void)data, (void)source, (void)m;
    s->arrived++;
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    side *s = arg;
    (void)f, (void)receipt;
    s->arrived++;
}

/* Each reading takes so long: what the runtime does next depends on time, which a busy machine
 * would change. */
static uint64_t read_clock(fy_port *port)
{
    enum { READING_NS = 100 };
    static uint64_t now_ns = UINT64_C(1) << 40;
    (void)port;
    return now_ns += READING_NS;
}

static const fy_port_ops *with_clock(const fy_port_ops *ops)
{
    static fy_port_ops ours;
    ours = *ops;
    ours.host.now = ours.host.cpu = read_clock;
    return &ours;
}

static void open_rank(side *s, int rank, const ferry_options *options)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "item", .flat_bytes = sizeof(item)};
    fy_port *port;
    ferry *f = NULL;
    check(f, fy_shm_join(s->segment, rank, &port));
    port->ops = with_clock(port->ops);
    check(f, fy_rank_create(port, options, &f));
    s->f[rank] = f;
    ferry_user_data_set(f, s);
    check(f, ferry_object_type_register(f, &ops, &s->type));
    check(f, ferry_handler_register(f, "request", on_request, &s->on_request));
    check(f, ferry_object_handler_register(f, "message", on_message, &s->on_message));
}

/* Until no rank has anything left to do, and nobody looks for more where nothing has been lately.
 */
static void settle(side *s)
{
    enum { QUIET = 300 };
    for (int quiet = 0; quiet < QUIET;) {
        int count = 0;
        for (int rank = 0; rank < s->ranks && rank < PAIR; rank++)
            count += ferry_poll(s->f[rank]);
        quiet = count == 0 ? quiet + 1 : 0;
    }
}

static void open_side(side *s, int ranks)
{
    ferry_options options;
    int fd;
    check(NULL, fy_options_read(NULL, &options));
    const fy_shm_options shm = {.ranks = ranks,
                                .heap_bytes = (size_t)(ranks > PAIR ? 1 : 64) << 20,
                                .ring_slots = ranks > PAIR ? 16 : options.ring_slots,
                                .ring_bytes = ranks > PAIR ? 1024 : options.ring_bytes};
    *s = (side){.ranks = ranks};
    check(NULL, fy_segment_create(&shm, &fd));
    check(NULL, fy_segment_map(fd, &s->segment));
    close(fd);
    for (int rank = 0; rank < ranks; rank++)
        open_rank(s, rank, &options);
    for (int rank = 1; rank < ranks; rank++) {
        const ferry_message m = {.handler = s->on_request};
        check(s->f[rank], ferry_request_send(s->f[rank], 0, &m, NULL));
    }
    settle(s);
}

static void close_side(side *s)
{
    for (int rank = 0; rank < s->ranks; rank++)
        fy_rank_destroy(s->f[rank]);
    fy_segment_unmap(s->segment);
}

/* Polls until so many have arrived; not counted. */
static void until(side *s, int rank, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f[rank], ferry_poll(s->f[rank]));
}

static void nothing(side *s)
{
    for (int i = 0; i < OPERATIONS; i++) {
        begin(s);
        end();
    }
}

static void poll(side *s)
{
    begin(s);
#pragma GCC unroll 32
    for (int i = 0; i < OPERATIONS; i++)
        (void)ferry_poll(s->f[0]);
    end();
}

typedef enum part { SENT, TAKEN, TAKEN_MANY, BOTH } part;

/* Requests of rank 0 to rank 1, of which one part is counted. */
static void requests(side *s, size_t size_bytes, part which)
{
    unsigned char data[1024] = {0};
    const ferry_message m = {.handler = s->on_request,
                             .word_count = size_bytes == 8,
                             .data = size_bytes > 8 ? data : NULL,
                             .size_bytes = size_bytes > 8 ? size_bytes : 0};
    int batch = which == TAKEN ? 1 : BATCH;
    for (int i = 0; i < OPERATIONS; i += batch) {
        uint64_t wanted = s->arrived + (uint64_t)batch;
        if (which == SENT)
            begin(s);
        for (int k = 0; k < batch; k++)
            if (ferry_request_send(s->f[0], 1, &m, NULL) != 0)
                exit(1);
        if (which != SENT)
            begin(s);
        else
            end();
        while (s->arrived < wanted)
            (void)ferry_poll(s->f[1]);
        if (which != SENT)
            end();
    }
}

static void request_sent(side *s)
{
    requests(s, 8, SENT);
}

static void request_taken(side *s)
{
    requests(s, 8, TAKEN);
}

static void request_batch(side *s)
{
    requests(s, 8, TAKEN_MANY);
}

static void request_long_sent(side *s)
{
    requests(s, 1024, SENT);
}

static void request_long_taken(side *s)
{
    requests(s, 1024, TAKEN);
}

typedef int transfer_fn(ferry *f, int rank, void *target, const void *source, size_t size_bytes,
                        const ferry_track *track);

static void transfers(side *s, transfer_fn *transfer)
{
    uint64_t word = 0;
    void *theirs;
    check(s->f[1], ferry_alloc(s->f[1], sizeof word, &theirs));
    bool puts = transfer == ferry_put;
    for (int i = 0; i < OPERATIONS + 1; i++) {
        if (i == 1)
            begin(s);
        if (transfer(s->f[0], 1, puts ? theirs : &word, puts ? &word : theirs, sizeof word, NULL))
            exit(1);
    }
    end();
    check(s->f[1], ferry_free(s->f[1], theirs));
}

static void put(side *s)
{
    transfers(s, ferry_put);
}

static void get(side *s)
{
    transfers(s, ferry_get);
}

/* An object of `rank`, and with `tasks` one whose messages are tasks. */
static ferry_object make_object(side *s, int rank, bool tasks)
{
    ferry_object object;
    check(s->f[rank], ferry_object_create(s->f[rank], s->type, calloc(1, sizeof(item)), &object));
    if (tasks)
        check(s->f[rank], ferry_balance_add(s->f[rank], object, NULL));
    return object;
}

/* Messages of rank 0 to an object, which it has heard of: what is counted of them. */
static void messages(side *s, int rank, bool tasks, part which)
{
    ferry_object object = make_object(s, rank, tasks);
    const ferry_message m = {.handler = s->on_message, .word_count = 1};
    for (int i = 0; i < OPERATIONS + BATCH; i += BATCH) {
        uint64_t wanted = s->arrived + BATCH;
        if (which != TAKEN && i != 0)
            begin(s);
        for (int k = 0; k < BATCH; k++)
            if (ferry_object_send(s->f[0], object, &m, NULL) != 0)
                exit(1);
        if (which == SENT && i != 0)
            end();
        if (which == TAKEN && i != 0)
            begin(s);
        while (s->arrived < wanted)
            (void)ferry_poll(s->f[rank]);
        if (which != SENT && i != 0)
            end();
    }
    settle(s);
    check(s->f[rank], ferry_object_destroy(s->f[rank], object));
}

static void local_sent(side *s)
{
    messages(s, 0, false, SENT);
}

static void local_both(side *s)
{
    messages(s, 0, false, BOTH);
}

static void remote_sent(side *s)
{
    messages(s, 1, false, SENT);
}

static void remote_taken(side *s)
{
    messages(s, 1, false, TAKEN);
}

static void task_sent(side *s)
{
    messages(s, 0, true, SENT);
}

static void task_both(side *s)
{
    messages(s, 0, true, BOTH);
}

static void migrations(side *s, bool source)
{
    ferry_object object = make_object(s, 0, false);
    for (int i = 0; i < OPERATIONS + 1; i++) {
        ferry *from = s->f[i % 2], *to = s->f[(i + 1) % 2];
        bool counted = i != 0;
        if (source && counted)
            begin(s);
        if (ferry_object_move(from, object, (i + 1) % 2) != 0)
            exit(1);
        if (source && counted)
            end();
        if (!source && counted)
            begin(s);
        (void)ferry_poll(to);
        if (!source && counted)
            end();
        if (source && counted)
            begin(s);
        (void)ferry_poll(from);
        if (source && counted)
            end();
        settle(s);
    }
    int rank = OPERATIONS % 2 == 0 ? 1 : 0;
    check(s->f[rank], ferry_object_destroy(s->f[rank], object));
}

static void migrate_source(side *s)
{
    migrations(s, true);
}

static void migrate_target(side *s)
{
    migrations(s, false);
}

static void track(side *s)
{
    const ferry_message m = {.handler = s->on_request, .word_count = 1};
    const ferry_track told = {.size = sizeof told, .completed = on_end, .completed_arg = s};
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t wanted = s->arrived + 2;
        begin(s);
        int error = ferry_request_send(s->f[0], 1, &m, &told);
        end();
        check(s->f[0], error);
        until(s, 1, wanted - 1);
        begin(s);
        while (s->arrived < wanted)
            (void)ferry_poll(s->f[0]);
        end();
    }
}

/* Calls of both ranks: `source` gives, and the other one takes. Every 16th is a barrier too, in
 * which the ranks would wait for each other. It is started on both, and not counted. */
static void collectives(side *s, ferry_collective_kind kind, int source)
{
    uint64_t values[PAIR] = {0};
    static const size_t sizes[PAIR] = {sizeof *values, sizeof *values};
    const ferry_collective what = {.size = sizeof what,
                                   .kind = kind,
                                   .in = values,
                                   .out = values,
                                   .count = sizeof *values,
                                   .type = FERRY_BYTE,
                                   .out_counts = sizes};
    for (int i = 0; i < OPERATIONS;) {
        bool meets = (s->f[0]->collectives.group->number + 1) % 16 == 0;
        if (!meets)
            begin(s);
        for (int k = 0; k < PAIR; k++) {
            ferry *f = s->f[k == 0 ? source : !source];
            int error = meets ? ferry_collective_start(f, &what, NULL)
                        : kind == FERRY_BROADCAST
                            ? ferry_broadcast(f, 0, values, sizeof *values)
                            : ferry_gatherv(f, 0, values, sizeof *values, values, sizes);
            if (error != 0)
                exit(1);
        }
        if (!meets)
            end();
        else
            settle(s);
        i += !meets;
    }
}

static void broadcast(side *s)
{
    collectives(s, FERRY_BROADCAST, 0);
}

static void gatherv(side *s)
{
    collectives(s, FERRY_GATHERV, 1);
}

static void reduce(side *s)
{
    double low[OPERATIONS] = {0}, high[OPERATIONS] = {0};
    begin(s);
    fy_reduce(FERRY_DOUBLE, FERRY_SUM, low, low, high, OPERATIONS);
    end();
}

static void parcel(side *s)
{
    ferry_parcel own;
    check(s->f[0], ferry_parcel_create(s->f[0], sizeof(item), &own, NULL));
    for (int i = 0; i < OPERATIONS + 2; i++) {
        int rank = i % 2;
        if (i == 2)
            begin(s);
        if (ferry_cell_enqueue(s->f[rank], (ferry_cell){!rank, 0}, own, FERRY_GIVE, 0) != 0 ||
            ferry_cell_dequeue(s->f[!rank], (ferry_cell){!rank, 0}, &own, 0) != 0)
            exit(1);
    }
    end();
    check(s->f[0], ferry_parcel_release(s->f[0], own));
}

static const struct {
    const char *name;
    int ranks;
    void (*run)(side *s);
} cases[] = {
    {"nothing", PAIR, nothing},
    {"poll-2", PAIR, poll},
    {"poll-128", RANKS_MAX, poll},
    {"request-8B-sent", PAIR, request_sent},
    {"request-8B-taken", PAIR, request_taken},
    {"request-8B-batch", PAIR, request_batch},
    {"request-1KiB-sent", PAIR, request_long_sent},
    {"request-1KiB-taken", PAIR, request_long_taken},
    {"put-8B", PAIR, put},
    {"get-8B", PAIR, get},
    {"object-local-sent", PAIR, local_sent},
    {"object-local", PAIR, local_both},
    {"object-remote-sent", PAIR, remote_sent},
    {"object-remote-run", PAIR, remote_taken},
    {"task-sent", PAIR, task_sent},
    {"task", PAIR, task_both},
    {"migrate-source", PAIR, migrate_source},
    {"migrate-target", PAIR, migrate_target},
    {"track-8B", PAIR, track},
    {"broadcast", PAIR, broadcast},
    {"gatherv", PAIR, gatherv},
    {"reduce-value", PAIR, reduce},
    {"parcel", PAIR, parcel},
};

static void measure(int index)
{
    side s;
    char label[96];
    open_side(&s, cases[index].ranks);
    /* The first time is for what is set up when first needed. */
    for (int pass = 0; pass < 2; pass++) {
        s.begun = 0;
        CALLGRIND_ZERO_STATS;
        cases[index].run(&s);
        settle(&s);
    }
    snprintf(label, sizeof label, "%s %d %llu", cases[index].name, OPERATIONS,
             (unsigned long long)s.begun);
    CALLGRIND_DUMP_STATS_AT(label);
    close_side(&s);
}

int main(int argc, char **argv)
{
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (strcmp(argv[i], cases[k].name) == 0)
                measure((int)k);
    return 0;
}
