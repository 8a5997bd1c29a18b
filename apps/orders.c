/* Orders: the order manager of progressive-messages.txt 3.5 and 4.2, with latent orders.
 *
 *     ferry run -n 2 build/apps/orders --orders 200
 *
 * Rank 1 is the exchange: it streams prices and answers orders with execution reports, but delays
 * some, drops some and rejects some. Every other rank manages orders: a receive with a timeout
 * waits for each report, so nothing in the main loop looks for orders that are late.
 *
 * Ranks may die. When the exchange does, each open order fails by its event, and is counted; when a
 * manager does, the exchange goes on for the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

enum { EXCHANGE = 1, ORDERS_MAX = 100000, DELAYED_MAX = 1024, OPEN_MAX = 16 };
enum { TIMEOUT_NS = 30000000, DELAY_NS = 8000000, PRICE_NS = 1000000, VIEW_NS = 100000000 };

typedef enum outcome { OPEN, FILLED, REJECTED, LATENT, FAILED, OUTCOMES } outcome;

typedef struct order {
    struct state *state;
    outcome outcome, report;
} order;

/* At the exchange: a report to send later. */
typedef struct delayed {
    int rank, id;
    uint64_t due_ns;
} delayed;

typedef struct state {
    ferry *f;
    ferry_handler order, cancel, price, done;
    order *orders;
    int orders_max, sent, counts[OUTCOMES];
    uint64_t prices, last_price;
    delayed delayed[DELAYED_MAX];
    int delayed_count, managers_done;
    bool *done_ranks; /* at the exchange: managers that have finished, or are dead */
    bool closed;      /* at a manager: the exchange is dead */
    uint64_t random;
    bool error;
} state;

/* A rank that dies is not an error: its event follows. */
static void note_error(state *s, int error)
{
    s->error = s->error || (error != 0 && error != FERRY_EPEER);
}

static uint64_t random_below(state *s, uint64_t n)
{
    s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (s->random >> 33) % n;
}

/* The exchange. */

static void report(state *s, int rank, int id, outcome what)
{
    note_error(s, ferry_send(s->f, rank, id, &what, sizeof what, NULL));
}

static void on_order(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    int id = (int)message->words[0];
    uint64_t luck = random_below(s, 100);
    if (luck < 10)
        return; /* dropped */
    if (luck < 20)
        report(s, source, id, REJECTED);
    else if (luck < 40 && s->delayed_count < DELAYED_MAX)
        s->delayed[s->delayed_count++] =
            (delayed){source, id, ferry_now(f) + random_below(s, DELAY_NS)};
    else
        report(s, source, id, FILLED);
}

static void on_cancel(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    for (int i = 0; i < s->delayed_count; i++)
        if (s->delayed[i].rank == source && s->delayed[i].id == (int)message->words[0])
            s->delayed[i--] = s->delayed[--s->delayed_count];
}

static void finish_manager(state *s, int rank)
{
    s->managers_done += !s->done_ranks[rank];
    s->done_ranks[rank] = true;
}

static void on_done(ferry *f, int source, const ferry_message *message)
{
    (void)message;
    finish_manager(ferry_user_data(f), source);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    if (!event->died)
        return;
    if (ferry_rank(f) == EXCHANGE)
        finish_manager(s, event->rank);
    s->closed = s->closed || event->rank == EXCHANGE;
}

static void send_price(state *s)
{
    s->last_price += 3 + random_below(s, 5) - 5;
    const ferry_message price = {.handler = s->price, .word_count = 1, .words = {s->last_price}};
    note_error(s, ferry_request_broadcast(s->f, &price, NULL));
}

static void run_exchange(state *s)
{
    uint64_t price_ns = 0;
    s->last_price = 10000;
    while (s->managers_done < ferry_ranks(s->f) - 1 && !s->error) {
        uint64_t now = ferry_now(s->f);
        for (int i = 0; i < s->delayed_count; i++)
            if (s->delayed[i].due_ns <= now) {
                delayed d = s->delayed[i];
                s->delayed[i--] = s->delayed[--s->delayed_count];
                report(s, d.rank, d.id, FILLED);
            }
        if (now >= price_ns) {
            send_price(s);
            price_ns = now + PRICE_NS;
        }
        ferry_wait(s->f, PRICE_NS / 4);
    }
}

/* The manager. */

static void on_price(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->prices++;
    s->last_price = message->words[0];
}

static void settle(order *o, outcome what)
{
    o->outcome = what;
    o->state->counts[OPEN]--;
    o->state->counts[what]++;
}

/* Upon execution report: clear the outstanding order. */
static void on_report(ferry *f, void *arg, const ferry_receipt *receipt)
{
    order *o = arg;
    (void)f, (void)receipt;
    settle(o, o->report == REJECTED ? REJECTED : FILLED);
}

/* Upon timeout of an outstanding order: cancel it. */
static void on_latent(ferry *f, void *arg, const ferry_receipt *receipt)
{
    order *o = arg;
    const ferry_message cancel = {
        .handler = o->state->cancel, .word_count = 1, .words = {(uint64_t)receipt->tag}};
    settle(o, LATENT);
    note_error(o->state, ferry_request_send(f, EXCHANGE, &cancel, NULL));
}

static void on_failure(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    fprintf(stderr, "orders: order %d failed: %s\n", receipt->tag, receipt->reason);
    settle(arg, FAILED);
}

static void send_order(state *s)
{
    int id = s->sent++;
    order *o = &s->orders[id];
    o->state = s;
    s->counts[OPEN]++;
    const ferry_track track = {.size = sizeof track,
                               .completed = on_report,
                               .completed_arg = o,
                               .timed_out = on_latent,
                               .timed_out_arg = o,
                               .timeout_ns = TIMEOUT_NS,
                               .failed = on_failure,
                               .failed_arg = o};
    const ferry_message message = {.handler = s->order, .word_count = 1, .words = {(uint64_t)id}};
    int error = ferry_receive(s->f, EXCHANGE, id, &o->report, sizeof o->report, &track);
    note_error(s, error);
    if (error != 0)
        settle(o, FAILED); /* without a receive there is no event */
    else
        note_error(s, ferry_request_send(s->f, EXCHANGE, &message, NULL));
}

static void view(const state *s, bool end)
{
    if (ferry_rank(s->f) != 0 || (!end && !isatty(STDOUT_FILENO)))
        return;
    printf("%sprice %6.2f | sent %5d  open %3d  filled %5d  rejected %4d  latent, cancelled %4d  "
           "failed %3d%s",
           isatty(STDOUT_FILENO) ? "\r" : "", (double)s->last_price / 100, s->sent, s->counts[OPEN],
           s->counts[FILLED], s->counts[REJECTED], s->counts[LATENT], s->counts[FAILED],
           end ? "\n" : "");
    fflush(stdout);
}

static void run_manager(state *s)
{
    uint64_t view_ns = 0;
    while (((s->sent < s->orders_max && !s->closed) || s->counts[OPEN] > 0) && !s->error) {
        if (s->sent < s->orders_max && s->counts[OPEN] < OPEN_MAX && !s->closed)
            send_order(s);
        else
            ferry_wait(s->f, VIEW_NS);
        uint64_t now = ferry_now(s->f);
        if (now >= view_ns)
            view(s, false);
        view_ns = now >= view_ns ? now + VIEW_NS : view_ns;
    }
    view(s, true);
    const ferry_message done = {.handler = s->done};
    note_error(s, ferry_request_send(s->f, EXCHANGE, &done, NULL));
}

static int run(state *s)
{
    if (ferry_handler_register(s->f, "order", on_order, &s->order) != 0 ||
        ferry_handler_register(s->f, "cancel", on_cancel, &s->cancel) != 0 ||
        ferry_handler_register(s->f, "price", on_price, &s->price) != 0 ||
        ferry_handler_register(s->f, "done", on_done, &s->done) != 0 ||
        ferry_peer_watch(s->f, on_peer, s) != 0)
        return 1;
    if (ferry_rank(s->f) == EXCHANGE)
        run_exchange(s);
    else
        run_manager(s);
    if (s->error || ferry_quiesce(s->f) != 0)
        return 1;
    int ended = s->counts[FILLED] + s->counts[REJECTED] + s->counts[LATENT] + s->counts[FAILED];
    return ended != s->sent || (s->counts[FAILED] > 0 && !s->closed);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long orders = 200;
    const parameter table[] = {{"orders", "to place", 1, ORDERS_MAX, .whole = &orders}, {0}};
    int wrong = parameters_read(f, argc, argv, "An order manager and an exchange.", table);
    if (wrong >= 0)
        return wrong;
    if (ferry_ranks(f) < 2) {
        fprintf(stderr, "orders: 1 rank: expected 2 or more, as in ferry run -n 2 %s\n", argv[0]);
        return 2;
    }
    state *s = calloc(1, sizeof *s);
    order *all = calloc((size_t)orders, sizeof *all);
    bool *done_ranks = calloc((size_t)ferry_ranks(f), sizeof *done_ranks);
    int status = 1;
    if (s != NULL && all != NULL && done_ranks != NULL) {
        *s = (state){.f = f,
                     .orders = all,
                     .orders_max = (int)orders,
                     .done_ranks = done_ranks,
                     .random = (uint64_t)ferry_rank(f) + 1};
        ferry_user_data_set(f, s);
        status = run(s);
    }
    if (status != 0)
        fprintf(stderr, "orders: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    free(done_ranks);
    free(all);
    free(s);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
