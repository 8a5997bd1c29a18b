/* Handler: the functions of the program that a frame names by index. */
#ifndef FY_HANDLER_H
#define FY_HANDLER_H

#include <ferry/core.h>

#include "core/head.h"

int fy_handler_add(ferry *f, const char *name, fy_handler_kind kind, fy_any_fn *fn,
                   ferry_handler *out);

/* Registers one of Ferry's own, which has the same number `index` on every rank, 1 to
 * FY_HANDLERS_OWN. FERRY_ENOMEM. */
FY_SHARED int fy_handler_own(ferry *f, uint16_t index, const char *name, fy_handler_kind kind,
                             fy_any_fn *fn);

/* A handler's function by index; NULL when it is not of that kind. */
static inline fy_any_fn *fy_handler_find(const ferry *f, uint16_t index, fy_handler_kind kind)
{
    const fy_handlers *h = &fy_head_of(f)->handlers;
    return index < h->count && h->entries[index].kind == kind ? h->entries[index].fn : NULL;
}

/* Fails `call`, which was given a handler of the wrong type. The type that it needs is "" for
 * requests, "object_" or "memory_". FERRY_EINVAL. */
int fy_handler_refuse(ferry *f, const char *call, uint16_t index, const char *type);

/* Lends the part of a frame that its handler gets, which lies as a message does, as long as the
 * frame. */
#define FY_ALIKE(of_message, of_frame)                                                             \
    (offsetof(ferry_message, of_message) ==                                                        \
     offsetof(fy_frame, of_frame) - offsetof(fy_frame, handler))
_Static_assert(FY_ALIKE(handler, handler) && FY_ALIKE(word_count, word_count) &&
                   FY_ALIKE(tag, tag) && FY_ALIKE(words, words) && FY_ALIKE(data, data) &&
                   FY_ALIKE(size_bytes, size_bytes) && (int)FY_FRAME_WORDS == FERRY_WORDS_MAX,
               "a frame ends as a message");
#undef FY_ALIKE
static inline const ferry_message *fy_frame_message(const fy_frame *frame)
{
    const void *message = &frame->handler;
    /* The compiler may take the two types for different memory: it stores all fields first. */
    __asm__ volatile("" : "+r"(message)::"memory");
    return message;
}

FY_SHARED const char *fy_handler_name(const ferry *f, uint16_t index);
/* A hash that is equal on two ranks if the handler of that index, and all before it, are the same
 * on both. 0 for no handler. */
uint32_t fy_handler_signature(const ferry *f, uint16_t index);

#endif
