/* Goal: puts and gets of sizes that no memory has fail with FERRY_ERANGE in the call, name the
 * size, read and write nothing, and leave the job in order. Method: rank 0 calls each form with an
 * address in the heap of the last rank, which may be itself, and with one in a registered region
 * there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../support/check.h"

enum { BYTES = 4096, FORMS = 8 };

typedef struct target {
    uint64_t heap, region;
} target;

/* Form `form`: the odd ones get. Strides: blocks of 8 bytes, `size` in all. */
static int call(ferry *f, int form, int rank, void *there, void *here, size_t size,
                const ferry_track *track)
{
    bool gets = form % 2 != 0;
    void *to = gets ? here : there, *from = gets ? there : here;
    const ferry_piece pieces[] = {{to, from, 8}, {to, from, size}};
    const ferry_transfer transfer = {.target = to, .source = from, .size_bytes = size};
    const ferry_stride stride = {size / 8, 8, 8};
    const ferry_strided strided = {to, from, 8, 1, &stride};
    switch (form) {
    case 0:
        return ferry_put(f, rank, to, from, size, track);
    case 1:
        return ferry_get(f, rank, to, from, size, track);
    case 2:
        return ferry_put_run(f, rank, &transfer, track);
    case 3:
        return ferry_get_run(f, rank, &transfer, track);
    case 4:
        return ferry_put_vector(f, rank, pieces, 2, track);
    case 5:
        return ferry_get_vector(f, rank, pieces, 2, track);
    case 6:
        return ferry_put_strided(f, rank, &strided, track);
    default:
        return ferry_get_strided(f, rank, &strided, track);
    }
}

static void call_all(ferry *f, int rank, void *there, void *here)
{
    static const size_t sizes[] = {(size_t)1 << 42, SIZE_MAX / 2 - 7, SIZE_MAX - 15};
    char digits[24];
    for (int form = 0; form < FORMS; form++) {
        for (int i = 0; i < 3; i++) {
            ferry_op op = {0};
            ferry_track track = FERRY_TRACK_DEFAULTS;
            track.op = &op;
            (void)snprintf(digits, sizeof(digits), "%zu bytes", sizes[i]);
            int error = call(f, form, rank, there, here, sizes[i], i % 2 == 0 ? &track : NULL);
            if (form >= 6 && i == 2) { /* the strides leave the address space */
                check(f, error == FERRY_ERANGE || error == FERRY_EINVAL, "too far");
                continue;
            }
            check(f, error == FERRY_ERANGE, "another error than FERRY_ERANGE");
            check(f, op.word == 0, "an operation was left");
            check(f, strstr(ferry_error_message(f), digits) != NULL, "no size");
            check(f,
                  strstr(ferry_error_message(f), "xpected") != NULL ||
                      strstr(ferry_error_message(f), "outside every") != NULL,
                  "no word of what was expected");
        }
    }
    const ferry_stride stride[] = {{SIZE_MAX / 2, 0, 0}, {SIZE_MAX / 2, 0, 0}};
    const ferry_strided strided = {there, here, 8, 2, stride};
    check(f, ferry_put_strided(f, rank, &strided, NULL) == FERRY_ERANGE, "a product too large");
}

static int run(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    unsigned char here[BYTES] = {0}, *there = malloc(BYTES);
    void *heap = NULL;
    int last = ferry_ranks(f) - 1;
    check(f, there != NULL && ferry_alloc(f, BYTES, &heap) == 0, "alloc");
    memset(heap, 7, BYTES);
    memset(there, 7, BYTES);
    check(f, ferry_memory_register(f, there, BYTES) == 0, "register");
    target own = {(uintptr_t)heap, (uintptr_t)there}, targets[64];
    check(f, ferry_allgather(f, &own, sizeof(own), targets) == 0, "allgather");
    if (ferry_rank(f) == 0) {
        call_all(f, last, (void *)(uintptr_t)targets[last].heap, here);
        call_all(f, last, (void *)(uintptr_t)targets[last].region, here);
    }
    check(f, ferry_quiesce(f) == 0, "quiesce");
    for (int i = 0; i < BYTES; i++)
        check(f, ((unsigned char *)heap)[i] == 7 && there[i] == 7 && here[i] == 0, "written");
    check(f, ferry_barrier(f) == 0, "barrier");
    if (ferry_rank(f) == 0)
        check(f,
              ferry_put(f, last, (void *)(uintptr_t)targets[last].region, here, BYTES, NULL) == 0,
              "a put that fits");
    check(f, ferry_quiesce(f) == 0, "quiesce");
    check(f, ferry_rank(f) != last || there[BYTES - 1] == 0, "the put is not there");
    check(f, ferry_memory_unregister(f, there) == 0, "unregister");
    free(there);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, run, NULL);
}
