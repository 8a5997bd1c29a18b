/* Failures of operations without a track, for the call that ends them.
 *
 * A window keeps the first failure towards each target that has had one, in the order in which they
 * happened. The call that ends the operations on a target takes its failure away. If there is no
 * memory for a record, the account of the target alone has the error; then the call does not name
 * the element. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "window/state.h"

typedef struct failure {
    fy_link link;
    int64_t index;
    int rank;
} failure;

void fy_window_note(ferry_window *w, int rank, int64_t index, int error)
{
    fy_window_peer *peer = &w->peers[rank];
    if (error == 0 || peer->error != 0)
        return;
    peer->error = (int16_t)error;
    failure *record = fy_malloc(sizeof(*record));
    if (record == NULL) {
        w->bare_failures++;
        return;
    }
    record->index = index;
    record->rank = rank;
    fy_list_insert(&w->failures, &record->link);
}

/* The cause for which an operation without a track fails. */
static const char *cause_text(int error)
{
    switch (error) {
    case FERRY_ETOOLONG:
        return "its value is larger than the memory given";
    case FERRY_EINVAL:
        return "its value has another size than the operation";
    case FERRY_ERANGE:
        return "the index lies before the array";
    case FERRY_EPEER:
        return "its rank is gone, or a rank died while it changed the element";
    case FERRY_ENOMEM:
        return "no memory for its value";
    default:
        return ferry_strerror(error);
    }
}

/* Whether a call that ends the operations on `which` ends those on `rank`. */
static bool ends(const ferry_window *w, int which, int rank)
{
    return which == FY_WINDOW_ALL ||
           (which == FY_WINDOW_STARTED ? w->peers[rank].started : which == rank);
}

/* Takes away the failure of a target. Sets the error text if there was no error `before`. */
static int take(ferry_window *w, const char *call, const failure *record, int before)
{
    const int error = w->peers[record->rank].error;
    w->peers[record->rank].error = 0;
    return before != 0
               ? before
               : fy_fail(w->f, error, "%s: an operation on element %lld of rank %d failed: %s",
                         call, (long long)record->index, record->rank, cause_text(error));
}

/* The same without a record. */
static int take_bare(ferry_window *w, const char *call, int rank, int before)
{
    const int error = w->peers[rank].error;
    w->peers[rank].error = 0;
    w->bare_failures--;
    return before != 0 ? before
                       : fy_fail(w->f, error, "%s: an operation on rank %d failed: %s", call, rank,
                                 cause_text(error));
}

int fy_window_report(ferry_window *w, const char *call, int which, int error)
{
    for (fy_link *link = w->failures.next, *next; link != &w->failures; link = next) {
        failure *record = (failure *)(void *)link;
        next = link->next;
        if (!ends(w, which, record->rank))
            continue;
        error = take(w, call, record, error);
        fy_list_remove(link);
        free(record);
    }
    for (int rank = 0; rank < w->ranks && w->bare_failures > 0; rank++)
        if (w->peers[rank].error != 0 && ends(w, which, rank))
            error = take_bare(w, call, rank, error);
    return error;
}

void fy_window_failures_drop(ferry_window *w)
{
    while (!fy_list_empty(&w->failures)) {
        fy_link *link = w->failures.next;
        fy_list_remove(link);
        free(link);
    }
}
