#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/mix.h"
#include "core/fail.h"
#include "object/entry.h"
#include "store/places.h"

static ferry_store *store_create(ferry *f, const ferry_store_options *options)
{
    ferry_store *s = fy_calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->f = f;
    s->objects = fy_objects_of(f);
    s->blind = (options->flags & FERRY_STORE_BLIND) != 0;
    s->number = fy_mix(fy_mix(0, ferry_now(f)), (uint64_t)s->objects->rank);
    s->stats.budget_bytes = options->budget_bytes;
    fy_list_init(&s->resident);
    fy_list_init(&s->out);
    fy_list_init(&s->buffers);
    fy_list_init(&s->lent);
    for (int i = 0; i < FY_SIZE_CLASSES; i++)
        fy_list_init(&s->places[i]);
    return s;
}

/* Makes the store and its file. The rank does not use it yet. */
static int open_store(ferry *f, const ferry_store_options *options, ferry_store **out)
{
    const char *folder = options->folder != NULL ? options->folder : fy_env_get("TMPDIR");
    folder = folder != NULL ? folder : "/var/tmp";
    if (*folder == '\0')
        return fy_fail(
            f, FERRY_EINVAL,
            "store_open: the folder is \"\"; expected a path, or NULL for that of TMPDIR, "
            "else /var/tmp");
    ferry_store *s = store_create(f, options);
    if (s == NULL)
        return fy_fail(f, FERRY_ENOMEM, "store_open: no memory");
    s->disk.fd = fy_store_file_open(folder, (options->flags & FERRY_STORE_DIRECT) != 0,
                                    &s->disk.align_bytes);
    int error = 0;
    if (s->disk.fd < 0)
        error = fy_fail(f, FERRY_ESYSTEM, "store_open: folder \"%s\" takes no file: %s", folder,
                        strerror(errno));
    else
        error = fy_jobs_open(s, s->blind ? 0 : FY_DISK_THREADS);
    if (error != 0 && s->disk.fd >= 0)
        (void)close(s->disk.fd);
    if (error != 0)
        free(s);
    else
        *out = s;
    return error;
}

static void free_all(fy_link *list)
{
    for (fy_link *link; (link = fy_list_pop(list)) != NULL;) {
        fy_stored *item = (fy_stored *)(void *)link;
        if (item->record != NULL)
            item->record->stored = NULL;
        free(item->image);
        free(item);
    }
}

void fy_store_destroy(ferry_store *s)
{
    s->objects->store = NULL;
    s->objects->store_state = NULL;
    s->objects->watched = s->objects->costs != NULL;
    fy_jobs_end(s);
    fy_store_reap(s);
    fy_buffers_end(s);
    fy_places_end(s);
    fy_jobs_close(s);
    free_all(&s->resident);
    free_all(&s->out);
    for (int i = 0; i < FY_SIZE_CLASSES; i++)
        free_all(&s->places[i]);
    for (int i = 0; i < FY_TYPES_MAX; i++)
        free(s->shadows[i]);
    free(s);
}

int ferry_store_open(ferry *f, const ferry_store_options *options, ferry_store **out)
{
    ferry_store_options known;
    if (options == NULL || out == NULL)
        return fy_fail(f, FERRY_EINVAL, "store_open: the %s missing",
                       options == NULL ? "options are" : "result is");
    int error = fy_read_sized(f, "store_open: ferry_store_options", options, &known, sizeof known);
    if (error != 0)
        return error;
    if (fy_env_number("FERRY_MEMORY_BUDGET", &known.budget_bytes) != 0)
        return fy_fail(f, FERRY_EINVAL, "store_open: %s", fy_error_text());
    if (known.budget_bytes == 0)
        return fy_fail(f, FERRY_EINVAL,
                       "store_open: budget_bytes is 0, expected 1 or more, or FERRY_MEMORY_BUDGET");
    fy_objects *objects = fy_objects_of(f);
    if (fy_in_handler(f) || objects->store != NULL)
        return fy_fail(f, FERRY_ESTATE, "store_open: %s",
                       fy_in_handler(f) ? "not allowed in a handler" : "this rank has a store");
    if ((known.flags & ~(uint32_t)(FERRY_STORE_DIRECT | FERRY_STORE_BLIND)) != 0)
        return fy_fail(f, FERRY_EINVAL, "store_open: flags are %#x, expected FERRY_STORE_ ones",
                       known.flags);
    ferry_store *s = NULL;
    error = open_store(f, &known, &s);
    if (error != 0)
        return error;
    objects->store_state = s;
    objects->store = &fy_store_hooks;
    fy_layer_due(f, FY_LAYER_OBJECT);
    objects->watched = true;
    *out = s;
    return 0;
}

int ferry_store_add(ferry_store *s, ferry_object_type type)
{
    fy_objects *objects = s->objects;
    if (!fy_type_is_known(objects, type.index))
        return fy_fail(s->f, FERRY_EINVAL, "store_add: type %u is not registered", type.index);
    fy_type *known = &objects->types[type.index];
    if ((known->ops.flags & FERRY_OBJECT_SHARED) != 0)
        return fy_fail(s->f, FERRY_ENOTSUP,
                       "store_add: \"%s\" is FERRY_OBJECT_SHARED, expected data outside that heap",
                       known->name);
    if (s->shadows[type.index] != NULL)
        return 0;
    s->shadows[type.index] = fy_store_shadow_create(known);
    if (s->shadows[type.index] == NULL)
        return fy_fail(s->f, FERRY_ENOMEM, "store_add: no memory");
    if (known->plain)
        fy_buffers_serve(s, known);
    fy_places_accept(s);
    ferry_object object;
    for (size_t index = 0; fy_object_next(s->f, type, &index, &object);) {
        fy_record *record = fy_entry_find(objects, object)->record;
        fy_object_state state = s->objects->calls->state(s->f, record);
        if (state == FY_RESTING || state == FY_RUNNING || state == FY_PINNED ||
            state == FY_RETURNED)
            fy_store_keep(s->f, record);
    }
    return 0;
}

void ferry_store_trim(ferry_store *s)
{
    fy_store_make_room(s, 0);
    fy_jobs_start(s, NULL);
}

int ferry_store_stats_get(ferry_store *s, ferry_store_stats *out)
{
    if (out == NULL)
        return fy_fail(s->f, FERRY_EINVAL, "store_stats_get: the result is missing");
    ferry_store_stats now = s->stats;
    /* relaxed: they are counters */
    now.reads = atomic_load_explicit(&s->reads, memory_order_relaxed);
    now.read_bytes = atomic_load_explicit(&s->read_bytes, memory_order_relaxed);
    now.read_errors = atomic_load_explicit(&s->read_errors, memory_order_relaxed);
    return fy_write_sized(s->f, "store_stats_get: ferry_store_stats", out, &now, sizeof now);
}

static int load_all(ferry_store *s)
{
    while (!fy_list_empty(&s->out)) {
        fy_stored *item = (fy_stored *)(void *)s->out.next;
        if (s->objects->calls->state(s->f, item->record) != FY_RESTING ||
            !s->objects->calls->unlink(s->f, item->record))
            return fy_fail(s->f, FERRY_EAGAIN, "store_close: object %016llx is leaving; poll first",
                           (unsigned long long)item->record->object.word);
        char why[FY_STORE_WHY_BYTES];
        bool here = fy_stored_load(item, why);
        s->objects->calls->rest(s->f, item->record);
        if (!here)
            return FERRY_ESYSTEM;
    }
    return 0;
}

int ferry_store_close(ferry_store *s)
{
    if (s == NULL)
        return 0;
    if (fy_in_handler(s->f))
        return fy_fail(s->f, FERRY_ESTATE, "store_close: not allowed in a handler");
    if (s->percolation != NULL)
        return fy_fail(s->f, FERRY_ESTATE,
                       "store_close: percolation needs the store; ferry_close closes both");
    int error = load_all(s);
    if (error == 0)
        fy_store_destroy(s);
    return error;
}
