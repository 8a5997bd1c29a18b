#include "cases.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/busy.h"

#define MS UINT64_C(1000000)

void fy_expect_at(bool is, const char *text, const char *file, int line)
{
    if (is)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    exit(EXIT_FAILURE);
}

fy_port_info fy_info_of(fy_port *port)
{
    fy_port_info info;
    port->ops->transport.query(port, &info);
    return info;
}

unsigned char fy_pattern(size_t i, uint64_t seed)
{
    return (unsigned char)(i * 31 + (i >> 8) + seed * 7);
}

/* Words: number, lane. */
fy_verdict fy_tally_take(void *context, int source, const fy_frame *frame)
{
    tally *t = context;
    if (t->leave)
        return FY_LEAVE;
    t->taken++;
    if (frame->kind == KIND_LAST) {
        bool tells = frame->word_count > 0;
        t->last += !tells;
        t->tellers += tells;
        t->told += tells ? frame->words[0] : 0;
        return FY_TAKEN;
    }
    fy_expect(frame->word_count >= 2);
    fy_lane lane = (fy_lane)frame->words[1];
    fy_expect(lane < FY_LANES);
    fy_expect(frame->words[0] == t->next[lane][source]++);
    fy_expect(frame->tag == -7 - (int32_t)(frame->words[0] % 1000));
    fy_expect(frame->op == (uint32_t)frame->words[0] * 3 && frame->handler == 0xfedc);
    fy_expect(frame->aux == 0xdeadbeef && frame->kind == 7);
    fy_expect((frame->size_bytes == 0) || (uintptr_t)frame->data % 8 == 0);
    const unsigned char *data = frame->data;
    bool sound = true;
    for (size_t i = 0; t->check_data && i < frame->size_bytes; i++)
        sound = sound && data[i] == fy_pattern(i, frame->words[0]);
    fy_expect(sound);
    t->count[lane]++;
    return FY_TAKEN;
}

fy_frame fy_tally_frame(uint64_t number, fy_lane lane)
{
    return (fy_frame){
        .kind = 7,
        .word_count = 2,
        .handler = 0xfedc,
        .op = (uint32_t)number * 3,
        .tag = -7 - (int32_t)(number % 1000),
        .aux = 0xdeadbeef,
        .words = {number, lane},
    };
}

int fy_tally_look(tally *t, fy_lane lane, int budget, fy_deliver *deliver)
{
    uint64_t before = t->taken;
    int taken = t->port->ops->transport.poll(t->port, lane, budget, deliver, t);
    fy_expect(taken >= 0 && taken <= budget && (uint64_t)taken == t->taken - before);
    return taken;
}

/* Lets others compute if nothing comes for a while: there may be more ranks than processors. */
void fy_tally_poll(tally *t)
{
    enum { IDLE_POLLS = 16 };
    int taken = fy_tally_look(t, FY_CONTROL, 16, fy_tally_take);
    taken += fy_tally_look(t, FY_DATA, 16, fy_tally_take);
    t->idle_polls = taken == 0 ? t->idle_polls + 1 : 0;
    if (t->idle_polls >= IDLE_POLLS) {
        t->idle_polls = 0;
        sched_yield();
    }
}

void fy_tally_wait(tally *t)
{
    uint64_t before = t->count[FY_DATA];
    fy_tally_poll(t);
    if (t->count[FY_DATA] == before)
        t->port->ops->transport.wait(t->port, FY_APP, UINT64_MAX);
}

void fy_tally_send(tally *t, fy_lane lane, int rank, const fy_frame *frame)
{
    int error = t->port->ops->transport.send(t->port, FY_APP, lane, rank, frame);
    if (error == FERRY_EAGAIN) {
        const char *before = fy_waits_for(t->port, "room for a frame that it sends");
        while ((error = t->port->ops->transport.send(t->port, FY_APP, lane, rank, frame)) ==
               FERRY_EAGAIN)
            fy_tally_poll(t);
        fy_waits_for(t->port, before);
    }
    fy_expect(error == 0);
}

void fy_tally_meet(tally *t, uint64_t round)
{
    fy_port_info info = fy_info_of(t->port);
    fy_frame last = {.kind = KIND_LAST};
    for (int rank = 0; rank < info.ranks; rank++)
        if (rank != info.rank)
            fy_tally_send(t, FY_DATA, rank, &last);
    const char *before = fy_waits_for(t->port, "a frame of each other rank, which says it is done");
    while (t->last < round * (uint64_t)(info.ranks - 1))
        fy_tally_poll(t);
    fy_waits_for(t->port, before);
}

bool fy_is_late(fy_port *port, uint64_t start_ns)
{
    return port->ops->host.now(port) - start_ns > 8000 * MS;
}

bool fy_is_enough(fy_port *port, uint64_t start_ns, uint64_t round, uint64_t most)
{
    enum { LEAST = 40 };
    if (round >= most)
        return true;
    if (round < LEAST || !fy_is_late(port, start_ns))
        return false;
    left_out("%llu of %llu rounds on rank %d", (unsigned long long)round, (unsigned long long)most,
             fy_info_of(port).rank);
    return true;
}

void fy_skipped(fy_port *port, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "SKIPPED on rank %d: ", fy_info_of(port).rank);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}
