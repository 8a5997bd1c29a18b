/* Chain: objects that exchange edges with their neighbours, step after step, without a barrier.
 *
 * A rod is cut into chunks, which are objects that the scheduler may move. A chunk does a step when
 * the edges of both neighbours have come. A neighbour may be one step ahead, so a chunk keeps the
 * edges of two steps. The heat of the rod stays the same.
 *
 *     cc chain.c $(pkg-config --cflags --libs ferry) -o chain
 *     ferry run -n 4 ./chain */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { CHUNKS = 32, CELLS = 1000, STEPS = 100, LEFT = 0, RIGHT = 1, START = 2 };

typedef struct chunk {
    int number, step;
    int came[2]; /* edges that have come, of even and odd steps */
    double edge[2][2];
    double cells[CELLS];
} chunk;

typedef struct rod { /* of each rank */
    ferry_handler handler;
    ferry_object names[CHUNKS];
    double heat; /* of chunks that ended here */
} rod;

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

static void send_edges(ferry *f, const chunk *c)
{
    const rod *r = ferry_user_data(f);
    for (int side = LEFT; side <= RIGHT; side++) {
        int neighbour = (c->number + (side == LEFT ? CHUNKS - 1 : 1)) % CHUNKS;
        double value = c->cells[side == LEFT ? 0 : CELLS - 1];
        uint64_t step = (uint64_t)c->step, edge = side == LEFT ? RIGHT : LEFT;
        ferry_message message = {.handler = r->handler, .word_count = 3, .words = {step, edge}};
        memcpy(&message.words[2], &value, sizeof value);
        check(f, ferry_object_send(f, r->names[neighbour], &message, NULL));
    }
}

static void advance(chunk *c, const double *edge)
{
    double before = edge[LEFT];
    for (int i = 0; i < CELLS; i++) {
        double now = c->cells[i], after = i + 1 < CELLS ? c->cells[i + 1] : edge[RIGHT];
        c->cells[i] += 0.25 * (before - 2 * now + after);
        before = now;
    }
}

static void take(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)source;
    chunk *c = data;
    int parity = (int)message->words[0] % 2;
    if (message->words[1] == START)
        send_edges(f, c);
    else
        memcpy(&c->edge[parity][message->words[1]], &message->words[2], sizeof(double));
    c->came[parity]++;
    while (c->step < STEPS && c->came[c->step % 2] == 2) {
        advance(c, c->edge[c->step % 2]);
        c->came[c->step++ % 2] = 0;
        if (c->step < STEPS)
            send_edges(f, c);
    }
    rod *r = ferry_user_data(f);
    for (int i = 0; c->step == STEPS && i < CELLS; i++)
        r->heat += c->cells[i];
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    rod r = {.heat = 0};
    ferry_user_data_set(f, &r);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "chunk";
    ops.flat_bytes = sizeof(chunk);
    ferry_object_type type;
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "edge", take, &r.handler));
    check(f, ferry_balance_enable(f, true));
    for (int i = ferry_rank(f); i < CHUNKS; i += ferry_ranks(f)) {
        chunk *c = calloc(1, sizeof *c);
        if (c == NULL)
            ferry_abort(f, 1, "no memory");
        c->number = i;
        c->came[0] = -1; /* step 0 waits for the start too */
        c->cells[0] = i == 0 ? 1000 : 0;
        check(f, ferry_object_create(f, type, c, &r.names[i]));
        check(f, ferry_balance_add(f, r.names[i], NULL));
    }
    /* Each name is 0 on all ranks but one. Every rank has all names before the first task runs. */
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_OR, r.names, r.names, CHUNKS));
    check(f, ferry_barrier(f));
    const ferry_message start = {.handler = r.handler, .word_count = 2, .words = {0, START}};
    for (int i = ferry_rank(f); i < CHUNKS; i += ferry_ranks(f))
        check(f, ferry_object_send(f, r.names[i], &start, NULL));
    check(f, ferry_quiesce(f));
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, &r.heat, &r.heat, 1));
    if (ferry_rank(f) == 0)
        printf("%d chunks, %d steps, heat %.3f\n", CHUNKS, STEPS, r.heat);
    return r.heat > 999.999 && r.heat < 1000.001 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
