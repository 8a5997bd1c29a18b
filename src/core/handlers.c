/* The table of handlers, of requests, of objects and of transfers, in one numbering. Entry 0 is of
 * no kind: a ferry_handler that the program has not set, {0}, names it. Ferry's own handlers follow
 * (FY_HANDLERS_OWN), then those of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/rank.h"

/* The hash of no handlers. */
#define NO_SIGNATURE 2166136261u

/* FNV-1a, continued from the signature of the handlers before. */
static uint32_t sign(uint32_t signature, const char *name, fy_handler_kind kind)
{
    const uint32_t prime = 16777619u;
    signature = (signature ^ (uint32_t)(kind + 1)) * prime;
    for (; *name != '\0'; name++)
        signature = (signature ^ (unsigned char)*name) * prime;
    return signature;
}

uint32_t fy_handlers_signature(const ferry *f)
{
    const fy_handlers *h = &f->head.handlers;
    return h->count == 0 ? NO_SIGNATURE : h->entries[h->count - 1].signature;
}

static bool handlers_grow(fy_handlers *h)
{
    uint32_t capacity = h->capacity == 0 ? 16 : h->capacity * 2;
    fy_handler_entry *entries = fy_realloc(h->entries, capacity * sizeof(*entries));
    if (entries == NULL)
        return false;
    h->entries = entries;
    void *names = fy_realloc(h->names, capacity * sizeof(*h->names));
    if (names == NULL)
        return false;
    h->names = names;
    h->capacity = capacity;
    return true;
}

/* Makes room for one more; first for Ferry's own, which reports show without a name. */
static int handlers_reserve(ferry *f, const char *name)
{
    fy_handlers *h = &f->head.handlers;
    if (h->count == h->capacity && !handlers_grow(h))
        return fy_fail(f, FERRY_ENOMEM, "handler_register: no memory for \"%s\"", name);
    for (; h->count <= FY_HANDLERS_OWN; h->count++) {
        memcpy(h->names[h->count], "-", 2);
        h->entries[h->count] =
            (fy_handler_entry){.kind = FY_HANDLER_NONE, .signature = NO_SIGNATURE};
    }
    return 0;
}

/* Gives it no signature. */
static fy_handler_entry *handler_set(ferry *f, uint16_t index, const char *name,
                                     fy_handler_kind kind, fy_any_fn *fn)
{
    fy_handlers *h = &f->head.handlers;
    snprintf(h->names[index], sizeof(h->names[index]), "%s", name);
    h->entries[index] =
        (fy_handler_entry){.fn = fn, .kind = (uint8_t)kind, .signature = NO_SIGNATURE};
    f->head.ops->diagnosis.name_handler(f->head.port, index, h->names[index]);
    return &h->entries[index];
}

int fy_handler_add(ferry *f, const char *name, fy_handler_kind kind, fy_any_fn *fn,
                   ferry_handler *out)
{
    fy_handlers *h = &f->head.handlers;
    if (name == NULL || fn == NULL || out == NULL)
        return fy_fail(f, FERRY_EINVAL, "handler_register: %s is missing",
                       name == NULL ? "the name"
                       : fn == NULL ? "the function"
                                    : "the result");
    if (h->count == FY_HANDLERS_MAX)
        return fy_fail(f, FERRY_ENOMEM, "handler_register: \"%s\": there are %d already", name,
                       FY_HANDLERS_MAX - 1 - FY_HANDLERS_OWN);
    int error = handlers_reserve(f, name);
    if (error != 0)
        return error;
    uint32_t before = fy_handlers_signature(f);
    out->index = (uint16_t)h->count++;
    fy_handler_entry *entry = handler_set(f, out->index, name, kind, fn);
    entry->signature = sign(before, h->names[out->index], kind);
    return 0;
}

int fy_handler_own(ferry *f, uint16_t index, const char *name, fy_handler_kind kind, fy_any_fn *fn)
{
    int error = f->head.handlers.count > FY_HANDLERS_OWN ? 0 : handlers_reserve(f, name);
    if (error == 0)
        (void)handler_set(f, index, name, kind, fn);
    return error;
}

uint32_t fy_handler_signature(const ferry *f, uint16_t index)
{
    return index < f->head.handlers.count ? f->head.handlers.entries[index].signature : 0;
}

const char *fy_handler_name(const ferry *f, uint16_t index)
{
    return index < f->head.handlers.count ? f->head.handlers.names[index] : "(unknown)";
}

int fy_handler_refuse(ferry *f, const char *call, uint16_t index, const char *type)
{
    if (index == 0)
        return fy_fail(f, FERRY_EINVAL,
                       "%s: no handler was given (it is {0}); expected one from "
                       "ferry_%shandler_register",
                       call, type);
    return fy_fail(f, FERRY_EINVAL,
                   "%s: handler %u was not registered by ferry_%shandler_register on this rank",
                   call, index, type);
}

void fy_handlers_fini(ferry *f)
{
    free(f->head.handlers.entries);
    free(f->head.handlers.names);
    f->head.handlers = (fy_handlers){0};
}

int ferry_handler_register(ferry *f, const char *name, ferry_request_fn *fn, ferry_handler *out)
{
    return fy_handler_add(f, name, FY_HANDLER_REQUEST, (fy_any_fn *)fn, out);
}
