/* Handler: the functions of the program that a frame names by index. */
#ifndef FY_HANDLER_H
#define FY_HANDLER_H

#include <ferry/core.h>

#include "core/head.h"

int fy_handler_add(ferry *f, const char *name, fy_handler_kind kind, fy_any_fn *fn,
                   ferry_handler *out);

/* A handler's function by index; NULL when it is not of that kind. */
static inline fy_any_fn *fy_handler_find(const ferry *f, uint16_t index, fy_handler_kind kind)
{
    const fy_handlers *h = &fy_head_of(f)->handlers;
    return index < h->count && h->entries[index].kind == kind ? h->entries[index].fn : NULL;
}

/* Fails `call`, which was given a handler of the wrong type. The type that it needs is "" for
 * requests, "object_" or "memory_". FERRY_EINVAL. */
int fy_handler_refuse(ferry *f, const char *call, uint16_t index, const char *type);

const char *fy_handler_name(const ferry *f, uint16_t index);
/* A hash that is equal on two ranks if the handler of that index, and all before it, are the same
 * on both. 0 for no handler. */
uint32_t fy_handler_signature(const ferry *f, uint16_t index);

#endif
