/* Small pieces of a put or get of many: many of them in one frame, each with its head
 * (fy_piece_head). The frame of a put has their bytes too. The rank that is asked for a get gathers
 * the bytes into one answer, and the rank that asked keeps a list of where they belong. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "memory/state.h"

int fy_put_small(ferry *f, int rank, uint32_t op, const void *heads, size_t size_bytes)
{
    const fy_frame frame = {.kind = FY_KIND_PUT,
                            .word_count = FY_PUT_WORDS,
                            .handler = FY_PUT_SMALL,
                            .op = op,
                            .tag = FY_NO_TAG,
                            .data = heads,
                            .size_bytes = size_bytes};
    return fy_send_paced(f, rank, &frame, NULL);
}

void fy_put_small_take(ferry *f, int source, const fy_frame *frame, bool writes)
{
    const char *at = frame->data, *end = at + frame->size_bytes;
    bool answered = false;
    while ((size_t)(end - at) >= sizeof(fy_piece_head)) {
        fy_piece_head head;
        memcpy(&head, at, sizeof(head));
        void *target = (void *)(uintptr_t)head.address;
        at += sizeof(head);
        if (head.size_bytes > (size_t)(end - at))
            break;
        bool open = fy_memory_is_open(f, target, head.size_bytes);
        if (open && writes)
            fy_memory_copy(target, at, head.size_bytes);
        else if (!open && (frame->op == 0 || !answered)) {
            fy_put_answer_send(f, source, FY_PUT_REFUSED,
                               (const uint64_t[]){frame->op, head.address, head.size_bytes});
            answered = true;
        }
        at += head.size_bytes;
    }
    if (at != end)
        fy_bad_frame(f, source, frame, "a put");
}

int fy_get_small(ferry *f, int rank, const fy_get_list *list, const void *heads,
                 const fy_get_how *how)
{
    fy_memory *m = fy_memory_of(f);
    fy_pending_get *get = fy_call_slot_take(&m->gets, rank, how->op);
    if (get == NULL)
        return fy_fail(f, FERRY_ENOMEM, "get: no memory for another pending get");
    *get = (fy_pending_get){.slot = get->slot,
                            .list = *list,
                            .source = list->pieces->source,
                            .size_bytes = list->size_bytes,
                            .asked = list->size_bytes,
                            .outstanding = 1,
                            .guard = how->guard};
    const fy_frame frame = {.kind = FY_KIND_GET,
                            .word_count = FY_GET_WORDS,
                            .handler = FY_GET_SMALL,
                            .tag = how->tag,
                            .aux = get->slot.generation,
                            .words = {get->slot.index | (uint64_t)list->size_bytes << 32},
                            .data = heads,
                            .size_bytes = list->count * sizeof(fy_piece_head)};
    int error = fy_send_checked(f, rank, &frame, NULL);
    if (error != 0)
        fy_call_slot_give(&m->gets, get->slot.index);
    return error;
}

/* Gathers the bytes of the pieces that a frame names. Returns whether they have `size_bytes`
 * together, and others may read them. */
static bool gather(ferry *f, const fy_frame *frame, char *out, size_t size_bytes)
{
    const char *at = frame->data, *end = at + frame->size_bytes;
    for (; (size_t)(end - at) >= sizeof(fy_piece_head); at += sizeof(fy_piece_head)) {
        fy_piece_head head;
        memcpy(&head, at, sizeof(head));
        const void *source = (const void *)(uintptr_t)head.address;
        if (head.size_bytes > size_bytes || !fy_memory_is_open(f, source, head.size_bytes))
            return false;
        fy_memory_copy(out, source, head.size_bytes);
        out += head.size_bytes;
        size_bytes -= head.size_bytes;
    }
    return size_bytes == 0;
}

fy_verdict fy_get_small_answer(ferry *f, int source, const fy_frame *frame)
{
    size_t size_bytes = frame->words[0] >> 32;
    char *all = size_bytes > FY_PIECE_BYTES ? NULL : fy_malloc(size_bytes + 1);
    if (all == NULL && size_bytes <= FY_PIECE_BYTES)
        return FY_LEAVE;
    bool good = all != NULL && gather(f, frame, all, size_bytes);
    const fy_frame answer = {
        .kind = FY_KIND_GOT,
        .word_count = FY_GOT_WORDS,
        .aux = frame->aux,
        .words = {frame->words[0], 0, good ? 0 : (uint64_t)(int64_t)FERRY_ERANGE},
        .data = good ? all : NULL,
        .size_bytes = good ? size_bytes : 0};
    fy_verdict verdict = fy_send(f, FY_DATA, source, &answer) == FERRY_ENOMEM ? FY_LEAVE : FY_TAKEN;
    free(all);
    return verdict;
}

void fy_get_small_take(const fy_get_list *list, const char *bytes)
{
    for (uint32_t i = 0; i < list->count; i++) {
        fy_memory_copy(list->pieces[i].target, bytes, list->pieces[i].size_bytes);
        bytes += list->pieces[i].size_bytes;
    }
}

void fy_gets_fini(fy_call_slots *gets)
{
    fy_pending_get *get = (fy_pending_get *)(void *)gets->items;
    for (uint32_t i = 0; i < gets->count; i++)
        if (get[i].slot.open)
            free(get[i].list.pieces);
    free(gets->items);
}
