/* Lending: large data of a tracked request or message that are in the shared heap are not copied.
 * The frame names them, and the target reads them where they are. It tells the end of the operation
 * when it needs them no more: then submitted is reported, and completed after it. The target
 * copies data that it keeps for later.
 *
 * An operation that was cancelled or has timed out still lends its data: submitted comes when its
 * end does, or when the target has died, and tells that nobody reads them any more. */
#include <string.h>

#include "core/fail.h"
#include "core/kinds.h"
#include "core/operation.h"
#include "core/outgoing.h"
#include "core/rank.h"

/* Data of this size or more are worth lending. */
enum { LOAN_MIN_BYTES = 4096 };

bool fy_may_lend(const ferry *f, int rank, const void *data, size_t size_bytes, uint32_t op)
{
    return size_bytes >= LOAN_MIN_BYTES && op != 0 && (op & FY_OP_ON_ARRIVAL) == 0 &&
           rank != f->head.rank && fy_mail_marks(f, rank) != NULL &&
           fy_mail_is_shared(f, data, size_bytes);
}

void fy_lend(ferry *f, fy_frame *frame, fy_loan *loan)
{
    fy_op_lent(f, frame->op);
    *loan = (fy_loan){(uintptr_t)frame->data, frame->size_bytes, frame->kind};
    frame->kind = FY_KIND_LENT;
    frame->data = loan;
    frame->size_bytes = sizeof(*loan);
}

fy_verdict fy_lent_deliver(ferry *f, int source, const fy_frame *frame)
{
    fy_loan loan = {0};
    if (frame->size_bytes == sizeof(loan))
        memcpy(&loan, frame->data, sizeof(loan));
    fy_frame real = *frame;
    real.kind = (uint8_t)loan.kind;
    real.data = (const void *)(uintptr_t)loan.address;
    real.size_bytes = loan.size_bytes;
    real.block = false;
    const fy_kind_info *info = loan.kind < FY_KINDS ? fy_kind_find(real.kind) : NULL;
    if (info != NULL && (info->properties & FY_FRAME_LENDABLE) != 0 &&
        fy_mail_is_shared(f, real.data, real.size_bytes))
        return fy_data_deliver(f, source, &real);
    fy_bad_frame(f, source, frame, "data that are lent");
    return FY_TAKEN;
}
