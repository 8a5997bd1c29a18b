/* Goal: ranks that flood each other finish, lose nothing and keep the order. Method: ranks are
 * threads with the smallest rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/outgoing.h"
#include "port/port.h"
#include "ranks.h"

enum { SLOTS = 8, BYTES = 1024 };

typedef struct plan {
    int count;         /* requests per pair */
    int replies;       /* of the handler of each */
    size_t size_bytes; /* of each request's data, at most */
    bool tracked;
} plan;

typedef struct counts {
    const plan *plan;
    ferry_handler flood, reply;
    uint64_t next[TEST_RANKS_MAX], reply_next[TEST_RANKS_MAX], reply_sent[TEST_RANKS_MAX];
    uint64_t submitted, completed;
} counts;

static void on_reply(ferry *f, int source, const ferry_message *message)
{
    counts *c = ferry_user_data(f);
    CHECK(message->words[0] == c->reply_next[source]);
    c->reply_next[source]++;
}

static void on_flood(ferry *f, int source, const ferry_message *message)
{
    counts *c = ferry_user_data(f);
    CHECK(message->words[0] == c->next[source]);
    c->next[source]++;
    const unsigned char *data = message->data;
    for (size_t i = 0; i < message->size_bytes; i++)
        CHECK(data[i] == (unsigned char)(message->words[0] + i));
    for (int i = 0; i < c->plan->replies; i++) {
        const ferry_message reply = {
            .handler = c->reply, .word_count = 1, .words = {c->reply_sent[source]++}};
        CHECK(ferry_request_send(f, source, &reply, NULL) == 0);
    }
}

static void on_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((counts *)arg)->submitted++;
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ((counts *)arg)->completed++;
}

static void flood(ferry *f, void *arg)
{
    const plan *p = arg;
    counts c = {.plan = p};
    unsigned char *data = malloc(p->size_bytes + 1);
    uint64_t random = (uint64_t)ferry_rank(f);
    ferry_user_data_set(f, &c);
    CHECK(data != NULL && ferry_handler_register(f, "flood", on_flood, &c.flood) == 0);
    CHECK(ferry_handler_register(f, "reply", on_reply, &c.reply) == 0);
    const ferry_track track = {.size = sizeof(track),
                               .submitted = on_submitted,
                               .submitted_arg = &c,
                               .completed = on_completed,
                               .completed_arg = &c};
    for (int i = 0; i < p->count; i++) {
        for (int rank = 0; rank < ferry_ranks(f); rank++) {
            size_t size = p->size_bytes == 0 ? 0 : next_random(&random) % p->size_bytes;
            for (size_t j = 0; j < size; j++)
                data[j] = (unsigned char)((size_t)i + j);
            const ferry_message m = {.handler = c.flood,
                                     .word_count = 1,
                                     .words = {(uint64_t)i},
                                     .data = data,
                                     .size_bytes = size};
            CHECK(ferry_request_send(f, rank, &m, p->tracked ? &track : NULL) == 0);
        }
    }
    CHECK(ferry_quiesce(f) == 0);
    uint64_t all = (uint64_t)p->count * (uint64_t)ferry_ranks(f);
    while (p->tracked && c.completed < all)
        CHECK(ferry_wait(f, FERRY_FOREVER) >= 0);
    CHECK(!p->tracked || (c.submitted == all && c.completed == all));
    for (int rank = 0; rank < ferry_ranks(f); rank++) {
        CHECK(c.next[rank] == (uint64_t)p->count);
        CHECK(c.reply_next[rank] == (uint64_t)p->count * (uint64_t)p->replies);
    }
    CHECK(ferry_barrier(f) == 0);
    free(data);
}

static void test_flood_of_words_both_ways(void **state)
{
    (void)state;
    plan p = {.count = 2000};
    for (test_parts parts = {.most = 10}; next_part(&parts);)
        run_ranks(2, SLOTS, BYTES, flood, &p);
}

static void test_flood_with_replies_of_handlers(void **state)
{
    (void)state;
    plan p = {.count = 400, .replies = 3};
    for (test_parts parts = {.most = 5}; next_part(&parts);)
        run_ranks(2, SLOTS, BYTES, flood, &p);
    p.count = 100;
    for (test_parts parts = {.most = 3}; next_part(&parts);)
        run_ranks(5, SLOTS, BYTES, flood, &p);
}

static void test_flood_of_data_tracked(void **state)
{
    (void)state;
    plan p = {.count = 50, .replies = 1, .size_bytes = 5000, .tracked = true};
    for (test_parts parts = {.most = 4}; next_part(&parts);) {
        run_ranks(2, SLOTS, BYTES, flood, &p);
        run_ranks(4, SLOTS, BYTES, flood, &p);
    }
}

enum { BACKLOG_MAX = 4096 };

/* Handlers' answers that wait for room. Beyond the limit they may come to what a ring brings while
 * both ranks find out that they refuse each other: so many packets, in the memory they take. */
enum { PACKETS_MAX = 640 };

static void on_ask(ferry *f, int source, const ferry_message *message)
{
    counts *c = ferry_user_data(f);
    on_flood(f, source, message);
    CHECK(c->plan->replies == 1);
    CHECK(fy_backlog_bytes(f, source) <
          BACKLOG_MAX + PACKETS_MAX * (sizeof(fy_packet) + FY_PACKET_POOLED_BYTES));
}

/* Rank 0 asks and asks, and polls only when it finds no room. */
static void ask_without_polling(ferry *f, void *arg)
{
    counts c = {.plan = arg};
    ferry_user_data_set(f, &c);
    f->options.backlog_bytes = BACKLOG_MAX;
    CHECK(ferry_handler_register(f, "ask", on_ask, &c.flood) == 0);
    CHECK(ferry_handler_register(f, "reply", on_reply, &c.reply) == 0);
    bool asks = ferry_rank(f) == 0 || c.plan->tracked;
    for (int i = 0; i < c.plan->count && asks; i++) {
        const ferry_message m = {.handler = c.flood, .word_count = 1, .words = {(uint64_t)i}};
        CHECK(ferry_request_send(f, 1 - ferry_rank(f), &m, NULL) == 0);
    }
    CHECK(ferry_quiesce(f) == 0);
    CHECK(c.reply_next[1 - ferry_rank(f)] == (asks ? (uint64_t)c.plan->count : 0));
    CHECK(ferry_barrier(f) == 0);
}

/* Goal: what waits for a peer that does not take it stays bounded, one way and both ways. */
static void test_flood_of_answers_is_bounded(void **state)
{
    (void)state;
    for (test_parts parts = {.most = 10}; next_part(&parts);) {
        plan p = {.count = 10000, .replies = 1};
        run_ranks(2, 64, BYTES, ask_without_polling, &p);
        p.tracked = true;
        run_ranks(2, 64, BYTES, ask_without_polling, &p);
        p.count = 300;
        run_ranks(2, 2, BYTES, ask_without_polling, &p);
    }
}

/* Goal: the smallest rings do for all of it. */
static void test_flood_with_two_slots(void **state)
{
    (void)state;
    plan p = {.count = 50, .replies = 2, .size_bytes = 300, .tracked = true};
    for (test_parts parts = {.most = 6}; next_part(&parts);)
        run_ranks(4, 2, BYTES, flood, &p);
}

typedef struct outcome {
    ferry_handler send, take;
    int taken, sent[3], refused[3];
} outcome;

static void on_take(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((outcome *)ferry_user_data(f))->taken++;
}

/* Sends more to rank 1 than it may, then one to rank 2 and one to itself. */
static void on_send(ferry *f, int source, const ferry_message *message)
{
    outcome *o = ferry_user_data(f);
    const ferry_message m = {.handler = o->take};
    (void)source, (void)message;
    while (o->refused[1] == 0 || o->sent[2] + o->refused[2] == 0 || o->refused[0] == 0) {
        int rank = o->refused[1] == 0 ? 1 : o->sent[2] + o->refused[2] == 0 ? 2 : 0;
        int error = ferry_request_send(f, rank, &m, NULL);
        CHECK(error == 0 || error == FERRY_EAGAIN);
        o->sent[rank] += error == 0;
        o->refused[rank] += error != 0;
    }
}

/* Goal: when as much waits on a rank as may, its handlers are refused what would have to wait too,
 * and nothing else. Method: rank 1 takes nothing, rank 2 has room. */
static void test_flood_is_refused_where_it_would_wait(void **state)
{
    (void)state;
    test_job job;
    outcome o[3] = {{.taken = 0}};
    job_open(&job, 3, SLOTS, BYTES);
    for (int rank = 0; rank < 3; rank++) {
        ferry_user_data_set(job.f[rank], &o[rank]);
        CHECK(ferry_handler_register(job.f[rank], "send", on_send, &o[rank].send) == 0);
        CHECK(ferry_handler_register(job.f[rank], "take", on_take, &o[rank].take) == 0);
    }
    job.f[0]->options.waiting_bytes = 10000;
    CHECK(ferry_request_send(job.f[0], 0, &(ferry_message){.handler = o[0].send}, NULL) == 0);
    CHECK(ferry_poll(job.f[0]) > 0);
    CHECK(o[0].sent[1] > SLOTS && o[0].sent[0] == 0);
    CHECK(o[0].sent[2] == 1);
    (void)job_settle(&job);
    CHECK(o[1].taken == o[0].sent[1] && o[2].taken == 1 && o[0].taken == 0);
    job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flood_of_words_both_ways),
        cmocka_unit_test(test_flood_with_replies_of_handlers),
        cmocka_unit_test(test_flood_of_data_tracked),
        cmocka_unit_test(test_flood_of_answers_is_bounded),
        cmocka_unit_test(test_flood_with_two_slots),
        cmocka_unit_test(test_flood_is_refused_where_it_would_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
