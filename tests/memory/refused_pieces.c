/* Goal: a put of many pieces without a track logs each piece that its target refuses, with its
 * address and size. The receipt of one with a track names the address of the first piece. Method:
 * rank 0 puts into memory that rank 1 has registered, and beside it. The pieces do not lie
 * together, and frames carry them. */
#include <string.h>

#include "../support/check.h"

#define BAD ((char *)0x1234500)

typedef struct outcome {
    int count;
    uint64_t address;
} outcome;

static void failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    outcome *o = arg;
    (void)f;
    o->count++;
    o->address = receipt->remote_address;
}

static void put_tracked(ferry *f, const char *from)
{
    outcome o = {0, 0};
    ferry_op op;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    const ferry_piece pieces[] = {{BAD, from, 8}, {BAD + 64, from, 8}};
    const ferry_stride stride = {2, 16, 8};
    ferry_strided strided = {BAD + 128, from, 8, 1, &stride};
    track.op = &op;
    track.failed = failed;
    track.failed_arg = &o;
    check(f, ferry_put_vector(f, 1, pieces, 2, &track) == 0, "put_vector");
    check(f, ferry_op_wait(f, &op) == FERRY_ERANGE, "the tracked vector fails");
    check(f, o.count == 1 && o.address == (uintptr_t)BAD, "its receipt names the address");
    check(f, ferry_put_strided(f, 1, &strided, &track) == 0, "put_strided");
    check(f, ferry_op_wait(f, &op) == FERRY_ERANGE, "the tracked blocks fail");
    check(f, o.count == 2 && o.address == (uintptr_t)(BAD + 128), "so does its receipt");
}

/* The second of three small pieces is refused. */
static void get_waiting(ferry *f, const char *good)
{
    char to[24];
    const ferry_piece pieces[] = {{to, good, 8}, {to + 8, BAD + 8, 7}, {to + 16, good, 8}};
    check(f, ferry_get_vector(f, 1, pieces, 3, NULL) == FERRY_ERANGE, "a get is refused");
}

static int run(ferry *f, int argc, char **argv)
{
    char memory[64] = {0}, from[64];
    uint64_t address = (uintptr_t)memory;
    (void)argc, (void)argv;
    memset(from, 7, sizeof from);
    check(f, ferry_rank(f) != 1 || ferry_memory_register(f, memory, sizeof memory) == 0, "memory");
    check(f, ferry_broadcast(f, 1, &address, sizeof address) == 0, "broadcast");
    char *good = (char *)(uintptr_t)address;
    const ferry_piece pieces[] = {{BAD, from, 24}, {good, from, 8}, {good + 32, from, 8}};
    if (ferry_rank(f) == 0) {
        check(f, ferry_put_vector(f, 1, pieces, 3, NULL) == 0, "an untracked put is started");
        put_tracked(f, from);
        get_waiting(f, good);
    }
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, ferry_rank(f) != 1 || (memory[0] == 7 && memory[8] == 0 && memory[39] == 7), "pieces");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
