/* How error texts name calls. */
#include "core/collective.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/fail.h"
#include "core/loss.h"

const char *fy_call_name(const fy_collective_call *call)
{
    unsigned kind = call->what & 0xff;
    if (call->what & (FY_CALL_CLOSES | FY_CALL_QUIESCES))
        return call->what & FY_CALL_QUIESCES ? "ferry_quiesce" : "ferry_close";
    if (call->what & FY_CALL_PHASE)
        return "ferry_balance_enable";
    return kind <= FERRY_ALLTOALLV ? fy_collective_kinds[kind].name : "?";
}

void fy_call_describe(const fy_collective_call *call, char *text, size_t size)
{
    static const char *const types[] = {"double", "float", "int32", "int64", "uint64", "byte"};
    static const char *const reductions[] = {"replace", "sum", "min", "max",
                                             "product", "and", "or",  "xor"};
    unsigned kind = call->what & 0xff, type = call->what >> FY_CALL_TYPE_SHIFT & 0xff;
    unsigned reduction = call->what >> FY_CALL_REDUCTION_SHIFT & 0xff;
    if (call->what & FY_CALL_RETURNED) {
        (void)snprintf(text, size, "returned from its main function");
        return;
    }
    if (call->what & FY_CALL_PHASE) {
        const uint32_t rest = (uint32_t)(call->what >> FY_CALL_ROOT_SHIFT);
        (void)snprintf(text, size, "called %s (%s) with scheduler \"%.8s%.4s\"", fy_call_name(call),
                       call->what & FY_CALL_ON ? "on" : "off", (const char *)&call->size_bytes,
                       (const char *)&rest);
        return;
    }
    int length = snprintf(text, size, "called %s", fy_call_name(call));
    if (fy_collective_flags(call->what) & FY_COMBINES)
        length += snprintf(text + length, size - (size_t)length, " (%s of %s)",
                           reduction <= FERRY_XOR ? reductions[reduction] : "program's operation",
                           type <= FERRY_BYTE ? types[type] : "program's values");
    if (kind != FERRY_BARRIER && (fy_collective_flags(call->what) & FY_VARIES) == 0)
        length += snprintf(text + length, size - (size_t)length, " of %" PRIu64 " bytes",
                           call->size_bytes);
    if (fy_collective_is_rooted(kind))
        (void)snprintf(text + length, size - (size_t)length, ", root %" PRIu64,
                       call->what >> FY_CALL_ROOT_SHIFT);
}

int fy_collective_fail(ferry *f, const fy_group *group, uint32_t number, int error,
                       const char *format, ...)
{
    char text[FY_REASON_BYTES + 64];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return group->id == 0
               ? fy_fail(f, error, "collective %" PRIu32 ": %s", number, text)
               : fy_fail(f, error, "collective %" PRIu32 " of a group of %d ranks, first %d: %s",
                         number, group->size, group->ranks[0], text);
}
