/* The cell layer of a rank: opening, and its part in every poll. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cell/change.h"
#include "core/fail.h"
#include "core/why.h"

/* Handlers that one poll runs. */
enum { HANDLER_BUDGET = 16 };

static void find_boards(fy_cells *c)
{
    for (int rank = 0; c->shared && rank < ferry_ranks(c->f); rank++)
        c->boards[rank] = c->ops->heap.board(c->port, rank);
    c->board = c->boards[ferry_rank(c->f)];
}

static uint8_t own_format(void)
{
    const uint16_t probe = 1;
    bool big = *(const uint8_t *)&probe == 0;
    return (uint8_t)(FY_FORMAT_KNOWN | (big ? FY_FORMAT_BIG : 0) |
                     (sizeof(long) == 4 ? FY_FORMAT_LONG4 : 0));
}

/* Opens the shared part. All private memory exists already. */
static int open_board(fy_cells *c)
{
    fy_port_info info;
    c->ops->transport.query(c->port, &info);
    c->shared = c->ops->heap.board != NULL && c->ops->heap.alloc != NULL && info.shared_bytes != 0;
    find_boards(c);
    if (c->board == NULL) {
        c->shared = false;
        c->board = fy_aligned_alloc(64, sizeof(*c->board));
        if (c->board == NULL)
            return FERRY_ENOMEM;
        memset(c->board, 0, sizeof(*c->board));
        c->boards[info.rank] = c->board;
    }
    c->place = c->shared ? (uint32_t)info.rank : 0;
    c->places = c->shared ? (uint32_t)info.ranks : 1;
    c->self = c->place + 1;
    /* A rank that joins may take the heap of a rank that has gone. Different starts give their
     * parcels different names. */
    c->generation = (uint64_t)c->place << 12;
    c->contents = (uint64_t)(c->place + 1) << 48;
    size_t header = offsetof(fy_parcel, holds) + c->places * sizeof(uint16_t);
    c->header_bytes =
        (uint32_t)((header + FY_PARCEL_BYTES - 1) / FY_PARCEL_BYTES) * FY_PARCEL_BYTES;
    c->start = info.shared_start;
    c->bytes = info.shared_bytes;
    c->crowded = info.crowded;
    c->intent = &c->board->intent;
    c->board->format = own_format();
    c->formats[info.rank] = own_format();
    if (c->ops->members.changes != NULL) {
        c->changes = c->ops->members.changes(c->port);
        /* One less than now: so the first look finds ranks that have gone before this one opened.
         * relaxed: fy_cells_look acquires. */
        c->changes_seen = atomic_load_explicit(c->changes, memory_order_relaxed) - 1;
    }
    return 0;
}

static void close_cells(ferry *f)
{
    fy_cells *c = fy_cells_of(f);
    fy_pending_fini(c);
    fy_remote_fini(c);
    if (c->board != NULL && !c->shared) {
        fy_parcels_fini(c);
        free(c->board);
    }
    if (c->names.slots != NULL)
        fy_table_fini(&c->names);
    if (c->cached.slots != NULL)
        fy_table_fini(&c->cached);
    free(c->boards);
    free(c->gone);
    free(c->formats);
    free(c->free_indices);
    free(c->marked);
    free(c);
    fy_layer_state_set(f, FY_LAYER_CELL, NULL);
}

static int open_cells(ferry *f, const ferry_options *options)
{
    (void)options;
    size_t ranks = (size_t)ferry_ranks(f);
    fy_cells *c = fy_calloc(1, sizeof(*c));
    if (c == NULL)
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the cell layer");
    c->f = f;
    c->port = fy_port_of(f);
    c->ops = c->port->ops;
    c->floor = INT64_MIN;
    fy_list_init(&c->pending);
    fy_list_init(&c->fronts);
    fy_layer_state_set(f, FY_LAYER_CELL, c);
    c->boards = fy_calloc(ranks, sizeof(*c->boards));
    c->gone = fy_calloc(ranks, 1);
    c->formats = fy_calloc(ranks, 1);
    if (c->boards == NULL || c->gone == NULL || c->formats == NULL ||
        fy_table_init(&c->names, sizeof(uint64_t)) != 0 ||
        fy_table_init(&c->cached, sizeof(fy_cached)) != 0 ||
        fy_table_init(&c->lines, sizeof(fy_cell_line)) != 0 || open_board(c) != 0) {
        close_cells(f);
        return fy_fail(f, FERRY_ENOMEM, "open: no memory for the cell layer");
    }
    fy_layer_watch(f, &c->board->attention);
    return 0;
}

static int cells_progress(ferry *f)
{
    fy_cells *c = fy_cells_of(f);
    int count = c->news;
    c->news = false;
    /* relaxed: fy_cells_look acquires */
    if (c->changes != NULL &&
        atomic_load_explicit(c->changes, memory_order_relaxed) != c->changes_seen)
        (void)fy_cells_look(c); /* it is no work of the program, so it does not count */
    /* acquire: pairs with the release in fy_marks_check and ask */
    if (atomic_load_explicit(&c->board->attention, memory_order_acquire) != 0) {
        fy_lock_answer(c, NULL);
        count += fy_marks_run(c, INT64_MIN, HANDLER_BUDGET);
    }
    if (!fy_list_empty(&c->pending))
        count += fy_pending_advance(c);
    if (c->awaited != NULL && fy_queue_ready(c->awaited, c->awaited_kind))
        count++;
    if (count == 0 && !c->news && c->awaited == NULL && fy_list_empty(&c->pending))
        fy_layer_rest(f, FY_LAYER_CELL);
    return count;
}

static bool cells_busy(ferry *f)
{
    fy_cells *c = fy_cells_of(f);
    /* relaxed: the next poll acquires */
    if (c->news || atomic_load_explicit(&c->board->attention, memory_order_relaxed) != 0)
        return true;
    if (c->awaited != NULL && !fy_queue_await(c, c->awaited, c->awaited_kind))
        return true;
    return !fy_list_empty(&c->pending) && fy_pending_would_miss(c);
}

/* Operations that are reported one by one. */
enum { WAITS_SHOWN = 8 };

/* Names no rank as awaited: any rank may add or take a parcel. */
static void tell_cell(fy_why *why, fy_cell_kind kind, ferry_cell cell)
{
    static const char *const names[FY_CELL_KINDS] = {
        [FY_CELL_ENQ] = "ferry_cell_enqueue waits for room in",
        [FY_CELL_DEQ] = "ferry_cell_dequeue waits for a parcel in",
        [FY_CELL_READ] = "ferry_cell_read waits for a parcel in",
        [FY_CELL_WRITE] = "ferry_cell_write waits for",
        [FY_CELL_CLEAR] = "ferry_cell_clear waits for",
        [FY_CELL_COUNT] = "ferry_cell_count waits for",
    };
    fy_why_line(why, "%s cell %d of rank %d", names[kind], cell.number, cell.rank);
}

static void cells_why(ferry *f, fy_why *why)
{
    const fy_cells *c = fy_cells_of(f);
    int shown = 0;
    if (c->awaited != NULL)
        tell_cell(why, c->awaited_kind, c->awaited_cell);
    for (const fy_link *link = c->pending.next; link != &c->pending; link = link->next) {
        const fy_pending *p = (const fy_pending *)(const void *)link;
        if (p->source < 0 && shown++ < WAITS_SHOWN)
            tell_cell(why, p->kind, p->cell);
    }
    if (shown > WAITS_SHOWN)
        fy_why_line(why, "and %d more operations on cells wait", shown - WAITS_SHOWN);
}

static const fy_kind_info kind = {fy_cell_deliver, NULL, "cell", 0};

const fy_layer_ops fy_cell_layer = {.layer = FY_LAYER_CELL,
                                    .name = "cell",
                                    .kinds = &kind,
                                    .kind_count = 1,
                                    .open = open_cells,
                                    .close = close_cells,
                                    .progress = cells_progress,
                                    .busy = cells_busy,
                                    .why = cells_why};
