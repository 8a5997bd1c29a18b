/* Work: application work in the sense of ferry_quiesce.
 *
 * Everything that is created must be finished on some rank. A message counts as created when it is
 * sent. It counts as finished when its handler has returned, or when it has failed. */
#ifndef FY_WORK_H
#define FY_WORK_H

#include "base/shared.h"
#include "core/head.h"

/* Writes that this rank is not at rest any more. */
FY_SHARED void fy_rest_end(ferry *f);

/* Called before this rank creates work, or sends a message that may be work: others may believe
 * that it has none. [application thread] */
static inline void fy_work_stirs(ferry *f)
{
    if (__builtin_expect(fy_head_of(f)->at_rest != 0, 0))
        fy_rest_end(f);
}

/* [application thread] */
static inline void fy_work_created(ferry *f, uint64_t count)
{
    fy_work_stirs(f);
    ((fy_head *)(void *)f)->work_created += count;
}

static inline void fy_work_finished(ferry *f, uint64_t count)
{
    ((fy_head *)(void *)f)->work_finished += count;
}

/* As fy_work_created, for work that is about to be sent. [either thread] */
void fy_work_shipped(ferry *f, uint64_t count);

/* `count` units of work go to another rank, or have come from it, in addition to what the other
 * calls count. They are finished on one rank and created on the other. If either rank dies, its
 * share can be told from the rest. FERRY_ENOMEM: not counted. [application thread] */
FY_SHARED int fy_work_leaves(ferry *f, int rank, uint64_t count);
FY_SHARED int fy_work_arrives(ferry *f, int rank, uint64_t count);

/* fy_work_goes: a message was sent to `rank`, which has a record, and is work until it arrives.
 * fy_work_comes: it has arrived from `rank`, and its work is finished. FERRY_ENOMEM: nothing was
 * counted, so the frame must come again. [application thread] */
void fy_work_goes(ferry *f, int rank);
int fy_work_comes(ferry *f, int rank);

/* Sends a frame to `rank`. It counts as work until its handler calls fy_work_comes, so no
 * quiescence ends before. FERRY_EPEER, FERRY_ENOMEM: nothing is counted. [application thread] */
FY_SHARED int fy_send_as_work(ferry *f, int rank, const fy_frame *frame);

/* An object has moved to `rank`, with `count` units of work (fy_work_leaves). The second function:
 * an object has come from `rank`, which has a record. FERRY_ENOMEM: not counted. */
int fy_move_leaves(ferry *f, int rank, uint64_t count);
void fy_move_arrives(ferry *f, int rank);

/* How many quiescences have ended. [application thread] */
FY_SHARED uint64_t fy_quiesced(const ferry *f);

#endif
