/* Store calls: the functions of a store, for this layer.
 *
 * An object on disk can migrate as the *place* of its image, if the other rank can read the file.
 * Then the store's pack sets `placed` of its record, and packs a description of the place. On the
 * other rank, `take` of fy_objects makes an object on disk of it. */
#ifndef FY_OBJECT_STORE_CALLS_H
#define FY_OBJECT_STORE_CALLS_H

#include "object/calls.h"

/* The calls of a store (src/store) for the objects of this rank. The application thread makes all.
 */
typedef struct fy_object_store {
    /* The data of `record` is here now. */
    void (*keep)(ferry *f, fy_record *record);
    /* Brings the data of `record`, which nothing else uses, to memory. FERRY_ESYSTEM: it could not,
     * and has logged the reason. */
    int (*fetch)(ferry *f, fy_record *record);
    /* This rank leaves. Whether the data of `record` can go to another rank. If not, it has logged
     * the reason, and that the data are lost. */
    bool (*spare)(ferry *f, fy_record *record);
    /* ferry_object_data of an object that is on disk: NULL, with an error text. */
    void *(*absent)(ferry *f, ferry_object object);
    void (*gone)(fy_record *record); /* `record`, which the store has, is freed */
    void (*progress)(ferry *f);      /* part of every poll */
    void (*end)(ferry *f);           /* the layer closes; all records are freed */
} fy_object_store;

#endif
