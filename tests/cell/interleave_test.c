/* Goal: however operations on a cell interleave, its parcel has one holder at every moment and one
 * content. Method: three ranks in one thread, each with a script of operations; a step is one
 * operation, or one frame that a rank takes. All orders of steps are gone through, over a port
 * without shared memory and one with it. After every step the parcel is in one place. In the end it
 * exists once, was changed as often as somebody changed it, and what was read is one of its
 * contents that it had meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "cell/state.h"
#include "port/template/template.h"
#include "ranks.h"

enum { RANKS = 3, OPS_MAX = 6, DEPTH_MAX = 64, WORDS = 5, POLLS = 3 };

/* The actions of a rank. An operation that takes a parcel waits until the start before it has
 * ended. */
typedef enum action {
    END,
    READ,     /* starts to read */
    TAKE,     /* starts to take */
    CANCEL,   /* gives up what was started last */
    CHANGE,   /* of what it has taken: writes the next content */
    ADD,      /* adds what it has taken, giving its hold */
    ADD_AWAY, /* the same by the tracked form */
    TAKE_NOW, /* takes without waiting; rank 0 only */
} action;

typedef struct scenario {
    const char *name;
    action scripts[RANKS][OPS_MAX];
    bool empty; /* the cell is empty at first, and rank 0 has the parcel */
} scenario;

static const scenario scenarios[] = {
    {"changed between two reads", {{TAKE_NOW, CHANGE, ADD}, {READ, READ}, {END}}, false},
    {"changed between a read and a take", {{TAKE_NOW, CHANGE, ADD}, {READ, TAKE}, {END}}, false},
    {"a take given up, after a read", {{END}, {READ, TAKE, CANCEL}, {READ}}, false},
    {"a take given up, the owner changes", {{TAKE_NOW, CHANGE, ADD}, {READ, TAKE, CANCEL}}, false},
    {"two take, one gives up", {{END}, {TAKE, CANCEL}, {TAKE, CHANGE, ADD_AWAY}}, false},
    {"both give up", {{ADD}, {TAKE, CANCEL}, {TAKE, CANCEL}}, true},
    {"given up and changed where it is", {{TAKE_NOW, CHANGE, ADD}, {TAKE, CANCEL}, {READ}}, false},
    {"given up before there is one", {{CHANGE, ADD}, {TAKE, CANCEL, READ}, {TAKE}}, true},
    {"passed to and fro", {{ADD}, {TAKE, CHANGE, ADD_AWAY}, {TAKE, CHANGE, ADD_AWAY}}, true},
    {"a reader that has read before", {{END}, {READ, READ}, {TAKE, CHANGE, ADD_AWAY}}, false},
    {"read, taken by one, changed by the other",
     {{END}, {READ, TAKE, CANCEL}, {READ, TAKE, CHANGE, ADD_AWAY}},
     false},
};

/* A rank that waits for a frame, or does not. */
typedef struct actor {
    ferry *f;
    fy_port_ops ops;
    const fy_port_ops *inner;
    int allowed; /* frames that it may take now */
    int at;      /* in its script */
    int polls;   /* left, over shared memory */
    bool open;   /* an operation of its has begun and not ended */
    action begun;
    ferry_op op;
    ferry_parcel out, taken;
    uint64_t known; /* the parcel's version when the operation began */
} actor;

static actor actors[RANKS];
static fy_template_job *job;
static test_job memory;
static bool shared;
static ferry_cell cell;
static uint64_t version;

static actor *actor_of(const fy_port *port)
{
    for (int i = 0; i < RANKS; i++)
        if (port->ops == &actors[i].ops)
            return &actors[i];
    return NULL;
}

/* The port's poll, with a budget of what the step allows. */
static int take_frames(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    actor *a = actor_of(port);
    if (lane != FY_DATA)
        return a->inner->transport.poll(port, lane, budget, deliver, context);
    if (a->allowed == 0)
        return 0;
    int taken = a->inner->transport.poll(port, lane, a->allowed, deliver, context);
    a->allowed -= taken;
    return taken;
}

static void open_apart(void)
{
    const ferry_options options = {.size = sizeof(options), .scheduler = "none"};
    job = fy_template_job_create(RANKS, RANKS);
    assert_non_null(job);
    for (int i = 0; i < RANKS; i++) {
        actor *a = &actors[i];
        fy_port *port;
        assert_int_equal(fy_template_join(job, i, &port), 0);
        a->inner = port->ops;
        a->ops = *port->ops;
        a->ops.transport.poll = take_frames;
        port->ops = &a->ops;
        assert_int_equal(fy_rank_create(port, &options, &a->f), 0);
    }
}

static void open_all(void)
{
    memset(actors, 0, sizeof(actors));
    if (!shared) {
        open_apart();
        return;
    }
    job_open(&memory, RANKS, 0, 0);
    for (int i = 0; i < RANKS; i++)
        actors[i].f = memory.f[i];
}

static void close_all(void)
{
    if (shared) {
        job_close(&memory);
        return;
    }
    for (int i = 0; i < RANKS; i++)
        fy_rank_destroy(actors[i].f);
    fy_template_job_destroy(job);
}

/* The content of a parcel that a rank holds: all words the same version. */
static uint64_t content_of(const actor *a, ferry_parcel parcel)
{
    size_t size;
    const uint64_t *words = ferry_parcel_data(a->f, parcel, &size);
    assert_non_null(words);
    assert_int_equal(size, WORDS * sizeof(*words));
    for (int i = 1; i < WORDS; i++)
        assert_int_equal(words[i], words[0]);
    return words[0];
}

static void write_content(actor *a, uint64_t value)
{
    void *data;
    assert_int_equal(ferry_parcel_modify(a->f, &a->taken, &data), 0);
    for (int i = 0; i < WORDS; i++)
        ((uint64_t *)data)[i] = value;
}

/* An operation has brought a parcel. */
static void take_up(actor *a)
{
    uint64_t seen = content_of(a, a->out);
    assert_true(seen >= a->known && seen <= version);
    if (a->begun == TAKE) {
        assert_int_equal(a->taken.word, 0);
        assert_int_equal(seen, version); /* the last content, wherever it was */
        a->taken = a->out;
    } else {
        assert_int_equal(ferry_parcel_release(a->f, a->out), 0);
    }
    a->out.word = 0;
}

static void look(actor *a)
{
    if (!a->open)
        return;
    int error = ferry_op_test(a->f, &a->op);
    if (error == FERRY_EAGAIN)
        return;
    assert_int_equal(error, 0);
    a->open = false;
    take_up(a);
}

static void start(actor *a, action what)
{
    const ferry_track track = {.size = sizeof(track), .op = &a->op};
    a->open = true;
    a->begun = what;
    a->known = version;
    a->out.word = 77; /* the start makes it none */
    if (what == TAKE)
        assert_int_equal(ferry_cell_dequeue_start(a->f, cell, &a->out, &track), 0);
    else
        assert_int_equal(ferry_cell_read_start(a->f, cell, &a->out, &track), 0);
}

static void cancel(actor *a)
{
    if (!a->open)
        return;
    a->open = false;
    assert_int_equal(ferry_op_cancel(a->f, &a->op), 0);
    if (a->out.word != 0)
        take_up(a);
}

static void take_now(actor *a)
{
    a->begun = TAKE;
    a->known = version;
    int error = ferry_cell_dequeue(a->f, cell, &a->out, 0);
    assert_true(error == 0 || error == FERRY_EAGAIN);
    if (error == 0)
        take_up(a);
}

static void add(actor *a, bool away)
{
    const ferry_track track = FERRY_TRACK_DEFAULTS;
    if (a->taken.word == 0)
        return;
    int error = away ? ferry_cell_enqueue_start(a->f, cell, a->taken, FERRY_GIVE, &track)
                     : ferry_cell_enqueue(a->f, cell, a->taken, FERRY_GIVE, 0);
    assert_int_equal(error, 0);
    a->taken.word = 0;
}

static void act(actor *a, action what)
{
    switch (what) {
    case READ:
    case TAKE:
        start(a, what);
        break;
    case CANCEL:
        cancel(a);
        break;
    case CHANGE:
        if (a->taken.word != 0)
            write_content(a, ++version);
        break;
    case TAKE_NOW:
        take_now(a);
        break;
    default:
        add(a, what == ADD_AWAY);
    }
}

/* Whether the actor's next operation may come now: an open one is given up or waited for. */
static bool may_act(const actor *a, const action *script)
{
    action next = a->at < OPS_MAX ? script[a->at] : END;
    return next != END && (!a->open || next == CANCEL);
}

static bool may_poll(const actor *a)
{
    if (shared)
        return a->polls > 0 && a->open;
    fy_port *port = fy_port_of(a->f);
    return a->inner->transport.pending(port, FY_DATA);
}

static void poll_one(actor *a)
{
    a->allowed = 1;
    a->polls--;
    ferry_poll(a->f);
    a->allowed = 0;
    look(a);
}

static void check_places(void)
{
    uint32_t places = 0;
    const fy_cell *inside = &fy_cells_of(actors[0].f)->board->cells[cell.number];
    places += fy_ends_count(atomic_load(&inside->ends));
    for (int i = 0; i < RANKS; i++) {
        places += actors[i].taken.word != 0;
        if (actors[i].taken.word != 0)
            assert_int_equal(content_of(&actors[i], actors[i].taken), version);
    }
    assert_true(places <= 1); /* 0: on its way */
}

/* Lets all arrive that is on its way, gives up what is open, and finds the parcel. */
static void check_end(void)
{
    for (int i = 0; i < RANKS; i++)
        cancel(&actors[i]);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < RANKS; i++) {
            actors[i].allowed = 100;
            ferry_poll(actors[i].f);
        }
    check_places();
    if (actors[0].taken.word == 0)
        take_now(&actors[0]);
    int holders = 0;
    for (int i = 0; i < RANKS; i++) {
        actors[i].allowed = 0;
        if (actors[i].taken.word == 0)
            continue;
        holders++;
        assert_int_equal(content_of(&actors[i], actors[i].taken), version);
        assert_int_equal(ferry_parcel_release(actors[i].f, actors[i].taken), 0);
    }
    assert_int_equal(holders, 1);
}

/* The decisions of a run, and how many there were to choose from. */
typedef struct path {
    int chosen[DEPTH_MAX], choices[DEPTH_MAX], length;
} path;

static void prepare(const scenario *s)
{
    version = 1;
    for (int i = 0; i < RANKS; i++) {
        actors[i].at = 0;
        actors[i].polls = POLLS;
        actors[i].open = false;
        actors[i].taken.word = actors[i].out.word = 0;
    }
    actor *owner = &actors[0];
    void *data;
    assert_int_equal(ferry_parcel_create(owner->f, WORDS * sizeof(uint64_t), &owner->taken, &data),
                     0);
    write_content(owner, version);
    if (!s->empty)
        add(owner, false);
}

/* Steps that are possible: those below RANKS operate, the others poll. */
static int find_steps(const scenario *s, int *steps)
{
    int count = 0;
    for (int i = 0; i < RANKS; i++) {
        if (may_act(&actors[i], s->scripts[i]))
            steps[count++] = i;
        if (may_poll(&actors[i]))
            steps[count++] = RANKS + i;
    }
    return count;
}

/* One run along `p`, which gets longer. */
static void run(const scenario *s, path *p)
{
    int depth = 0, count, steps[2 * RANKS];
    prepare(s);
    for (; (count = find_steps(s, steps)) > 0; depth++) {
        assert_true(depth < DEPTH_MAX);
        if (depth == p->length)
            p->chosen[p->length++] = 0;
        p->choices[depth] = count;
        int step = steps[p->chosen[depth]];
        if (step < RANKS)
            act(&actors[step], s->scripts[step][actors[step].at++]);
        else
            poll_one(&actors[step - RANKS]);
        check_places();
    }
    check_end();
}

/* The next path in order; false: that was the last. */
static bool advance(path *p)
{
    while (p->length > 0 && p->chosen[p->length - 1] + 1 == p->choices[p->length - 1])
        p->length--;
    if (p->length > 0)
        p->chosen[p->length - 1]++;
    return p->length > 0;
}

static void run_all(bool over_memory)
{
    long total = 0;
    shared = over_memory;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        path p = {.length = 0};
        long orders = 0;
        cell = (ferry_cell){0, 0};
        open_all();
        do {
            run(&scenarios[i], &p);
            cell.number = (cell.number + 1) % FERRY_CELLS;
            orders++;
        } while (advance(&p));
        close_all();
        printf("%s%s: %ld orders\n", scenarios[i].name, over_memory ? ", shared" : "", orders);
        total += orders;
    }
    printf("%ld orders\n", total);
}

static void test_cell_has_one_holder_in_every_order_of_frames(void **state)
{
    (void)state;
    run_all(false);
}

static void test_cell_has_one_holder_in_every_order_of_polls(void **state)
{
    (void)state;
    run_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cell_has_one_holder_in_every_order_of_frames),
        cmocka_unit_test(test_cell_has_one_holder_in_every_order_of_polls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
