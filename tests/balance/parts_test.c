/* The priority buckets and the coordinators, without ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "balance/balance.h"
#include "balance/schedulers/buckets.h"
#include "balance/schedulers/bundle/waiting.h"
#include "balance/schedulers/coordinator.h"

enum { ITEMS = 200 };

/* Goal: the priority buckets hands out what is on it once, as a rule the heaviest first, and its
 * sums are right. Method: items of many loads, some changed and taken off, against a plain array.
 */
static void test_buckets_hands_out_the_heaviest(void **state)
{
    (void)state;
    fy_buckets *buckets = calloc(1, sizeof *buckets);
    ferry_schedulable items[ITEMS] = {0};
    int rises = 0, count = 0;
    for (int i = 0; i < ITEMS; i++) {
        items[i].load = (double)(i * 37 % 101) * 0.5;
        assert_false(fy_buckets_add(buckets, &items[i]));
        items[i].pending = 1;
        assert_true(fy_buckets_add(buckets, &items[i]));
        assert_false(fy_buckets_add(buckets, &items[i]));
    }
    for (int i = 0; i < ITEMS; i += 5) {
        items[i].load += 1000;
        fy_buckets_add(buckets, &items[i]);
        fy_buckets_remove(buckets, &items[i + 1]);
        fy_buckets_remove(buckets, &items[i + 1]);
    }
    assert_int_equal(buckets->count, ITEMS - ITEMS / 5);
    uint32_t loaded = 0;
    for (int i = 0; i < ITEMS; i++)
        loaded += items[i].queued && items[i].load > 0;
    assert_int_equal(buckets->loaded, loaded);
    items[0].load = 0; /* what has none falls to the lowest bucket */
    fy_buckets_add(buckets, &items[0]);
    assert_int_equal(buckets->loaded, loaded - 1);
    assert_true(fy_buckets_first(buckets)->load >= 1000 && fy_buckets_last(buckets)->load >= 1000);
    double last = 1e9;
    for (ferry_schedulable *item; (item = fy_buckets_pop(buckets)) != NULL; count++) {
        assert_false(item->queued);
        rises += item->load > 1.5 * last;
        last = item->load;
    }
    assert_int_equal(count, ITEMS - ITEMS / 5);
    assert_true(rises <= count / 16);
    assert_true(buckets->load == 0 && buckets->loaded == 0);
    free(buckets);
}

static ferry_schedulable *heaviest_of(ferry_schedulable *items, const uint64_t *turns, double *sum)
{
    ferry_schedulable *best = NULL;
    *sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        if (!items[i].queued)
            continue;
        *sum += items[i].load;
        if (best == NULL || items[i].load > best->load ||
            (items[i].load == best->load && turns[i] > turns[best - items]))
            best = &items[i];
    }
    return best;
}

/* Goal: of however many wait, the sum and the heaviest are right, and they run in the order in
 * which they came. Method: items are added, made heavier or lighter and taken out by dice, against
 * a plain array; with the heap and without. */
static void test_waiting_knows_sum_and_heaviest(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        fy_waiting_queue waiting = {.ordered = ordered != 0};
        ferry_schedulable items[ITEMS] = {0};
        uint64_t turns[ITEMS] = {0}, turn = 0, dice = 1;
        for (int step = 0; step < 20000; step++) {
            dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407U;
            ferry_schedulable *item = &items[(dice >> 33) % ITEMS];
            item->pending = 1;
            if ((dice >> 20) % 3 == 0) {
                fy_waiting_remove(&waiting, item);
            } else {
                item->load = (double)((dice >> 25) % 50);
                bool is_new = !item->queued;
                turns[item - items] = is_new ? ++turn : turns[item - items];
                assert_int_equal(fy_waiting_add(&waiting, item), is_new);
            }
            double sum;
            ferry_schedulable *best = heaviest_of(items, turns, &sum);
            assert_ptr_equal(fy_waiting_heaviest(&waiting), best);
            assert_true(fy_waiting_load(&waiting, false) == sum);
            if (waiting.count > 0)
                assert_true(fy_waiting_load(&waiting, true) == sum - waiting.first->load);
        }
        uint64_t last = 0;
        for (ferry_schedulable *item; (item = fy_waiting_pop(&waiting)) != NULL;) {
            assert_true(turns[item - items] > last);
            last = turns[item - items];
        }
        assert_true(waiting.load == 0 && waiting.count == 0);
        fy_waiting_fini(&waiting);
    }
}

/* Goal: nothing on the priority buckets waits forever, and what is light seldom goes first.
 * Method: heavy items come as fast as any leave, and of two light ones the lightest comes back each
 * time. */
static void test_buckets_starves_nobody(void **state)
{
    (void)state;
    fy_buckets *buckets = calloc(1, sizeof *buckets);
    ferry_schedulable lightest = {.load = 1e-3, .pending = 1}, light = {.load = 1, .pending = 1};
    ferry_schedulable heavy[2] = {{0}};
    int turns = 0, heavies = 0;
    fy_buckets_add(buckets, &light);
    for (; light.queued && turns < 10000; turns++) {
        heavy[turns % 2] = (ferry_schedulable){.load = 5, .pending = 1};
        fy_buckets_add(buckets, &heavy[turns % 2]);
        fy_buckets_add(buckets, &lightest);
        heavies += fy_buckets_pop(buckets)->load == 5;
    }
    assert_false(light.queued);
    assert_true(heavies >= turns - turns / 16);
    free(buckets);
}

/* Goal: only what is passed over has its turn: heavy ones that nothing waits behind do not count.
 * Method: pairs leave, the light one last; then a heavy one and a light one wait. */
static void test_buckets_counts_what_it_passes_over(void **state)
{
    (void)state;
    fy_buckets *buckets = calloc(1, sizeof *buckets);
    ferry_schedulable light = {.load = 1, .pending = 1}, heavy = {.load = 5, .pending = 1};
    for (int i = 0; i < 100; i++) {
        fy_buckets_add(buckets, &light);
        fy_buckets_add(buckets, &heavy);
        assert_ptr_equal(fy_buckets_pop(buckets), &heavy);
        assert_ptr_equal(fy_buckets_pop(buckets), &light);
    }
    free(buckets);
}

enum { RANKS = 70 };

/* A job of coordinators in one process: notes wait in a queue, ranks give as long as they have
 * something.
 */
typedef struct job {
    ferry_scheduling ranks[RANKS];
    fy_coordinators coordinators[RANKS];
    uint32_t left[RANKS], got[RANKS];
    float heaviest[RANKS];
    struct {
        int from, to;
        fy_coordinator_note note;
    } queue[100000];
    int first, count;
    int self;
} job;

static job *the_job;

static void note_send(ferry_scheduling *s, void *context, int rank, const fy_coordinator_note *note)
{
    job *j = the_job;
    (void)context;
    assert_in_range(j->count, 0, 99999);
    j->queue[j->count].from = s->rank;
    j->queue[j->count].to = rank;
    j->queue[j->count++].note = *note;
}

static void rank_asked(ferry_scheduling *s, void *context, const fy_coordinator_note *note)
{
    job *j = the_job;
    (void)context;
    if (j->left[s->rank] > 0) {
        j->left[s->rank]--;
        j->got[note->request]++;
        return;
    }
    fy_coordinator_note up = {.word = FY_COORDINATOR_UP, .level = 1, .request = note->request};
    fy_coordinators_post(s, &j->coordinators[s->rank], &up);
}

static void post(job *j, int rank, int request)
{
    fy_coordinator_note up = {.word = FY_COORDINATOR_UP,
                              .level = 1,
                              .request = request,
                              .supply = j->left[rank],
                              .heaviest = j->heaviest[rank]};
    fy_coordinators_post(&j->ranks[rank], &j->coordinators[rank], &up);
}

static void deliver_all(job *j)
{
    while (j->first < j->count) {
        int at = j->first++, to = j->queue[at].to;
        fy_coordinator_note note = j->queue[at].note;
        fy_coordinators_hear(&j->ranks[to], &j->coordinators[to], j->queue[at].from, &note);
    }
}

/* 70 ranks in coordinators of 4 children, so four levels. */
static job *open_job(void)
{
    job *j = the_job = calloc(1, sizeof *j);
    for (int i = 0; i < RANKS; i++) {
        j->ranks[i].rank = i;
        j->ranks[i].ranks = RANKS;
        j->coordinators[i].send = note_send;
        j->coordinators[i].asked = rank_asked;
        assert_int_equal(fy_coordinators_init(&j->ranks[i], &j->coordinators[i], 4), 0);
    }
    return j;
}

static void close_job(job *j)
{
    for (int i = 0; i < RANKS; i++)
        fy_coordinators_fini(&j->coordinators[i]);
    free(j);
}

/* Goal: every work request is met as long as any rank has something to give, whichever comes first,
 * in few messages. Method: all but two ranks work request, then one that has work reports, and then
 * the other way round. */
static void test_coordinators_meet_every_request(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        job *j = open_job();
        j->left[37] = RANKS;
        if (order == 1)
            post(j, 37, -1);
        for (int i = 0; i < RANKS; i++) {
            if (i != 37 && i != 12)
                post(j, i, i);
            if (order == 1)
                deliver_all(j);
        }
        deliver_all(j);
        if (order == 0)
            post(j, 37, -1);
        deliver_all(j);
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(j->got[i], i != 37 && i != 12);
        assert_in_range(j->count, 1, RANKS * 12);
        close_job(j);
    }
}

/* Goal: work requests are met although coordinators do not hear of every change below them; what
 * they believe is half of the truth at least. Method: what a rank has grows from 64 to 127, which
 * the coordinators above its own are not told; 120 work requests come. */
static void test_coordinators_count_what_they_send(void **state)
{
    (void)state;
    job *j = open_job();
    j->left[37] = 64;
    post(j, 37, -1);
    deliver_all(j);
    j->left[37] = 127;
    post(j, 37, -1);
    deliver_all(j);
    for (int request = 0; request < 120; request++) {
        post(j, request % 30, request % 30);
        deliver_all(j);
        assert_true(2 * j->coordinators[0].levels[3].children[0].supply >= j->left[37]);
    }
    for (int i = 0; i < 30; i++)
        assert_int_equal(j->got[i], 4);
    close_job(j);
}

/* Goal: a work request goes where the heaviest object is, near or far, and when several are alike,
 * where most are. Method: ranks of one coordinator and of another report; one work requests. */
static void test_coordinators_ask_who_has_the_heaviest(void **state)
{
    static const struct {
        int rank;
        uint32_t supply;
        float heaviest;
    } reports[] = {{5, 9, 1}, {60, 2, 5}, {62, 1, 5}, {6, 1, 8}, {61, 1, 0}};
    static const int order[] = {6, 60, 60, 62, 5};
    (void)state;
    job *j = open_job();
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        j->left[reports[i].rank] = reports[i].supply;
        j->heaviest[reports[i].rank] = reports[i].heaviest;
        post(j, reports[i].rank, -1);
        deliver_all(j);
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        uint32_t before = j->left[order[i]];
        post(j, 30, 30);
        deliver_all(j);
        assert_int_equal(j->left[order[i]], before - 1);
    }
    close_job(j);
}

/* The next two notes change places. */
static void overtake(job *j)
{
    assert_int_equal(j->count, j->first + 2);
    assert_int_equal(j->queue[j->first].from, j->queue[j->first + 1].from);
    fy_coordinator_note first = j->queue[j->first].note;
    j->queue[j->first].note = j->queue[j->first + 1].note;
    j->queue[j->first + 1].note = first;
}

/* Goal: two threads of a rank send notes, and an old report that comes late is not believed. Nor is
 * a work request that comes after it was cancelled; another one is. Numbers of notes may begin
 * anew. Method: a rank reports nothing, then all, in the wrong order. Another cancels a work
 * request that comes last. */
static void test_coordinators_believe_the_latest_note(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        job *j = open_job();
        j->coordinators[37].posted = j->coordinators[38].posted =
            turn == 0 ? 0 : FY_COORDINATOR_NUMBERS - 2;
        post(j, 37, -1);
        j->left[37] = 5;
        post(j, 37, -1);
        overtake(j);
        deliver_all(j);
        fy_coordinator_note cancel = {.word = FY_COORDINATOR_CANCEL, .level = 1, .request = 38};
        post(j, 38, 38);
        fy_coordinators_post(&j->ranks[38], &j->coordinators[38], &cancel);
        overtake(j);
        deliver_all(j);
        assert_int_equal(j->got[38], 0);
        assert_int_equal(j->left[37], 5);
        post(j, 5, 5);
        post(j, 38, 38);
        deliver_all(j);
        assert_int_equal(j->got[5], 1);
        assert_int_equal(j->got[38], 1);
        close_job(j);
    }
}

/* Goal: notes that no coordinator or rank sends are dropped. Method: a trade for a coordinator, a
 * cancelled work request for a rank. */
static void test_coordinators_drop_what_makes_no_sense(void **state)
{
    (void)state;
    job *j = open_job();
    const fy_coordinator_note trade = {
        .word = FY_COORDINATOR_TRADE, .level = 1, .request = 3, .load = 1};
    const fy_coordinator_note cancel = {.word = FY_COORDINATOR_CANCEL, .level = 0, .request = 3};
    j->left[0] = 1;
    post(j, 0, -1);
    deliver_all(j);
    int before = j->count;
    fy_coordinators_hear(&j->ranks[0], &j->coordinators[0], 2, &trade);
    fy_coordinators_hear(&j->ranks[0], &j->coordinators[0], 2, &cancel);
    assert_true(j->count == before && j->left[0] == 1);
    close_job(j);
}

/* Goal: notes read as they were written, and others are refused. */
static void test_coordinators_notes_travel(void **state)
{
    (void)state;
    uint64_t words[FERRY_SCHEDULER_WORDS];
    const fy_coordinator_note note = {.word = FY_COORDINATOR_UP,
                                      .level = 3,
                                      .request = -1,
                                      .supply = 9,
                                      .heaviest = 1.5F,
                                      .load = 80};
    fy_coordinator_note read;
    fy_coordinator_note_write(&note, words);
    assert_true(fy_coordinator_note_read(words, &read));
    assert_true(read.word == note.word && read.level == 3 && read.request == -1 &&
                read.supply == 9);
    assert_true(read.heaviest == note.heaviest && read.load == note.load);
    words[0] |= 0xff;
    assert_false(fy_coordinator_note_read(words, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_hands_out_the_heaviest),
        cmocka_unit_test(test_waiting_knows_sum_and_heaviest),
        cmocka_unit_test(test_buckets_starves_nobody),
        cmocka_unit_test(test_buckets_counts_what_it_passes_over),
        cmocka_unit_test(test_coordinators_meet_every_request),
        cmocka_unit_test(test_coordinators_count_what_they_send),
        cmocka_unit_test(test_coordinators_ask_who_has_the_heaviest),
        cmocka_unit_test(test_coordinators_believe_the_latest_note),
        cmocka_unit_test(test_coordinators_drop_what_makes_no_sense),
        cmocka_unit_test(test_coordinators_notes_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
