/* Memory that ranks share, where a port has such. */
#include "cases.h"
#include "port/port.h"

#define KIND_GIVEN 254 /* a block handed over */

/* Blocks of each sort that rank 0 hands to rank 1. */
enum { BLOCKS = 300 };

/* Rank 1 uses the address that rank 0 sends it. */
static fy_verdict use_block(void *context, int source, const fy_frame *frame)
{
    fy_port *port = ((tally *)context)->port;
    void *block = (void *)(uintptr_t)frame->words[0];
    if (frame->kind == KIND_LAST)
        return FY_LEAVE; /* of the meeting that follows */
    if (frame->kind == KIND_GIVEN) {
        fy_expect(frame->size_bytes == 5000 && ((const char *)frame->data)[4999] == 42);
        fy_expect(port->ops->heap.owner(port, FY_APP, frame->data, 5000) == source);
    } else {
        fy_expect(port->ops->heap.owner(port, FY_APP, block, 1000) == source);
        fy_expect(port->ops->heap.owner(port, FY_APP, block, 1001) == -1);
        fy_expect(((char *)block)[999] == 17);
        fy_expect(port->ops->heap.release(port, block) == 0);
        /* Before the last block its owner may have given this one out again. */
        fy_expect(((tally *)context)->last < 2 * BLOCKS - 2 ||
                  port->ops->heap.release(port, block) == FERRY_EINVAL);
    }
    ((tally *)context)->last++;
    return FY_TAKEN;
}

/* Goal: memory from `alloc` is at the same address everywhere, may be asked about and released by
 * anyone, once, and be handed over. Method: as said, repeatedly, and wild addresses. */
void fy_case_memory(fy_port *port)
{
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    if (!info.shares_memory) {
        fy_skipped(port, "the port shares no memory");
        return;
    }
    for (uint64_t round = 0; round < BLOCKS && info.rank == 0; round++) {
        char *block = port->ops->heap.alloc(port, 1000, -1),
             *given = port->ops->heap.alloc(port, 5000, -1);
        fy_expect(block != NULL && given != NULL);
        block[999] = 17;
        given[4999] = 42;
        fy_frame frame = {.kind = 1, .word_count = 1, .words = {(uintptr_t)block}};
        fy_tally_send(&t, FY_DATA, 1, &frame);
        frame = (fy_frame){.kind = KIND_GIVEN, .data = given, .size_bytes = 5001};
        fy_expect(port->ops->heap.send_block(port, FY_APP, FY_DATA, 1, &frame) == FERRY_EINVAL);
        frame.size_bytes = 5000;
        int error;
        while ((error = port->ops->heap.send_block(port, FY_APP, FY_DATA, 1, &frame)) ==
               FERRY_EAGAIN)
            fy_tally_poll(&t);
        fy_expect(error == 0);
    }
    fy_waits_for(port, "the blocks of rank 0");
    while (info.rank == 1 && t.last < 2 * BLOCKS)
        port->ops->transport.poll(port, FY_DATA, 16, use_block, &t);
    char outside;
    fy_expect(port->ops->heap.owner(port, FY_APP, &outside, 1) == -1);
    fy_expect(port->ops->heap.owner(port, FY_APP, NULL, 0) == -1);
    fy_expect(port->ops->heap.release(port, &outside) == FERRY_EINVAL);
    t.last = 0;
    fy_tally_meet(&t, 1);
}

/* The word of this rank's board that another sets, and this rank's word that says that it sleeps.
 */
typedef struct board_watch {
    fy_lookout lookout;
    _Atomic uint64_t *own;
} board_watch;

enum { WORD_SET, WORD_SLEEPS, WORD_AWAKE };

/* Waits for a word of a board without sleep, as nobody wakes this rank for it. */
static void watch_word(fy_port *port, const _Atomic uint64_t *word)
{
    while (*word == 0)
        port->ops->transport.wait(port, FY_APP, port->ops->host.now(port) + 100000);
}

static bool is_set(fy_lookout *lookout, bool sleeps)
{
    board_watch *w = (board_watch *)(void *)lookout;
    if (sleeps)
        w->own[WORD_SLEEPS] = 1;
    return w->own[WORD_SET] != 0;
}

/* As fy_case_boards waits, but the other rank rouses only a rank that has said that it sleeps. */
static void wait_with_lookout(fy_port *port, _Atomic uint64_t *own)
{
    board_watch w = {.lookout = {is_set}, .own = own};
    while (own[WORD_SET] == 0) {
        uint64_t now_ns = port->ops->host.now(port);
        fy_expect(port->ops->heap.await(port, now_ns, UINT64_MAX, &w.lookout) >= now_ns);
    }
}

/* The first rank of a node writes on the boards of the others, which sleep, and wakes them. */
static void wake_others(fy_port *port, const fy_port_info *info)
{
    const uint64_t end_ns = port->ops->host.now(port) + 5000000; /* they fall asleep */
    while (port->ops->host.now(port) < end_ns) {
    }
    for (int rank = info->rank + 1; rank < info->ranks; rank++) {
        _Atomic uint64_t *board = port->ops->heap.board(port, rank);
        if (board == NULL)
            continue;
        board[WORD_SET] = 1;
        if (port->ops->heap.await == NULL || board[WORD_SLEEPS] != 0)
            port->ops->heap.rouse(port, rank);
    }
    fy_waits_for(port, "the others to wake, which it has roused");
    for (int rank = info->rank + 1; rank < info->ranks; rank++)
        if (port->ops->heap.board(port, rank) != NULL)
            watch_word(port, (_Atomic uint64_t *)port->ops->heap.board(port, rank) + WORD_AWAKE);
}

static void wait_for_board(fy_port *port, _Atomic uint64_t *own)
{
    fy_waits_for(port, "its wait to end: a rank writes on its board, then calls rouse");
    if (port->ops->heap.await != NULL)
        wait_with_lookout(port, own);
    while (own[WORD_SET] == 0)
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    own[WORD_AWAKE] = 1;
}

/* Meets the others. No frame comes to a rank that may still sleep. */
static void meet_when_awake(tally *t)
{
    const fy_frame awake = {.kind = KIND_LAST, .word_count = 1};
    fy_port_info info = fy_info_of(t->port);
    if (info.rank != 0)
        fy_tally_send(t, FY_DATA, 0, &awake);
    fy_waits_for(t->port, "a frame that says that all ranks are awake");
    while (t->tellers < (info.rank == 0 ? (uint64_t)(info.ranks - 1) : 1))
        fy_tally_poll(t);
    for (int rank = 1; rank < info.ranks && info.rank == 0; rank++)
        fy_tally_send(t, FY_DATA, rank, &awake);
    fy_tally_meet(t, 2);
}

/* Goal: the ranks of a node see each other's boards, empty at first, and wake each other. Method:
 * each writes the last word of its own; then the first rank of a node writes on those of the
 * others, who sleep. */
void fy_case_boards(fy_port *port)
{
    enum { LAST = FY_BOARD_BYTES / 8 - 1 };
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    int first = info.rank;
    if (port->ops->heap.board == NULL) {
        fy_skipped(port, "the port has no boards");
        return;
    }
    _Atomic uint64_t *own = port->ops->heap.board(port, info.rank);
    fy_expect(own != NULL && own[0] == 0 && own[LAST] == 0);
    own[LAST] = (uint64_t)info.rank + 100;
    fy_tally_meet(&t, 1);
    for (int rank = info.ranks - 1; rank >= 0; rank--) {
        _Atomic uint64_t *board = port->ops->heap.board(port, rank);
        fy_expect(board == NULL || board[LAST] == (uint64_t)rank + 100);
        first = board != NULL && rank < first ? rank : first;
    }
    if (info.rank == first)
        wake_others(port, &info);
    else
        wait_for_board(port, own);
    meet_when_awake(&t);
}

/* Rank 0 of fy_case_keeps, when rank 1 has left: its block is `theirs`. */
static void see_released(fy_port *port, void *const kept[2], void *own, void *theirs)
{
    const fy_heap_ops *heap = &port->ops->heap;
    fy_expect(heap->owner(port, FY_APP, kept[0], 1000) == 0);
    fy_expect(heap->owner(port, FY_APP, theirs, 1000) == 1);
    port->ops->members.bury(port, 1);
    fy_expect(heap->owner(port, FY_APP, kept[0], 1) == -1);
    fy_expect(heap->owner(port, FY_APP, kept[1], 1) == -1);
    fy_expect(heap->owner(port, FY_APP, own, 1000) == 0);
    fy_expect(heap->owner(port, FY_APP, theirs, 1000) == 1);
    port->ops->heap.free_gone(port, 1);
    fy_expect(heap->owner(port, FY_APP, theirs, 1) == -1);
    fy_expect(heap->release(port, own) == 0);
}

static fy_verdict take_address(void *context, int source, const fy_frame *frame)
{
    (void)source;
    *(uint64_t *)context = frame->words[0];
    return FY_TAKEN;
}

/* Goal: what is kept for a rank is released when it has gone and was buried, what it had allocated
 * for all is released when the client says so, and nothing else is. Method: rank 1 allocates,
 * sends the address and leaves. */
void fy_case_keeps(fy_port *port)
{
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    if (!info.shares_memory || port->ops->heap.keep_for == NULL) {
        fy_skipped(port, "the port shares no memory");
        return;
    }
    if (info.rank == 1) {
        void *block = port->ops->heap.alloc(port, 1000, FY_KEEP_ALL);
        const fy_frame frame = {.kind = 1, .word_count = 1, .words = {(uintptr_t)block}};
        fy_expect(block != NULL);
        fy_tally_send(&t, FY_DATA, 0, &frame);
        return;
    }
    char outside;
    uint64_t theirs = 0;
    char *kept[2] = {port->ops->heap.alloc(port, 1000, -1), port->ops->heap.alloc(port, 1000, 1)};
    void *own = port->ops->heap.alloc(port, 1000, -1);
    fy_expect(kept[0] != NULL && kept[1] != NULL && own != NULL);
    fy_expect(port->ops->heap.keep_for(port, kept[0], 1) == 0);
    fy_expect(port->ops->heap.keep_for(port, kept[0] + 8, 1) == FERRY_EINVAL);
    fy_expect(port->ops->heap.keep_for(port, &outside, 1) == FERRY_EINVAL);
    fy_waits_for(port, "the address of a block of rank 1, then the end of rank 1");
    while (theirs == 0)
        port->ops->transport.poll(port, FY_DATA, 16, take_address, &theirs);
    while (port->ops->members.peer(port, 1) != FY_PEER_LEFT)
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    see_released(port, (void *const[]){kept[0], kept[1]}, own, (void *)(uintptr_t)theirs);
}
