#include "cases.h"

#include "port/outlet.h"

enum { FRAMES = 10000 };

/* The outlet to `rank`, if a frame may be written into it now. */
static fy_outlet *ready_outlet(fy_port *port, int rank)
{
    fy_outlet *o =
        port->ops->transport.outlet == NULL ? NULL : port->ops->transport.outlet(port, rank);
    return o != NULL && fy_outlet_is_ready(o) ? o : NULL;
}

static void write_frame(fy_port *port, fy_outlet *o, const fy_frame *frame)
{
    fy_ring_slot *slot = fy_outlet_next(o);
    slot->op = frame->op;
    slot->aux = frame->aux;
    slot->handler = frame->handler;
    slot->count_place = frame->word_count;
    slot->kind = frame->kind;
    slot->tag = frame->tag;
    slot->size = 0;
    fy_words_copy(slot->words, frame->words, frame->word_count);
    if (fy_outlet_publish(o, slot))
        port->ops->transport.follow(port, o);
}

/* Goal: frames that are written into outlets, and frames that are sent, arrive once and in their
 * order, however full the ring is. Method: all ranks write and send to all others by turns, with
 * data now and then, and take few at a time. */
static void mix(tally *t)
{
    static const char data[500];
    fy_port *port = t->port;
    fy_port_info info = fy_info_of(port);
    uint64_t written = 0;
    for (uint64_t number = 0; number < FRAMES; number++)
        for (int rank = 0; rank < info.ranks; rank++) {
            fy_frame frame = fy_tally_frame(number, FY_DATA);
            fy_outlet *o = number % 5 == 0 ? NULL : ready_outlet(port, rank);
            frame.data = data;
            frame.size_bytes = number % 35 == 0 ? number % sizeof data : 0;
            written += o != NULL;
            if (o != NULL)
                write_frame(port, o, &frame);
            else
                fy_tally_send(t, FY_DATA, rank, &frame);
        }
    fy_waits_for(port, "the last frames of all ranks");
    while (t->count[FY_DATA] < FRAMES * (uint64_t)info.ranks)
        fy_tally_poll(t);
    if (port->ops->transport.outlet != NULL && info.shares_memory)
        fy_expect(written > FRAMES / 2);
}

/* Goal: a rank that sleeps wakes for a frame that is written. Method: a frame goes round, and all
 * others sleep without a deadline. */
static void go_round(tally *t)
{
    enum { ROUNDS = 300 };
    fy_port *port = t->port;
    fy_port_info info = fy_info_of(port);
    int next = (info.rank + 1) % info.ranks, before = (info.rank + info.ranks - 1) % info.ranks;
    fy_waits_for(port, "a frame that goes round: wait does not end when it comes");
    for (uint64_t number = FRAMES; number < FRAMES + ROUNDS; number++) {
        while (info.rank != 0 && t->next[FY_DATA][before] == number)
            fy_tally_wait(t);
        fy_frame frame = fy_tally_frame(number, FY_DATA);
        fy_outlet *o = ready_outlet(port, next);
        if (o != NULL)
            write_frame(port, o, &frame);
        else
            fy_tally_send(t, FY_DATA, next, &frame);
        while (info.rank == 0 && t->next[FY_DATA][before] == number)
            fy_tally_wait(t);
    }
}

void fy_case_outlets(fy_port *port)
{
    tally t = {.port = port};
    mix(&t);
    fy_tally_meet(&t, 1);
    go_round(&t);
    fy_tally_meet(&t, 2);
}
