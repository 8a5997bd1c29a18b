/* Goal: steps of an N-body program, whose chunks send to each other and to themselves while a
 * scheduler moves them, end under heavy loss of packets. Method: each step, every chunk sends its
 * particles to all chunks, then ferry_quiesce. Counts what each chunk got. The simulator ends a run
 * that is stuck.
 *
 *     nbody [CHUNKS_PER_RANK [STEPS]] */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

#include "oracle.h"

enum { PARTICLES = 32, AXES = 3, HEAVY = 4 };

typedef struct chunk {
    uint64_t index;
    double at[PARTICLES][AXES], pull[PARTICLES][AXES];
} chunk;

typedef struct job {
    int chunks, steps;
    ferry_object *names;
    ferry_handler step, part;
    int64_t parts;
} job;

static void on_part(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    job *j = ferry_user_data(f);
    chunk *c = data;
    const double *other = message->data;
    (void)object, (void)source;
    for (int a = 0; a < PARTICLES; a++)
        for (int b = 0; b < PARTICLES; b++)
            for (int k = 0; k < AXES; k++)
                c->pull[a][k] += other[b * AXES + k] - c->at[a][k];
    ferry_compute(f, c->index < HEAVY ? 100e-6 : 20e-6);
    j->parts++;
}

static void on_step(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    job *j = ferry_user_data(f);
    chunk *c = data;
    (void)object, (void)source, (void)message;
    for (int a = 0; a < PARTICLES; a++)
        for (int k = 0; k < AXES; k++)
            c->at[a][k] += 1e-6 * c->pull[a][k];
    const ferry_message part = {.handler = j->part, .data = c->at, .size_bytes = sizeof c->at};
    for (int i = 0; i < j->chunks; i++)
        must(f, ferry_object_send(f, j->names[i], &part, NULL), "send");
}

static void create_chunks(ferry *f, const job *j, int per_rank, ferry_object *mine)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "chunk", .flat_bytes = sizeof(chunk)};
    ferry_object_type type;
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    for (int i = 0; i < per_rank; i++) {
        chunk *c = calloc(1, sizeof *c);
        if (c == NULL)
            abort();
        c->index = (uint64_t)(ferry_rank(f) * per_rank + i);
        for (int a = 0; a < PARTICLES; a++)
            for (int k = 0; k < AXES; k++)
                c->at[a][k] = (double)((c->index * 37 + (uint64_t)(a * AXES + k) * 11) % 101);
        must(f, ferry_object_create(f, type, c, &mine[i]), "create");
        must(f, ferry_balance_add(f, mine[i], 0), "add");
    }
    must(f, ferry_allgather(f, mine, sizeof *mine * (size_t)per_rank, j->names), "allgather");
    must(f, ferry_barrier(f), "barrier");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    int per_rank = argc > 1 ? atoi(argv[1]) : 8;
    job j = {.chunks = per_rank * ferry_ranks(f), .steps = argc > 2 ? atoi(argv[2]) : 10};
    ferry_object *mine = calloc((size_t)per_rank, sizeof *mine);
    j.names = calloc((size_t)j.chunks, sizeof *j.names);
    if (mine == NULL || j.names == NULL)
        abort();
    ferry_user_data_set(f, &j);
    must(f, ferry_object_handler_register(f, "step", on_step, &j.step), "step");
    must(f, ferry_object_handler_register(f, "part", on_part, &j.part), "part");
    create_chunks(f, &j, per_rank, mine);
    must(f, ferry_balance_enable(f, true), "balance");
    const ferry_message step = {.handler = j.step};
    for (int s = 0; s < j.steps; s++) {
        for (int i = 0; i < per_rank; i++)
            must(f, ferry_object_send(f, mine[i], &step, NULL), "send");
        must(f, ferry_quiesce(f), "quiesce");
    }
    int64_t parts;
    must(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, &j.parts, &parts, 1), "allreduce");
    free(mine);
    free(j.names);
    if (parts == (int64_t)j.chunks * j.chunks * j.steps)
        return 0;
    fprintf(stderr, "%lld parts instead of %lld\n", (long long)parts,
            (long long)j.chunks * j.chunks * j.steps);
    return 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
