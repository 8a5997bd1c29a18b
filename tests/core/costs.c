/* A program whose costs are known in the simulator's time: an object takes 3 ms to pack, 5 ms to
 * unpack, and 7 ms for each message. Ranks 0 and 2 have one object each. Both objects move to rank
 * 1 at the start. Rank 2 sends one message to rank 0's object before, and one after, which is
 * forwarded. For profile_test.sh. */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

static void check(ferry *f, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "costs: %s\n", ferry_error_message(f));
    exit(EXIT_FAILURE);
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f, (void)data;
    return 1;
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)size_bytes;
    *(char *)buffer = *(const char *)data;
    ferry_compute(f, 0.003);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    char *data = malloc(1);
    (void)object, (void)size_bytes;
    if (data != NULL)
        *data = *(const char *)buffer;
    ferry_compute(f, 0.005);
    return data;
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void work(ferry *f, ferry_object object, void *data, int source,
                 const ferry_message *message)
{
    (void)object, (void)data, (void)source, (void)message;
    ferry_compute(f, 0.007);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "thing",
                                         .packed_size = packed_size,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .destroy = destroy};
    ferry_object_type type;
    ferry_object own = {0}, object;
    ferry_handler handler;
    (void)argc, (void)argv;
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "work", work, &handler));
    const ferry_message message = {.handler = handler};
    if (ferry_rank(f) != 1)
        check(f, ferry_object_create(f, type, calloc(1, 1), &own));
    object = own;
    check(f, ferry_broadcast(f, 0, &object, sizeof object));
    for (int i = 0; i < 2; i++) {
        if (ferry_rank(f) == 2)
            check(f, ferry_object_send(f, object, &message, NULL));
        check(f, ferry_quiesce(f));
        if (ferry_rank(f) != 1 && i == 0)
            check(f, ferry_object_move(f, own, 1));
        check(f, ferry_quiesce(f));
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
