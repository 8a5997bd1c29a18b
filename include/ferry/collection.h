/* Collections: objects that a program addresses by an index, and steps of such objects.
 *
 * An element is an object with an index of 1 to 3 dimensions. A map says on which member of the job
 * an element begins. That rank, the home, knows the element's name.
 *
 * If an index has no element yet, messages to it wait until there is one. If its element was
 * removed, they fail at their senders. Insertions, removals and messages of one rank to one index
 * take effect in the order of its calls. While there are collections, ferry_leave and ferry_spawn
 * fail with FERRY_ESTATE. docs/guide/collections.md */
#ifndef FERRY_COLLECTION_H
#define FERRY_COLLECTION_H

#include <ferry/balance.h>
#include <ferry/collective.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects that are addressed by index. */
typedef struct ferry_collection ferry_collection;

/* An index; entries beyond the dimensions in use are 0. An entry is from -2^60 to 2^60 - 1 in one
 * dimension, from -2^29 to 2^29 - 1 in two, from -2^19 to 2^19 - 1 in three. */
typedef struct ferry_index {
    int64_t at[3];
} ferry_index;

/* An index of up to three dimensions, the rest 0. */
static inline ferry_index ferry_index_of(int64_t i, int64_t j, int64_t k)
{
    ferry_index index = {{i, j, k}};
    return index;
}

/* Whether both are the same. */
static inline bool ferry_index_equal(ferry_index a, ferry_index b)
{
    return a.at[0] == b.at[0] && a.at[1] == b.at[1] && a.at[2] == b.at[2];
}

/* An element, on the rank where it is. Handlers of messages to elements are registered with
 * ferry_object_handler_register; their `data` is a `ferry_element *`. The program changes what
 * `data` points to, and may replace `data`, which the type's `destroy` frees. */
typedef struct ferry_element {
    ferry_collection *collection;
    ferry_index index;
    ferry_object object; /* the name of the element; for ferry_object_move and the like */
    void *data;          /* what `make` or the type's `unpack` returned */
} ferry_element;

/* Where elements begin. FERRY_MAP_BLOCK, FERRY_MAP_CYCLIC and FERRY_MAP_CURVE need extents. */
typedef enum ferry_map {
    FERRY_MAP_DEFAULT, /* FERRY_MAP_BLOCK with extents, else FERRY_MAP_HASH */
    FERRY_MAP_BLOCK,   /* a box of indices for each rank */
    FERRY_MAP_CYCLIC,  /* the ranks in turn, the last dimension fastest */
    FERRY_MAP_CURVE,   /* equal pieces of a space-filling curve (Z order) */
    FERRY_MAP_HASH,    /* spread by a hash of the index */
} ferry_map;

/* Returns the rank on which the element of `index` begins: the same on every rank and in every
 * call. It makes no calls to Ferry. `ranks` is the number of the collection's members. The rank has
 * to be one of them. If ranks have gone, the members need not be 0 to `ranks` - 1: then give the
 * map their numbers (ferry_member_rank), as they are before ferry_collection_create, in `arg`. */
typedef int ferry_map_fn(void *arg, ferry_index index, int ranks);

/* Makes the data of an element that begins on this rank. `element->data` is NULL, and its object
 * has no name yet. `bytes` are those of ferry_collection_insert; NULL in ferry_collection_create.
 * It may send, and call ferry_step_next for the first step. It returns NULL if it cannot make the
 * data. */
typedef void *ferry_make_fn(ferry *f, ferry_element *element, void *arg, const void *bytes,
                            size_t size_bytes);

/* One message of a step. Lent until the step returns. */
typedef struct ferry_input {
    ferry_index from; /* the element that sent it */
    bool from_rank;   /* rank `source` sent it, not an element */
    int source;
    const ferry_message *message; /* its first two words and its data */
} ferry_input;

/* The messages and the values of a step. The messages stand in the order of ferry_step.from or,
 * without such a list, in the order of their senders' indices. So the order is the same in each
 * run. */
typedef struct ferry_inputs {
    uint64_t step; /* its number, from 0 */
    size_t count;
    const ferry_input *inputs;
    const void *reduced; /* the result of the reduction that the step needed; NULL: none */
    size_t reduced_count;
} ferry_inputs;

/* Runs a step of an element. If it does not call ferry_step_next, this was the element's last
 * step. */
typedef void ferry_step_fn(ferry *f, ferry_element *element, const ferry_inputs *inputs);

/* Describes a collection. It is the same on every rank. Zero is the default of each field. */
typedef struct ferry_collection_options {
    size_t size;        /* sizeof(ferry_collection_options) */
    int dims;           /* 1 to 3; 0 means 1 */
    int64_t extents[3]; /* ferry_collection_create makes the elements 0 to extents - 1 in each
                           dimension; all 0: it makes none, and any index may be inserted */
    const ferry_object_ops *ops; /* of an element's data */
    ferry_make_fn *make;
    void *make_arg;
    ferry_map map;
    ferry_map_fn *map_fn; /* not NULL: used in place of `map` */
    void *map_arg;
    ferry_step_fn *step;                  /* of elements with steps */
    const ferry_balance_options *balance; /* of each element; borrowed; NULL: defaults. The
                                             scheduler moves elements only after
                                             ferry_balance_enable(f, true) */
    bool fixed;                           /* the scheduler does not move elements */
    size_t value_bytes;                   /* not 0: reductions combine values of this size, */
    ferry_combine_fn *combine;            /* by this function, in any order */
    void *combine_arg;
} ferry_collection_options;

#define FERRY_COLLECTION_OPTIONS_DEFAULTS                                                          \
    {                                                                                              \
        sizeof(ferry_collection_options), 0, {0, 0, 0}, NULL, NULL, NULL, FERRY_MAP_DEFAULT, NULL, \
            NULL, NULL, NULL, false, 0, NULL, NULL                                                 \
    }

/* Makes a collection of the members, and on each the elements that begin there. Collective.
 * Handlers of elements may run before it returns on this rank. Copies `options`. Gives `*out`,
 * freed with ferry_collection_destroy or ferry_close. FERRY_EINVAL: an option is wrong, or the
 * ranks disagree. FERRY_ENOMEM: also when `make` gave NULL. If another rank fails, its error; the
 * message names the rank. FERRY_EPEER: a rank has died, and the collection may exist on others
 * (docs/guide/collections.md). Errors as ferry_allreduce. [app thread, not in handlers | polls |
 * may block] */
FERRY_API FERRY_MUST_USE int
ferry_collection_create(ferry *f, const ferry_collection_options *options, ferry_collection **out);

/* Waits as ferry_quiesce, destroys all elements, waits as ferry_quiesce again, and frees `c`.
 * Collective. Messages that wait for elements fail with FERRY_ECANCELED. If a ferry_quiesce fails,
 * its error is returned, and `c` is freed too. [app thread, not in handlers | polls | may block] */
FERRY_API int ferry_collection_destroy(ferry_collection *c);

/* Asks the home of `index` to make its element from `size_bytes` at `bytes`, which are borrowed. If
 * the index has an element, the call does nothing. `by` is the element whose handler makes the
 * call, or NULL. The new element takes part in reductions from the current one of `by` on. If `by`
 * is NULL, no reduction may run, and ferry_quiesce must end before the next one begins. If the home
 * cannot make it, ferry_collection_check says so.
 * FERRY_EINVAL: the index lies outside the extents. Else as ferry_request_send. [app thread,
 * handlers | may block outside handlers | polls when it blocks] */
FERRY_API FERRY_MUST_USE int ferry_collection_insert(ferry_collection *c, ferry_element *by,
                                                     ferry_index index, const void *bytes,
                                                     size_t size_bytes);

/* Destroys the element of `index` after the messages that this rank has sent to it. Later messages
 * to the index fail, until it is inserted again. If the index has no element yet, the call takes
 * effect when there is one. But if this rank inserts the index first, the removal has no effect,
 * and the rank's messages before the removal fail. An element may also destroy itself with
 * ferry_object_destroy. FERRY_ENOENT: this rank is the home, and the element was removed already.
 * [app thread, handlers | may block outside handlers | polls when it blocks] */
FERRY_API FERRY_MUST_USE int ferry_collection_remove(ferry_collection *c, ferry_index index);

/* Sends `message` to the element of `index`, wherever it is; as ferry_object_send. If the index has
 * no element yet, or this rank has to ask for its name, the data are copied and the message waits
 * here. Then the receipts of `track` name no object, and this rank. FERRY_ENOENT, also reported by
 * `track`: the element was removed. [app thread, handlers | may block and poll outside handlers] */
FERRY_API FERRY_MUST_USE int ferry_collection_send(ferry_collection *c, ferry_index index,
                                                   const ferry_message *message,
                                                   const ferry_track *track);

/* A box of indices with strides: low, low + stride, ... up to high. A stride of 0 means 1;
 * a negative one is refused (FERRY_EINVAL). */
typedef struct ferry_section {
    ferry_index low, high, stride;
} ferry_section;

/* Sends `message` once to each element of `section` (NULL: to all) that its home knows when the
 * message arrives there. Elements that move meanwhile get it too. Such messages of one rank arrive
 * in the order sent, but in no order with those of ferry_collection_send. The handler's `source` is
 * the home. Homes that have gone are left out, and ferry_collection_check reports it; FERRY_EPEER:
 * all have gone. Else errors as ferry_request_send; then nothing was sent. [app thread, handlers |
 * may block and poll outside handlers] */
FERRY_API FERRY_MUST_USE int ferry_collection_send_section(ferry_collection *c,
                                                           const ferry_section *section,
                                                           const ferry_message *message);

/* The element after `after` on this rank, in no particular order. Begin with NULL; NULL is returned
 * after the last. It leaves out elements whose handlers run, except the caller's own. Lends until
 * the next call that polls: until then the scheduler does not move the element. Do not create,
 * insert, move or destroy meanwhile. [app thread, handlers | never blocks] */
FERRY_API ferry_element *ferry_collection_next(ferry_collection *c, const ferry_element *after);

/* Returns the home of `index`: the rank where its element begins. FERRY_EINVAL: it lies outside the
 * extents. [app thread, handlers | never blocks] */
FERRY_API int ferry_collection_home(const ferry_collection *c, ferry_index index);

/* The rank that `c` belongs to. [app thread, handlers | never blocks] */
FERRY_API ferry *ferry_collection_rank(const ferry_collection *c);

/* Reductions. */

/* Where the result of a reduction goes, besides to the steps that wait for it. */
typedef enum ferry_reduced {
    FERRY_REDUCED_NOWHERE,
    FERRY_REDUCED_ELEMENT, /* a message to the element of `index` */
    FERRY_REDUCED_RANK,    /* a request handler on `rank` */
    FERRY_REDUCED_RANKS,   /* a request handler on every member of the collection */
} ferry_reduced;

/* The part of one element in a reduction. All fields but `values` are the same for all elements. */
typedef struct ferry_contribution {
    size_t size;               /* sizeof(ferry_contribution) */
    const void *values;        /* borrowed; with `count` 0 the reduction is a barrier */
    size_t count;              /* of values */
    ferry_type type;           /* of a value, unless the collection has `value_bytes` */
    ferry_reduction reduction; /* likewise; FERRY_SUM by default */
    ferry_reduced to;
    /* The handler of `to` gets the values as data, and the reduction's number as its first word. */
    ferry_handler handler;
    ferry_index index; /* with FERRY_REDUCED_ELEMENT: the element that gets the result */
    int rank;          /* with FERRY_REDUCED_RANK: the member that gets it */
} ferry_contribution;

#define FERRY_CONTRIBUTION_DEFAULTS                                                                \
    {                                                                                              \
        sizeof(ferry_contribution), NULL, 0, FERRY_DOUBLE, FERRY_SUM, FERRY_REDUCED_NOWHERE, {0},  \
            {{0, 0, 0}}, 0                                                                         \
    }

/* Adds the values of `element`, whose handler runs, to its next reduction. Reduction n is complete
 * when every element has made this call n + 1 times, on any rank. Values are combined in any order.
 * FERRY_ESTATE: a step of the element waits for its last reduction. [app thread, handlers | never
 * blocks] */
FERRY_API FERRY_MUST_USE int ferry_element_contribute(ferry_element *element,
                                                      const ferry_contribution *contribution);

/* Steps. */

/* The needs of a step. */
typedef struct ferry_step {
    size_t size;       /* sizeof(ferry_step) */
    uint32_t messages; /* how many messages with the step's number */
    /* Not NULL: the elements that send one message each. It has `messages` entries, and no index
     * twice. If `messages` is 0, the list is ignored. */
    const ferry_index *from;
    bool reduction;  /* also the result of the reduction to which the element contributed last */
    uint64_t number; /* of the step; 0: the next one. A larger number skips the steps between */
} ferry_step;

#define FERRY_STEP_DEFAULTS                                                                        \
    {                                                                                              \
        sizeof(ferry_step), 0, NULL, false, 0                                                      \
    }

/* Says what the next step of `element` needs. Call it in a handler or step of the element, or in
 * `make`. The first step has number 0. The step runs when all that it needs has arrived, as a task
 * of its own or in the task of the last message. FERRY_ESTATE: the element has a next step already,
 * or the collection has no `step`. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_step_next(ferry_element *element, const ferry_step *needs);

/* Sends `message` to step `number` of the element of `index` from `element` (NULL: from this rank).
 * The message has two words at most, and its handler is ignored. If it comes before its step, it
 * waits in the element. If it comes after its step, or the step does not need it,
 * ferry_collection_check reports an error. FERRY_ESTATE: the collection has no `step`. Else as
 * ferry_collection_send. [app thread, handlers |
 * may block and poll outside handlers] */
FERRY_API FERRY_MUST_USE int ferry_step_send(ferry_collection *c, const ferry_element *element,
                                             ferry_index index, uint64_t number,
                                             const ferry_message *message,
                                             const ferry_track *track);

/* Checks, after ferry_quiesce, that no step, message or reduction waits forever. Collective.
 * FERRY_ESTATE, on every rank: a step lacks messages, a message has no element or no step, or a
 * reduction is incomplete; the message names the element and what it misses. [app thread, not in
 * handlers | polls | may block] */
FERRY_API int ferry_collection_check(ferry_collection *c);

#ifdef __cplusplus
}
#endif
#endif
