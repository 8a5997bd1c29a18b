/* Bag: an object with memory of its own, which moves from rank to rank.
 *
 * A bag is a list of numbers that grows. Each rank sends numbers to it by its name. After each
 * number the bag moves on, so most messages follow it.
 *
 *     cc bag.c $(pkg-config --cflags --libs ferry) -o bag
 *     ferry run -n 4 ./bag */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { NUMBERS = 25 }; /* of each rank */

typedef struct bag {
    size_t count;
    int64_t *numbers;
} bag;

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

/* The four functions of the type: how long the bag is when packed, how to pack it, how to make it
 * again on the other rank, and how to free it. */
static size_t bag_size(ferry *f, const void *data)
{
    (void)f;
    return ((const bag *)data)->count * sizeof(int64_t);
}

static void bag_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    if (size_bytes > 0)
        memcpy(buffer, ((const bag *)data)->numbers, size_bytes);
}

static void *bag_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f, (void)object;
    bag *b = malloc(sizeof *b);
    int64_t *numbers = malloc(size_bytes + 1);
    if (b == NULL || numbers == NULL) {
        free(b), free(numbers);
        return NULL; /* Ferry asks again later */
    }
    memcpy(numbers, buffer, size_bytes);
    *b = (bag){.count = size_bytes / sizeof *numbers, .numbers = numbers};
    return b;
}

static void bag_destroy(ferry *f, void *data)
{
    (void)f;
    free(((bag *)data)->numbers);
    free(data);
}

static void add(ferry *f, ferry_object object, void *data, int source, const ferry_message *message)
{
    (void)source;
    bag *b = data;
    int64_t *numbers = realloc(b->numbers, (b->count + 1) * sizeof *numbers);
    if (numbers == NULL)
        ferry_abort(f, 1, "no memory for the bag");
    b->numbers = numbers;
    b->numbers[b->count++] = (int64_t)message->words[0];
    check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = "bag";
    ops.packed_size = bag_size, ops.pack = bag_pack;
    ops.unpack = bag_unpack, ops.destroy = bag_destroy;
    ferry_object_type type;
    ferry_handler handler;
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "add", add, &handler));

    ferry_object object = {0};
    if (ferry_rank(f) == 0)
        check(f, ferry_object_create(f, type, calloc(1, sizeof(bag)), &object));
    check(f, ferry_broadcast(f, 0, &object, sizeof object)); /* a name may travel in any message */

    for (uint64_t i = 0; i < NUMBERS; i++) {
        const ferry_message message = {.handler = handler, .word_count = 1, .words = {i}};
        check(f, ferry_object_send(f, object, &message, NULL));
    }
    check(f, ferry_quiesce(f)); /* no message is in flight, and the bag is at rest */

    bag *b = ferry_object_data(f, object); /* NULL on the ranks where the bag is not */
    if (b != NULL) {
        int64_t sum = 0;
        for (size_t i = 0; i < b->count; i++)
            sum += b->numbers[i];
        printf("%zu numbers, sum %d\n", b->count, (int)sum);
        check(f, ferry_object_destroy(f, object));
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
