/* Kinds of the collection layer's frames. */
#ifndef FY_COLLECTION_KINDS_H
#define FY_COLLECTION_KINDS_H

#include "core/layer.h"

enum { FY_KIND_COLLECTION = FY_KINDS_OF_COLLECTION };

/* The `aux` of a frame: its purpose. Word 0 is the collection, the next three are in
 * parentheses. */
typedef enum fy_collection_frame {
    FY_ASK,     /* to the home: send the name of this index (key, FY_ASK_...) */
    FY_ANSWER,  /* from the home: its name; 0 if it was removed (key, name, incarnation) */
    FY_FORGET,  /* from the home: this answer is no longer true (key, name) */
    FY_UNBIND,  /* to the home: the element of this index was removed (key, name, whether it has
                   ended) */
    FY_PARTIAL, /* to the root: a rank's part of a reduction (round). Data: fy_round_head, values */
    FY_CHANGE,  /* to the root: elements came or went in a round (round, how many, hashes) */
    FY_RESULT,  /* down a tree: the result of a reduction (round). Data as in FY_PARTIAL */
} fy_collection_frame;

enum {
    FY_ASK_INSERTS = 1, /* the source has asked, and will insert the index itself */
    FY_ASK_AGAIN = 2,   /* the source has had a name of this index */
};

#endif
