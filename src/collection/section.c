/* Messages to a section, and insertions. Both are requests to homes, which know the names of their
 * elements.
 *
 * A home sends the message to each element of the section by its name. So an element that moves
 * meanwhile gets it once. A message that finds no room waits in a list of the layer, and so do
 * later ones, to keep their order. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/run.h"
#include "core/work.h"

/* The data of a request to a home before the program's data. */
typedef struct fy_section_head {
    ferry_section section;
    ferry_message message;
} fy_section_head;

static fy_spread *spread_create(const ferry_message *message)
{
    fy_spread *s = fy_malloc(sizeof *s + message->size_bytes);
    if (s == NULL)
        return NULL;
    *s = (fy_spread){.message = *message, .rank = -1};
    s->message.data = message->size_bytes != 0 ? s + 1 : NULL;
    if (message->size_bytes != 0)
        memcpy(s + 1, message->data, message->size_bytes);
    return s;
}

static int unsent_add(ferry *f, int rank, ferry_object object, const ferry_message *message)
{
    fy_collections *all = fy_collections_of(f);
    fy_spread *s = spread_create(message);
    if (s == NULL) {
        fy_log(f, "collection: no memory for a message of %zu bytes: it is lost",
               message->size_bytes);
        return FERRY_ENOMEM;
    }
    s->rank = rank;
    s->object = object;
    if (all->unsent == NULL)
        all->unsent = s;
    else
        all->unsent_tail->next = s;
    all->unsent_tail = s;
    fy_layer_due(f, FY_LAYER_COLLECTION);
    fy_work_created(f, 1);
    return 0;
}

static bool is_refused(int error)
{
    return error == FERRY_EAGAIN || error == FERRY_ENOMEM;
}

/* Sends to the object, or to `rank` if there is none. */
static int send_now(ferry *f, int rank, ferry_object object, const ferry_message *message)
{
    fy_nowait_begin(f);
    int error = ferry_object_is_none(object) ? ferry_request_send(f, rank, message, NULL)
                                             : ferry_object_send(f, object, message, NULL);
    fy_nowait_end(f);
    return error;
}

/* Messages that were kept are sent first. */
static void send_or_keep(ferry *f, int rank, ferry_object object, const ferry_message *message)
{
    if (fy_collections_of(f)->unsent != NULL || is_refused(send_now(f, rank, object, message)))
        (void)unsent_add(f, rank, object, message);
}

void fy_post(ferry *f, ferry_object object, const ferry_message *message)
{
    send_or_keep(f, -1, object, message);
}

void fy_post_here(ferry *f, const ferry_message *message)
{
    send_or_keep(f, ferry_rank(f), (ferry_object){0}, message);
}

int fy_unsent_flush(fy_collections *all)
{
    int count = 0;
    while (all->unsent != NULL) {
        fy_spread *s = all->unsent;
        if (is_refused(send_now(all->f, s->rank, s->object, &s->message)))
            break;
        all->unsent = s->next;
        free(s);
        fy_work_finished(all->f, 1);
        count++;
    }
    return count;
}

static int64_t clamped(int64_t value)
{
    int64_t limit = INT64_C(1) << 60;
    return value > limit ? limit : value < -limit ? -limit : value;
}

/* A section without NULL, strides of 0 and far entries. */
static ferry_section section_of(const ferry_collection *c, const ferry_section *given)
{
    ferry_section s = {{{0}}, {{0}}, {{0}}};
    int64_t limit = INT64_C(1) << 60;
    for (int d = 0; d < FY_DIMS; d++) {
        bool used = d < c->options.dims;
        s.low.at[d] = given != NULL && used ? clamped(given->low.at[d]) : used ? -limit : 0;
        s.high.at[d] = given != NULL && used ? clamped(given->high.at[d]) : used ? limit : 0;
        s.stride.at[d] =
            given != NULL && used && given->stride.at[d] > 0 ? clamped(given->stride.at[d]) : 1;
        if (c->dense && used && s.high.at[d] >= c->extents[d])
            s.high.at[d] = c->extents[d] - 1;
        if (c->dense && used && s.low.at[d] < 0) /* to the first index of the stride from 0 on */
            s.low.at[d] += (-s.low.at[d] + s.stride.at[d] - 1) / s.stride.at[d] * s.stride.at[d];
    }
    return s;
}

static bool is_in(const ferry_section *s, ferry_index index)
{
    for (int d = 0; d < FY_DIMS; d++)
        if (index.at[d] < s->low.at[d] || index.at[d] > s->high.at[d] ||
            (index.at[d] - s->low.at[d]) % s->stride.at[d] != 0)
            return false;
    return true;
}

/* The number of indices in a section, or `limit` if there are more. */
static uint64_t points_of(const ferry_section *s, uint64_t limit)
{
    uint64_t points = 1;
    for (int d = 0; d < FY_DIMS; d++) {
        if (s->high.at[d] < s->low.at[d])
            return 0;
        uint64_t side = (uint64_t)((s->high.at[d] - s->low.at[d]) / s->stride.at[d]) + 1;
        if (side >= limit || (points *= side) >= limit)
            return limit;
    }
    return points;
}

/* Goes to the next index of a section. After the last it returns false. */
static bool step_index(const ferry_section *s, ferry_index *index)
{
    for (int d = FY_DIMS - 1; d >= 0; d--) {
        index->at[d] += s->stride.at[d];
        if (index->at[d] <= s->high.at[d])
            return true;
        index->at[d] = s->low.at[d];
    }
    return false;
}

/* Marks the places of the homes of the section's indices; all if there are many indices. */
static void mark_homes(const ferry_collection *c, const ferry_section *s, bool *homes)
{
    uint64_t limit = 4 * (uint64_t)c->ranks + 64, points = points_of(s, limit);
    for (int r = 0; r < c->ranks; r++)
        homes[r] = points == limit;
    if (points == limit || points == 0)
        return;
    ferry_index index = s->low;
    do {
        int home = fy_index_key(c, index) != 0 ? fy_index_home(c, index) : -1;
        if (home >= 0)
            homes[fy_collection_place(c, home)] = true;
    } while (step_index(s, &index));
}

/* Messages that were kept go first. In a handler, which may not wait for that: FERRY_EAGAIN. */
static int wait_for_kept(ferry *f)
{
    const fy_collections *all = fy_collections_of(f);
    while (all->unsent != NULL && !fy_in_handler(f))
        (void)ferry_wait(f, FERRY_FOREVER);
    return all->unsent == NULL ? 0
                               : fy_fail(f, FERRY_EAGAIN,
                                         "collection_send_section: earlier messages of this rank "
                                         "have found no room yet");
}

/* Sends a request to the homes with a mark. A call that has sent to one home must not fail. So a
 * request that finds no room is kept, and one that is lost is noted for ferry_collection_check. */
static int send_to_homes(ferry_collection *c, const bool *homes, const ferry_message *request)
{
    int sent = 0, missed = -1, error = 0;
    for (int place = 0; place < c->ranks; place++) {
        if (!homes[place])
            continue;
        int rank = c->members[place];
        int now = fy_collections_of(c->f)->unsent != NULL
                      ? FERRY_EAGAIN
                      : ferry_request_send(c->f, rank, request, NULL);
        if (is_refused(now) && sent != 0)
            now = unsent_add(c->f, rank, (ferry_object){0}, request);
        if (now != 0 && now != FERRY_EPEER && sent == 0)
            return now;
        sent += now == 0;
        if (now != 0) {
            error = now;
            missed = rank;
        }
    }
    if (sent != 0 && error != 0)
        fy_stray(c, "a message to a section did not reach rank %d: %s", missed,
                 ferry_strerror(error));
    return sent != 0 ? 0 : error;
}

static int check_strides(const ferry_collection *c, const ferry_section *section)
{
    for (int d = 0; section != NULL && d < c->options.dims; d++)
        if (section->stride.at[d] < 0)
            return fy_fail(c->f, FERRY_EINVAL,
                           "collection_send_section: stride %d is %lld; expected at least 1, or 0 "
                           "for 1",
                           d, (long long)section->stride.at[d]);
    return 0;
}

int ferry_collection_send_section(ferry_collection *c, const ferry_section *section,
                                  const ferry_message *message)
{
    int error = fy_collection_check_message(c, "collection_send_section", message);
    if (error == 0)
        error = check_strides(c, section);
    if (error != 0)
        return error;
    fy_section_head head = {.section = section_of(c, section), .message = *message};
    bool *homes = fy_calloc((size_t)c->ranks, sizeof *homes);
    unsigned char *data = fy_malloc(sizeof head + message->size_bytes);
    if (homes == NULL || data == NULL)
        error = fy_fail(c->f, FERRY_ENOMEM, "collection_send_section: no memory");
    if (error == 0) {
        mark_homes(c, &head.section, homes);
        head.message.data = NULL;
        memcpy(data, &head, sizeof head);
        if (message->size_bytes != 0)
            memcpy(data + sizeof head, message->data, message->size_bytes);
    }
    ferry_message request = {.handler = fy_collections_of(c->f)->spread,
                             .word_count = 1,
                             .words = {c->id},
                             .data = data,
                             .size_bytes = sizeof head + message->size_bytes};
    if (error == 0)
        error = wait_for_kept(c->f);
    if (error == 0)
        error = send_to_homes(c, homes, &request);
    free(homes);
    free(data);
    return error;
}

void fy_spread_take(ferry *f, int source, const ferry_message *request)
{
    ferry_collection *c = fy_collection_find(fy_collections_of(f), request->words[0]);
    fy_section_head head;
    (void)source;
    if (c == NULL)
        return;
    memcpy(&head, request->data, sizeof head);
    if (head.message.size_bytes != 0)
        head.message.data = (const unsigned char *)request->data + sizeof head;
    uint64_t points = points_of(&head.section, c->bound.count + 1);
    size_t index = 0;
    if (points > c->bound.count) {
        for (const fy_home_entry *b; (b = fy_table_next(&c->bound, &index)) != NULL;)
            if (b->object != 0 && is_in(&head.section, fy_key_index(c, b->key)))
                fy_post(f, (ferry_object){b->object}, &head.message);
        return;
    }
    ferry_index at = head.section.low;
    do {
        uint64_t key = points != 0 ? fy_index_key(c, at) : 0;
        const fy_home_entry *b = key != 0 ? fy_table_find(&c->bound, key) : NULL;
        if (b != NULL && b->object != 0)
            fy_post(f, (ferry_object){b->object}, &head.message);
    } while (points != 0 && step_index(&head.section, &at));
}

void fy_insert_run(ferry_collection *c, int source, const ferry_message *request)
{
    bool by_element = request->words[3] != 0;
    uint64_t key = request->words[1], round = request->words[2];
    char text[FY_TEXT_BYTES];
    const fy_home_entry *bound = fy_table_find(&c->bound, key);
    bool exists = bound != NULL && bound->object != 0;
    bool holds = !exists && bound != NULL && bound->leaving != NULL;
    int error = exists  ? 0
                : holds ? fy_insert_hold(c, bound, source, request)
                        : fy_element_make(c, key, round, request);
    if (holds && error == 0)
        return;
    if (error != 0)
        fy_stray(c, "element %s was not made for rank %d: %s",
                 fy_index_text(c, fy_key_index(c, key), text), source, ferry_error_message(c->f));
    bool made = !exists && error == 0;
    uint64_t hash = fy_birth_hash(key, round);
    if (made != by_element)
        fy_rounds_change(c, round, 0, made ? hash : 0 - hash);
    if (source == c->rank)
        fy_names_inserted(c, key);
}

void fy_insert_take(ferry *f, int source, const ferry_message *request)
{
    ferry_collection *c = fy_collection_find(fy_collections_of(f), request->words[0]);
    if (c != NULL)
        fy_insert_run(c, source, request);
}
