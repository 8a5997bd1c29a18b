/* The effects of the port's clock, network and faults on a run, through the port's table alone. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "port/sim/sim.h"

/* Notes of a case while it runs; the test looks at them afterwards. */
typedef struct notes {
    uint64_t at_ns[8];
    int count;
    int error;
    bool endures;
    fy_port *port;
} notes;

static int rank_of(const fy_port *port)
{
    fy_port_info info;
    port->ops->transport.query(port, &info);
    return info.rank;
}

static fy_verdict note(void *context, int source, const fy_frame *frame)
{
    notes *n = context;
    (void)source;
    (void)frame;
    n->at_ns[n->count++ & 7] = n->port->ops->host.now(n->port);
    return FY_TAKEN;
}

/* Runs on a network with round figures: latency 1 us, send 100 ns, receive 200 ns, 1 ns per byte.
 */
static int run(int ranks, fy_sim_options options, fy_port_main *rank_main, notes *n)
{
    char path[] = "/tmp/ferry-sim-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs("latency 1us\nsend 100ns\nreceive 200ns\ngap 50ns\nbyte 1ns\nmemory shared\n", file);
    fclose(file);
    options.ranks = ranks;
    options.net = path;
    int status = fy_sim_run(&options, rank_main, n);
    if (status < 0)
        fprintf(stderr, "%s\n", fy_error_text());
    remove(path);
    return status;
}

static void take_all(fy_port *port, notes *n, int count)
{
    n->port = port;
    while (n->count < count)
        if (port->ops->transport.poll(port, FY_DATA, 1, note, n) == 0)
            port->ops->transport.wait(port, FY_APP, UINT64_MAX);
}

static int one_message(void *arg, fy_port *port)
{
    static const char data[500] = "";
    if (rank_of(port) == 0) {
        fy_frame frame = {.kind = 1, .data = data, .size_bytes = sizeof(data)};
        for (int i = 0; i < 2; i++)
            ((notes *)arg)->error |= port->ops->transport.send(port, FY_APP, FY_DATA, 1, &frame);
    } else {
        take_all(port, arg, 2);
    }
    port->ops->transport.close(port);
    return 0;
}

/* Goal: a frame takes send + latency + bytes + receive; a second waits for the adapter. */
static void test_sim_costs_follow_loggp(void **state)
{
    (void)state;
    notes n = {0};
    assert_int_equal(run(2, (fy_sim_options){0}, one_message, &n), 0);
    assert_int_equal(n.error, 0);
    /* 100 + 500 + 1000 + 200, and what polling and reading the clock cost */
    assert_in_range(n.at_ns[0], 1800, 1840);
    /* the second leaves 500 ns after the first has begun to, at 100 + 500 */
    assert_in_range(n.at_ns[1], 2300, 2340);
}

/* Goal: each of these faults has its effect: a slow receiver pays more, nothing passes a partition
 * until it heals, and a channel has no more room than the plan says. Method: the same two frames.
 */
static void test_sim_slow_cut_and_ring(void **state)
{
    (void)state;
    notes slow = {0}, cut = {0}, ring = {0};
    assert_int_equal(run(2, (fy_sim_options){.faults = "slow=1:10"}, one_message, &slow), 0);
    assert_in_range(slow.at_ns[0], 1800 + 9 * 200, 1840 + 9 * 200);
    assert_int_equal(run(2, (fy_sim_options){.faults = "cut=1-1@0ns:50us"}, one_message, &cut), 0);
    assert_int_equal(cut.error, 0);
    assert_int_equal(cut.count, 2);
    assert_in_range(cut.at_ns[0], 50000, 10000000);
    assert_true(cut.at_ns[1] > cut.at_ns[0]);
    fy_sim_options options = {.faults = "ring=1", .time_limit_ns = 1000000};
    assert_int_equal(run(2, options, one_message, &ring), FY_SIM_STUCK);
    assert_int_equal(ring.error, FERRY_EAGAIN);
    assert_int_equal(ring.count, 1);
}

static void serve_one(void *arg)
{
    notes *n = arg;
    while (n->count == 0) {
        n->port->ops->transport.wait(n->port, FY_HELPER, UINT64_MAX);
        n->port->ops->transport.poll(n->port, FY_CONTROL, 8, note, n);
    }
}

static int computing(void *arg, fy_port *port)
{
    notes *n = arg;
    if (rank_of(port) == 0) {
        fy_frame frame = {.kind = 1};
        port->ops->host.advance(port, 50000);
        n->error |= port->ops->transport.send(port, FY_APP, FY_CONTROL, 1, &frame);
    } else {
        n->port = port;
        port->ops->transport.serve(port, FY_HELPER);
        n->error |= port->ops->host.spawn(port, serve_one, n);
        port->ops->host.advance(port, 200000);
        n->at_ns[7] = port->ops->host.now(port);
        port->ops->transport.serve(port, FY_APP);
        port->ops->host.join(port);
    }
    port->ops->transport.close(port);
    return 0;
}

/* Goal: a control frame that comes during a computation is served at its arrival, or at the next
 * quantum, by the helper, and the computation ends later by what that took. */
static void test_sim_helper_serves_during_computation(void **state)
{
    (void)state;
    notes woken = {0}, looking = {0};
    assert_int_equal(run(2, (fy_sim_options){0}, computing, &woken), 0);
    assert_int_equal(woken.error, 0);
    assert_in_range(woken.at_ns[0], 51300, 51400);
    assert_in_range(woken.at_ns[7], 200200, 200400);
    assert_int_equal(run(2, (fy_sim_options){.quantum_ns = 20000}, computing, &looking), 0);
    assert_in_range(looking.at_ns[0], 60200, 60300);
}

static int work(void *arg, fy_port *port)
{
    notes *n = arg;
    port->ops->host.advance(port, 100000);
    n->at_ns[rank_of(port)] = port->ops->host.now(port);
    port->ops->transport.close(port);
    return 0;
}

static void assert_near(uint64_t value, uint64_t expected)
{
    assert_in_range(value, expected, expected + 100);
}

/* Goal: ranks compute at their speeds, also when those change midway, and not while stopped. */
static void test_sim_speeds_and_stops(void **state)
{
    (void)state;
    notes n = {0};
    fy_sim_options options = {.speeds = "1=0.5,2-3=2,3=1@20us", .faults = "stop=4@10us:1ms"};
    assert_int_equal(run(5, options, work, &n), 0);
    assert_near(n.at_ns[0], 100000);
    assert_near(n.at_ns[1], 200000);
    assert_near(n.at_ns[2], 50000);
    assert_near(n.at_ns[3], 20000 + 60000);
    assert_near(n.at_ns[4], 1100000);
}

static int after_death(void *arg, fy_port *port)
{
    notes *n = arg;
    fy_frame frame = {.kind = 1};
    if (rank_of(port) == 1) {
        n->error |= port->ops->transport.send(port, FY_APP, FY_DATA, 0, &frame);
        port->ops->host.advance(port, 1000000000);
        return 1; /* never */
    }
    if (port->ops->members.endure != NULL && n->endures)
        port->ops->members.endure(port, true);
    while (port->ops->members.peer(port, 1) == FY_PEER_ALIVE)
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    n->at_ns[7] = port->ops->host.now(port);
    if (port->ops->members.peer(port, 1) != FY_PEER_DEAD)
        return 1;
    take_all(port, n, 1);
    if (port->ops->transport.send(port, FY_APP, FY_DATA, 1, &frame) != FERRY_EPEER)
        return 1;
    port->ops->transport.close(port);
    return 0;
}

/* Goal: a death is told to one who sleeps, within a millisecond; what the dead had sent arrives. */
static void test_sim_tells_of_a_death(void **state)
{
    (void)state;
    notes n = {.endures = true};
    assert_int_equal(run(2, (fy_sim_options){.faults = "die=1@500us"}, after_death, &n), 0);
    assert_int_equal(n.error, 0);
    assert_in_range(n.at_ns[7], 500000, 1500000);
    assert_int_equal(n.count, 1);
}

/* Goal: a death fails the run unless the others go on after deaths, also if none of them fails. */
static void test_sim_fails_after_a_death(void **state)
{
    (void)state;
    notes n = {0};
    fy_sim_options options = {.faults = "die=1@500us"};
    assert_int_equal(run(2, options, after_death, &n), 128 + SIGKILL);
    assert_in_range(n.at_ns[7], 500000, 1500000);
}

static int allocating(void *arg, fy_port *port)
{
    notes *n = arg;
    for (int i = 0; i < 100; i++) {
        void *block = port->ops->heap.alloc(port, 100, -1);
        n->count += block == NULL;
        if (block != NULL && port->ops->heap.release(port, block) != 0)
            return 1;
    }
    n->error = port->ops->heap.alloc(port, 2000, -1) == NULL ? FERRY_ENOMEM : 0;
    port->ops->transport.close(port);
    return 0;
}

/* Goal: allocations fail when the plan says so, and beyond the limit. */
static void test_sim_refuses_memory(void **state)
{
    (void)state;
    notes n = {0};
    fy_sim_options options = {.faults = "nomem@3,nomem@50", .heap_bytes = 1000};
    assert_int_equal(run(1, options, allocating, &n), 0);
    assert_int_equal(n.count, 2);
    assert_int_equal(n.error, FERRY_ENOMEM);
}

static int failing(void *arg, fy_port *port)
{
    (void)arg;
    if (rank_of(port) == 2)
        return 42;
    port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    return 0;
}

/* Goal: a rank that fails ends the job with its status. */
static void test_sim_ends_with_a_failing_rank(void **state)
{
    (void)state;
    notes n = {0};
    assert_int_equal(run(4, (fy_sim_options){0}, failing, &n), 42);
}

/* Goal: options that make no world are refused with a reason. */
static void test_sim_refuses_options(void **state)
{
    (void)state;
    fy_sim_options options = {.ranks = FY_SIM_RANKS_MAX + 1};
    assert_int_equal(fy_sim_run(&options, work, NULL), FERRY_EINVAL);
    options = (fy_sim_options){.stack_bytes = 100};
    assert_int_equal(fy_sim_run(&options, work, NULL), FERRY_EINVAL);
    options = (fy_sim_options){.net = "none"};
    assert_int_equal(fy_sim_run(&options, work, NULL), FERRY_EINVAL);
    options = (fy_sim_options){.faults = "none"};
    assert_int_equal(fy_sim_run(&options, work, NULL), FERRY_EINVAL);
    options = (fy_sim_options){.speeds = "none"};
    assert_int_equal(fy_sim_run(&options, work, NULL), FERRY_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_costs_follow_loggp),
        cmocka_unit_test(test_sim_slow_cut_and_ring),
        cmocka_unit_test(test_sim_helper_serves_during_computation),
        cmocka_unit_test(test_sim_speeds_and_stops),
        cmocka_unit_test(test_sim_tells_of_a_death),
        cmocka_unit_test(test_sim_fails_after_a_death),
        cmocka_unit_test(test_sim_refuses_memory),
        cmocka_unit_test(test_sim_ends_with_a_failing_rank),
        cmocka_unit_test(test_sim_refuses_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
