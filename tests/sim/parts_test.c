/* Events, networks, fault plans, fibers and blocks, each alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#include "base/error.h"
#include "base/random.h"
#include "port/sim/blocks.h"
#include "port/sim/events.h"
#include "port/sim/faults.h"
#include "port/sim/fiber.h"
#include "port/sim/net.h"
#include "port/sim/world.h"

/* Goal: events come by time, then in the order they were scheduled, also when moved and taken back.
 * Method: random operations against a plain array. */
static void test_events_keep_order(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    static fy_event all[COUNT];
    uint64_t numbers[COUNT] = {0}, number = 0;
    fy_events events;
    fy_random random;
    fy_events_init(&events);
    fy_random_init(&random, 1, 2);
    for (int step = 0; step < 20000; step++) {
        size_t i = (size_t)fy_random_below(&random, COUNT);
        uint64_t what = fy_random_below(&random, 3);
        if (what == 0) {
            fy_events_cancel(&events, &all[i]);
        } else if (what == 1) {
            fy_events_set(&events, &all[i], fy_random_below(&random, 50));
            numbers[i] = ++number;
        } else {
            fy_event *least = NULL;
            for (size_t k = 0; k < COUNT; k++)
                if (all[k].number != 0 &&
                    (least == NULL || all[k].time_ns < least->time_ns ||
                     (all[k].time_ns == least->time_ns && numbers[k] < numbers[least - all])))
                    least = &all[k];
            assert_ptr_equal(fy_events_pop(&events), least);
        }
    }
    fy_events_fini(&events);
}

/* Goal: times are read exactly, with each unit. */
static void test_net_reads_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ps;
    } good[] = {{"0", 0},
                {"7", 7000},
                {"1.5us", 1500000},
                {"40ps", 40},
                {"0.25ns", 250},
                {"2ms", 2000000000},
                {"3s", 3000000000000},
                {"1000000000ns", 1000000000000},
                {"86400s", 86400000000000000}};
    uint64_t ps;
    const char *end;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(fy_net_time(good[i].text, &ps, &end));
        assert_int_equal(ps, good[i].ps);
        assert_int_equal(*end, '\0');
    }
    assert_false(fy_net_time("", &ps, &end));
    assert_false(fy_net_time("-1", &ps, &end));
    assert_false(fy_net_time("1.", &ps, &end));
    assert_false(fy_net_time("99999999999999999999s", &ps, &end));
}

static void refuse_net(const char *text, const char *reason)
{
    fy_net net;
    assert_int_equal(fy_net_parse("n", text, 8, &net), FERRY_EINVAL);
    if (strstr(fy_error_text(), reason) == NULL)
        fail_msg("\"%s\" says: %s", text, fy_error_text());
}

/* Goal: links follow topology and pairs; what is not understood is refused with its line. */
static void test_net_parses_strictly(void **state)
{
    (void)state;
    fy_net net;
    fy_sim_link link;
    assert_int_equal(fy_net_parse("n",
                                  "# two nodes\ntopology nodes 4\nlatency 1us\nbyte 2ns\n"
                                  "near.latency 50ns\npair 0 1 latency 7ns\n",
                                  8, &net),
                     0);
    fy_net_link(&net, 0, 4, &link);
    assert_int_equal(link.latency_ns, 1000);
    assert_int_equal(link.byte_ps, 2000);
    fy_net_link(&net, 1, 0, &link);
    assert_int_equal(link.latency_ns, 50);
    fy_net_link(&net, 0, 1, &link);
    assert_int_equal(link.latency_ns, 7);
    fy_net_fini(&net);
    assert_int_equal(fy_net_parse("n", "topology torus 4 2 1\nlatency 100ns\nhop 10ns\n", 8, &net),
                     0);
    fy_net_link(&net, 0, 3, &link); /* around the ring */
    assert_int_equal(link.latency_ns, 100);
    fy_net_link(&net, 0, 6, &link); /* two and one hops */
    assert_int_equal(link.latency_ns, 120);
    fy_net_fini(&net);
    refuse_net("latency 1us\nlatency 1us\n", "n:2: given twice");
    refuse_net("latency\n", "n:1: expected one time");
    refuse_net("latency fast\n", "n:1: not a time");
    refuse_net("\n\nspeed 1us\n", "n:3: unknown key");
    refuse_net("topology ring\n", "n:1: expected flat");
    refuse_net("topology torus 2 2 1\nlatency 1\n", "fewer places");
    refuse_net("topology nodes 4\nlatency 1us\n", "nodes without near.latency");
    refuse_net("latency 1us\npair 0 1 hop 3ns\n", "n:2: expected latency");
    refuse_net("latency 1us\npair 0 1 byte 3ns\ngap 1ns\n", "n:3: must come before");
    refuse_net("gap 1ns\n", "no line gives the latency");
    refuse_net("topology nodes 4\nmemory shared\nlatency 1us\nnear.latency 1ns\n",
               "cannot share memory");
    refuse_net("memory local\nlatency 0ns\n", "n:1: expected shared, direct or private");
    refuse_net("memory direct\nlatency 1ns\n", "expected topology flat, latency 0ns");
}

static void test_net_presets_are_sound(void **state)
{
    (void)state;
    const char *name;
    for (size_t i = 0; fy_net_preset(NULL, i, &name) != NULL; i++) {
        fy_net net;
        assert_int_equal(fy_net_open(name, 1000, &net), 0);
        fy_net_fini(&net);
    }
}

static void print_plan(const fy_faults *faults, bool tape, char *out, size_t size)
{
    out[0] = '\0'; /* nothing is written for an empty plan */
    FILE *file = fmemopen(out, size, "w");
    fy_faults_print(faults, tape, file);
    fclose(file);
}

/* Goal: a plan that is printed and read again is the same; random plans too. */
static void test_faults_print_as_they_read(void **state)
{
    (void)state;
    char first[4096], second[4096];
    const char *plans[] = {"drop=0.01,dup=1,delay=0.5:3us,ring=2,slow=3:10",
                           "stop=1@1us:2ms,die=0@7ns,cut=0-2@1us:1s",
                           "drop@7,dup@9,delay@12:5us,nomem@3",
                           "disk-full=0.3,disk-error=0.01,disk-damage=1,disk-slow=0.1:7",
                           "disk-full@3,disk-error@0,disk-damage@4:99,disk-slow@6:30",
                           "random",
                           "random-all",
                           "random-disk"};
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            fy_faults faults;
            assert_int_equal(fy_faults_open(plans[i], seed, 4, 100, &faults), 0);
            print_plan(&faults, false, first, sizeof(first));
            fy_faults_fini(&faults);
            if (fy_faults_open(first, seed, 4, 100, &faults) != 0)
                fail_msg("%s: %s", first, fy_error_text());
            print_plan(&faults, false, second, sizeof(second));
            fy_faults_fini(&faults);
            assert_string_equal(first, second);
        }
}

/* Goal: the tape of a random plan, read as a plan, strikes in the same places. */
static void test_faults_repeat_from_their_tape(void **state)
{
    (void)state;
    enum { PACKETS = 2000 };
    static fy_packet_outcome outcomes[PACKETS];
    static char text[1 << 20];
    fy_faults faults;
    assert_int_equal(fy_faults_open("drop=0.1,dup=0.05,delay=0.2:9us", 5, 4, 100, &faults), 0);
    for (int i = 0; i < PACKETS; i++)
        fy_faults_packet(&faults, &outcomes[i]);
    print_plan(&faults, true, text, sizeof(text));
    fy_faults_fini(&faults);
    assert_int_equal(fy_faults_open(text, 99, 4, 100, &faults), 0);
    for (int i = 0; i < PACKETS; i++) {
        fy_packet_outcome outcome;
        fy_faults_packet(&faults, &outcome);
        assert_int_equal(outcome.drop, outcomes[i].drop);
        assert_int_equal(outcome.dup, outcomes[i].dup);
        assert_int_equal(outcome.delay_ns, outcomes[i].delay_ns);
    }
    fy_faults_fini(&faults);
}

/* Goal: the faults of disks on a tape, read as a plan with another seed, strike in the same places
 * with the same values. */
static void test_faults_of_disks_repeat_from_their_tape(void **state)
{
    (void)state;
    enum { CALLS = 500 };
    static uint64_t values[CALLS][FY_FAULT_CLASSES];
    static char text[1 << 18];
    static const char plan[] =
        "disk-full=0.1,disk-error=0.05,disk-damage=0.2,disk-slow=0.3:8,nomem=0.1";
    fy_faults faults;
    assert_int_equal(fy_faults_open(plan, 5, 4, 100, &faults), 0);
    for (int i = 0; i < CALLS; i++)
        for (int kind = FY_FAULT_NOMEM; kind < FY_FAULT_CLASSES; kind++)
            values[i][kind] = fy_faults_next(&faults, (fy_fault_kind)kind);
    print_plan(&faults, true, text, sizeof(text));
    fy_faults_fini(&faults);
    assert_int_equal(fy_faults_open(text, 99, 4, 100, &faults), 0);
    uint64_t struck[FY_FAULT_CLASSES] = {0};
    for (int i = 0; i < CALLS; i++)
        for (int kind = FY_FAULT_NOMEM; kind < FY_FAULT_CLASSES; kind++) {
            assert_int_equal(fy_faults_next(&faults, (fy_fault_kind)kind), values[i][kind]);
            struck[kind] += values[i][kind] != 0;
        }
    assert_true(struck[FY_FAULT_DISK_FULL] > 20 && struck[FY_FAULT_DISK_DAMAGE] > 50);
    assert_true(struck[FY_FAULT_DISK_ERROR] > 5 && struck[FY_FAULT_DISK_SLOW] > 80);
    fy_faults_fini(&faults);
}

/* Goal: reads and writes take the time that the description says, as many at a time as its depth.
 * Method: three calls of 100 us of latency and 100 us of bytes begin at once. */
static void test_disks_work_on_as_many_calls_as_their_depth(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ends_us[3];
    } rows[] = {{"latency=100us,bandwidth=100M,depth=1", {200, 400, 600}},
                {"latency=100us,bandwidth=100M,depth=2", {200, 300, 400}},
                {"latency=0.1ms,bandwidth=100000K", {200, 300, 400}},
                {"latency=100us,depth=2", {100, 100, 200}},
                {"latency=100us", {100, 100, 100}},
                {"bandwidth=0.1G,depth=9", {100, 200, 300}},
                {NULL, {0, 0, 0}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static fy_world empty;
        fy_world world = empty;
        fy_sim_rank rank = {.world = &world};
        assert_int_equal(fy_sim_disk_read(&world, rows[i].text), 0);
        for (int call = 0; call < 3; call++) {
            fy_disk_outcome out;
            fy_sim_disk_call(&rank, 0, call == 1, 10000, &out);
            assert_int_equal(out.end_ns, rows[i].ends_us[call] * 1000);
            assert_true(out.error == 0 && out.damage == 0);
        }
        free(rank.disk_free_ns);
    }
}

static void test_disks_refuse_nonsense(void **state)
{
    (void)state;
    const char *wrong[] = {
        "",         "latency",      "latency=",           "latency=5us,",  "depth=0",
        "depth=x",  "depth=1025",   "bandwidth=0",        "bandwidth=-1M", "error=0.1",
        "depth=2x", "bandwidth=5X", "latency=5us;depth=2"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        static fy_world world;
        if (fy_sim_disk_read(&world, wrong[i]) != FERRY_EINVAL)
            fail_msg("\"%s\" was taken", wrong[i]);
    }
}

static void test_faults_refuse_nonsense(void **state)
{
    (void)state;
    const char *wrong[] = {"drop",           "drop=2",        "drop=0.1x",     "delay=0.1",
                           "stop=1@1us",     "die=4@1us",     "cut=2-1@1us:1", "slow=1:0",
                           "ring=0",         "nonsense=1",    "drop@",         "delay@3",
                           "drop=0.1;dup=1", "disk-slow=0.1", "disk-slow=1:0", "disk-damage@3",
                           "disk-slow@1:0"};
    fy_faults faults;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (fy_faults_open(wrong[i], 0, 4, 100, &faults) != FERRY_EINVAL)
            fail_msg("\"%s\" was taken", wrong[i]);
    assert_int_equal(fy_faults_open("@/nowhere/plan", 0, 4, 100, &faults), FERRY_ESYSTEM);
}

typedef struct duet {
    fy_fiber main, other;
    int turns;
    double sum;
} duet;

static void play(void *arg)
{
    duet *d = arg;
    double mine = 0.5;
    while (d->turns > 0) {
        d->turns--;
        mine += 1;
        fy_fiber_switch(&d->other, &d->main);
    }
    d->sum = mine;
    fy_fiber_exit(&d->other, &d->main);
}

/* Goal: locals survive switches on both sides; an overrun is seen. */
static void test_fiber_switches(void **state)
{
    (void)state;
    enum { STACK = 256 * 1024, TURNS = 1000 };
    duet d = {.turns = TURNS};
    unsigned char *stack = aligned_alloc(64, STACK);
    assert_int_equal(fy_fiber_thread(&d.main), 0);
    assert_int_equal(fy_fiber_init(&d.other, stack, STACK, play, &d), 0);
    double mine = 0;
    for (int i = 0; i <= TURNS; i++) {
        mine += 0.25;
        fy_fiber_switch(&d.main, &d.other);
    }
    assert_true(d.sum == 0.5 + TURNS && mine == 0.25 * (TURNS + 1));
    assert_true(fy_fiber_intact(&d.other, true));
    stack[200] ^= 1;
    stack[193] ^= 1;
    stack[192] ^= 1;
    assert_false(fy_fiber_intact(&d.other, true));
    fy_fiber_fini(&d.other);
    fy_fiber_fini(&d.main);
    free(stack);
}

/* Goal: owners are found by any part of their block and by nothing else, through any history.
 * Method: random blocks against an array. */
static void test_blocks_know_their_owners(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct {
        char *address;
        size_t size_bytes;
    } all[COUNT] = {{0}};
    fy_blocks blocks = {0};
    fy_random random;
    fy_random_init(&random, 3, 4);
    for (int step = 0; step < 20000; step++) {
        size_t i = (size_t)fy_random_below(&random, COUNT), size_bytes;
        int rank;
        if (all[i].address == NULL) {
            all[i].size_bytes = (size_t)fy_random_below(&random, 500);
            all[i].address = fy_blocks_alloc(&blocks, (int)i, all[i].size_bytes);
            assert_non_null(all[i].address);
            continue;
        }
        size_t offset = (size_t)fy_random_below(&random, all[i].size_bytes + 1);
        char *inside = all[i].address + offset;
        size_t rest = all[i].size_bytes - offset;
        assert_int_equal(fy_blocks_owner(&blocks, inside, rest), (int)i);
        assert_int_equal(fy_blocks_owner(&blocks, inside, rest + 1), -1);
        assert_int_equal(fy_blocks_owner(&blocks, inside, SIZE_MAX), -1);
        if (fy_random_below(&random, 3) != 0)
            continue;
        if (offset > 0)
            assert_int_equal(fy_blocks_release(&blocks, inside, &rank, &size_bytes), FERRY_EINVAL);
        assert_int_equal(fy_blocks_release(&blocks, all[i].address, &rank, &size_bytes), 0);
        assert_int_equal(rank, (int)i);
        assert_int_equal(size_bytes, all[i].size_bytes);
        all[i].address = NULL;
    }
    fy_blocks_fini(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_keep_order),
        cmocka_unit_test(test_net_reads_times),
        cmocka_unit_test(test_net_parses_strictly),
        cmocka_unit_test(test_net_presets_are_sound),
        cmocka_unit_test(test_faults_print_as_they_read),
        cmocka_unit_test(test_faults_repeat_from_their_tape),
        cmocka_unit_test(test_faults_of_disks_repeat_from_their_tape),
        cmocka_unit_test(test_faults_refuse_nonsense),
        cmocka_unit_test(test_disks_work_on_as_many_calls_as_their_depth),
        cmocka_unit_test(test_disks_refuse_nonsense),
        cmocka_unit_test(test_fiber_switches),
        cmocka_unit_test(test_blocks_know_their_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
