/* Goal: put and get between processes, into the shared heap and into registered memory. Method:
 * each rank puts a pattern to the next one's two areas, and gets it back from there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum { SIZE = 100000 };

/* Addresses of a rank's areas, made known to all by broadcast. */
typedef struct areas {
    void *heap, *registered;
} areas;

static int visit(ferry *f, int rank, void *area, unsigned char *data)
{
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    memset(data, ferry_rank(f) + 1, SIZE);
    if (ferry_put(f, rank, area, data, SIZE, &track) != 0 || ferry_op_wait(f, &op) != 0)
        return 1;
    memset(data, 0, SIZE);
    if (ferry_get(f, rank, data, area, SIZE, NULL) != 0)
        return 1;
    for (int i = 0; i < SIZE; i++)
        if (data[i] != (unsigned char)(ferry_rank(f) + 1))
            return 1;
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    int rank = ferry_rank(f), next = (rank + 1) % ferry_ranks(f);
    areas own, target = {NULL, NULL};
    unsigned char *data = malloc(SIZE);
    own.registered = malloc(SIZE);
    if (data == NULL || own.registered == NULL || ferry_alloc(f, SIZE, &own.heap) != 0 ||
        ferry_memory_register(f, own.registered, SIZE) != 0)
        return 1;
    for (int i = 0; i < ferry_ranks(f); i++) {
        areas of_i = own;
        if (ferry_broadcast(f, i, &of_i, sizeof(of_i)) != 0)
            return 1;
        if (i == next)
            target = of_i;
    }
    int wrong = visit(f, next, target.heap, data) + visit(f, next, target.registered, data);
    if (ferry_barrier(f) != 0 || ferry_free(f, own.heap) != 0)
        return 1;
    free(own.registered);
    free(data);
    return wrong;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
