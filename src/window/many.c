/* Operations on many elements: each element is an operation like any other.
 *
 * With a track they are parts of a group, which ends the caller's operation when the last part
 * ends. If the program gives the operation up, or the call fails half-way, the parts that have not
 * ended are silenced. */
#include "base/alloc.h"
#include "core/fail.h"
#include "core/operation.h"
#include "window/state.h"

void fy_window_group_end(fy_window_group *group, int error)
{
    group->error = group->error == 0 ? error : group->error;
    if (--group->waiting > 0)
        return;
    fy_op_end(group->f, group->op, group->error);
    free(group);
}

static void silence(fy_window_group *group)
{
    group->op = 0;
    for (size_t i = 0; i < group->count; i++)
        if (group->parts[i] != NULL)
            fy_window_op_silence(group->parts[i]);
}

static void group_gone(ferry *f, void *arg, uint32_t name, int error)
{
    (void)f, (void)name, (void)error;
    silence(arg);
}

/* The elements of a call: `next` makes the action for one of them. */
typedef struct many {
    const char *name;
    int rank;
    size_t count;
    const void *pieces; /* of the vector forms */
    const char *source; /* of the strided ones */
    char *target;
    const ferry_window_range *range;
    void (*next)(const struct many *m, size_t i, fy_action *out);
} many;

static int begin_group(ferry_window *w, const many *m, const ferry_track *track,
                       fy_window_group **out)
{
    fy_window_group *group = m->count > (SIZE_MAX - sizeof(*group)) / sizeof(group->parts[0])
                                 ? NULL
                                 : fy_malloc(sizeof(*group) + m->count * sizeof(group->parts[0]));
    if (group == NULL)
        return fy_fail(w->f, FERRY_ENOMEM, "%s: no memory for %zu elements", m->name, m->count);
    *group = (fy_window_group){.f = w->f, .waiting = 1};
    size_t size_bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        fy_action what = {0};
        m->next(m, i, &what);
        size_bytes += what.size_bytes;
    }
    int error = fy_op_start(w->f, track, m->rank, 0, size_bytes, &group->op);
    if (error != 0) {
        free(group);
        return error;
    }
    if (group->op != 0)
        fy_op_own(w->f, group->op, group_gone, group);
    fy_op_aside(w->f, group->op);
    *out = group;
    return 0;
}

static int many_run(ferry_window *w, const many *m, const ferry_track *track)
{
    fy_window_group *group = NULL;
    int error = fy_window_check_epoch(w, m->name, m->rank);
    if (error == 0 && track != NULL)
        error = begin_group(w, m, track, &group);
    if (error != 0)
        return error;
    for (size_t i = 0; i < m->count && error == 0; i++) {
        fy_action what = {0};
        m->next(m, i, &what);
        error = fy_window_part(w, m->name, m->rank, &what, group);
    }
    if (error != 0 && group != NULL) {
        fy_op_drop(w->f, group->op);
        silence(group);
    }
    if (group != NULL)
        fy_window_group_end(group, error);
    return error;
}

static void put_piece(const many *m, size_t i, fy_action *out)
{
    const ferry_window_put_piece *piece = (const ferry_window_put_piece *)m->pieces + i;
    *out = (fy_action){.verb = FY_WINDOW_PUT,
                       .index = piece->index,
                       .value = piece->value.data,
                       .size_bytes = piece->value.data == NULL ? 0 : piece->value.size_bytes};
}

int ferry_window_put_vector(ferry_window *w, int rank, const ferry_window_put_piece *pieces,
                            size_t count, const ferry_track *track)
{
    static const char name[] = "window_put_vector";
    if (pieces == NULL && count > 0)
        return fy_fail(w->f, FERRY_EINVAL, "%s: no pieces given", name);
    const many m = {
        .name = name, .rank = rank, .count = count, .pieces = pieces, .next = put_piece};
    return many_run(w, &m, track);
}

static void get_piece(const many *m, size_t i, fy_action *out)
{
    const ferry_window_get_piece *piece = (const ferry_window_get_piece *)m->pieces + i;
    *out = (fy_action){.verb = FY_WINDOW_GET,
                       .index = piece->index,
                       .target = piece->target.data,
                       .room_bytes = piece->target.room_bytes,
                       .size_out = piece->target.size_bytes};
}

int ferry_window_get_vector(ferry_window *w, int rank, const ferry_window_get_piece *pieces,
                            size_t count, const ferry_track *track)
{
    static const char name[] = "window_get_vector";
    if (pieces == NULL && count > 0)
        return fy_fail(w->f, FERRY_EINVAL, "%s: no pieces given", name);
    for (size_t i = 0; i < count; i++)
        if (pieces[i].target.data == NULL && pieces[i].target.room_bytes > 0)
            return fy_fail(w->f, FERRY_EINVAL, "%s: piece %zu has no place for the value", name, i);
    const many m = {
        .name = name, .rank = rank, .count = count, .pieces = pieces, .next = get_piece};
    return many_run(w, &m, track);
}

static int64_t index_at(const ferry_window_range *range, size_t i)
{
    return range->first + range->step * (int64_t)i;
}

/* Refuses a range whose indices or addresses do not exist. */
static int check_range(const ferry_window *w, const char *name, const ferry_window_range *range,
                       const void *data)
{
    int64_t index, bytes;
    if (range == NULL || (data == NULL && range->count > 0 && range->value_bytes > 0))
        return fy_fail(w->f, FERRY_EINVAL, "%s: no %s given", name,
                       range == NULL ? "range" : "data");
    if (range->count > INT64_MAX ||
        __builtin_mul_overflow(range->step, (int64_t)range->count, &index) ||
        __builtin_add_overflow(index, range->first, &index) ||
        __builtin_mul_overflow((int64_t)range->data_step_bytes, (int64_t)range->count, &bytes))
        return fy_fail(w->f, FERRY_EINVAL,
                       "%s: %zu elements from %lld in steps of %lld leave the indices or the "
                       "addresses",
                       name, range->count, (long long)range->first, (long long)range->step);
    return 0;
}

static void put_step(const many *m, size_t i, fy_action *out)
{
    *out = (fy_action){.verb = FY_WINDOW_PUT,
                       .index = index_at(m->range, i),
                       .value = m->source + m->range->data_step_bytes * (ptrdiff_t)i,
                       .size_bytes = m->range->value_bytes};
}

static void get_step(const many *m, size_t i, fy_action *out)
{
    const ferry_window_range *range = m->range;
    *out = (fy_action){.verb = FY_WINDOW_GET,
                       .index = index_at(range, i),
                       .target = m->target + range->data_step_bytes * (ptrdiff_t)i,
                       .room_bytes = range->value_bytes,
                       .size_out = range->sizes == NULL ? NULL : range->sizes + i};
}

/* Runs `m`, which lacks the number of its elements. */
static int run_range(ferry_window *w, many m, const void *data, const ferry_track *track)
{
    int error = check_range(w, m.name, m.range, data);
    if (error != 0)
        return error;
    m.count = m.range->count;
    return many_run(w, &m, track);
}

int ferry_window_put_strided(ferry_window *w, int rank, const ferry_window_range *range,
                             const void *data, const ferry_track *track)
{
    const many m = {.name = "window_put_strided",
                    .rank = rank,
                    .source = data,
                    .range = range,
                    .next = put_step};
    return run_range(w, m, data, track);
}

int ferry_window_get_strided(ferry_window *w, int rank, const ferry_window_range *range, void *data,
                             const ferry_track *track)
{
    const many m = {.name = "window_get_strided",
                    .rank = rank,
                    .target = data,
                    .range = range,
                    .next = get_step};
    return run_range(w, m, data, track);
}
