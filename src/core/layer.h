/* Layer: the part of a layer above core in the life of a rank, and the kinds of frames that belong
 * to it.
 *
 * Core calls the layers above through fy_layer_ops. src/core/layers.c lists them. */
#ifndef FY_LAYER_H
#define FY_LAYER_H

#include <stdio.h>

#include <ferry/core.h>

#include "base/shared.h"
#include "port/port.h"

/* The layers above core that keep state in a rank. */
typedef enum fy_layer {
    FY_LAYER_MEMORY,
    FY_LAYER_STORE, /* closes after the objects, which may be on its disk */
    FY_LAYER_OBJECT,
    FY_LAYER_BALANCE,
    FY_LAYER_MOVER,
    FY_LAYER_CELL,
    FY_LAYER_COLLECTION,
    FY_LAYER_WINDOW,
    FY_LAYERS
} fy_layer;

/* Frames have a kind, which says what they mean. A kind belongs to one layer. That layer defines
 * the number of the kind in a header of its own, and describes the kind in a constant table
 * (fy_kind_info). Core has the first numbers. Each layer above has a block of numbers. */
enum {
    FY_KINDS_OF_CORE = 16,
    FY_KINDS_OF_LAYER = 8,
    FY_KINDS_OF_MEMORY = FY_KINDS_OF_CORE + FY_LAYER_MEMORY * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_STORE = FY_KINDS_OF_CORE + FY_LAYER_STORE * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_OBJECT = FY_KINDS_OF_CORE + FY_LAYER_OBJECT * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_BALANCE = FY_KINDS_OF_CORE + FY_LAYER_BALANCE * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_MOVER = FY_KINDS_OF_CORE + FY_LAYER_MOVER * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_CELL = FY_KINDS_OF_CORE + FY_LAYER_CELL * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_COLLECTION = FY_KINDS_OF_CORE + FY_LAYER_COLLECTION * FY_KINDS_OF_LAYER,
    FY_KINDS_OF_WINDOW = FY_KINDS_OF_CORE + FY_LAYER_WINDOW * FY_KINDS_OF_LAYER,
    FY_KINDS = FY_KINDS_OF_CORE + FY_LAYERS * FY_KINDS_OF_LAYER,
};

/* Handles one frame of a kind; borrowed until it returns. */
typedef fy_verdict fy_kind_fn(ferry *f, int source, const fy_frame *frame);

/* Called before a frame is kept for a later poll, because it has another tag than the poll wants.
 * Tells the frame's source the event for which it waits, in memory reserved for one end. Removes
 * from the frame what need not be told again. False: the frame is not to be kept. */
typedef bool fy_hold_fn(ferry *f, int source, fy_frame *frame);

/* Properties of the frames of a kind for which core does more than hand them to their layer. */
enum {
    FY_FRAME_ASKS = 1,     /* its target may answer with more than the end of an operation */
    FY_FRAME_TAGGED = 2,   /* a poll for a tag selects among these frames */
    FY_FRAME_MAY_TAG = 4,  /* a poll for a tag selects among those of these frames with a tag */
    FY_FRAME_WRITES = 8,   /* writes memory; without a tag it stays after frames that are kept */
    FY_FRAME_READS = 16,   /* reads memory: frames that write and are kept run first */
    FY_FRAME_LENDABLE = 32 /* its data may be lent (lend.c) */
};

/* One kind of frame, as its layer describes it. */
typedef struct fy_kind_info {
    fy_kind_fn *deliver; /* those of the control lane run on either thread, under the lock that
                            fy_control_poll's caller holds; all others on the application thread */
    fy_hold_fn *hold;    /* may be NULL */
    const char *name;    /* in reports */
    uint32_t properties; /* FY_FRAME_... */
} fy_kind_info;

/* The lines that a rank reports about itself (why.h). */
typedef struct fy_why fy_why;

/* A layer's part in the life of a rank. Core keeps the constant list of them in src/core/layers.c.
 * That list and fy_layer are the places where core names the layers above. Any function may be
 * NULL. All on the application thread. */
typedef int fy_progress_fn(ferry *f);
typedef struct fy_layer_ops {
    fy_layer layer;
    uint32_t kind_count;                                 /* at most FY_KINDS_OF_LAYER */
    const fy_kind_info *kinds;                           /* by kind, from the layer's first */
    const char *name;                                    /* in reports */
    int (*open)(ferry *f, const ferry_options *options); /* in order; undone by close on failure */
    void (*close)(ferry *f);  /* in reverse order, after the last barrier */
    void (*drain)(ferry *f);  /* before the last barrier: stop helpers, give up nothing */
    fy_progress_fn *progress; /* part of every poll, unless it rests: returns how much it did */
    fy_progress_fn *settle;   /* part of polls that run no tasks: what frames may wait for */
    bool (*busy)(ferry *f);   /* whether a poll would find work that no frame will announce */
    uint64_t (*deadline)(
        ferry *f); /* when progress must run again without a frame; UINT64_MAX for never */
    void (*peer_gone)(ferry *f, int rank); /* a rank has gone; nothing more comes from it */
    void (*trace)(ferry *f, FILE *out);    /* adds lines to the file of FERRY_TRACE */
    /* Adds lines to what the rank tells of itself (why.h); the second on the helper thread, with
     * the control lock held, while a task runs. */
    void (*why)(ferry *f, fy_why *why);
    void (*why_helper)(ferry *f, fy_why *why);
    void (*members)(ferry *f);           /* others take objects than before: fy_peer_takes */
    bool (*settled)(ferry *f, int rank); /* nothing is in flight that `rank`, which is leaving,
                                            would have to pass on */
    bool (*leave)(ferry *f,
                  int successor); /* gives away what is here; whether all has gone. Is called
                                again until then, and once more when more has come */
} fy_layer_ops;

extern const fy_layer_ops fy_memory_layer, fy_object_layer, fy_balance_layer;
extern FY_SHARED const fy_layer_ops fy_mover_layer, fy_cell_layer, fy_collection_layer,
    fy_window_layer, fy_store_layer;

/* The description of a kind; NULL when no layer of this program has it. */
FY_SHARED const fy_kind_info *fy_kind_find(uint8_t kind);

/* Sets another function for a kind than its table names. Called by its layer's `open`. */
void fy_kind_set(ferry *f, uint8_t kind, fy_kind_fn *fn);

#endif
