/* Windows of a rank: creating, freeing, attributes, and their part in every poll. */
#include <stdlib.h>
#include <string.h>

#include <ferry/member.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "window/state.h"

typedef struct fy_attribute {
    const void *key;
    void *value;
} fy_attribute;

/* The words by which each rank tells the others of its array. */
typedef struct card {
    uint64_t address, id;
} card;

enum { POOL_ITEMS = 64 };

/* The layer's state is made with the first window. */
static fy_windows *open_windows(ferry *f)
{
    fy_windows *all = fy_windows_of(f);
    if (all != NULL)
        return all;
    all = fy_calloc(1, sizeof(*all));
    if (all == NULL || fy_table_init(&all->asked, sizeof(fy_window_ask)) != 0) {
        free(all);
        return NULL;
    }
    all->f = f;
    fy_list_init(&all->windows);
    fy_list_init(&all->lock_waits);
    fy_pool_init(&all->ops, sizeof(fy_window_op), POOL_ITEMS);
    fy_layer_state_set(f, FY_LAYER_WINDOW, all);
    return all;
}

/* Frees what belongs to this rank alone. Frees the array if no other rank can reach it any more. */
static void window_free(ferry_window *w, bool alone)
{
    fy_windows *all = fy_windows_of(w->f);
    for (fy_link *link = all->lock_waits.next, *next; link != &all->lock_waits; link = next) {
        next = link->next;
        if (((fy_lock_wait *)(void *)link)->window == w) {
            fy_list_remove(link);
            free(link);
        }
    }
    if (alone || fy_head_of(w->f)->ops->heap.alloc == NULL)
        fy_array_free(w->f, w->array);
    fy_list_remove(&w->link);
    fy_window_failures_drop(w);
    ferry_group_free(w->f, w->makers);
    free(w->attributes);
    for (int rank = 0; w->peers != NULL && rank < w->ranks; rank++)
        free(w->peers[rank].words);
    free(w->peers);
    free(w);
}

static void close_windows(ferry *f)
{
    fy_windows *all = fy_windows_of(f);
    if (all == NULL)
        return;
    while (!fy_list_empty(&all->windows))
        window_free((ferry_window *)(void *)all->windows.next, false);
    fy_table_fini(&all->asked);
    fy_pool_fini(&all->ops);
    free(all);
    fy_layer_state_set(f, FY_LAYER_WINDOW, NULL);
}

static int windows_progress(ferry *f)
{
    fy_windows *all = fy_windows_of(f);
    if (all == NULL || fy_list_empty(&all->windows)) {
        fy_layer_rest(f, FY_LAYER_WINDOW);
        return 0;
    }
    for (fy_link *link = all->windows.next; link != &all->windows; link = link->next)
        if (((ferry_window *)(void *)link)->go_due)
            fy_window_progress_go((ferry_window *)(void *)link);
    return fy_list_empty(&all->lock_waits) ? 0 : fy_window_locks_serve(all);
}

/* Whether a waiting lock may be free: a rank of this node gives a lock back without a frame. */
static bool windows_busy(ferry *f)
{
    fy_windows *all = fy_windows_of(f);
    return all != NULL && !fy_list_empty(&all->lock_waits) &&
           fy_head_of(f)->ops->heap.alloc != NULL;
}

static void windows_peer_gone(ferry *f, int rank)
{
    fy_windows *all = fy_windows_of(f);
    if (all == NULL)
        return;
    for (fy_link *link = all->windows.next; link != &all->windows; link = link->next) {
        ferry_window *w = (ferry_window *)(void *)link;
        if (rank >= w->ranks)
            continue;
        w->peers[rank].open = false; /* its memory may be freed after this */
        fy_window_lost(w, rank);
        fy_window_unexpose(w, rank, FERRY_EPEER);
    }
    (void)fy_window_locks_serve(all);
}

static const fy_kind_info kind = {fy_window_deliver, NULL, "window", FY_FRAME_ASKS};

const fy_layer_ops fy_window_layer = {.layer = FY_LAYER_WINDOW,
                                      .name = "window",
                                      .kinds = &kind,
                                      .kind_count = 1,
                                      .close = close_windows,
                                      .progress = windows_progress,
                                      .busy = windows_busy,
                                      .peer_gone = windows_peer_gone,
                                      .why = fy_windows_why};

/* This rank's part of a new window: its memory and first values. */
static int windows_fill(ferry_window *w, const ferry_window_options *options)
{
    w->peers = fy_calloc((size_t)w->ranks, sizeof(*w->peers));
    w->array = fy_array_create(w->f, (uint32_t)w->ranks);
    int error = w->peers == NULL || w->array == NULL ? FERRY_ENOMEM : 0;
    for (size_t i = 0; i < options->count && error == 0; i++) {
        const fy_action put = {.verb = FY_WINDOW_PUT,
                               .index = (int64_t)i,
                               .value = options->values[i].data,
                               .size_bytes = options->values[i].size_bytes};
        error = fy_array_apply(w->f, w->array, ferry_rank(w->f), &put);
    }
    return error;
}

/* Agrees with the other ranks that each has memory for its part, and that the options are the same.
 * Returns 0, or the same error on all ranks. */
static int window_agree(ferry *f, const ferry_window_options *options, int error)
{
    const int32_t rank = ferry_rank(f), none = INT32_MAX;
    const bool direct = options->direct;
    const int32_t own[] = {error != 0 ? rank : none, direct ? none : rank, direct ? rank : none};
    int32_t first[] = {none, none, none}; /* the first rank without memory, not direct, direct */
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = FERRY_ALLREDUCE;
    what.type = FERRY_INT32;
    what.reduction = FERRY_MIN;
    what.count = sizeof(own) / sizeof(*own);
    what.in = own;
    what.out = first;
    what.group = options->group;
    error = ferry_collective_run(f, &what);
    if (error == 0 && first[0] != none)
        error = fy_fail(f, FERRY_ENOMEM, "window_create: rank %d has no memory for its part",
                        (int)first[0]);
    if (error == 0 && first[1] != none && first[2] != none)
        error = fy_fail(f, FERRY_EINVAL,
                        "window_create: `direct` is %d here and %d on rank %d; expected the same "
                        "on all ranks",
                        direct, !direct, (int)first[direct ? 1 : 2]);
    return error;
}

static int window_exchange(ferry_window *w, card *cards)
{
    const card own = {(uintptr_t)w->array, w->id};
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = FERRY_ALLGATHER;
    what.type = FERRY_UINT64;
    what.count = sizeof(card) / sizeof(uint64_t);
    what.in = &own;
    what.out = cards;
    what.group = w->group;
    return ferry_collective_run(w->f, &what);
}

/* Learns where the arrays of the others are. */
static void meet(ferry_window *w, const card *cards, int count)
{
    const fy_head *head = fy_head_of(w->f);
    for (int place = 0; place < count; place++) {
        int rank = ferry_group_rank(w->f, w->group, place);
        if (rank < 0 || rank >= w->ranks)
            continue;
        fy_array *array = (fy_array *)(uintptr_t)cards[place].address;
        bool near = rank == head->rank ||
                    (head->ops->heap.owner != NULL &&
                     head->ops->heap.owner(head->port, FY_APP, array, sizeof(*array)) == rank);
        w->peers[rank].id = (uint32_t)cards[place].id;
        w->peers[rank].array = near ? array : NULL;
    }
}

/* If ranks may join, keeps the ranks of the window. The joining ranks do not make its calls. */
static int window_group_makers(ferry_window *w)
{
    if (w->group != NULL || ferry_member_count(w->f) == w->ranks)
        return 0;
    return ferry_group_split(w->f, NULL, 0, 0, &w->makers);
}

static int check_options(ferry *f, const ferry_window_options *given, ferry_window_options *options)
{
    *options = (ferry_window_options)FERRY_WINDOW_OPTIONS_DEFAULTS;
    int error = given == NULL ? 0
                              : fy_read_sized(f, "window_create: ferry_window_options", given,
                                              options, sizeof(*options));
    if (error == 0 && options->values == NULL && options->count > 0)
        error = fy_fail(f, FERRY_EINVAL, "window_create: %zu values at NULL", options->count);
    return error;
}

/* A window of this rank alone; NULL without memory. */
static ferry_window *windows_prepare(ferry *f, const ferry_window_options *options)
{
    fy_windows *all = open_windows(f);
    ferry_window *w = all == NULL ? NULL : fy_calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->f = f;
    w->group = options->group;
    w->direct = options->direct;
    w->ranks = ferry_ranks(f);
    w->id = ++all->id;
    w->awaits_lock = -1;
    fy_list_init(&w->queue);
    fy_list_init(&w->failures);
    fy_list_insert(&all->windows, &w->link);
    fy_layer_due(w->f, FY_LAYER_WINDOW);
    if (windows_fill(w, options) == 0)
        return w;
    window_free(w, true);
    return NULL;
}

int ferry_window_create(ferry *f, const ferry_window_options *given, ferry_window **out)
{
    ferry_window_options options;
    int error = check_options(f, given, &options);
    if (error == 0 && out == NULL)
        error = fy_fail(f, FERRY_EINVAL, "window_create: no place for the window");
    if (error != 0)
        return error;
    if (fy_in_handler(f))
        return fy_fail(f, FERRY_ESTATE, "window_create: not allowed in a handler");
    const size_t count = (size_t)ferry_group_count(f, options.group);
    card *cards = fy_calloc(count, sizeof(*cards));
    ferry_window *w = windows_prepare(f, &options);
    error = window_agree(f, &options, w == NULL || cards == NULL ? FERRY_ENOMEM : 0);
    if (error == 0) {
        error = window_exchange(w, cards);
        if (error == 0)
            error = window_group_makers(w);
        if (error == 0)
            meet(w, cards, (int)count);
        else
            window_free(w, false); /* other ranks may know the array already */
    } else if (w != NULL) {
        window_free(w, true);
    }
    free(cards);
    if (error == 0)
        *out = w;
    return error;
}

/* Whether an epoch is open that would stay open on other ranks after freeing. */
static bool is_open(const ferry_window *w)
{
    for (int rank = 0; rank < w->ranks; rank++)
        if (w->peers[rank].locked != FY_HELD_NOT)
            return true;
    return w->access || w->posted;
}

int ferry_window_free(ferry_window *w)
{
    if (w == NULL)
        return 0;
    int error = fy_window_check(w, "window_free");
    if (error != 0)
        return error;
    if (is_open(w))
        return fy_fail(w->f, FERRY_ESTATE,
                       "window_free: an epoch is open; call complete, wait or unlock first");
    fy_window_give_up(w, -1, FERRY_ECANCELED);
    fy_window_settle(w, -1);
    error = fy_window_barrier(w, "window_free");
    window_free(w, error == 0);
    return error;
}

uint64_t ferry_window_length(const ferry_window *w)
{
    /* acquire: pairs with the release of the rank that made the array longer */
    return atomic_load_explicit(&w->array->length, memory_order_acquire);
}

static fy_attribute *attribute_of(const ferry_window *w, const void *key)
{
    for (size_t i = 0; i < w->attribute_count; i++)
        if (w->attributes[i].key == key)
            return &w->attributes[i];
    return NULL;
}

int ferry_window_attribute_set(ferry_window *w, const void *key, void *value)
{
    fy_attribute *attribute = attribute_of(w, key);
    if (attribute == NULL) {
        size_t count = w->attribute_count + 1;
        fy_attribute *more = fy_realloc(w->attributes, count * sizeof(*more));
        if (more == NULL)
            return fy_fail(w->f, FERRY_ENOMEM, "window_attribute_set: no memory for %zu", count);
        w->attributes = more;
        w->attribute_count = count;
        attribute = &more[count - 1];
        attribute->key = key;
    }
    attribute->value = value;
    return 0;
}

void *ferry_window_attribute_get(const ferry_window *w, const void *key)
{
    const fy_attribute *attribute = attribute_of(w, key);
    return attribute == NULL ? NULL : attribute->value;
}

int ferry_window_attribute_delete(ferry_window *w, const void *key)
{
    fy_attribute *attribute = attribute_of(w, key);
    if (attribute == NULL)
        return fy_fail(w->f, FERRY_ENOENT, "window_attribute_delete: no attribute has key %p", key);
    *attribute = w->attributes[--w->attribute_count];
    return 0;
}
