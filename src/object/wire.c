#include "object/wire.h"

#include <string.h>

#include "object/names.h"

enum { HOPS_SHIFT = 4, ORIGIN_SHIFT = 12 };

void fy_wire_write(fy_frame *frame, const fy_envelope *envelope, const ferry_message *message)
{
    uint8_t count = message->word_count < FY_WIRE_WORDS ? message->word_count : FY_WIRE_WORDS;
    frame->kind = FY_KIND_MESSAGE;
    frame->word_count = (uint8_t)(2 + count);
    frame->handler = message->handler.index;
    frame->op = envelope->op;
    frame->tag = message->tag;
    frame->aux = (uint32_t)envelope->origin << ORIGIN_SHIFT | envelope->hops << HOPS_SHIFT |
                 message->word_count;
    frame->words[0] = envelope->object.word;
    frame->words[1] = (uint64_t)envelope->sequence << 32 | envelope->movement;
    for (unsigned i = 0; i < count; i++)
        frame->words[2 + i] = message->words[i];
    frame->data = message->data;
    frame->size_bytes = message->size_bytes;
    frame->block = false;
}

bool fy_wire_read(const fy_frame *frame, int ranks, fy_envelope *envelope, ferry_message *message)
{
    uint8_t word_count = frame->aux & ((1u << HOPS_SHIFT) - 1);
    uint8_t count = word_count < FY_WIRE_WORDS ? word_count : FY_WIRE_WORDS;
    if (word_count > FERRY_WORDS_MAX || frame->word_count != 2 + count)
        return false;
    envelope->object.word = frame->words[0];
    envelope->origin = (int)(frame->aux >> ORIGIN_SHIFT);
    envelope->sequence = (uint32_t)(frame->words[1] >> 32);
    envelope->movement = (uint32_t)frame->words[1];
    envelope->hops = frame->aux >> HOPS_SHIFT & FY_WIRE_HOPS_MAX;
    envelope->op = frame->op;
    if (envelope->origin >= ranks || (uint32_t)envelope->object.word == 0 ||
        fy_object_creator(envelope->object) >= ranks)
        return false;
    message->handler.index = frame->handler;
    message->word_count = word_count;
    message->tag = frame->tag;
    for (unsigned i = 0; i < count; i++)
        message->words[i] = frame->words[2 + i];
    size_t extra = fy_wire_extra_bytes(message);
    if (frame->size_bytes < extra)
        return false;
    if (extra != 0)
        memcpy(message->words + FY_WIRE_WORDS, frame->data, extra);
    message->size_bytes = frame->size_bytes - extra;
    message->data = message->size_bytes != 0 ? (const unsigned char *)frame->data + extra : NULL;
    return true;
}
