/* Goal: puts and gets move the right bytes to the right PE. Method: each PE writes to its right
 * neighbour, in the heap and in variables, plain and strided, and both sides check. */
#include "check.h"

#include <string.h>

enum { COUNT = 3000, SMALL = 8 };

static double variables[COUNT];
static int flag;

/* A ring: the value goes on when the flag has come. */
static void ring(void)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    double values[COUNT];
    if (me != 0)
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    for (int i = 0; i < COUNT; i++)
        values[i] = me == 0 ? i : variables[i] + 1;
    shmem_put(variables, values, COUNT, right);
    shmem_fence();
    shmem_p(&flag, 1, right);
    shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++)
        CHECK(variables[i] == i + (me + n - 1) % n);
    shmem_barrier_all();
}

static void plain(long *heap)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    long mine[COUNT], theirs[COUNT];
    for (int i = 0; i < COUNT; i++)
        mine[i] = me * 10000L + i;
    shmem_long_put_nbi(heap, mine, COUNT, right);
    shmem_barrier_all();
    CHECK(heap[0] == left * 10000L && heap[COUNT - 1] == left * 10000L + COUNT - 1);
    memset(theirs, 0, sizeof(theirs));
    shmem_get(theirs, heap, COUNT, right); /* what this PE has put there */
    CHECK(memcmp(mine, theirs, sizeof(mine)) == 0);
    shmem_barrier_all();
    shmem_putmem((char *)heap + 1, "word", 5, right);
    shmem_quiet();
    char text[5];
    shmem_getmem_nbi(text, (char *)heap + 1, 5, right);
    shmem_quiet();
    CHECK(strcmp(text, "word") == 0);
    shmem_barrier_all(); /* the left PE has read what this PE overwrites */
    shmem_put16(heap, "ab", 1, me);
    shmem_get128(theirs, heap, 2, me);
    CHECK(memcmp(theirs, heap, 32) == 0);
    shmem_barrier_all();
}

static void strided(short *heap)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    short source[3 * SMALL], back[2 * SMALL] = {0};
    for (int i = 0; i < 3 * SMALL; i++)
        source[i] = (short)(100 * me + i);
    for (int i = 0; i < 2 * SMALL; i++)
        heap[i] = -1;
    shmem_barrier_all();
    shmem_iput(heap, source, 2, 3, SMALL, right);
    shmem_barrier_all();
    for (int i = 0; i < SMALL; i++)
        CHECK(heap[2 * i] == 100 * left + 3 * i && heap[2 * i + 1] == -1);
    shmem_iget16(back, heap, 1, 2, SMALL, right);
    for (int i = 0; i < SMALL; i++)
        CHECK(back[i] == 100 * me + 3 * i && back[SMALL + i] == 0);
    shmem_barrier_all();
}

static void signals(double *heap, uint64_t *signal)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    double pair[2] = {me, -me};
    shmem_double_put_signal(heap, pair, 2, signal, 5, SHMEM_SIGNAL_SET, right);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 5) == 5);
    CHECK(heap[0] == left && heap[1] == -left);
    shmem_barrier_all();
    shmem_put_signal_nbi(heap + 2 * me, pair, 2, signal, 1, SHMEM_SIGNAL_ADD, 0);
    if (me == 0)
        shmem_signal_wait_until(signal, SHMEM_CMP_GE, 5 + (uint64_t)n);
    for (int pe = 0; me == 0 && pe < n; pe++)
        CHECK(heap[2 * pe] == pe);
    CHECK(me != 0 || shmem_signal_fetch(signal) == 5 + (uint64_t)n);
    shmem_barrier_all();
}

/* Queries of PEs and addresses. */
static void queries(long *heap)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, major, minor, provided;
    long local = 0;
    char name[SHMEM_MAX_NAME_LEN];
    CHECK(shmem_pe_accessible(0) && !shmem_pe_accessible(n) && !shmem_pe_accessible(-1));
    CHECK(shmem_addr_accessible(heap, right) && shmem_addr_accessible(&flag, right));
    CHECK(!shmem_addr_accessible(&local, right));
    CHECK(shmem_ptr(heap, me) == heap && shmem_ptr(&flag, me) == &flag);
    CHECK(n == 1 || shmem_ptr(&flag, right) == NULL);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    shmem_query_thread(&provided);
    CHECK(major == 1 && minor == 5 && strcmp(name, "Ferry") == 0);
    CHECK(provided == SHMEM_THREAD_SERIALIZED);
    long *theirs = shmem_ptr(heap, right);
    if (theirs != NULL)
        *theirs = me;
    else
        shmem_p(heap, (long)me, right);
    shmem_barrier_all();
    CHECK(*heap == (me + n - 1) % n);
    shmem_barrier_all();
}

int main(void)
{
    begin();
    long *heap = shmem_malloc((COUNT + 2) * sizeof(long));
    CHECK(heap != NULL);
    ring();
    plain(heap);
    strided((short *)heap);
    uint64_t *signal = shmem_calloc(1, sizeof(*signal));
    signals((double *)heap, signal);
    queries(heap);
    shmem_finalize();
    return 0;
}
