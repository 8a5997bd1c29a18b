/* Goal: data of elements in the shared heap are moved by their address, and others are packed.
 * Method: elements go from rank to rank by chance. Each carries its own address, a pattern, and how
 * often it was unpacked. At times an element replaces its data, in the heap or outside it. The heap
 * is so small that blocks which are never freed would fill it. Arguments: hops, seed. */
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check_at.h"
#include "../support/random.h"

enum { ELEMENTS = 12, BYTES = 16 << 10 };

typedef struct block {
    const struct block *self;
    bool in_heap;
    uint64_t key, hops, hops_left;
    uint64_t unpacked, expected; /* calls of unpack, and moves of data outside the heap */
    unsigned char pattern[BYTES];
} block;

typedef struct world {
    ferry *f;
    ferry_handler go;
    uint64_t random, hops, done;
} world;

static block *make_block(ferry *f, bool in_heap)
{
    void *memory;
    if (in_heap)
        CHECK(f, ferry_alloc(f, sizeof(block), &memory) == 0);
    else
        CHECK(f, (memory = malloc(sizeof(block))) != NULL);
    block *b = memory;
    b->self = b;
    b->in_heap = in_heap;
    return b;
}

static void destroy(ferry *f, void *data)
{
    block *b = data;
    if (b->in_heap)
        CHECK(f, ferry_free(f, b) == 0);
    else
        free(b);
}

static size_t packed_size(ferry *f, const void *data)
{
    const block *b = data;
    CHECK(f, !b->in_heap);
    return sizeof *b;
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    memcpy(buffer, data, size_bytes);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    block *b = make_block(f, false);
    memcpy(b, buffer, size_bytes);
    b->self = b;
    b->unpacked++;
    return b;
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *bytes, size_t size_bytes)
{
    const world *w = arg;
    (void)bytes, (void)size_bytes;
    block *b = make_block(f, e->index.at[0] % 3 != 0);
    b->key = (uint64_t)e->index.at[0];
    b->hops = b->unpacked = b->expected = 0;
    b->hops_left = w->hops;
    memset(b->pattern, (int)b->key, sizeof b->pattern);
    return b;
}

/* Puts the data into a new block, in the heap or outside it. */
static void replace(ferry *f, ferry_element *e, bool in_heap)
{
    block *old = e->data, *b = make_block(f, in_heap);
    memcpy(b, old, sizeof *b);
    b->self = b;
    b->in_heap = in_heap;
    destroy(f, old);
    e->data = b;
}

static void take_go(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    world *w = ferry_user_data(f);
    ferry_element *e = data;
    block *b = e->data;
    (void)source;
    CHECK(f, b->self == b && b->unpacked == b->expected && b->key == (uint64_t)e->index.at[0]);
    CHECK(f, b->hops == message->words[0]);
    for (size_t i = 0; i < sizeof b->pattern; i++)
        CHECK(f, b->pattern[i] == (unsigned char)(b->key + b->hops));
    if (b->hops_left == 0) {
        w->done++;
        return;
    }
    if (draw(&w->random, 4) == 0)
        replace(f, e, draw(&w->random, 2) == 0);
    b = e->data;
    b->hops_left--;
    b->hops++;
    memset(b->pattern, (int)(b->key + b->hops), sizeof b->pattern);
    /* A move to the rank where the element is packs and unpacks it too. */
    int next =
        (ferry_rank(f) + 1 + (int)draw(&w->random, (uint64_t)ferry_ranks(f) - 1)) % ferry_ranks(f);
    b->expected += !b->in_heap;
    CHECK(f, ferry_object_move(f, object, next) == 0);
    ferry_message on = {.handler = w->go, .word_count = 1, .words = {b->hops}};
    CHECK(f, ferry_collection_send(e->collection, e->index, &on, NULL) == 0);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    world w = {.f = f, .hops = argc > 1 ? strtoull(argv[1], NULL, 10) : 100};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    w.random = seed * 0x9e3779b97f4a7c15u + (uint64_t)ferry_rank(f) * 77 + 1;
    ferry_user_data_set(f, &w);
    CHECK(f, ferry_object_handler_register(f, "go", take_go, &w.go) == 0);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.packed_size = packed_size;
    ops.pack = pack;
    ops.unpack = unpack;
    ops.destroy = destroy;
    ops.flags = FERRY_OBJECT_SHARED;
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.extents[0] = ELEMENTS;
    options.ops = &ops;
    options.make = make;
    options.make_arg = &w;
    options.fixed = true;
    ferry_collection *c;
    CHECK(f, ferry_collection_create(f, &options, &c) == 0);
    ferry_message first = {.handler = w.go, .word_count = 1, .words = {0}};
    for (int i = 0; ferry_rank(f) == 0 && i < ELEMENTS; i++)
        CHECK(f, ferry_collection_send(c, ferry_index_of(i, 0, 0), &first, NULL) == 0);
    CHECK(f, ferry_quiesce(f) == 0);
    CHECK(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &w.done, &w.done, 1) == 0);
    CHECK(f, w.done == ELEMENTS);
    CHECK(f, ferry_collection_destroy(c) == 0 && ferry_object_count(f) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
