#include "core/tags.h"

#include "core/fail.h"
#include "core/kinds.h"
#include "core/operation.h"
#include "core/rank.h"

void fy_tags_init(ferry *f)
{
    fy_mail_table_init(&f->tags.kept);
    f->tags.round = 1;
}

void fy_tags_fini(ferry *f)
{
    fy_mail_table_fini(f, &f->tags.kept);
}

static uint32_t properties_of(const fy_frame *frame)
{
    const fy_kind_info *info = fy_kind_find(frame->kind);
    return info != NULL ? info->properties : 0;
}

/* Bytes of memory that a kept packet takes. */
static size_t packet_cost(const fy_packet *packet)
{
    return sizeof(fy_item) + fy_packet_bytes(packet);
}

/* Removes the item and returns its packet, which the caller owns. */
static fy_packet *tags_take(ferry *f, fy_item *item)
{
    f->tags.count--;
    f->tags.bytes -= packet_cost(item->packet);
    return fy_item_take(&f->tags.kept, item);
}

/* Keeps a copy of `frame`. Returns its item; NULL without memory. */
static fy_item *tags_put(ferry *f, int source, const fy_frame *frame)
{
    fy_packet *packet = fy_packet_create(&f->packets, frame->size_bytes);
    if (packet == NULL)
        return NULL;
    fy_packet_fill(packet, source, FY_DATA, frame);
    fy_item *item = fy_item_create(&f->tags.kept, packet);
    if (item == NULL) {
        fy_packet_destroy(&f->packets, packet);
        return NULL;
    }
    f->tags.count++;
    fy_rest_due(f);
    f->tags.bytes += packet_cost(packet);
    return item;
}

static fy_verdict hold(ferry *f, int source, const fy_frame *frame)
{
    if (fy_waiting_bytes(f) > f->options.waiting_bytes) {
        f->tags.full = true;
        return FY_LEAVE;
    }
    fy_item *item = tags_put(f, source, frame);
    if (item == NULL)
        return FY_LEAVE;
    bool reserved = frame->op == 0 || fy_op_end_reserve(f);
    fy_hold_fn *fn = fy_kind_find(frame->kind)->hold;
    if (reserved && (fn == NULL || fn(f, source, &item->packet->frame)))
        return FY_TAKEN;
    fy_packet_destroy(&f->packets, tags_take(f, item));
    return reserved ? FY_TAKEN : FY_LEAVE;
}

/* Runs one kept frame, unless an earlier frame of its source could not run in this round: frames of
 * a source keep their order. Returns whether it ran. */
static bool tags_run(ferry *f, fy_item *item)
{
    fy_packet *packet = item->packet;
    uint32_t *left = &item->places[FY_MAIL_SOURCE].key->left;
    if (*left == f->tags.round)
        return false;
    if (fy_dispatch(f, packet->rank, &packet->frame) == FY_LEAVE) {
        *left = f->tags.round;
        return false;
    }
    fy_packet_destroy(&f->packets, tags_take(f, item));
    return true;
}

static bool is_plain_put(const fy_frame *frame)
{
    return frame->tag == FY_NO_TAG && (properties_of(frame) & FY_FRAME_WRITES) != 0;
}

/* Whether `item` is the oldest kept frame of its source. */
static bool is_oldest(const fy_item *item)
{
    return item->places[FY_MAIL_SOURCE].key->items.next == &item->places[FY_MAIL_SOURCE].link;
}

/* Runs the kept frames of one list of the table. With `puts` only puts without a tag: of these, the
 * oldest frames of their sources, or with `ahead` also those that come after other frames. */
static int run_list(ferry *f, int way, int32_t tag, bool puts, bool ahead)
{
    const fy_mail_key *key = fy_mail_key_find(&f->tags.kept, way, 0, tag);
    int count = 0;
    if (key == NULL)
        return 0;
    /* The list is freed with its last item, so the loop does not look at it after that. */
    const fy_link *last = key->items.prev, *next = key->items.next;
    for (bool more = true; more;) {
        fy_item *item = ((const struct fy_item_place *)(const void *)next)->item;
        more = next != last;
        next = next->next;
        if (!puts || (is_plain_put(&item->packet->frame) && (ahead || is_oldest(item))))
            count += tags_run(f, item);
    }
    return count;
}

int fy_tags_run(ferry *f)
{
    f->tags.round++;
    if (!f->filtered)
        return run_list(f, 0, 0, false, false);
    int count = run_list(f, FY_MAIL_TAG, f->filter_tag, false, false);
    return count + run_list(f, FY_MAIL_TAG, FY_NO_TAG, true, false);
}

/* Whether a poll for one tag decides about a frame. A broadcast is passed on whatever its tag is.
 * The part for this rank then comes from this rank itself (request_broadcast.c). Requests of the
 * library keep their order with its other frames, which have no tag. */
static bool is_selected(const ferry *f, int source, const fy_frame *frame)
{
    uint32_t properties = properties_of(frame);
    if (frame->kind == FY_KIND_REQUEST_BROADCAST)
        return source == f->head.rank;
    if (frame->kind == FY_KIND_REQUEST && frame->handler <= FY_HANDLERS_OWN)
        return false;
    if ((properties & FY_FRAME_TAGGED) != 0)
        return true;
    if (frame->tag != FY_NO_TAG)
        return (properties & FY_FRAME_MAY_TAG) != 0;
    return (properties & FY_FRAME_WRITES) != 0 && fy_tags_has(&f->tags, source, FERRY_ANY_TAG);
}

/* A frame that reads memory must see the puts that were reported as arrived: carries out the kept
 * ones first. */
static void settle_puts(ferry *f, const fy_frame *frame)
{
    if ((properties_of(frame) & FY_FRAME_READS) != 0)
        (void)run_list(f, FY_MAIL_TAG, FY_NO_TAG, true, true);
}

fy_verdict fy_tags_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (!f->filtered && fy_tags_has(&f->tags, source, FERRY_ANY_TAG))
        return FY_LEAVE;
    if (!f->filtered || !is_selected(f, source, frame)) {
        settle_puts(f, frame);
        return fy_dispatch(f, source, frame);
    }
    if (frame->tag != f->filter_tag)
        return hold(f, source, frame);
    return fy_tags_has(&f->tags, source, frame->tag) ? FY_LEAVE : fy_dispatch(f, source, frame);
}

static __attribute__((cold)) int tell_full(ferry *f, int32_t tag)
{
    int error = fy_fail(f, FERRY_EAGAIN,
                        "poll_tag: %u requests with other tags are kept, and requests with tag %d "
                        "may be behind more of them; %zu bytes wait on this rank, the limit is %zu "
                        "(waiting_bytes, FERRY_WAITING_BYTES): poll for other tags too",
                        f->tags.count, tag, fy_waiting_bytes(f), f->options.waiting_bytes);
    if (!f->tags.told_full)
        fy_log(f, "%s", ferry_error_message(f));
    f->tags.told_full = true;
    return error;
}

int ferry_poll_tag(ferry *f, int32_t tag)
{
    int error = fy_check_outside(f, "poll_tag");
    if (error != 0)
        return error;
    uint64_t before = f->head.done;
    fy_doing doing = fy_account_enter(f, FY_DOING_MAIN);
    f->filtered = tag != FERRY_ANY_TAG;
    f->filter_tag = tag;
    f->tags.full = false;
    fy_progress(f, false);
    f->filtered = false;
    fy_account_leave(f, doing);
    int count = fy_poll_result(f, before);
    return count == 0 && f->tags.full ? tell_full(f, tag) : count;
}
