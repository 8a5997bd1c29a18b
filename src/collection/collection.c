/* Collections: the functions that a program calls, without those of steps and reductions. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/run.h"
#include "object/flat.h"
#include "object/object.h"

/* ferry_collection_remove is a message, so that earlier messages of its sender come first. */
static void remove_take(ferry *f, ferry_object object, void *data, int source,
                        const ferry_message *message)
{
    (void)data, (void)source, (void)message;
    (void)ferry_object_destroy(f, object);
}

static int register_handlers(fy_collections *all)
{
    const struct {
        const char *name;
        fy_handler_kind kind;
        fy_any_fn *fn;
        ferry_handler *out;
    } own[FY_HANDLERS_OWN] = {
        {"collection insert", FY_HANDLER_REQUEST, (fy_any_fn *)fy_insert_take, &all->insert},
        {"collection section", FY_HANDLER_REQUEST, (fy_any_fn *)fy_spread_take, &all->spread},
        {"element remove", FY_HANDLER_OBJECT, (fy_any_fn *)remove_take, &all->remove},
        {"element step message", FY_HANDLER_OBJECT, (fy_any_fn *)fy_step_take, &all->step},
        {"element step", FY_HANDLER_OBJECT, (fy_any_fn *)fy_proceed_take, &all->proceed}};
    if (all->registered)
        return 0;
    for (int i = 0; i < FY_HANDLERS_OWN; i++) {
        own[i].out->index = (uint16_t)(i + 1);
        int error = fy_handler_own(all->f, own[i].out->index, own[i].name, own[i].kind, own[i].fn);
        if (error != 0)
            return error;
    }
    fy_keeper_start(all->f);
    all->registered = true;
    return 0;
}

static int check_extents(ferry_collection *c)
{
    const int64_t *e = c->options.extents;
    uint64_t volume = 1;
    c->dense = e[0] != 0 || e[1] != 0 || e[2] != 0;
    for (int d = 0; d < FY_DIMS; d++) {
        bool used = d < c->options.dims;
        if (c->dense && (used ? e[d] < 1 || e[d] > INT64_C(1) << 31 : e[d] != 0))
            return fy_fail(c->f, FERRY_EINVAL,
                           "collection_create: extent %d is %lld; expected %d of 1 to 2^31 (as "
                           "`dims` says) and the rest 0, or all 0",
                           d, (long long)e[d], c->options.dims);
        c->extents[d] = e[d];
        volume *= c->dense && used ? (uint64_t)e[d] : 1;
        if (volume > UINT64_C(1) << 31)
            return fy_fail(c->f, FERRY_EINVAL,
                           "collection_create: more than 2^31 elements; insert those that exist");
    }
    fy_index_bound(c);
    for (int d = 0; c->dense && d < c->options.dims; d++) {
        ferry_index last = ferry_index_of(0, 0, 0);
        last.at[d] = c->extents[d] - 1;
        if (fy_index_key(c, last) == 0)
            return fy_index_refuse(c, "collection_create", last);
    }
    return 0;
}

static int check_ops(ferry_collection *c)
{
    ferry *f = c->f;
    ferry_object_ops *ops = &c->ops;
    if ((ops->flags & ~FERRY_OBJECT_SHARED) != 0)
        return fy_fail(f, FERRY_EINVAL,
                       "collection_create: flags are 0x%x, expected FERRY_OBJECT_SHARED or 0",
                       ops->flags);
    bool flat = ops->pack == NULL && ops->unpack == NULL &&
                (ops->flat_bytes != 0 || ops->packed_size != NULL);
    bool whole = ops->pack != NULL && ops->unpack != NULL && ops->destroy != NULL &&
                 ops->packed_size != NULL;
    if (!flat && !whole)
        return fy_fail(f, FERRY_EINVAL,
                       "collection_create: the type needs packed_size, pack, unpack and destroy; "
                       "or flat_bytes or packed_size, without pack and unpack");
    if (c->options.make == NULL)
        return fy_fail(f, FERRY_EINVAL, "collection_create: `make` is missing");
    if ((c->options.value_bytes != 0) != (c->options.combine != NULL))
        return fy_fail(f, FERRY_EINVAL,
                       "collection_create: value_bytes is %zu and combine is %s, expected both or "
                       "neither",
                       c->options.value_bytes, c->options.combine != NULL ? "set" : "NULL");
    (void)fy_flat_fill(ops);
    return 0;
}

static int init(ferry_collection *c, const ferry_collection_options *options)
{
    static const ferry_object_ops no_ops = FERRY_OBJECT_OPS_DEFAULTS;
    ferry *f = c->f;
    int error = fy_read_sized(f, "collection_create: ferry_collection_options", options,
                              &c->options, sizeof c->options);
    if (error == 0 && c->options.ops == NULL)
        error = fy_fail(f, FERRY_EINVAL, "collection_create: `ops` is missing");
    c->ops = no_ops;
    if (error == 0)
        error = fy_read_sized(f, "collection_create: ferry_object_ops", c->options.ops, &c->ops,
                              sizeof c->ops);
    if (error != 0)
        return error;
    c->options.ops = &c->ops;
    (void)snprintf(c->name, sizeof c->name, "%s", c->ops.name != NULL ? c->ops.name : "element");
    c->ops.name = NULL; /* fy_element_type compares `ops` as bytes, and `name` as text */
    if (c->options.dims == 0)
        c->options.dims = 1;
    if (c->options.dims < 0 || c->options.dims > FY_DIMS)
        return fy_fail(f, FERRY_EINVAL, "collection_create: %d dimensions; expected 1 to 3",
                       c->options.dims);
    error = check_extents(c);
    if (error == 0)
        error = check_ops(c);
    return error != 0 ? error : fy_map_init(c);
}

enum { AGREED = 13 };

/* Lists the values on which ranks must agree. The first says that the rank has no error. */
static void list_agreed(const ferry_collection *c, uint64_t values[AGREED])
{
    const ferry_collection_options *o = &c->options;
    const uint64_t list[AGREED] = {1,
                                   (uint64_t)o->dims,
                                   (uint64_t)c->extents[0],
                                   (uint64_t)c->extents[1],
                                   (uint64_t)c->extents[2],
                                   (uint64_t)o->map,
                                   o->map_fn != NULL,
                                   o->step != NULL,
                                   o->fixed,
                                   o->value_bytes,
                                   o->combine != NULL,
                                   c->ops.flags,
                                   c->ops.flat_bytes};
    memcpy(values, list, sizeof list);
}

typedef struct failure {
    int32_t error;
    char reason[FY_KEPT_BYTES];
} failure;

/* Keeps the reason of an error. A call that polls may replace the message of the last error. */
static failure failure_note(ferry *f, int error)
{
    failure own = {.error = error};
    if (error != 0)
        (void)snprintf(own.reason, sizeof own.reason, "%s", ferry_error_message(f));
    return own;
}

/* At least one rank has failed. Returns the error of this rank, or else of the first rank that has
 * one, with its reason. Collective: `*reached` says how that ended. */
static int failure_share(ferry *f, const failure *own, int *reached)
{
    failure other = *own;
    int32_t first = own->error != 0 ? ferry_rank(f) : INT32_MAX;
    *reached = ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &first, &first, 1);
    if (*reached == 0)
        *reached = ferry_broadcast(f, first, &other, sizeof other);
    if (own->error != 0)
        return fy_fail(f, own->error, "%s", own->reason);
    return *reached != 0 ? *reached
                         : fy_fail(f, other.error, "collection_create failed on rank %d: %s", first,
                                   other.reason);
}

/* Gives the collection a number and a type, the same on all ranks. Some may have joined since the
 * first collection, or have failed in an earlier one. `*error` is this rank's error so far.
 * Collective: fails as ferry_allreduce. */
static int agree_on_numbers(ferry *f, ferry_collection *c, int *error)
{
    const failure own = failure_note(f, *error);
    uint64_t numbers[3] = {fy_collections_of(f)->next_id, 0, 0};
    if (*error == 0)
        fy_element_type_propose(c, &numbers[1], &numbers[2]);
    int reached = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, numbers, numbers, 3);
    if (own.error != 0)
        (void)fy_fail(f, own.error, "%s", own.reason);
    else if (reached == 0) {
        c->id = (uint32_t)numbers[0];
        *error = fy_element_type(c, numbers[1], numbers[2]);
    }
    return reached;
}

/* Compares the options of all ranks. `error` is this rank's so far. FERRY_EINVAL: they differ.
 * Fails also if another rank has an error. Collective: `*reached` says how that ended. */
static int collection_agree(ferry *f, const ferry_collection *c, int error, int *reached)
{
    static const char *const names[AGREED] = {"",
                                              "dims",
                                              "extents[0]",
                                              "extents[1]",
                                              "extents[2]",
                                              "map",
                                              "map_fn (0: NULL)",
                                              "step (0: NULL)",
                                              "fixed",
                                              "value_bytes",
                                              "combine (0: NULL)",
                                              "ops->flags",
                                              "ops->flat_bytes"};
    uint64_t least[2 * AGREED] = {0};
    const failure own = failure_note(f, error);
    if (error == 0)
        list_agreed(c, least);
    for (int i = 0; i < AGREED; i++)
        least[AGREED + i] = ~least[i];
    *reached = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, least, least, 2 * AGREED);
    if (*reached != 0)
        return error != 0 ? fy_fail(f, error, "%s", own.reason) : *reached;
    if (least[0] == 0)
        return failure_share(f, &own, reached);
    for (int i = 1; i < AGREED; i++)
        if (least[i] != ~least[AGREED + i])
            return fy_fail(
                f, FERRY_EINVAL, "collection_create: %s differs between ranks, from %llu to %llu",
                names[i], (unsigned long long)least[i], (unsigned long long)~least[AGREED + i]);
    return 0;
}

typedef struct making {
    ferry_collection *c;
    ferry_index index;
    int64_t made;
    int error;
} making;

static void make_one(ferry *f, void *arg)
{
    (void)f;
    making *m = arg;
    ferry_collection *c = m->c;
    int home = fy_index_home(c, m->index);
    if (home < 0)
        m->error = fy_home_refuse(c, "collection_create", m->index);
    if (home != c->rank)
        return;
    m->error = fy_element_make(c, fy_index_key(c, m->index), 0, NULL);
    m->made += m->error == 0;
}

/* Makes the elements that begin here. This does not poll, so none of their handlers runs yet. */
static int make_all(ferry_collection *c)
{
    ferry_index low, high;
    making m = {.c = c};
    if (!c->dense)
        return 0;
    fy_map_box(c, &low, &high);
    for (m.index.at[0] = low.at[0]; m.index.at[0] <= high.at[0]; m.index.at[0]++)
        for (m.index.at[1] = low.at[1]; m.index.at[1] <= high.at[1]; m.index.at[1]++)
            for (m.index.at[2] = low.at[2]; m.index.at[2] <= high.at[2]; m.index.at[2]++) {
                fy_run(c->f, FY_DOING_HANDLER, UINT16_MAX, make_one, &m);
                if (m.error != 0)
                    return m.error;
            }
    c->total = m.made;
    return 0;
}

static ferry_collection *collection_alloc(ferry *f)
{
    fy_collections *all = fy_collections_of(f);
    int ranks = ferry_member_count(f);
    ferry_collection *c = fy_calloc(1, sizeof *c + (size_t)ranks * sizeof(int));
    if (c == NULL)
        return NULL;
    c->f = f;
    c->rank = ferry_rank(f);
    c->place = ferry_member_place(f, c->rank);
    c->ranks = ranks;
    for (int place = 0; place < ranks; place++)
        c->members[place] = ferry_member_rank(f, place);
    fy_list_init(&c->elements);
    fy_list_init(&c->blocked);
    if (fy_table_init(&c->bound, sizeof(fy_home_entry)) != 0) {
        free(c);
        return NULL;
    }
    if (fy_table_init(&c->known, sizeof(fy_known)) != 0) {
        fy_table_fini(&c->bound);
        free(c);
        return NULL;
    }
    c->id = all->next_id; /* the next has it too if ranks do not agree: they count alike */
    fy_list_insert(&all->all, &c->link);
    fy_collections_hold(all);
    fy_layer_due(c->f, FY_LAYER_COLLECTION);
    return c;
}

/* Makes the elements on all ranks, and gives their number. Collective: `*reached` says how that
 * ended. */
static int make_everywhere(ferry_collection *c, int64_t *total, int *reached)
{
    ferry *f = c->f;
    int error = make_all(c);
    const failure own = failure_note(f, error);
    int64_t sums[2] = {c->total, error != 0};
    *reached = ferry_allreduce(f, FERRY_INT64, FERRY_SUM, sums, sums, 2);
    *total = sums[0];
    if (*reached == 0 && sums[1] != 0)
        return failure_share(f, &own, reached);
    return error != 0 ? fy_fail(f, error, "%s", own.reason) : *reached;
}

int ferry_collection_create(ferry *f, const ferry_collection_options *options,
                            ferry_collection **out)
{
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "collection_create: inside a handler");
    if (ferry_member_place(f, ferry_rank(f)) < 0)
        return fy_fail(f, FERRY_ESTATE,
                       "collection_create: rank %d is no member before its first ferry_quiesce "
                       "has ended",
                       ferry_rank(f));
    int error = register_handlers(fy_collections_of(f));
    ferry_collection *c = error == 0 ? collection_alloc(f) : NULL;
    if (error == 0 && c == NULL)
        error = fy_fail(f, FERRY_ENOMEM, "collection_create: no memory");
    if (error == 0)
        error = init(c, options);
    if (error == 0 && out == NULL)
        error = fy_fail(f, FERRY_EINVAL, "collection_create: the result is missing");
    int reached = agree_on_numbers(f, c, &error);
    if (error == 0)
        error = reached;
    const bool named = error == 0;
    if (reached == 0) {
        fy_collections_drop(fy_collections_of(f));
        error = collection_agree(f, c, error, &reached);
    }
    if (named)
        fy_collections_of(f)->next_id = c->id + 1;
    int64_t total = 0;
    const bool agreed = error == 0;
    if (agreed)
        error = make_everywhere(c, &total, &reached);
    if (error != 0) {
        char reason[FY_KEPT_BYTES];
        (void)snprintf(reason, sizeof reason, "%s", ferry_error_message(f));
        if (named && reached != 0)
            c->abandoned = true;
        else if (agreed)
            (void)ferry_collection_destroy(c);
        else if (c != NULL)
            fy_collection_free(c);
        return fy_fail(f, error, "%s", reason); /* the end of the collection may have failed too */
    }
    c->total = total;
    c->total_known = true;
    *out = c;
    fy_rounds_try(c);
    return 0;
}

static void destroy_all(ferry_collection *c)
{
    for (fy_link *link = c->elements.next, *next; link != &c->elements; link = next) {
        next = link->next;
        (void)ferry_object_destroy(c->f, fy_element_at(link)->user.object);
    }
}

void fy_collections_drop(fy_collections *all)
{
    for (fy_link *link = all->all.next, *next; link != &all->all; link = next) {
        ferry_collection *c = (ferry_collection *)(void *)link;
        next = link->next;
        if (!c->abandoned)
            continue;
        c->ending = true;
        destroy_all(c);
        fy_collection_free(c);
    }
}

int ferry_collection_destroy(ferry_collection *c)
{
    ferry *f = c->f;
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "collection_destroy: inside a handler");
    int error = ferry_quiesce(f);
    c->ending = true;
    destroy_all(c);
    int again = ferry_quiesce(f); /* elements that moved during destroy_all have then arrived */
    destroy_all(c);
    fy_collection_free(c);
    if (error == 0)
        error = again;
    return error;
}

/* Returns 0 if messages can go to the index: it is within the extents, and the map gives a home. */
static int check_index(const ferry_collection *c, const char *call, ferry_index index)
{
    if (fy_index_key(c, index) == 0)
        return fy_index_refuse(c, call, index);
    if (c->options.map_fn != NULL && fy_index_home(c, index) < 0)
        return fy_home_refuse(c, call, index);
    return 0;
}

int ferry_collection_insert(ferry_collection *c, ferry_element *by, ferry_index index,
                            const void *bytes, size_t size_bytes)
{
    uint64_t key = fy_index_key(c, index);
    int error = check_index(c, "collection_insert", index);
    bool exists = false;
    if (error != 0)
        return error;
    if (bytes == NULL && size_bytes != 0)
        return fy_fail(c->f, FERRY_EINVAL, "collection_insert: %zu bytes at NULL", size_bytes);
    fy_element *e = by != NULL ? fy_element_of(by) : NULL;
    uint64_t round = e != NULL ? e->round : c->done;
    const ferry_message request = {.handler = fy_collections_of(c->f)->insert,
                                   .word_count = 4,
                                   .words = {c->id, key, round, e != NULL},
                                   .data = bytes,
                                   .size_bytes = size_bytes};
    error = fy_names_insert(c, key, &request, &exists);
    if (error == 0 && e != NULL && !exists)
        e->births += fy_birth_hash(key, round);
    return error;
}

int ferry_collection_remove(ferry_collection *c, ferry_index index)
{
    const ferry_message message = {.handler = fy_collections_of(c->f)->remove};
    int error = check_index(c, "collection_remove", index);
    return error != 0 ? error : fy_names_send(c, fy_index_key(c, index), &message, NULL);
}

int fy_collection_check_words(const ferry_collection *c, const char *call,
                              const ferry_message *message, int words_max)
{
    if (message == NULL)
        return fy_fail(c->f, FERRY_EINVAL, "%s: no message given", call);
    if (message->word_count > words_max)
        return fy_fail(c->f, FERRY_EINVAL, "%s: %u words, at most %d", call, message->word_count,
                       words_max);
    if (message->data == NULL && message->size_bytes != 0)
        return fy_fail(c->f, FERRY_EINVAL, "%s: %zu bytes at NULL", call, message->size_bytes);
    return 0;
}

int fy_collection_check_message(const ferry_collection *c, const char *call,
                                const ferry_message *message)
{
    int error = fy_collection_check_words(c, call, message, FERRY_WORDS_MAX);
    if (error == 0 && fy_handler_find(c->f, message->handler.index, FY_HANDLER_OBJECT) == NULL)
        error = fy_fail(c->f, FERRY_EINVAL,
                        "%s: handler %u was not registered by ferry_object_handler_register on "
                        "this rank",
                        call, message->handler.index);
    return error;
}

int ferry_collection_send(ferry_collection *c, ferry_index index, const ferry_message *message,
                          const ferry_track *track)
{
    int error = check_index(c, "collection_send", index);
    if (error == 0)
        error = fy_collection_check_message(c, "collection_send", message);
    return error != 0 ? error : fy_names_send(c, fy_index_key(c, index), message, track);
}

ferry_element *ferry_collection_next(ferry_collection *c, const ferry_element *after)
{
    fy_link *link = after != NULL ? fy_element_of(after)->link.next : c->elements.next;
    for (; link != &c->elements; link = link->next) {
        ferry_element *element = &fy_element_at(link)->user;
        if (ferry_object_data(c->f, element->object) != NULL)
            return element;
    }
    return NULL;
}

int ferry_collection_home(const ferry_collection *c, ferry_index index)
{
    int error = check_index(c, "collection_home", index);
    return error != 0 ? error : fy_index_home(c, index);
}

ferry *ferry_collection_rank(const ferry_collection *c)
{
    return c->f;
}

/* Finds the reduction that is incomplete. Sets `*teller` to the rank that has written to `text`
 * what it misses; INT_MAX: there is none. Collective. */
static int check_rounds(ferry_collection *c, char *text, size_t size_bytes, int32_t *teller)
{
    fy_round_report report;
    fy_round_look(c, &report);
    int32_t least[3] = {report.waits ? 0 : 1, report.first != NULL ? c->rank : INT_MAX,
                        report.waits ? c->rank : INT_MAX};
    int error = ferry_allreduce(c->f, FERRY_INT32, FERRY_MIN, least, least, 3);
    *teller = least[0] == 1 ? INT_MAX : least[1] != INT_MAX ? least[1] : least[2];
    if (error != 0 || *teller == INT_MAX)
        return error;
    error = ferry_allreduce(c->f, FERRY_UINT64, FERRY_SUM, report.counts, report.counts, 2);
    if (*teller == c->rank)
        fy_round_tell(c, &report, text, size_bytes);
    return error;
}

int ferry_collection_check(ferry_collection *c)
{
    char text[FY_STRAY_BYTES + FY_TEXT_BYTES] = "";
    bool missing = fy_collection_missing(c, text, sizeof text);
    int32_t first = missing ? c->rank : INT_MAX;
    int error = ferry_allreduce(c->f, FERRY_INT32, FERRY_MIN, &first, &first, 1);
    if (error == 0 && first == INT_MAX)
        error = check_rounds(c, text, sizeof text, &first);
    if (error != 0 || first == INT_MAX)
        return error;
    error = ferry_broadcast(c->f, first, text, sizeof text);
    return error != 0 ? error : fy_fail(c->f, FERRY_ESTATE, "%s", text);
}
