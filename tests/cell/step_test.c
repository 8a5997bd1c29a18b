/* Goal: wherever a rank dies inside an operation, the survivors find the cell and its parcels in
 * the state before or after it, with all counts right, nothing locked and nothing lost. Method:
 * every place, one after the other: a child executes the operation one machine instruction at a
 * time and is killed after the k-th, for every so many k until it gets through. So many is the
 * first argument, or what the build gives. The second one says which k is the first; make soak
 * gives another each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/must.h"
#include "cell/state.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum { RANKS = 48, NUMBER = 5, BEFORE = 3 };

/* The operation of the child. */
typedef struct scenario {
    const char *name;
    void (*prepare)(ferry *f);
    void (*operate)(ferry *f);
    int before, after; /* parcels in the cell */
    int first_after;   /* value of the first one after the operation; 0: do not care */
    bool frees;        /* parcels that it found */
} scenario;

static const ferry_cell cell = {0, NUMBER};
static ferry_parcel own;           /* the child's */
static _Atomic uint32_t *finished; /* shared: it got through */
static fy_segment *segment;
static ferry *survivor;
static int next_rank;
static long stride, start; /* which instructions */

static ferry_parcel make(ferry *f, unsigned char value)
{
    ferry_parcel parcel;
    void *data;
    must(ferry_parcel_create(f, 1, &parcel, &data) == 0, "create");
    *(unsigned char *)data = value;
    return parcel;
}

static void prepare_own(ferry *f)
{
    own = make(f, 100);
}

static void prepare_taken(ferry *f)
{
    must(ferry_cell_dequeue(f, cell, &own, 0) == 0, "deq");
}

static void prepare_read(ferry *f)
{
    must(ferry_cell_read(f, cell, &own, 0) == 0, "read");
}

static void prepare_grown(ferry *f)
{
    must(ferry_cell_enqueue(f, cell, make(f, 99), FERRY_GIVE, 0) == 0, "enq");
    own = make(f, 100);
}

static void prepare_nothing(ferry *f)
{
    (void)f;
}

static void enq_give(ferry *f)
{
    (void)!ferry_cell_enqueue(f, cell, own, FERRY_GIVE, 0);
}

static void enq_keep(ferry *f)
{
    (void)!ferry_cell_enqueue(f, cell, own, FERRY_KEEP, 0);
}

static void deq(ferry *f)
{
    (void)!ferry_cell_dequeue(f, cell, &own, 0);
}

static void read_first(ferry *f)
{
    (void)!ferry_cell_read(f, cell, &own, 0);
}

static void write_give(ferry *f)
{
    (void)!ferry_cell_write(f, cell, own, FERRY_GIVE);
}

static void write_keep(ferry *f)
{
    (void)!ferry_cell_write(f, cell, own, FERRY_KEEP);
}

static void zap(ferry *f)
{
    (void)ferry_cell_clear(f, cell);
}

static void release(ferry *f)
{
    (void)ferry_parcel_release(f, own);
}

static void mod(ferry *f)
{
    void *data;
    (void)!ferry_parcel_modify(f, &own, &data);
}

static void create(ferry *f)
{
    (void)!ferry_parcel_create(f, 1, &own, NULL);
}

static const scenario scenarios[] = {
    {"enq, giving", prepare_own, enq_give, 3, 4, 1, false},
    {"enq, keeping", prepare_own, enq_keep, 3, 4, 1, false},
    {"enq into a larger ring", prepare_grown, enq_give, 4, 5, 1, false},
    {"deq", prepare_nothing, deq, 3, 2, 2, false},
    {"read", prepare_nothing, read_first, 3, 3, 1, false},
    {"write, giving", prepare_own, write_give, 3, 1, 100, true},
    {"write, keeping", prepare_own, write_keep, 3, 1, 100, true},
    {"write of what is there", prepare_read, write_keep, 3, 1, 1, true},
    {"zap", prepare_nothing, zap, 3, 0, 0, true},
    {"release, the last", prepare_taken, release, 2, 2, 2, true},
    {"release, shared", prepare_read, release, 3, 3, 1, false},
    {"mod, copying", prepare_read, mod, 3, 3, 1, false},
    {"create", prepare_nothing, create, 3, 3, 1, false},
};

static void close_segment(void)
{
    if (segment == NULL)
        return;
    fy_rank_destroy(survivor);
    fy_segment_unmap(segment);
    segment = NULL;
}

static void open_segment(void)
{
    const fy_shm_options options = {
        .ranks = RANKS, .heap_bytes = (size_t)8 << 20, .ring_slots = 8, .ring_bytes = 1024};
    int fd;
    must(fy_segment_create(&options, &fd) == 0 && fy_segment_map(fd, &segment) == 0, "segment");
    close(fd);
    survivor = open_rank(segment, 0, "none");
    /* Opening a rank keeps the job's memory from forked processes; here they are ranks. */
    must(madvise(segment->base, segment->total_bytes, MADV_DOFORK) == 0, "madvise");
    next_rank = 1;
}

/* Runs in the child: stops before the operation, for the parent to take it from there. */
static void be_child(const scenario *s, int rank)
{
    ferry *f = open_rank(segment, rank, "none");
    /* The heap's first block of a size takes thousands of steps, all of them before any change. */
    void *block;
    must(ferry_alloc(f, 17 * sizeof(uint64_t), &block) == 0 && ferry_free(f, block) == 0, "alloc");
    must(ferry_parcel_release(f, make(f, 0)) == 0, "release");
    s->prepare(f);
    must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "ptrace");
    raise(SIGSTOP);
    s->operate(f);
    /* seq_cst: for another process */
    atomic_store(finished, 1);
    for (;;)
        pause();
}

/* Whether the child got through in `steps` instructions; it is dead on return. */
static bool run_child(const scenario *s, int rank, long steps)
{
    int status;
    atomic_store(finished, 0);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0)
        be_child(s, rank);
    must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "wait");
    for (long i = 0; i < steps && !atomic_load(finished); i++) {
        must(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0, "step");
        must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "wait for a step");
    }
    kill(pid, SIGKILL);
    must(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "wait for the end");
    fy_controls_mark(segment->base, segment->ranks, (uint32_t)rank, SHM_DEAD);
    return atomic_load(finished) != 0;
}

static uint32_t times_in_cell(const fy_cell *inside, uint64_t name)
{
    uint64_t ends = atomic_load(&inside->ends);
    const uint64_t *slots =
        inside->ring == 0 ? inside->slots : (const uint64_t *)(uintptr_t)inside->ring;
    uint32_t mask = inside->ring == 0 ? FY_CELL_INLINE - 1 : inside->mask & FY_CELL_MASK;
    uint32_t count = 0;
    for (uint32_t i = fy_ends_head(ends); i != fy_ends_tail(ends); i++)
        count += slots[i & mask] == name;
    return count;
}

/* Checks each parcel that a rank has created; returns how many there are. */
static int check_counts(const fy_cells *c, const fy_board *creator)
{
    const fy_cell *inside = &c->board->cells[NUMBER];
    _Atomic uint64_t *entries = (_Atomic uint64_t *)(uintptr_t)atomic_load(&creator->registry);
    int alive = 0;
    for (uint32_t i = 0; i < atomic_load(&creator->registry_count); i++) {
        fy_parcel *p = (fy_parcel *)(uintptr_t)atomic_load(&entries[i]);
        if (p == NULL || fy_parcel_find(c, atomic_load(&p->name)) != p)
            continue;
        uint32_t holds = 0;
        for (uint32_t place = 0; place < RANKS; place++)
            holds += atomic_load(&p->holds[place]);
        assert_int_equal(atomic_load(&p->lock), 0);
        assert_int_equal(atomic_load(&p->refs),
                         holds + times_in_cell(inside, atomic_load(&p->name)));
        assert_int_equal(atomic_load(&p->holds[0]), holds);
        assert_int_not_equal(atomic_load(&p->refs), 0);
        alive++;
    }
    return alive;
}

/* The state that the survivor finds. */
static void check_survivor(const scenario *s, int rank, bool through)
{
    fy_cells *c = fy_cells_of(survivor);
    ferry_poll(survivor);
    ferry_parcel first;
    size_t count;
    assert_int_equal(ferry_cell_count(survivor, cell, &count), 0);
    assert_int_equal(atomic_load(&c->board->cells[NUMBER].lock), 0);
    if (count != (size_t)s->before || through)
        assert_int_equal(count, s->after);
    int error = ferry_cell_read(survivor, cell, &first, 0);
    assert_int_equal(error, count == 0 ? FERRY_EAGAIN : 0);
    if (error == 0) {
        const unsigned char *value = ferry_parcel_data(survivor, first, NULL);
        assert_true(*value == 1 || *value == s->first_after);
        if (count == (size_t)s->after && s->before != s->after)
            assert_int_equal(*value, s->first_after);
        assert_int_equal(ferry_parcel_release(survivor, first), 0);
    }
    check_counts(c, c->board);
    check_counts(c, c->boards[rank]);
    assert_int_equal(ferry_cell_clear(survivor, cell), 0);
    assert_int_equal(ferry_parcel_count(survivor), 0);
    assert_int_equal(check_counts(c, c->board), 0);
    assert_int_equal(check_counts(c, c->boards[rank]), 0);
}

/* The survivor had begun to write when the other died, and finds the cell locked: its own write
 * comes after what it does for the dead. */
static void check_writer(int rank)
{
    fy_cells *c = fy_cells_of(survivor);
    uint32_t seen = c->changes_seen;
    ferry_parcel first;
    size_t count;
    c->changes_seen = atomic_load(c->changes); /* no call looks at its beginning */
    ferry_parcel parcel = make(survivor, 50);
    assert_int_equal(ferry_cell_write(survivor, cell, parcel, FERRY_GIVE), 0);
    c->changes_seen = seen;
    ferry_poll(survivor);
    assert_int_equal(ferry_cell_count(survivor, cell, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(ferry_cell_dequeue(survivor, cell, &first, 0), 0);
    assert_int_equal(first.word, parcel.word);
    check_counts(c, c->board);
    assert_int_equal(ferry_parcel_release(survivor, first), 0);
    assert_int_equal(ferry_parcel_count(survivor), 0);
    assert_int_equal(check_counts(c, c->boards[rank]), 0);
}

/* A rank that makes what is in the cell, and is there until it is killed. */
static pid_t start_maker(int rank)
{
    atomic_store(finished, 0);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        ferry *f = open_rank(segment, rank, "none");
        for (int i = 1; i <= BEFORE; i++)
            must(ferry_cell_enqueue(f, cell, make(f, (unsigned char)i), FERRY_GIVE, 0) == 0, "enq");
        atomic_store(finished, 1);
        for (;;)
            pause();
    }
    while (atomic_load(finished) == 0)
        usleep(100);
    return pid;
}

/* Two have died when the survivor looks, and the one seen to first made what the other, who was
 * in the middle of something, has or had, or was about to free. */
static void run_with_maker(const scenario *s)
{
    bool through = false;
    for (long steps = start; !through; steps += 2 * stride) {
        if (segment == NULL || next_rank + 2 > RANKS) {
            close_segment();
            open_segment();
        }
        const fy_cells *c = fy_cells_of(survivor);
        int maker = next_rank++, rank = next_rank++, status;
        pid_t pid = start_maker(maker);
        ferry_parcel shared;
        assert_int_equal(ferry_cell_read(survivor, cell, &shared, 0), 0);
        through = run_child(s, rank, steps);
        kill(pid, SIGKILL);
        must(waitpid(pid, &status, 0) == pid, "wait for the maker");
        fy_controls_mark(segment->base, segment->ranks, (uint32_t)maker, SHM_DEAD);
        check_survivor(s, rank, through);
        assert_int_equal(check_counts(c, c->boards[maker]), 1);
        const unsigned char *value = ferry_parcel_data(survivor, shared, NULL);
        assert_non_null(value);
        assert_int_equal(*value, 1);
        assert_int_equal(ferry_parcel_release(survivor, shared), 0);
        assert_int_equal(check_counts(c, c->boards[maker]), 0);
    }
    close_segment();
}

static void run_scenario(const scenario *s, bool writes)
{
    bool through = false;
    long steps = start % stride;
    for (; !through; steps += stride) {
        if (segment == NULL || next_rank == RANKS) {
            close_segment();
            open_segment();
        }
        for (int i = 1; i <= BEFORE; i++)
            assert_int_equal(
                ferry_cell_enqueue(survivor, cell, make(survivor, (unsigned char)i), FERRY_GIVE, 0),
                0);
        int rank = next_rank++;
        through = run_child(s, rank, steps);
        if (writes)
            check_writer(rank);
        else
            check_survivor(s, rank, through);
    }
    fprintf(stderr, "%s%s: %ld steps\n", s->name, writes ? ", before a write" : "", steps);
    close_segment(); /* the cell's ring has grown: the next scenario begins with a small one */
}

static void test_death_at_any_step_is_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        run_scenario(&scenarios[i], false);
}

static void test_death_in_the_way_of_a_write_is_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (scenarios[i].frees)
            run_scenario(&scenarios[i], true);
}

static void test_death_beside_that_of_a_creator_is_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        run_with_maker(&scenarios[i]);
}

/* Parent and child take turns at each instruction: on one processor neither has to be woken on
 * another. */
static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    must(sched_setaffinity(0, sizeof(here), &here) == 0, "setaffinity");
}

int main(int argc, char **argv)
{
    stride = argc > 1 ? atol(argv[1]) : STRIDE;
    must(stride > 0, "argument");
    start = argc > 2 ? atol(argv[2]) % (2 * stride) : 0;
    fprintf(stderr, "%s %ld %ld\n", argv[0], stride, start);
    stay_here();
    finished = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(finished != MAP_FAILED, "mmap");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death_at_any_step_is_survived),
        cmocka_unit_test(test_death_in_the_way_of_a_write_is_survived),
        cmocka_unit_test(test_death_beside_that_of_a_creator_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
