/* Ferry's objects, and with BENCH_REFERENCE in the environment what each of their operations is
 * compared with: the parts say what that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/objects_side.h"

void bench_until(state *s, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f, ferry_poll(s->f));
}

item *bench_item(size_t size_bytes)
{
    item *i = malloc(sizeof *i + size_bytes);
    if (!i)
        exit(1);
    i->size_bytes = size_bytes;
    memset(i->bytes, 1, size_bytes);
    return i;
}

item *bench_shared_item(ferry *f, size_t size_bytes)
{
    void *out;
    check(f, ferry_alloc(f, sizeof(item) + size_bytes, &out));
    item *i = out;
    i->size_bytes = size_bytes;
    memset(i->bytes, 1, size_bytes);
    return i;
}

static size_t item_packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(item) + ((const item *)data)->size_bytes;
}

static void register_types(state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "item", .packed_size = item_packed_size};
    ferry_object_ops shared = ops;
    ferry *f = s->f;
    shared.flags = FERRY_OBJECT_SHARED;
    check(f, ferry_object_type_register(f, &ops, &s->type));
    check(f, ferry_object_type_register(f, &shared, &s->shared_type));
}

void bench_objects_register(state *s)
{
    register_types(s);
    bench_objects_messages_register(s);
    bench_objects_moves_register(s);
}

static void create_objects(state *s)
{
    ferry *f = s->f;
    check(f, ferry_object_create(f, s->type, bench_item(64), &s->own));
    for (int rank = 0; rank < ferry_ranks(f) && rank < 2; rank++) {
        s->objects[rank] = s->own;
        check(f, ferry_broadcast(f, rank, &s->objects[rank], sizeof s->objects[rank]));
    }
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f)};
    bool reference = getenv("BENCH_REFERENCE") != NULL;
    bench_board *board = bench_board_open();
    (void)argc;
    (void)argv;
    if (!board)
        return 1;
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    ferry_user_data_set(f, &s);
    bench_objects_register(&s);
    bench_objects_directory(&team, reference);
    bench_objects_messages(&team, reference);
    bench_objects_moves(&team, reference);
    bench_objects_work(&team, reference);
    create_objects(&s);
    bench_pin(s.rank);
    bench_team_serve(&team);
    bench_objects_work_end(&s);
    return s.sum == 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
