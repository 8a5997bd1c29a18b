/* The collection layer of a rank: its frames, and its part of each poll. */
#include <stdlib.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/work.h"

enum { EARLY_ITEMS = 64 };

ferry_collection *fy_collection_find(const fy_collections *all, uint64_t id)
{
    for (fy_link *link = all->all.next; link != &all->all; link = link->next) {
        ferry_collection *c = (ferry_collection *)(void *)link;
        if (c->id == id)
            return c;
    }
    return NULL;
}

/* FERRY_ENOMEM: the frame has to be handled again. */
static int handle(ferry_collection *c, int source, const fy_frame *frame)
{
    switch ((fy_collection_frame)frame->aux) {
    case FY_ASK:
        return fy_ask_take(c, source, frame->words[1], frame->words[2]);
    case FY_ANSWER:
        fy_answer_take(c, frame->words[1], frame->words[2], frame->words[3]);
        break;
    case FY_FORGET:
        fy_forget_take(c, frame->words[1], frame->words[2]);
        break;
    case FY_UNBIND:
        fy_unbind_take(c, frame->words[1], frame->words[2], frame->words[3] != 0);
        break;
    case FY_PARTIAL:
        return fy_partial_take(c, source, frame);
    case FY_CHANGE:
        return fy_change_take(c, frame);
    case FY_RESULT:
        return fy_result_take(c, source, frame);
    }
    return 0;
}

int fy_collection_tell(ferry_collection *c, int rank, fy_collection_frame what, uint64_t a,
                       uint64_t b, uint64_t more, const void *data, size_t size_bytes)
{
    ferry *f = c->f;
    const fy_frame frame = {.kind = FY_KIND_COLLECTION,
                            .word_count = 4,
                            .aux = what,
                            .words = {c->id, a, b, more},
                            .data = data,
                            .size_bytes = size_bytes};
    if (rank == c->rank)
        return handle(c, rank, &frame);
    return fy_send_as_work(f, rank, &frame);
}

/* Ignores a frame of a collection that this rank has freed. */
static fy_verdict collections_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_collections *all = fy_collections_of(f);
    ferry_collection *c = fy_collection_find(all, frame->words[0]);
    if (frame->word_count != 4 || frame->aux > FY_RESULT) {
        fy_bad_frame(f, source, frame, "a message of a collection");
        return FY_TAKEN;
    }
    if (fy_work_arrives(f, source, 1) != 0)
        return FY_LEAVE;
    int error = c != NULL ? handle(c, source, frame) : 0;
    if (error != 0)
        (void)fy_work_arrives(f, source, UINT64_MAX); /* it has not arrived yet */
    else
        fy_work_finished(f, 1);
    return error != 0 ? FY_LEAVE : FY_TAKEN;
}

static int open_collections(ferry *f, const ferry_options *options)
{
    (void)options;
    fy_collections *all = fy_calloc(1, sizeof *all);
    if (all == NULL)
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the collection layer");
    all->f = f;
    fy_list_init(&all->all);
    fy_pool_init(&all->early, sizeof(fy_early) + FY_POOLED_BYTES, EARLY_ITEMS);
    fy_layer_state_set(f, FY_LAYER_COLLECTION, all);
    return 0;
}

/* For fy_head.stays: elements of a rank that leaves would lose their home, and one that joins knows
 * no collection. */
static int refuse_change(ferry *f, int count)
{
    fy_collections *all = fy_collections_of(f);
    const char *call = count != 0 ? "spawn" : "leave", *name = "";
    unsigned more = 0;
    if (!fy_in_handler(f)) /* its element would lose its data while it runs */
        fy_collections_drop(all);
    if (fy_list_empty(&all->all))
        return 0;
    for (const fy_link *link = all->all.next; link != &all->all; link = link->next) {
        more += name[0] != '\0';
        name = ((const ferry_collection *)(const void *)link)->name;
    }
    if (more != 0)
        return fy_fail(f, FERRY_ESTATE,
                       "%s: collection %s and %u more exist; first call ferry_collection_destroy "
                       "for each",
                       call, name, more);
    return fy_fail(f, FERRY_ESTATE,
                   "%s: collection %s exists; first call ferry_collection_destroy for it", call,
                   name);
}

void fy_collections_hold(const fy_collections *all)
{
    ((fy_head *)(void *)all->f)->stays = fy_list_empty(&all->all) ? NULL : refuse_change;
}

void fy_collection_free(ferry_collection *c)
{
    fy_link *link;
    while ((link = fy_list_pop(&c->elements)) != NULL) {
        /* Its object may outlive this layer, and frees the fy_element when it is destroyed. */
        fy_element *e = fy_element_at(link);
        fy_element_free(c->f, e);
        e->user.collection = NULL;
    }
    if (c->wake)
        fy_work_finished(c->f, 1);
    if (c->again)
        fy_work_finished(c->f, 1);
    fy_queues_fini(c);
    fy_home_fini(c);
    fy_rounds_fini(c);
    fy_list_remove(&c->link);
    fy_collections_hold(fy_collections_of(c->f));
    free(c);
}

static void close_collections(ferry *f)
{
    fy_collections *all = fy_collections_of(f);
    while (!fy_list_empty(&all->all))
        fy_collection_free((ferry_collection *)(void *)all->all.next);
    while (all->unsent != NULL) {
        fy_spread *s = all->unsent;
        all->unsent = s->next;
        free(s);
    }
    fy_pool_fini(&all->early);
    free(all->types);
    free(all);
    fy_layer_state_set(f, FY_LAYER_COLLECTION, NULL);
}

void fy_collection_again(ferry_collection *c)
{
    if (!c->again)
        fy_work_created(c->f, 1);
    c->again = true;
}

static void do_again(ferry_collection *c)
{
    if (!c->again)
        return;
    c->again = false;
    fy_names_again(c);
    fy_rounds_again(c);
    fy_work_finished(c->f, 1);
}

static int collections_progress(ferry *f)
{
    fy_collections *all = fy_collections_of(f);
    int count = fy_unsent_flush(all);
    for (fy_link *link = all->all.next; link != &all->all; link = link->next) {
        ferry_collection *c = (ferry_collection *)(void *)link;
        if (!fy_list_empty(&c->blocked))
            count += fy_queues_flush(c);
        count += fy_left_finish(c);
        do_again(c);
        if (c->wake) {
            c->wake = false;
            fy_steps_wake(c);
            fy_work_finished(f, 1);
            count++;
        }
    }
    if (all->unsent == NULL && fy_list_empty(&all->all))
        fy_layer_rest(f, FY_LAYER_COLLECTION);
    return count;
}

static bool collections_busy(ferry *f)
{
    fy_collections *all = fy_collections_of(f);
    if (all->unsent != NULL)
        return true;
    for (fy_link *link = all->all.next; link != &all->all; link = link->next) {
        const ferry_collection *c = (ferry_collection *)(void *)link;
        if (c->wake || c->again || c->left != NULL || !fy_list_empty(&c->blocked))
            return true;
    }
    return false;
}

static void collections_peer_gone(ferry *f, int rank)
{
    fy_collections *all = fy_collections_of(f);
    for (fy_link *link = all->all.next; link != &all->all; link = link->next) {
        fy_queues_peer_gone((ferry_collection *)(void *)link, rank);
        fy_home_peer_gone((ferry_collection *)(void *)link);
    }
}

static const fy_kind_info kind = {collections_deliver, NULL, "collection", 0};

const fy_layer_ops fy_collection_layer = {.layer = FY_LAYER_COLLECTION,
                                          .name = "collection",
                                          .kinds = &kind,
                                          .kind_count = 1,
                                          .open = open_collections,
                                          .close = close_collections,
                                          .progress = collections_progress,
                                          .busy = collections_busy,
                                          .peer_gone = collections_peer_gone,
                                          .why = fy_collections_why};
