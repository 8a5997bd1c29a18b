/* Leave: a rank goes while the others stay, and no data, object or message is lost.
 *
 * 1. The rank says that it is leaving. Each other rank decides to send it no more objects, waits
 * until the objects in flight to it have gone, and answers. The answer says how many objects the
 * other rank has ever sent to it, because some may come after the answer.
 * 2. Its layers give their data, and all they know, to one successor.
 * 3. It names the successor, first to the successor itself. Each rank answers, and from then on
 * asks the successor instead.
 * 4. It handles the frames that came before the answers, and shuts its port (fy_member_ops.shut).
 * If a rank has joined meanwhile, the port does not shut, and that rank is asked too. Behind that
 * it handles what was sent before. Later frames are refused with FERRY_EPEER.
 *
 * A rank that joins meanwhile is asked like the others. The rank that has taken it in tells it
 * which successor has which handover. A successor may leave too, to a successor of its own. It has
 * answered step 1 of the first rank before. So a rank that leaves knows which ranks are leaving
 * already, and chooses another: the chain of successors ends. A successor that dies is replaced.
 * Application thread only. */
#ifndef FY_LEAVE_H
#define FY_LEAVE_H

#include "core/layer.h"
#include "port/port.h"

typedef enum fy_leave_step { FY_LEAVE_ASKS, FY_LEAVE_NAMES, FY_LEAVE_STEPS } fy_leave_step;

/* Made when the first rank leaves, in one allocation with the arrays to which it points. */
typedef struct fy_leaves {
    uint64_t *leaving; /* a bit per rank, this one included */
    uint64_t *waiting; /* the other ranks that have no answer yet */
    uint64_t *asked[FY_LEAVE_STEPS], *answered[FY_LEAVE_STEPS]; /* of this rank's own leaving */
    uint32_t *promised; /* the number of objects that each rank has ever sent here */
    uint32_t *last;     /* the last call that each leaving rank makes with the members */
    int waiting_count;
    bool scarce; /* something was not sent for lack of memory, and must be tried again */
} fy_leaves;

fy_verdict fy_leave_deliver(ferry *f, int source, const fy_frame *frame);

/* Answers the leaving ranks that can be answered now. */
void fy_leave_answer(ferry *f);

/* Tells `rank`, which has joined, which successor has which handover. */
void fy_leave_tell(ferry *f, int rank);

/* Tells of objects for which this leaving rank waits. */
void fy_leave_why(ferry *f, fy_why *why);

/* As ferry_leave, but does not free `f`. */
int fy_leave(ferry *f);

#endif
