/* Wire: how a message to an object stands in a frame.
 *
 * words[0] is the object, words[1] sequence and movement; up to two of the user's words follow,
 * others stand before the data. `aux` has origin (20 bits), hops (8 bits) and the user's word count
 * (4 bits). A message of up to two words and no data is one cache line on the way. */
#ifndef FY_WIRE_H
#define FY_WIRE_H

#include "core/core.h"
#include "object/letter.h"

enum { FY_WIRE_WORDS = 2, FY_WIRE_HOPS_MAX = 255 };

/* Bytes of the user's words that stand before the data. */
static inline size_t fy_wire_extra_bytes(const ferry_message *message)
{
    return message->word_count > FY_WIRE_WORDS
               ? (size_t)(message->word_count - FY_WIRE_WORDS) * sizeof(uint64_t)
               : 0;
}

/* Writes a frame, with the message's data and not the words that stand before them. */
void fy_wire_write(fy_frame *frame, const fy_envelope *envelope, const ferry_message *message);

/* Reads a frame; `message->data` borrows from it. False when it cannot be one of a job of `ranks`.
 */
bool fy_wire_read(const fy_frame *frame, int ranks, fy_envelope *envelope, ferry_message *message);

#endif
