/* Elements: objects whose data are a fy_element, which points to the program's data. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/work.h"
#include "object/migration_frame.h"
#include "object/object.h"

/* The head of a packed element. After it come the keys of `need.from`, the early messages, and the
 * program's data, or their address in the shared heap. */
typedef struct fy_packed {
    uint64_t key, incarnation, round, births, early_bytes;
    uint64_t need[offsetof(fy_need, places) / sizeof(uint64_t)];
    uint32_t id, from_count;
    bool fresh;
    bool lent; /* in place of the program's data stands their address */
} fy_packed;

/* An early message takes so much besides its data. */
enum { EARLY_BYTES = sizeof(fy_early) - offsetof(fy_early, next) };

_Static_assert(offsetof(fy_need, places) % sizeof(uint64_t) == 0 && EARLY_BYTES % 8 == 0,
               "what is packed consists of words");

static size_t padded(size_t size_bytes)
{
    return (size_bytes + 7) & ~(size_t)7;
}

static size_t early_size(const fy_element *e)
{
    size_t size_bytes = 0;
    for (const fy_early *m = e->early; m != NULL; m = m->next)
        size_bytes += EARLY_BYTES + padded(m->message.size_bytes);
    return size_bytes;
}

static size_t from_count(const fy_element *e)
{
    return e->need.from != NULL ? e->need.messages : 0;
}

static size_t head_size(const fy_element *e)
{
    return sizeof(fy_packed) + from_count(e) * sizeof(uint64_t) + early_size(e);
}

static void leaving(ferry *f, fy_thread thread, void *data)
{
    fy_element *e = data;
    e->lent = fy_address_shared(fy_objects_of(f), thread, e->user.data);
}

static size_t user_size(ferry *f, const fy_element *e)
{
    const ferry_object_ops *ops = &e->user.collection->ops;
    if (e->lent)
        return sizeof e->user.data;
    return ops->packed_size != NULL ? ops->packed_size(f, e->user.data) : ops->flat_bytes;
}

static size_t packed_size(ferry *f, const void *data)
{
    const fy_element *e = data;
    return head_size(e) + user_size(f, e);
}

static unsigned char *element_append(unsigned char *at, const void *data, size_t size_bytes)
{
    if (size_bytes != 0)
        memcpy(at, data, size_bytes);
    return at + padded(size_bytes);
}

static void element_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const fy_element *e = data;
    const ferry_object_ops *ops = &e->user.collection->ops;
    fy_packed head = {.key = e->key,
                      .incarnation = e->incarnation,
                      .round = e->round,
                      .early_bytes = early_size(e),
                      .births = e->births,
                      .id = e->user.collection->id,
                      .from_count = (uint32_t)from_count(e),
                      .fresh = e->fresh,
                      .lent = e->lent};
    memcpy(head.need, &e->need, sizeof head.need);
    size_t user_bytes = size_bytes - head_size(e);
    unsigned char *at = element_append(buffer, &head, sizeof head);
    at = element_append(at, e->need.from, head.from_count * sizeof(uint64_t));
    for (const fy_early *m = e->early; m != NULL; m = m->next) {
        at = element_append(at, (const unsigned char *)m + offsetof(fy_early, next), EARLY_BYTES);
        at = element_append(at, m->message.data, m->message.size_bytes);
    }
    if (e->lent)
        memcpy(at, &e->user.data, user_bytes);
    else
        ops->pack(f, e->user.data, at, user_bytes);
}

/* Unpacks the early messages. False: no memory. */
static bool unpack_early(fy_element *e, const unsigned char *at, size_t size_bytes)
{
    const unsigned char *end = at + size_bytes;
    while (at < end) {
        fy_early packed = {.last = NULL};
        memcpy((unsigned char *)&packed + offsetof(fy_early, next), at, EARLY_BYTES);
        size_t data_bytes = packed.message.size_bytes;
        fy_early *m = fy_early_make(fy_collections_of(e->user.collection->f), data_bytes);
        if (m == NULL)
            return false;
        *m = packed;
        m->message.data = data_bytes != 0 ? m + 1 : NULL;
        if (data_bytes != 0)
            memcpy(m + 1, at + EARLY_BYTES, data_bytes);
        fy_early_add(e, m);
        at += EARLY_BYTES + padded(data_bytes);
    }
    return true;
}

void fy_element_free(ferry *f, fy_element *e)
{
    const ferry_object_ops *ops = &e->user.collection->ops;
    if (e->user.data != NULL)
        ops->destroy(f, e->user.data);
    for (fy_early *m; (m = e->early) != NULL;) {
        e->early = m->next;
        fy_early_free(fy_collections_of(f), m);
    }
    fy_need_free(&e->need);
    free(e->spare);
    e->user.data = NULL;
    e->spare = NULL;
}

/* Unpacks all but the program's data. NULL: no memory. */
static fy_element *unpack_head(ferry_collection *c, ferry_object object, const fy_packed *head,
                               const unsigned char *at)
{
    fy_element *e = fy_calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->user.collection = c;
    e->user.index = fy_key_index(c, head->key);
    e->user.object = object;
    e->key = head->key;
    e->incarnation = head->incarnation;
    e->round = head->round;
    e->births = head->births;
    e->fresh = head->fresh;
    memcpy(&e->need, head->need, sizeof head->need);
    e->need.from = NULL;
    size_t from_bytes = head->from_count * sizeof(uint64_t);
    if (from_bytes != 0) {
        e->need.from = fy_malloc(from_bytes);
        if (e->need.from == NULL)
            goto free_element;
        memcpy(e->need.from, at, from_bytes);
    }
    if (unpack_early(e, at + from_bytes, head->early_bytes)) {
        fy_need_index(e);
        return e;
    }
free_element:
    fy_element_free(c->f, e);
    free(e);
    return NULL;
}

/* The element is on this rank from now on. */
static void enter(fy_element *e)
{
    ferry_collection *c = e->user.collection;
    fy_port *port = fy_port_of(c->f);
    if ((c->ops.flags & FERRY_OBJECT_SHARED) != 0 && port->ops->heap.keep_for != NULL)
        (void)port->ops->heap.keep_for(port, e->user.data, ferry_rank(c->f));
    fy_list_insert(&c->elements, &e->link);
    c->count++;
    fy_known_refresh(c, e);
    /* The result that its step waits for may have come here while the element was in flight. */
    if (e->need.waiting && e->need.reduction && c->done > e->need.round && !c->wake) {
        c->wake = true;
        fy_work_created(c->f, 1);
    }
}

/* Makes the program's data, or finds them in the shared heap. False: no memory. */
static bool unpack_user(ferry *f, fy_element *e, const fy_packed *head, const void *at,
                        size_t size_bytes)
{
    if (head->lent)
        memcpy(&e->user.data, at, sizeof e->user.data);
    else
        e->user.data = e->user.collection->ops.unpack(f, e->user.object, at, size_bytes);
    return e->user.data != NULL;
}

static void *element_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    fy_packed head;
    memcpy(&head, buffer, sizeof head);
    ferry_collection *c = fy_collection_find(fy_collections_of(f), head.id);
    const unsigned char *at = buffer;
    if (c == NULL)
        return NULL;
    fy_element *e = unpack_head(c, object, &head, at + sizeof head);
    if (e == NULL)
        return NULL;
    size_t head_bytes = sizeof head + head.from_count * sizeof(uint64_t) + (size_t)head.early_bytes;
    if (!unpack_user(f, e, &head, at + head_bytes, size_bytes - head_bytes) ||
        fy_rounds_enter(c, e->round) != 0) {
        if (head.lent)
            e->user.data = NULL; /* the packed element still has them */
        fy_element_free(f, e);
        free(e);
        return NULL;
    }
    enter(e);
    return e;
}

/* The element has left this rank, or is destroyed. A NULL collection: fy_collection_free has done
 * the rest already. */
static void element_destroy(ferry *f, void *data)
{
    fy_element *e = data;
    ferry_collection *c = e->user.collection;
    int rank;
    if (c != NULL) {
        bool ends = !c->ending && ferry_object_locate(f, e->user.object, &rank) == FERRY_ENOENT;
        fy_list_remove(&e->link);
        c->count--;
        if (ends) {
            fy_rounds_change(c, e->round, e->fresh ? 0 : -1,
                             e->births - (e->fresh ? fy_birth_hash(e->key, e->round) : 0));
            fy_unbind(c, e->key, e->user.object.word, true);
        }
        if (!c->ending)
            fy_rounds_leave(c, e->round);
        if (e->lent && !ends && !c->ending)
            e->user.data = NULL; /* the element that it became has them */
        fy_element_free(f, e);
    }
    free(e);
}

static double element_load(ferry *f, const void *data, const ferry_message *message)
{
    const fy_element *e = data;
    return e->user.collection->ops.load(f, e->user.data, message);
}

static double granularity(ferry *f, const void *data)
{
    const fy_element *e = data;
    return e->user.collection->ops.granularity(f, e->user.data);
}

static double priority(ferry *f, const void *data, int rank, double hard, double of_tasks,
                       uint32_t dependencies)
{
    const fy_element *e = data;
    return e->user.collection->ops.priority(f, e->user.data, rank, hard, of_tasks, dependencies);
}

/* The type of earlier collections with equal callbacks and names, or NULL. */
static const fy_types *find_type(const ferry_collection *c)
{
    const fy_collections *all = fy_collections_of(c->f);
    for (size_t i = 0; i < all->type_count; i++)
        if (memcmp(&all->types[i].ops, &c->ops, sizeof c->ops) == 0 &&
            strcmp(all->types[i].name, c->name) == 0)
            return &all->types[i];
    return NULL;
}

void fy_element_type_propose(const ferry_collection *c, uint64_t *known, uint64_t *next)
{
    const fy_types *types = find_type(c);
    *known = types != NULL ? (uint64_t)types->type.index + 1 : 0;
    *next = (uint64_t)fy_objects_of(c->f)->type_count + 1;
}

/* Registers the type by its number. Numbers that are skipped are of types of collections, or of
 * blocks, that this rank has not made: it joined later, or failed before. They get theirs later. */
static int register_type(ferry_collection *c, uint16_t number)
{
    const fy_objects *objects = fy_objects_of(c->f);
    ferry_object_ops ops = FERRY_OBJECT_OPS_DEFAULTS;
    ops.name = c->name;
    ops.flags = c->ops.flags;
    ops.packed_size = packed_size;
    ops.pack = element_pack;
    ops.unpack = element_unpack;
    ops.destroy = element_destroy;
    ops.load = c->ops.load != NULL ? element_load : NULL;
    ops.granularity = c->ops.granularity != NULL ? granularity : NULL;
    ops.priority = c->ops.priority != NULL ? priority : NULL;
    if (fy_type_is_known(objects, number) && objects->types[number].ops.unpack != element_unpack)
        return fy_fail(c->f, FERRY_EINVAL,
                       "collection_create: type %u is \"%s\" here and of elements on another rank; "
                       "register types before the first collection",
                       number, objects->types[number].name);
    int error = fy_type_register_as(c->f, &ops, number);
    c->type.index = number;
    if (error == 0 && ops.flags != 0)
        fy_type_watch(c->f, c->type, leaving);
    return error;
}

/* Collections with equal callbacks and names share one type. So a program may create and destroy
 * collections without end, although the number of types is limited. */
int fy_element_type(ferry_collection *c, uint64_t known, uint64_t next)
{
    fy_collections *all = fy_collections_of(c->f);
    const fy_types *types = find_type(c);
    if (types != NULL) {
        c->type = types->type;
        return 0;
    }
    fy_types *more = fy_realloc(all->types, (all->type_count + 1) * sizeof *more);
    if (more == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "collection_create: no memory for a type");
    all->types = more;
    more += all->type_count;
    int error = register_type(c, (uint16_t)((known != 0 ? known : next) - 1));
    if (error != 0)
        return error;
    more->ops = c->ops;
    memcpy(more->name, c->name, sizeof more->name);
    more->type = c->type;
    all->type_count++;
    return 0;
}

/* Gives the element a name, sends it to the ranks that wait for it, and starts the first step if
 * that needs nothing. Frees the element if it fails. */
static int name_element(ferry_collection *c, fy_element *e)
{
    fy_home_entry *bound = fy_bound_make(c, e->key);
    int error = bound == NULL ? fy_fail(c->f, FERRY_ENOMEM, "collection: no memory for a name")
                              : fy_rounds_enter(c, e->round);
    if (error != 0)
        goto free_element;
    e->incarnation = bound->incarnation + 1;
    error = ferry_object_create(c->f, c->type, &e->user, &e->user.object);
    if (error != 0) {
        fy_rounds_leave(c, e->round);
        goto free_element;
    }
    enter(e);
    if (!c->options.fixed) {
        error = ferry_balance_add(c->f, e->user.object, c->options.balance);
        if (error != 0) {
            char reason[FY_KEPT_BYTES]; /* element_destroy makes calls that fail */
            (void)snprintf(reason, sizeof reason, "%s", ferry_error_message(c->f));
            (void)ferry_object_destroy(c->f, e->user.object); /* frees it too */
            return fy_fail(c->f, error, "collection: %s", reason);
        }
    }
    bound->object = e->user.object.word;
    bound->incarnation = e->incarnation;
    bound->gone = 0;
    fy_bound_tell(c, e->key);
    fy_step_settle(e);
    return 0;
free_element:
    fy_element_free(c->f, e);
    free(e);
    return error;
}

int fy_element_make(ferry_collection *c, uint64_t key, uint64_t round, const ferry_message *from)
{
    char text[FY_TEXT_BYTES];
    fy_element *e = fy_calloc(1, sizeof *e);
    if (e == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "collection: no memory for an element");
    e->user.collection = c;
    e->user.index = fy_key_index(c, key);
    e->key = key;
    e->round = round;
    e->fresh = from != NULL;
    fy_list_init(&e->link);
    e->user.data =
        c->options.make(c->f, &e->user, c->options.make_arg, from != NULL ? from->data : NULL,
                        from != NULL ? from->size_bytes : 0);
    if (e->user.data == NULL) {
        fy_element_free(c->f, e);
        free(e);
        return fy_fail(c->f, FERRY_ENOMEM, "collection %s: `make` gave no element %s", c->name,
                       fy_index_text(c, fy_key_index(c, key), text));
    }
    return name_element(c, e);
}
