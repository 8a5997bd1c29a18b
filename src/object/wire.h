/* Wire: the layout of a message to an object in a frame.
 *
 * words[0] is the object, words[1] sequence and movement. The user's first two words are words[2]
 * and words[3]. If there are more, the others are the first bytes of the data. `aux` has origin (20
 * bits), hops (8 bits) and the user's word count (4 bits). A message of up to two words and no data
 * takes one cache line in the ring. */
#ifndef FY_WIRE_H
#define FY_WIRE_H

#include <string.h>

#include "object/kinds.h"
#include "object/names.h"
#include "object/queued.h"
#include "port/outlet.h"

enum {
    FY_WIRE_WORDS = 2,
    FY_WIRE_HOPS_SHIFT = 4,
    FY_WIRE_HOPS_MAX = 255,
    FY_WIRE_ORIGIN_SHIFT = 12,
};

/* Bytes of the user's words that stand before the data. */
static inline size_t fy_wire_extra_bytes(const ferry_message *message)
{
    return message->word_count > FY_WIRE_WORDS
               ? (size_t)(message->word_count - FY_WIRE_WORDS) * sizeof(uint64_t)
               : 0;
}

static inline uint32_t fy_wire_aux(const fy_envelope *envelope, const ferry_message *message)
{
    return (uint32_t)envelope->origin << FY_WIRE_ORIGIN_SHIFT |
           envelope->hops << FY_WIRE_HOPS_SHIFT | message->word_count;
}

/* Writes the slot of a message of words alone, at most FY_WIRE_WORDS. */
static inline void fy_wire_fill(fy_ring_slot *slot, const fy_envelope *envelope,
                                const ferry_message *message)
{
    slot->op = envelope->op;
    slot->aux = fy_wire_aux(envelope, message);
    slot->handler = message->handler.index;
    slot->count_place = (uint8_t)(FY_WIRE_WORDS + message->word_count);
    slot->kind = FY_KIND_MESSAGE;
    slot->tag = message->tag;
    slot->words[0] = envelope->object.word;
    slot->words[1] = (uint64_t)envelope->sequence << 32 | envelope->movement;
    if (message->word_count != 0)
        slot->words[2] = message->words[0];
    if (message->word_count == FY_WIRE_WORDS)
        slot->words[3] = message->words[1];
    slot->size = 0;
}

/* Writes a frame with the message's data, without the words that stand before the data. */
static inline void fy_wire_write(fy_frame *frame, const fy_envelope *envelope,
                                 const ferry_message *message)
{
    uint8_t count = message->word_count < FY_WIRE_WORDS ? message->word_count : FY_WIRE_WORDS;
    frame->kind = FY_KIND_MESSAGE;
    frame->word_count = (uint8_t)(2 + count);
    frame->handler = message->handler.index;
    frame->op = envelope->op;
    frame->tag = message->tag;
    frame->aux = fy_wire_aux(envelope, message);
    frame->words[0] = envelope->object.word;
    frame->words[1] = (uint64_t)envelope->sequence << 32 | envelope->movement;
    fy_words_copy(frame->words + 2, message->words, count);
    frame->data = message->data;
    frame->size_bytes = message->size_bytes;
    frame->block = false;
    frame->quiet = false;
}

/* Reads a frame; `message->data` borrows from it. Returns false if no rank of a job of `ranks`
 * ranks writes such a frame: its sizes, its origin or its object are impossible. */
static inline bool fy_wire_read(const fy_frame *frame, int ranks, fy_envelope *envelope,
                                ferry_message *message)
{
    uint8_t word_count = frame->aux & ((1u << FY_WIRE_HOPS_SHIFT) - 1);
    size_t extra = 0;
    envelope->object.word = frame->words[0];
    envelope->movement = (uint32_t)frame->words[1];
    envelope->sequence = (uint32_t)(frame->words[1] >> 32);
    envelope->origin = (int)(frame->aux >> FY_WIRE_ORIGIN_SHIFT);
    envelope->hops = frame->aux >> FY_WIRE_HOPS_SHIFT & FY_WIRE_HOPS_MAX;
    envelope->op = frame->op;
    message->handler.index = frame->handler;
    message->word_count = word_count;
    message->tag = frame->tag;
    message->words[0] = frame->words[2];
    message->words[1] = frame->words[3];
    if (word_count > FY_WIRE_WORDS) {
        extra = fy_wire_extra_bytes(message);
        if (word_count > FERRY_WORDS_MAX || frame->size_bytes < extra)
            return false;
        memcpy(message->words + FY_WIRE_WORDS, frame->data, extra);
        word_count = FY_WIRE_WORDS;
    }
    message->size_bytes = frame->size_bytes - extra;
    message->data = message->size_bytes != 0 ? (const unsigned char *)frame->data + extra : NULL;
    return frame->word_count == 2 + word_count && envelope->origin < ranks &&
           (uint32_t)envelope->object.word != 0 && fy_object_creator(envelope->object) < ranks;
}

#endif
