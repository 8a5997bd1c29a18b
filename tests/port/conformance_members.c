/* Ranks that leave, and what a rank tells of itself. */
#include "cases.h"
#include "port/port.h"

#include <string.h>

/* Calls operations whose effects nobody can see from outside of this rank. */
static void call_alone(fy_port *port)
{
    const fy_port_ops *ops = port->ops;
    if (ops->members.endure != NULL) {
        ops->members.endure(port, true);
        ops->members.endure(port, false);
    }
    if (ops->members.fail != NULL)
        ops->members.fail(port, 1);
    if (ops->members.withdraw != NULL)
        fy_expect(!ops->members.withdraw(port));
    int first = -7;
    if (ops->members.spawn_ranks != NULL) {
        int error = ops->members.spawn_ranks(port, 1, NULL, &first);
        fy_expect((error == FERRY_ENOTSUP || error == FERRY_ENOMEM) && first == -7);
    }
}

/* Shuts the rank, which it does not as long as its client has not seen the last change. */
static void shut(fy_port *port, const _Atomic uint32_t *word)
{
    bool is_shut = port->ops->members.shut == NULL;
    if (is_shut)
        return;
    fy_expect(!port->ops->members.shut(port, atomic_load_explicit(word, memory_order_relaxed) +
                                                 UINT32_MAX / 2));
    while (!is_shut)
        is_shut = port->ops->members.shut(port, atomic_load_explicit(word, memory_order_relaxed));
}

/* Sends until the rank refuses it, which is shut or has left. It may take some before. */
static void send_in_vain(fy_port *port, int rank)
{
    uint64_t sent = 0;
    int error = 0;
    while (error != FERRY_EPEER) {
        const fy_frame frame = fy_tally_frame(sent, FY_DATA);
        error = port->ops->transport.send(port, FY_APP, FY_DATA, rank, &frame);
        sent += error == 0;
        fy_expect(error == 0 || error == FERRY_EAGAIN || error == FERRY_EPEER);
        port->ops->transport.wait(port, FY_APP, port->ops->host.now(port) + 100000);
    }
}

/* Goal: a rank that leaves changes the word of the others; one that has said that it ends quietly
 * is seen to have left by those who look; neither has failed. A rank that the job began with has
 * nothing to withdraw from, and a job without a launcher starts no ranks. Nothing can be sent to a
 * rank that is shut. Method: rank 1 shuts and leaves, and rank 2 leaves quietly, when rank 0 has
 * read its word. */
void fy_case_changes(fy_port *port)
{
    tally t = {.port = port};
    const fy_port_ops *ops = port->ops;
    fy_port_info info = fy_info_of(port);
    const _Atomic uint32_t *word = ops->members.changes == NULL ? NULL : ops->members.changes(port);
    uint32_t before = word == NULL ? 0 : atomic_load_explicit(word, memory_order_relaxed);
    call_alone(port);
    fy_tally_meet(&t, 1);
    if (info.rank == 2 && ops->members.end_quietly != NULL)
        ops->members.end_quietly(port);
    if (info.rank == 1)
        shut(port, word);
    if (info.rank != 0)
        return;
    fy_waits_for(port, "send to rank 1, which has left, to say FERRY_EPEER");
    send_in_vain(port, 1);
    fy_waits_for(port, "peer to say that rank 1 has left, then rank 2");
    while (ops->members.peer(port, 1) != FY_PEER_LEFT)
        ops->transport.wait(port, FY_APP, UINT64_MAX);
    fy_expect(word == NULL || atomic_load_explicit(word, memory_order_relaxed) != before);
    while (ops->members.peer(port, 2) != FY_PEER_LEFT)
        ops->transport.wait(port, FY_APP, ops->host.now(port) + 1000000);
    for (int rank = 1; rank < info.ranks; rank++) {
        int outcome = ops->members.outcome == NULL ? -1 : ops->members.outcome(port, rank);
        fy_expect(outcome == -1 || outcome == 0);
    }
    if (ops->members.bury != NULL)
        ops->members.bury(port, 1);
    fy_expect(ops->members.peer(port, 1) == FY_PEER_LEFT);
}

static void expect_description(fy_port *port, const char *text)
{
    char whole[256] = "", part[6];
    if (port->ops->diagnosis.describe == NULL)
        return;
    port->ops->diagnosis.describe(port, whole, sizeof(whole));
    fy_expect(strstr(whole, text) != NULL);
    port->ops->diagnosis.describe(port, part, sizeof(part));
    fy_expect(strlen(part) < sizeof(part) && strncmp(part, whole, strlen(part)) == 0);
}

/* Goal: a rank describes what it does, with the name of the handler. A rank that is asked wakes,
 * and is asked no longer when it has answered. Method: rank 0 asks all; its frame says whether the
 * port has reached them. */
void fy_case_tells(fy_port *port)
{
    tally t = {.port = port};
    const fy_port_ops *ops = port->ops;
    fy_port_info info = fy_info_of(port);
    ops->diagnosis.name_handler(port, 5, "knead");
    ops->diagnosis.doing(port, FY_DOING_HANDLER, 5, ops->host.now(port));
    expect_description(port, "\"knead\"");
    ops->diagnosis.doing(port, FY_DOING_BARRIER, 0, 0);
    expect_description(port, "in a barrier");
    fy_doing_note *note = ops->diagnosis.note == NULL ? NULL : ops->diagnosis.note(port);
    if (note != NULL) {
        fy_doing_note_write(note, FY_DOING_QUIESCE, 0, 0);
        expect_description(port, "quiesc");
    }
    fy_expect(ops->diagnosis.asked == NULL || !ops->diagnosis.asked(port));
    fy_tally_meet(&t, 1);
    if (info.rank == 0) {
        bool all = ops->diagnosis.ask != NULL && ops->diagnosis.ask(port, false);
        const fy_frame told = {.kind = KIND_LAST, .word_count = 1, .words = {all}};
        for (int rank = 0; rank < info.ranks; rank++)
            fy_tally_send(&t, FY_DATA, rank, &told);
    }
    fy_waits_for(port, "the frame of rank 0, which has asked all ranks");
    while (t.tellers == 0)
        fy_tally_poll(&t);
    fy_waits_for(port, "asked to say that rank 0 asks");
    while (t.told != 0 && !ops->diagnosis.asked(port))
        ops->transport.wait(port, FY_APP, UINT64_MAX);
    if (t.told != 0) {
        ops->diagnosis.answer(port, "kneads\n", 7);
        fy_expect(!ops->diagnosis.asked(port));
    }
    fy_tally_meet(&t, 2);
}

/* Goal: the tables and the answer of `query` agree. `fy_port_check`, which runs before each case,
 * has found the functions that must be there. */
void fy_case_whole(fy_port *port)
{
    const fy_port_ops *ops = port->ops;
    fy_port_info info = fy_info_of(port);
    fy_expect(ops->name != NULL);
    fy_expect(info.ranks >= 1 && info.rank >= 0 && info.rank < info.ranks);
    fy_expect(info.starting >= 0 && info.starting <= info.ranks);
    fy_expect(!info.leaves || ops->members.shut != NULL);
    fy_expect(!info.shares_memory || (ops->heap.send_block != NULL && ops->heap.alloc != NULL));
    fy_expect((ops->heap.alloc == NULL) == (ops->heap.release == NULL));
    fy_expect((ops->heap.alloc == NULL) == (ops->heap.owner == NULL));
    fy_expect((ops->heap.board == NULL) == (ops->heap.rouse == NULL));
    fy_expect((ops->heap.keep_for == NULL) == (ops->heap.free_gone == NULL));
    fy_expect((ops->diagnosis.asked == NULL) == (ops->diagnosis.answer == NULL));
    fy_expect((ops->transport.outlet == NULL) == (ops->transport.follow == NULL));
}
