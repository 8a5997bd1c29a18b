/* Messages and collectives of ARMCI. */
#include <ferry/two_sided.h>

#include "armci_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int armci_msg_me(void)
{
    fy_armci_check("armci_msg_me", 0);
    return fy_compat.me;
}

int armci_msg_nproc(void)
{
    fy_armci_check("armci_msg_nproc", 0);
    return fy_compat.count;
}

void armci_msg_abort(int code)
{
    ARMCI_Error("armci_msg_abort", code);
}

double armci_timer(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void armci_msg_snd(int tag, void *data, int bytes, int to)
{
    static const char call[] = "armci_msg_snd";
    fy_armci_check(call, to);
    size_t size_bytes = fy_armci_number(call, bytes, "bytes");
    fy_compat_check(call, ferry_send(fy_compat.f, to, tag, data, size_bytes, NULL));
}

/* The message that ended a receive. Valid once `ended` is set. */
typedef struct arrival {
    bool ended;
    int rank, bytes;
} arrival;

static void when_received(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    *(arrival *)arg = (arrival){true, receipt->rank, (int)receipt->size_bytes};
}

static void when_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)arg;
    fy_compat_fail("armci_msg_rcv: %s", receipt->reason);
}

static int receive(int tag, void *data, int room, int *bytes, int from)
{
    static const char call[] = "armci_msg_rcv";
    size_t room_bytes = fy_armci_number(call, room, "bytes of room");
    arrival what = {0};
    unsigned turns = 0;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.completed = when_received;
    track.completed_arg = &what;
    track.failed = when_failed;
    fy_compat_check(call, ferry_receive(fy_compat.f, from, tag, data, room_bytes, &track));
    while (!what.ended)
        fy_compat_turn(&turns);
    if (bytes != NULL)
        *bytes = what.bytes;
    return what.rank;
}

void armci_msg_rcv(int tag, void *data, int room, int *bytes, int from)
{
    fy_armci_check("armci_msg_rcv", from);
    (void)receive(tag, data, room, bytes, from);
}

int armci_msg_rcvany(int tag, void *data, int room, int *bytes)
{
    fy_armci_check("armci_msg_rcvany", 0);
    return receive(tag, data, room, bytes, FERRY_ANY_RANK);
}

static void run(const char *call, ferry_collective *what, const ARMCI_Group *group)
{
    what->size = sizeof(*what);
    what->group = fy_armci_group(call, group);
    fy_compat_check(call, ferry_collective_run(fy_compat.f, what));
}

void armci_msg_group_barrier(const ARMCI_Group *group)
{
    ferry_collective what = {.kind = FERRY_BARRIER};
    run("armci_msg_barrier", &what, group);
}

void armci_msg_barrier(void)
{
    armci_msg_group_barrier(NULL);
}

void armci_msg_bcast(void *data, int bytes, int root)
{
    static const char call[] = "armci_msg_bcast";
    ferry_collective what = {.kind = FERRY_BROADCAST,
                             .root = root,
                             .out = data,
                             .count = fy_armci_number(call, bytes, "bytes"),
                             .value_bytes = 1};
    run(call, &what, NULL);
}

void armci_msg_brdcst(void *data, int bytes, int root)
{
    armci_msg_bcast(data, bytes, root);
}

/* An operation on two numbers. */
typedef enum verb { SUM, PRODUCT, MIN, MAX, ABSMIN, ABSMAX } verb;

static verb read_operation(const char *call, const char *operation)
{
    static const char *const names[] = {"+", "*", "min", "max", "absmin", "absmax"};
    fy_armci_address_check(call, operation, "operation");
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
        if (strcmp(operation, names[i]) == 0)
            return (verb)i;
    fy_compat_fail("%s: operation \"%s\"; expected +, *, min, max, absmin or absmax", call,
                   operation);
}

#define REDUCED(NAME, TYPE)                                                                        \
    static TYPE size_of_##NAME(TYPE value)                                                         \
    {                                                                                              \
        return value < 0 ? (TYPE)-value : value;                                                   \
    }                                                                                              \
    static TYPE combine_##NAME(verb what, TYPE a, TYPE b)                                          \
    {                                                                                              \
        TYPE x = size_of_##NAME(a), y = size_of_##NAME(b);                                         \
        switch (what) {                                                                            \
        case SUM:                                                                                  \
            return a + b;                                                                          \
        case PRODUCT:                                                                              \
            return a * b;                                                                          \
        case MIN:                                                                                  \
            return a < b ? a : b;                                                                  \
        case MAX:                                                                                  \
            return a > b ? a : b;                                                                  \
        case ABSMIN:                                                                               \
            return x < y ? x : y;                                                                  \
        case ABSMAX:                                                                               \
            return x > y ? x : y;                                                                  \
        }                                                                                          \
        return a;                                                                                  \
    }                                                                                              \
    static void combine_all_##NAME(void *arg, void *into, const void *low, const void *high,       \
                                   size_t count)                                                   \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            ((TYPE *)into)[i] = combine_##NAME(*(const verb *)arg, ((const TYPE *)low)[i],         \
                                               ((const TYPE *)high)[i]);                           \
    }                                                                                              \
    void armci_msg_group_##NAME(TYPE *x, int count, const char *operation,                         \
                                const ARMCI_Group *group)                                          \
    {                                                                                              \
        static const char call[] = "armci_msg_" #NAME;                                             \
        verb how = read_operation(call, operation);                                                \
        size_t numbers = fy_armci_number(call, count, "numbers");                                  \
        if (numbers > 0)                                                                           \
            fy_armci_address_check(call, x, "array of numbers");                                   \
        for (int i = 0; i < count && how >= ABSMIN; i++)                                           \
            x[i] = size_of_##NAME(x[i]);                                                           \
        ferry_collective what = {.kind = FERRY_ALLREDUCE,                                          \
                                 .in = x,                                                          \
                                 .out = x,                                                         \
                                 .count = numbers,                                                 \
                                 .value_bytes = sizeof(TYPE),                                      \
                                 .combine = combine_all_##NAME,                                    \
                                 .combine_arg = &how};                                             \
        run(call, &what, group);                                                                   \
    }                                                                                              \
    void armci_msg_##NAME(TYPE *x, int count, const char *operation)                               \
    {                                                                                              \
        armci_msg_group_##NAME(x, count, operation, NULL);                                         \
    }
ARMCI_REDUCED(REDUCED)
