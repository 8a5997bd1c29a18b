/* Kinds of the collection layer's frames. */
#ifndef FY_COLLECTION_KINDS_H
#define FY_COLLECTION_KINDS_H

#include "core/core.h"

enum { FY_KIND_COLLECTION = FY_KINDS_OF_COLLECTION };

/* The `aux` of a frame says what it asks or tells. Word 0 is the collection. */
typedef enum fy_collection_frame {
    FY_ASK,     /* the home: the name of an index (key) */
    FY_ANSWER,  /* of the home: key, name; name 0: the element was removed */
    FY_FORGET,  /* of the home: a name that it told is no longer that of the index (key, name) */
    FY_UNBIND,  /* the home: the element of an index is removed (key, name) */
    FY_PARTIAL, /* the root: contributions of a rank (round, count, births), with values */
    FY_CHANGE,  /* the root: from a round on there are more or fewer elements (round, how many) */
    FY_RESULT,  /* a reduction is complete (round, how many values), with them; down a tree */
} fy_collection_frame;

#endif
