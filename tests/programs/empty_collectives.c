/* Goal: collectives of nothing are meetings like any other, whoever the root is: they return 0,
 * call no operation and touch no buffer. Method: every sort, at every root, waiting and started,
 * with no values and with values of an own size, with buffers and without. */
#include <stdlib.h>

#include <ferry/ferry.h>

enum { SORTS = FERRY_ALLGATHER + 1, SHAPES = 8, CANARY = 0x5a };

static void combine(void *arg, void *into, const void *low, const void *high, size_t count)
{
    (void)arg, (void)into, (void)low, (void)high, (void)count;
    abort(); /* there is nothing to combine */
}

/* bits of `shape`: buffers given, values of an own size, an own operation */
static ferry_collective call_of(int sort, int root, int shape, unsigned char *in,
                                unsigned char *out)
{
    ferry_collective c = {.size = sizeof(c),
                          .kind = (ferry_collective_kind)sort,
                          .root = root,
                          .in = shape & 1 ? in : NULL,
                          .out = shape & 1 ? out : NULL,
                          .type = FERRY_DOUBLE,
                          .reduction = FERRY_SUM};
    if (shape & 6)
        c.combine = combine;
    if (shape & 2)
        c.value_bytes = 12;
    return c;
}

static int start_and_wait(ferry *f, const ferry_collective *c)
{
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    int error = ferry_collective_start(f, c, &track);
    return error != 0 ? error : ferry_op_wait(f, &op);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    unsigned char in = CANARY, out = CANARY;
    for (int sort = 0; sort < SORTS; sort++) {
        for (int root = 0; root < ferry_ranks(f); root++) {
            for (int shape = 0; shape < SHAPES; shape++) {
                const ferry_collective c = call_of(sort, root, shape, &in, &out);
                if (ferry_collective_run(f, &c) != 0 || start_and_wait(f, &c) != 0)
                    return 1;
            }
            if (ferry_broadcast(f, root, NULL, 0) != 0 ||
                ferry_reduce(f, root, FERRY_FLOAT, FERRY_MAX, NULL, NULL, 0) != 0 ||
                ferry_gather(f, root, NULL, 0, NULL) != 0)
                return 2;
        }
    }
    if (ferry_allreduce(f, FERRY_INT32, FERRY_XOR, NULL, NULL, 0) != 0 ||
        ferry_scan(f, FERRY_INT64, FERRY_MIN, NULL, NULL, 0) != 0 ||
        ferry_allgather(f, NULL, 0, NULL) != 0)
        return 3;
    return in == CANARY && out == CANARY ? 0 : 4;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
