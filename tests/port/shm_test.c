/* The parts that port shm alone has: damaged frames, strange segments, places in the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../support/random.h"
#include "port/shm/port_state.h"

typedef struct job {
    int fd;
    fy_segment *segment;
    fy_port *ranks[2];
} job;

static int make(void **state)
{
    job *j = calloc(1, sizeof(*j));
    fy_shm_options options = {.ranks = 2, .heap_bytes = (size_t)64 << 20};
    *state = j;
    return j == NULL || fy_segment_create(&options, &j->fd) != 0 ||
           fy_segment_map(j->fd, &j->segment) != 0 ||
           fy_shm_join(j->segment, 0, &j->ranks[0]) != 0 ||
           fy_shm_join(j->segment, 1, &j->ranks[1]) != 0;
}

static int drop(void **state)
{
    job *j = *state;
    for (int rank = 0; rank < 2; rank++)
        if (j->ranks[rank] != NULL)
            j->ranks[rank]->ops->transport.close(j->ranks[rank]);
    fy_segment_unmap(j->segment);
    close(j->fd);
    free(j);
    return 0;
}

/* The frames that came, and a sum over all their payload, so that every byte is read. */
typedef struct received {
    uint64_t frames, sum;
} received;

static fy_verdict read_all(void *context, int source, const fy_frame *frame)
{
    received *r = context;
    (void)source;
    assert_true(frame->word_count <= FY_FRAME_WORDS);
    const unsigned char *data = frame->data;
    for (size_t i = 0; i < frame->size_bytes; i++)
        r->sum += data[i];
    r->frames++;
    return FY_TAKEN;
}

/* Mostly noise, with sizes and places near the bounds, where mistakes live. */
static void write_noise(fy_ring_slot *slot, uint64_t *seed)
{
    uint64_t r = xorshift(seed);
    slot->kind = (uint8_t)r;
    slot->count_place = (uint8_t)(r >> 8 & 0x77);
    slot->handler = (uint16_t)(r >> 16);
    slot->position = (uint32_t)xorshift(seed) & (r & 1 << 30 ? 0xffff : 0xffffffff);
    slot->size = xorshift(seed) >> (xorshift(seed) % 64);
    for (int i = 0; i < FY_FRAME_WORDS; i++)
        slot->words[i] = xorshift(seed);
}

/* Goal: whatever a source writes into its slots, the receiver does not crash, reads nothing outside
 * the ring and the heap's blocks, and goes on with the next frame.
 * Method: publish noise in the place of a source, beside live blocks; then send properly on the
 * other lane. */
static void test_shm_survives_damaged_frames(void **state)
{
    job *j = *state;
    fy_port *from = j->ranks[0], *to = j->ranks[1];
    shm_ring *ring = ring_at(j->segment, 1, 0, channel_of(FY_APP, FY_DATA));
    uint64_t seed = 4711;
    received r = {0};
    fy_frame frame = {.kind = 1, .data = "payload", .size_bytes = 8};
    assert_int_equal(from->ops->transport.send(from, FY_APP, FY_DATA, 1, &frame), 0);
    assert_int_equal(to->ops->transport.poll(to, FY_DATA, 16, read_all, &r), 1);
    /* The log has a line for each. */
    int log = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    for (uint32_t i = 1; i < 20000; i++) {
        if (i % 100 == 0)
            (void)from->ops->heap.alloc(from, 1000, -1);
        fy_ring_slot *slot = &ring_slots(ring)[i % j->segment->ring_slots];
        write_noise(slot, &seed);
        atomic_store(&slot->turn, i / j->segment->ring_slots + 1);
        (void)to->ops->transport.poll(to, FY_DATA, 1, read_all, &r);
        if (to->ops->transport.pending(to, FY_DATA))
            break;
    }
    dup2(log, STDERR_FILENO);
    close(log);
    close(null);
    assert_false(to->ops->transport.pending(to, FY_DATA));
    assert_true(r.frames > 1);
    assert_int_equal(from->ops->transport.send(from, FY_APP, FY_CONTROL, 1, &frame), 0);
    assert_int_equal(to->ops->transport.poll(to, FY_CONTROL, 1, read_all, &r), 1);
}

/* Goal: a target that publishes nonsense as its progress only stops its sender.
 * Method: all kinds of numbers as the ring's heads; every send succeeds or says EAGAIN. */
static void test_shm_survives_damaged_progress(void **state)
{
    job *j = *state;
    fy_port *from = j->ranks[0];
    shm_ring *ring = ring_at(j->segment, 1, 0, channel_of(FY_APP, FY_DATA));
    static char data[5000];
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        atomic_store(&ring->head, xorshift(&seed) >> (xorshift(&seed) % 64));
        atomic_store(&ring->bytes_head, xorshift(&seed) >> (xorshift(&seed) % 64));
        fy_frame frame = {.data = data, .size_bytes = xorshift(&seed) % sizeof(data)};
        int error = from->ops->transport.send(from, FY_APP, FY_DATA, 1, &frame);
        assert_true(error == 0 || error == FERRY_EAGAIN);
    }
}

/* Goal: each place is taken once, and only places that exist. */
static void test_shm_gives_each_place_once(void **state)
{
    job *j = *state;
    fy_port *port;
    assert_int_equal(fy_shm_join(j->segment, 0, &port), FERRY_EINVAL);
    assert_int_equal(fy_shm_join(j->segment, 2, &port), FERRY_EINVAL);
    assert_int_equal(fy_shm_join(j->segment, -1, &port), FERRY_EINVAL);
}

/* Goal: what is no segment, or a damaged one, is refused, and a segment cannot be resized.
 * Method: descriptors of other things; copies of the header with one field changed each. */
static bool is_crowded(fy_port *port)
{
    fy_port_info info;
    port->ops->transport.query(port, &info);
    return info.crowded;
}

/* Goal: whether ranks share processors is decided by those that are there. Method: a job of one
 * rank with room for more than there are processors; as many join as there are, then one more, and
 * that one closes. */
static void test_shm_is_crowded_by_those_who_are_there(void **state)
{
    (void)state;
    cpu_set_t allowed;
    int fd;
    fy_segment *segment;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int processors = CPU_COUNT(&allowed);
    const fy_shm_options options = {
        .ranks = 1, .ranks_max = processors + 2, .heap_bytes = (size_t)1 << 20};
    fy_port **ports = calloc((size_t)processors + 1, sizeof(*ports));
    assert_non_null(ports);
    assert_int_equal(fy_segment_create(&options, &fd), 0);
    assert_int_equal(fy_segment_map(fd, &segment), 0);
    for (int rank = 0; rank < processors; rank++) {
        assert_int_equal(fy_shm_join(segment, rank, &ports[rank]), 0);
        assert_false(is_crowded(ports[0]));
    }
    assert_int_equal(fy_shm_join(segment, processors, &ports[processors]), 0);
    assert_true(is_crowded(ports[0]));
    for (int rank = processors; rank >= 0; rank--) {
        ports[rank]->ops->transport.close(ports[rank]);
        if (rank > 0)
            assert_false(is_crowded(ports[0]));
    }
    fy_segment_unmap(segment);
    close(fd);
    free(ports);
}

/* Goal: the heap of a dead rank serves the next rank only when all know of the death and nothing
 * lives in the heap, and is fresh then. A frame that comes late for the old rank does not reach the
 * new one. A rank that is stopped or dies while it gives the heap back holds nobody up, and its
 * work is done. */
static void test_shm_uses_heaps_of_the_dead_again(void **state)
{
    const fy_shm_options options = {
        .ranks = 2, .ranks_max = 5, .arenas = 3, .heap_bytes = (size_t)4 << 20};
    fy_segment *s;
    fy_port *ports[4];
    int fd;
    (void)state;
    assert_int_equal(fy_segment_create(&options, &fd), 0);
    assert_int_equal(fy_segment_map(fd, &s), 0);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(fy_shm_join(s, rank, &ports[rank]), 0);
    const fy_port_ops *ops = ports[0]->ops;
    char *block = ops->heap.alloc(ports[2], 2u << 20, -1);
    memset(block, 7, 2u << 20);
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), 2);
    ops->transport.close(ports[2]);
    ops->members.bury(ports[0], 2);
    assert_int_equal(ops->heap.release(ports[1], block), 0); /* one has not heard of it */
    assert_int_equal(arena_owner(s, arena_word(s, 2)), 2);
    ops->members.bury(ports[1], 2);
    assert_int_equal(arena_owner(s, arena_word(s, 2)), -1);
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), -1);

    assert_int_equal(fy_shm_join(s, 3, &ports[3]), 0);
    assert_int_equal(arena_owner(s, arena_word(s, 2)), 3);
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), -1);
    assert_int_equal(ops->heap.release(ports[0], block), FERRY_EINVAL);
    ops->heap.free_gone(ports[0], 2); /* asked for late */
    assert_ptr_equal(ops->heap.alloc(ports[3], 2u << 20, FY_KEEP_ALL), block);
    for (size_t i = 0; i < 2u << 20; i++)
        assert_int_equal(block[i], 0);
    block[0] = 3;
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), 3);
    fy_shm_arena_tend(state_of(ports[0]), 2, 2, KEEPER_ALL, NULL); /* comes late for rank 2 */
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), 3);
    assert_int_equal(block[0], 3);

    /* Rank 1 stops while it tends the arena of rank 3. */
    ops->transport.close(ports[3]);
    ops->members.bury(ports[0], 3);
    ops->members.bury(ports[1], 3);
    atomic_fetch_or(&rank_at(s->base, 2)->arena, UINT64_C(2) << 16);
    ops->heap.free_gone(ports[0], 3);
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), 3);
    fy_controls_mark(s->base, s->ranks, 1, SHM_DEAD);
    ops->members.bury(ports[0], 1);
    assert_int_equal(ops->heap.owner(ports[0], FY_APP, block, 1), -1);
    assert_int_equal(arena_owner(s, arena_word(s, 2)), -1);
    ops->transport.close(ports[0]);
    ops->transport.close(ports[1]);
    fy_segment_unmap(s);
    close(fd);
}

static void test_shm_refuses_strange_segments(void **state)
{
    (void)state;
    fy_segment *segment;
    assert_true(fy_segment_map(-1, &segment) < 0);
    int null = open("/dev/null", O_RDWR);
    assert_true(fy_segment_map(null, &segment) < 0);
    close(null);
    fy_shm_options options = {.ranks = 3};
    int fd;
    assert_int_equal(fy_segment_create(&options, &fd), 0);
    assert_int_not_equal(ftruncate(fd, 4096), 0);
    uint32_t header[24];
    assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
    size_t fields = sizeof(shm_header) / sizeof(uint32_t);
    for (size_t i = 0; i < fields; i++) {
        if (i * 4 >= offsetof(shm_header, nonce) && i * 4 < offsetof(shm_header, address))
            continue;
        uint32_t wrong = header[i] ^ 0x10101;
        assert_int_equal(pwrite(fd, &wrong, 4, (off_t)i * 4), 4);
        assert_true(fy_segment_map(fd, &segment) < 0);
        assert_int_equal(pwrite(fd, &header[i], 4, (off_t)i * 4), 4);
    }
    close(fd);
}

/* Goal: sizes outside what a segment can have are refused; 1,024 ranks fit. */
static void test_shm_checks_sizes(void **state)
{
    (void)state;
    const fy_shm_options wrong[] = {
        {.ranks = 0},
        {.ranks = -5},
        {.ranks = FY_RANKS_MAX + 1},
        {.ranks = 2, .ring_slots = 100},
        {.ranks = 2, .ring_slots = 1u << 31},
        {.ranks = 2, .ring_bytes = 5000},
        {.ranks = 2, .heap_bytes = SIZE_MAX},
        {.ranks = 2, .heap_bytes = 1000},
        {.ranks = 2, .arenas = 1},
        {.ranks = 2, .ranks_max = 4, .arenas = 5},
    };
    int fd;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(fy_segment_create(&wrong[i], &fd), FERRY_EINVAL);
    /* Fewer heaps than numbers, where the size asked for leaves no room for all; also when that is
     * the default. */
    const fy_shm_options fewer = {.ranks = 2, .ranks_max = 500, .heap_bytes = (size_t)16 << 30};
    fy_segment *few;
    assert_int_equal(fy_segment_create(&fewer, &fd), 0);
    assert_int_equal(fy_segment_map(fd, &few), 0);
    assert_in_range(few->arenas, 2, 499);
    assert_int_equal(few->heap_bytes, fewer.heap_bytes);
    fy_segment_unmap(few);
    close(fd);
    fy_shm_options most = {.ranks = FY_RANKS_MAX};
    assert_int_equal(fy_segment_create(&most, &fd), 0);
    fy_segment *segment;
    assert_int_equal(fy_segment_map(fd, &segment), 0);
    fy_port *port;
    assert_int_equal(fy_shm_join(segment, FY_RANKS_MAX - 1, &port), 0);
    char *block = port->ops->heap.alloc(port, 8u << 20, -1);
    assert_non_null(block);
    block[(8u << 20) - 1] = 1;
    port->ops->transport.close(port);
    fy_segment_unmap(segment);
    close(fd);
}

/* Goal: a rank that closes the port after `end_quietly` wakes nobody, is seen to have left by who
 * looks, and tells all the same when another has died. Method: count the changes of one rank's
 * states while the other leaves, without and with a death.
 */
static void check_quiet_end(fy_segment *segment, fy_port *ranks[2], bool death)
{
    shm_rank *own = rank_at(segment->base, 0);
    uint32_t before = atomic_load(&own->events);
    ranks[1]->ops->members.end_quietly(ranks[1]);
    assert_int_equal(ranks[0]->ops->members.peer(ranks[0], 1), FY_PEER_ALIVE);
    if (death)
        fy_controls_mark(segment->base, 3, 2, SHM_DEAD);
    ranks[1]->ops->transport.close(ranks[1]);
    assert_int_equal(atomic_load(&own->events) - before, death ? 2 : 0);
    assert_int_equal(ranks[0]->ops->members.peer(ranks[0], 1), FY_PEER_LEFT);
    ranks[0]->ops->transport.close(ranks[0]);
}

static void test_shm_quiet_end_tells_nobody(void **state)
{
    const fy_shm_options options = {.ranks = 3, .heap_bytes = (size_t)64 << 20};
    (void)state;
    for (int death = 0; death < 2; death++) {
        int fd;
        fy_segment *segment;
        fy_port *ranks[2];
        assert_int_equal(fy_segment_create(&options, &fd), 0);
        assert_int_equal(fy_segment_map(fd, &segment), 0);
        for (int rank = 0; rank < 2; rank++)
            assert_int_equal(fy_shm_join(segment, rank, &ranks[rank]), 0);
        check_quiet_end(segment, ranks, death != 0);
        fy_segment_unmap(segment);
        close(fd);
    }
}

/* Goal: a quiet frame on the control lane wakes no helper, but two in each round of the ring do, so
 * that the ring does not fill. All come. Method: a helper that seems to sleep. */
static void test_shm_quiet_frames_wake_helpers_rarely(void **state)
{
    const job *j = *state;
    const fy_transport_ops *transport = &j->ranks[0]->ops->transport;
    shm_rank *target = rank_at(j->segment->base, 1);
    uint64_t slots = (uint64_t)state_of(j->ranks[0])->slot_mask + 1;
    received r = {0};
    transport->serve(j->ranks[1], FY_HELPER);
    for (int quiet = 0; quiet < 2; quiet++) {
        const fy_frame frame = {.kind = 1, .word_count = 1, .quiet = quiet != 0};
        uint64_t wakes = 0;
        for (uint64_t i = 0; i < slots; i++) {
            atomic_store(&target->helper_asleep, 1);
            assert_int_equal(transport->send(j->ranks[0], FY_APP, FY_CONTROL, 1, &frame), 0);
            wakes += atomic_load(&target->helper_asleep) == 0;
            (void)transport->poll(j->ranks[1], FY_CONTROL, 64, read_all, &r);
        }
        assert_int_equal(wakes, quiet != 0 ? 2 : slots);
        assert_int_equal(r.frames, (uint64_t)(quiet + 1) * slots);
    }
    atomic_store(&target->helper_asleep, 0);
    transport->serve(j->ranks[1], FY_APP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shm_survives_damaged_frames, make, drop),
        cmocka_unit_test_setup_teardown(test_shm_survives_damaged_progress, make, drop),
        cmocka_unit_test_setup_teardown(test_shm_gives_each_place_once, make, drop),
        cmocka_unit_test_setup_teardown(test_shm_quiet_frames_wake_helpers_rarely, make, drop),
        cmocka_unit_test(test_shm_is_crowded_by_those_who_are_there),
        cmocka_unit_test(test_shm_uses_heaps_of_the_dead_again),
        cmocka_unit_test(test_shm_quiet_end_tells_nobody),
        cmocka_unit_test(test_shm_refuses_strange_segments),
        cmocka_unit_test(test_shm_checks_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
