/* Member: who is there, and how ranks come and go (peer.c, group.h). */
#include <ferry/member.h>

#include "base/error.h"
#include "core/fail.h"
#include "core/rank.h"
#include "core/work.h"

int ferry_member_count(const ferry *f)
{
    return f->collectives.group->size;
}

int ferry_member_rank(const ferry *f, int place)
{
    const fy_group *group = f->collectives.group;
    return place >= 0 && place < group->size ? fy_group_rank(group, place) : -1;
}

int ferry_member_place(const ferry *f, int rank)
{
    const fy_group *group = f->collectives.group;
    return rank >= 0 && rank < f->head.ranks ? fy_group_place(group, rank) : -1;
}

int ferry_spawn(ferry *f, int count, char *const argv[], int *first)
{
    int number, error;
    const char *wrong = count < 1                         ? "count is below 1"
                        : first == NULL                   ? "first is NULL"
                        : argv != NULL && argv[0] == NULL ? "argv names no program"
                                                          : NULL;
    if (wrong != NULL)
        return fy_fail(f, FERRY_EINVAL, "spawn: %s (count %d)", wrong, count);
    if (f->head.stays != NULL && (error = f->head.stays(f, count)) != 0)
        return error;
    if (f->head.ops->members.spawn_ranks == NULL)
        return fy_fail(f, FERRY_ENOTSUP, "spawn: not on port %s", f->head.ops->name);
    error = f->head.ops->members.spawn_ranks(f->head.port, count, argv, &number);
    if (error != 0)
        return fy_fail(f, error, "spawn: %s", fy_error_text());
    *first = number;
    fy_work_created(f, (uint64_t)count);
    for (; count > 0; count--)
        fy_set_add(f->peers.awaited, number++);
    return 0;
}

int ferry_leave(ferry *f)
{
    int error = f->head.stays != NULL ? f->head.stays(f, 0) : fy_check_outside(f, "leave");
    if (error == 0 && !f->info.leaves)
        error = fy_fail(f, FERRY_ENOTSUP, "leave: not on port %s, whose ranks end together",
                        f->head.ops->name);
    if (error == 0 && f->left)
        error = fy_fail(f, FERRY_ESTATE, "leave: this rank has left");
    if (error == 0)
        error = fy_leave(f);
    if (error != 0)
        return error;
    f->left = true;
    if (fy_trace_file_write(f) != 0)
        fy_log(f, "leave: %s", f->error_text);
    fy_ops_cancel(f);
    if (!f->kept_by_main)
        fy_rank_destroy(f);
    return 0;
}
