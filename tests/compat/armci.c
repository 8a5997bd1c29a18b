/* Goal: ARMCI's calls do what they say, between processes that see each other's memory, by messages
 * and on nodes of their own. Method: every process writes patterns to its neighbour by each form of
 * put and reads them back by each form of get. All add to process 0 in every type, where the sums
 * are known. Then come words, mutexes, groups, messages and reductions. */
#include <armci.h>

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "process %d: %s:%d: %s\n", me, __FILE__, __LINE__, #condition);        \
            ARMCI_Error("check", 3);                                                               \
        }                                                                                          \
    } while (0)

enum { BYTES = 64 << 10, PROCESSES_MAX = 64 };

static int me, count, next;
static char *all[PROCESSES_MAX];
static char mine[BYTES], back[BYTES];

static void fill(int salt)
{
    for (int i = 0; i < BYTES; i++)
        mine[i] = (char)(i * 7 + me * 31 + salt);
    memset(back, 0, BYTES);
}

/* Compares what the process before this one has written to this one. */
static void check_written(int first, int bytes, int salt)
{
    int before = (me + count - 1) % count;
    for (int i = first; i < first + bytes; i++)
        CHECK(all[me][i] == (char)(i * 7 + before * 31 + salt));
}

static void contiguous(void)
{
    fill(1);
    CHECK(ARMCI_Put(mine, all[next], BYTES, next) == 0);
    CHECK(ARMCI_Put(mine, all[next], 0, next) == 0);
    ARMCI_Fence(next);
    ARMCI_Barrier();
    check_written(0, BYTES, 1);
    CHECK(ARMCI_Get(all[next], back, BYTES, next) == 0);
    CHECK(memcmp(back, mine, BYTES) == 0);
    ARMCI_Barrier();
}

/* A patch of 3 planes of 5 rows of 24 bytes; rows are 64 bytes apart, planes 1,024. */
static void strided(void)
{
    int rows[] = {64, 1024}, shape[] = {24, 5, 3};
    fill(2);
    CHECK(ARMCI_PutS(mine, rows, all[next], rows, shape, 2, next) == 0);
    ARMCI_Barrier();
    for (int plane = 0; plane < 3; plane++)
        for (int row = 0; row < 5; row++)
            check_written(plane * 1024 + row * 64, 24, 2);
    int packed[] = {24, 24 * 5};
    CHECK(ARMCI_GetS(all[next], rows, back, packed, shape, 2, next) == 0);
    for (int plane = 0; plane < 3; plane++)
        for (int row = 0; row < 5; row++)
            CHECK(memcmp(back + plane * 120 + row * 24, mine + plane * 1024 + row * 64, 24) == 0);
    ARMCI_Barrier();
}

static void vector(void)
{
    void *source[8], *target[8], *home[8];
    for (int i = 0; i < 8; i++) {
        source[i] = mine + i * 512;
        target[i] = all[next] + (7 - i) * 512;
        home[i] = back + i * 512;
    }
    armci_giov_t there = {source, target, 100, 8}, here = {target, home, 100, 8};
    armci_hdl_t handle;
    fill(3);
    ARMCI_INIT_HANDLE(&handle);
    CHECK(ARMCI_NbPutV(&there, 1, next, &handle) == 0);
    CHECK(ARMCI_Wait(&handle) == 0);
    CHECK(ARMCI_GetV(&here, 1, next) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(memcmp(home[i], source[i], 100) == 0);
    ARMCI_Barrier();
}

/* Many operations of one handle. */
static void handles(void)
{
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
    fill(4);
    for (int i = 0; i < 64; i++)
        CHECK(ARMCI_NbPut(mine + i * 1024, all[next] + i * 1024, 1024, next, &handle) == 0);
    while (ARMCI_Test(&handle) != 0)
        continue;
    ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
    for (int i = 0; i < 64; i++)
        CHECK(ARMCI_NbGet(all[next] + i * 1024, back + i * 1024, 1024, next, NULL) == 0);
    CHECK(ARMCI_WaitAll() == 0 && memcmp(back, mine, BYTES) == 0);
    CHECK(ARMCI_PutValueDouble(me + 0.5, all[next], next) == 0);
    CHECK(ARMCI_NbPutValueInt(me, all[next] + 8, next, &handle) == 0 && ARMCI_Wait(&handle) == 0);
    ARMCI_Fence(next);
    CHECK(ARMCI_GetValueDouble(all[next], next) == me + 0.5);
    CHECK(ARMCI_GetValueInt(all[next] + 8, next) == me);
    ARMCI_Barrier();
}

/* All add `values` numbers, scaled, to process 0 in one type; the sum of what they add is checked.
 * Half of the numbers go as a patch of rows. */
#define ACCUMULATE(NAME, TYPE, NUMBER, FACTOR)                                                     \
    static void add_##NAME(void)                                                                   \
    {                                                                                              \
        enum { VALUES = 1000, ROW = 100 };                                                         \
        TYPE *values = (TYPE *)(void *)mine, *sums = (TYPE *)(void *)all[0], scale = FACTOR;       \
        int row = ROW * (int)sizeof(TYPE), strides[] = {row}, shape[] = {row, VALUES / ROW};       \
        if (me == 0)                                                                               \
            memset(sums, 0, VALUES * sizeof(TYPE));                                                \
        for (int i = 0; i < VALUES; i++)                                                           \
            values[i] = (TYPE)(i + me);                                                            \
        ARMCI_Barrier();                                                                           \
        CHECK(ARMCI_Acc(NUMBER, &scale, values, sums, VALUES *(int)sizeof(TYPE), 0) == 0);         \
        CHECK(ARMCI_AccS(NUMBER, &scale, values, strides, sums, strides, shape, 1, 0) == 0);       \
        ARMCI_Barrier();                                                                           \
        for (int i = 0; i < VALUES && me == 0; i++) {                                              \
            TYPE sum = 0;                                                                          \
            for (int process = 0; process < count; process++)                                      \
                sum += (TYPE)(2 * scale * (TYPE)(i + process));                                    \
            CHECK(sums[i] == sum);                                                                 \
        }                                                                                          \
        ARMCI_Barrier();                                                                           \
    }
ACCUMULATE(int, int, ARMCI_ACC_INT, 3)
ACCUMULATE(long, long, ARMCI_ACC_LNG, -5)
ACCUMULATE(float, float, ARMCI_ACC_FLT, 0.5F)
ACCUMULATE(double, double, ARMCI_ACC_DBL, 0.25)
ACCUMULATE(complex, float _Complex, ARMCI_ACC_CPL, 1.0F + 2.0F * I)
ACCUMULATE(double_complex, double _Complex, ARMCI_ACC_DCP, 2.0 - 1.0 * I)

static void words(void)
{
    int *number = (int *)(void *)all[0];
    long *wide = (long *)(void *)(all[0] + 8), got = 0;
    if (me == 0)
        memset(all[0], 0, 64);
    ARMCI_Barrier();
    int old = -1;
    for (int i = 0; i < 100; i++) {
        CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &old, number, 2, 0) == 0);
        CHECK(old % 2 == 0 && old >= 2 * i);
        CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &got, wide, -1, 0) == 0 && got <= -i);
    }
    ARMCI_Barrier();
    CHECK(ARMCI_GetValueInt(number, 0) == 200 * count);
    CHECK(ARMCI_GetValueLong(wide, 0) == -100 * count);
    ARMCI_Barrier();
    got = 7;
    if (me == count - 1)
        CHECK(ARMCI_Rmw(ARMCI_SWAP_LONG, &got, wide, 0, 0) == 0 && got == -100 * count);
    ARMCI_Barrier();
    CHECK(ARMCI_GetValueLong(wide, 0) == 7);
    ARMCI_Barrier();
}

/* A number that is read and written under a mutex counts every turn. */
static void mutexes(void)
{
    int *number = (int *)(void *)all[0];
    if (me == 0)
        *number = 0;
    CHECK(ARMCI_Create_mutexes(me == count - 1 ? 3 : 1) == 0);
    ARMCI_Barrier();
    for (int i = 0; i < 20; i++) {
        ARMCI_Lock(2, count - 1);
        CHECK(ARMCI_PutValueInt(ARMCI_GetValueInt(number, 0) + 1, number, 0) == 0);
        ARMCI_Unlock(2, count - 1);
    }
    ARMCI_Barrier();
    CHECK(ARMCI_GetValueInt(number, 0) == 20 * count);
    CHECK(ARMCI_Destroy_mutexes() == 0);
}

static void groups(void)
{
    ARMCI_Group world, half;
    void *parts[PROCESSES_MAX];
    int list[PROCESSES_MAX], used = 0, rank, size;
    ARMCI_Group_get_world(&world);
    CHECK(ARMCIX_Group_split(&world, me % 2, me, &half) == 0);
    ARMCI_Group_size(&half, &size);
    CHECK(ARMCI_Group_rank(&half, &rank) == 0 && rank == me / 2);
    CHECK(ARMCI_Absolute_id(&half, rank) == me);
    CHECK(ARMCI_Malloc_group(parts, 100, &half) == 0);
    memset(parts[rank], me, 100);
    armci_msg_group_barrier(&half);
    int neighbour = ARMCI_Absolute_id(&half, (rank + 1) % size);
    CHECK(ARMCI_Get(parts[(rank + 1) % size], back, 100, neighbour) == 0 && back[99] == neighbour);
    int sum = me;
    armci_msg_group_igop(&sum, 1, "+", &half);
    CHECK(sum == (me % 2) * size + size * (size - 1));
    CHECK(ARMCI_Free_group(parts[rank], &half) == 0);
    ARMCI_Group_free(&half);
    for (int i = 0; i < count; i += 2)
        list[used++] = i;
    ARMCI_Group_create(used, list, &half);
    if (me % 2 == 0) {
        ARMCI_Group_size(&half, &size);
        CHECK(size == used);
        ARMCI_Group_set_default(&half);
        ARMCI_Group_free(&half);
    }
    ARMCI_Group_get_default(&half); /* a group that was freed is not the default */
    ARMCI_Group_size(&half, &size);
    CHECK(size == count);
}

static void messages(void)
{
    int bytes = 0, before = (me + count - 1) % count, flag = 0;
    double values[2] = {me + 1, -me - 1};
    long number = me == 0 ? 42 : 0;
    armci_msg_bcast(&number, sizeof(number), 0);
    CHECK(number == 42);
    armci_msg_dgop(values, 2, "absmax");
    CHECK(values[0] == count && values[1] == count);
    armci_msg_lgop(&number, 1, "min");
    CHECK(number == 42);
    armci_msg_snd(5, &me, sizeof(me), next);
    armci_msg_rcv(5, &flag, sizeof(flag), &bytes, before);
    CHECK(flag == before && bytes == sizeof(flag));
    armci_msg_snd(6, mine, 10, next);
    CHECK(armci_msg_rcvany(6, back, 100, &bytes) == before && bytes == 10);
    CHECK(armci_msg_me() == me && armci_msg_nproc() == count && armci_timer() > 0);
}

/* Reads the flag with a call that takes in messages, each in turn. */
static int look_at_flag(int *flag, int way)
{
    int value = 0;
    armci_hdl_t ended;
    ARMCI_INIT_HANDLE(&ended);
    switch (way) {
    case 0:
        return ARMCI_GetValueInt(flag, me);
    case 1:
        (void)ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &value, flag, 0, me);
        return value;
    case 2:
        (void)ARMCI_Test(NULL);
        break;
    case 3:
        (void)ARMCI_Test(&ended);
        break;
    case 4:
        ARMCI_Fence(me);
        break;
    case 5:
        ARMCI_Lock(0, me);
        ARMCI_Unlock(0, me);
        break;
    }
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* A process that only reads its flag sees it. */
static void flags_by_calls(void)
{
    enum { WAYS = 6 };
    int *flag = (int *)(void *)(all[me] + BYTES - 8);
    CHECK(ARMCI_Create_mutexes(1) == 0);
    for (int way = 0; way < WAYS; way++) {
        __atomic_store_n(flag, 0, __ATOMIC_RELAXED);
        ARMCI_Barrier();
        CHECK(ARMCI_PutValueInt(9, all[next] + BYTES - 8, next) == 0);
        while (look_at_flag(flag, way) != 9)
            continue;
        ARMCI_Barrier();
    }
    CHECK(ARMCI_Destroy_mutexes() == 0);
}

/* The flag comes after the data. */
static void flags(void)
{
    int *flag = (int *)(void *)(all[me] + BYTES - 8);
    __atomic_store_n(flag, 0, __ATOMIC_RELAXED);
    ARMCI_Barrier();
    fill(5);
    CHECK(ARMCI_Put_flag(mine, all[next], 1000, (int *)(void *)(all[next] + BYTES - 8), 9, next) ==
          0);
    unsigned turns = 0;
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 9)
        fy_compat_turn(&turns);
    check_written(0, 1000, 5);
    ARMCI_Barrier();
}

int main(void)
{
    ARMCI_Init();
    me = fy_compat.me;
    count = fy_compat.count;
    next = (me + 1) % count;
    if (getenv("COMPAT_BY_MESSAGES") != NULL)
        for (int process = 0; process < count; process++)
            fy_compat.mapped[process] = process == me;
    fy_compat.all_mapped = fy_compat.all_mapped && getenv("COMPAT_BY_MESSAGES") == NULL;
    CHECK(ARMCI_Malloc((void **)all, BYTES) == 0);
    contiguous();
    strided();
    vector();
    handles();
    add_int();
    add_long();
    add_float();
    add_double();
    add_complex();
    add_double_complex();
    words();
    mutexes();
    groups();
    messages();
    flags();
    flags_by_calls();
    CHECK(ARMCI_Free(all[me]) == 0);
    ARMCI_Finalize();
    return 0;
}
