/* Figure 4.17 of prema.txt: the round trip of a message that is forwarded 0, 1, 2, ... times.
 *
 * For each number of hops a new object is made on rank 1 and moves on as many times, each time to
 * the next rank. Its messages for that are its own, so nobody else learns where it is. Then rank 0,
 * which believes it to be where it was made, sends it one message, and its handler answers. One
 * line per number: hops, microseconds. Usage: ferry sim -n RANKS ... hops; RANKS - 2 hops at most.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

typedef struct state {
    ferry_handler walk, ask, answer;
    bool answered;
} state;

static void check(ferry *f, int error)
{
    if (error >= 0)
        return;
    fprintf(stderr, "hops: %s\n", ferry_error_message(f));
    exit(EXIT_FAILURE);
}

/* words[0]: moves that are left. */
static void on_walk(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    (void)data, (void)source;
    if (m->words[0] == 0)
        return;
    const ferry_message next = {.handler = m->handler, .word_count = 1, .words = {m->words[0] - 1}};
    check(f, ferry_object_send(f, object, &next, NULL));
    check(f, ferry_object_move(f, object, ferry_rank(f) + 1));
}

static void on_ask(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    const state *s = ferry_user_data(f);
    const ferry_message answer = {.handler = s->answer};
    (void)object, (void)data, (void)m;
    check(f, ferry_request_send(f, source, &answer, NULL));
}

static void on_answer(ferry *f, int source, const ferry_message *m)
{
    (void)source, (void)m;
    ((state *)ferry_user_data(f))->answered = true;
}

static void measure(ferry *f, state *s, ferry_object_type type, uint64_t hops)
{
    ferry_object object = {0};
    const ferry_message walk = {.handler = s->walk, .word_count = 1, .words = {hops}};
    const ferry_message ask = {.handler = s->ask};
    if (ferry_rank(f) == 1) {
        check(f, ferry_object_create(f, type, malloc(8), &object));
        check(f, ferry_object_send(f, object, &walk, NULL));
    }
    check(f, ferry_broadcast(f, 1, &object, sizeof object));
    check(f, ferry_quiesce(f));
    if (ferry_rank(f) == 0) {
        uint64_t start_ns = ferry_now(f);
        s->answered = false;
        check(f, ferry_object_send(f, object, &ask, NULL));
        while (!s->answered)
            check(f, ferry_wait(f, FERRY_FOREVER));
        printf("%d,%.2f\n", (int)hops, (double)(ferry_now(f) - start_ns) / 1e3);
    }
    check(f, ferry_quiesce(f));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {.size = sizeof ops, .name = "walker", .flat_bytes = 8};
    state s = {.answered = false};
    ferry_object_type type;
    (void)argc, (void)argv;
    ferry_user_data_set(f, &s);
    check(f, ferry_object_type_register(f, &ops, &type));
    check(f, ferry_object_handler_register(f, "walk", on_walk, &s.walk));
    check(f, ferry_object_handler_register(f, "ask", on_ask, &s.ask));
    check(f, ferry_handler_register(f, "answer", on_answer, &s.answer));
    for (int hops = 0; hops <= ferry_ranks(f) - 2; hops++)
        measure(f, &s, type, (uint64_t)hops);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
