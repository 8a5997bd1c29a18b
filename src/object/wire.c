#include "object/wire.h"

#include <string.h>

#include "object/names.h"

enum { HOPS_SHIFT = 4, ORIGIN_SHIFT = 12 };

void fy_wire_write(fy_frame *frame, const fy_envelope *envelope, const ferry_message *message)
{
    uint8_t count = message->word_count < FY_WIRE_WORDS ? message->word_count : FY_WIRE_WORDS;
    *frame = (fy_frame){
        .kind = FY_KIND_MESSAGE,
        .word_count = (uint8_t)(2 + count),
        .handler = message->handler.index,
        .op = envelope->op,
        .tag = message->tag,
        .aux = (uint32_t)envelope->origin << ORIGIN_SHIFT | envelope->hops << HOPS_SHIFT |
               message->word_count,
        .words = {envelope->object.word, (uint64_t)envelope->sequence << 32 | envelope->movement},
    };
    memcpy(frame->words + 2, message->words, count * sizeof(uint64_t));
}

bool fy_wire_read(const fy_frame *frame, int ranks, fy_envelope *envelope, ferry_message *message)
{
    uint8_t word_count = frame->aux & ((1u << HOPS_SHIFT) - 1);
    uint8_t count = word_count < FY_WIRE_WORDS ? word_count : FY_WIRE_WORDS;
    if (word_count > FERRY_WORDS_MAX || frame->word_count != 2 + count)
        return false;
    *envelope = (fy_envelope){
        .object = {frame->words[0]},
        .origin = (int)(frame->aux >> ORIGIN_SHIFT),
        .sequence = (uint32_t)(frame->words[1] >> 32),
        .movement = (uint32_t)frame->words[1],
        .hops = frame->aux >> HOPS_SHIFT & FY_WIRE_HOPS_MAX,
        .op = frame->op,
    };
    if (envelope->origin >= ranks || (uint32_t)envelope->object.word == 0 ||
        fy_object_creator(envelope->object) >= ranks)
        return false;
    *message =
        (ferry_message){.handler = {frame->handler}, .word_count = word_count, .tag = frame->tag};
    memcpy(message->words, frame->words + 2, count * sizeof(uint64_t));
    size_t extra = fy_wire_extra_bytes(message);
    if (frame->size_bytes < extra)
        return false;
    if (extra != 0)
        memcpy(message->words + FY_WIRE_WORDS, frame->data, extra);
    message->size_bytes = frame->size_bytes - extra;
    if (message->size_bytes != 0)
        message->data = (const unsigned char *)frame->data + extra;
    return true;
}
