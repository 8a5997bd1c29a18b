/* Objects: application data with a global name that stays valid wherever the data moves.
 *
 * A `ferry_object` (the papers' mobile pointer) is one word, valid on every rank, and may travel in
 * messages. Each rank keeps a lazy directory of best guesses; messages are forwarded and the sender
 * learns. Messages from one rank to one object are handled in the order sent, across any number of
 * migrations. A message to an object that no longer exists fails at its sender. Handlers of one
 * object never run at the same time. prema.txt 4.2, C. */
#ifndef FERRY_OBJECT_H
#define FERRY_OBJECT_H

#include <ferry/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether `object` is all zero, which names no object. */
static inline bool ferry_object_is_none(ferry_object object)
{
    return object.word == 0;
}

/* Whether both name the same object. */
static inline bool ferry_object_equal(ferry_object a, ferry_object b)
{
    return a.word == b.word;
}

/* A type of objects, known to every rank by the same number. */
typedef struct ferry_object_type {
    uint16_t index;
} ferry_object_type;

/* How the library moves objects of a type. Callbacks get the rank and the object's data.
 * `packed_size` and `pack` may run on the helper thread while a task of ANOTHER object runs: they
 * touch their object alone. The others run on the application thread. prema.txt 5.2.2. */
typedef struct ferry_object_ops {
    size_t size; /* sizeof(ferry_object_ops) */
    const char *name;
    /* Bytes that `pack` will write. */
    size_t (*packed_size)(ferry *f, const void *data);
    /* Writes the object to `buffer` of the size asked for, 8-byte aligned. Does not free `data`. */
    void (*pack)(ferry *f, const void *data, void *buffer, size_t size_bytes);
    /* Makes the object again from the buffer, which is gone afterwards. NULL: it could not, such as
     * without memory. Then it is called again in each poll. After 10 s the job ends (abort, with a
     * line that says so), since the object would be lost. */
    void *(*unpack)(ferry *f, ferry_object object, const void *buffer, size_t size_bytes);
    /* Frees `data`, after a migration has left (ferry_object_locate says where to) or when the
     * object is destroyed (FERRY_ENOENT there). */
    void (*destroy)(ferry *f, void *data);
    /* Load of one pending task of the object, in seconds or any unit used throughout; what is
     * negative or not finite counts as 0. NULL: every task counts what ferry_balance_add was told.
     * Called when a message comes, when the object comes to a rank, and after each task of the
     * object for all waiting tasks. If more than 16 wait, it is called 16 times per task. Calls
     * nothing of Ferry's; may run while the object's own handler does. */
    double (*load)(ferry *f, const void *data, const ferry_message *message);
    /* How hard the object is to move, in any unit; NULL: what ferry_balance_add was told. As
     * `priority`, it calls nothing of Ferry's, may run on the helper thread while a task of another
     * object runs, and returns at once. */
    double (*granularity)(ferry *f, const void *data);
    /* How much the object wants to be on `rank`, for schedulers that heed it: an entry of the
     * papers' priority vector. `load` is that of all its pending tasks; `dependencies` how many of
     * the objects it depends on (ferry_balance_add) are there, by best guess. NULL: the static
     * priorities, else load * (1 + dependencies). */
    double (*priority)(ferry *f, const void *data, int rank, double granularity, double load,
                       uint32_t dependencies);
    uint32_t flags; /* FERRY_OBJECT_SHARED or 0 */
    /* For data in one block without pointers into it, as of most small objects: how long it is.
     * Then the first four callbacks may be NULL: the block is copied, and freed with free (of
     * FERRY_OBJECT_SHARED with ferry_free). One of another length each time has `packed_size`
     * instead. */
    size_t flat_bytes;
} ferry_object_ops;

#define FERRY_OBJECT_OPS_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_object_ops), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0             \
    }

/* The data, with all that it points to, stands in the shared heap (ferry_alloc). Within a node such
 * an object migrates by its pointer, in the same time for any size, and none of packed_size, pack,
 * unpack and destroy is called for that. Elsewhere, and for data that is not in the heap, they are.
 */
#define FERRY_OBJECT_SHARED 1u

/* Registers a type. Every rank registers the same types in the same order. If an object comes to a
 * rank before its type is registered there, it waits. If that rank leaves, the object goes on to
 * another. Copies `ops`. FERRY_EINVAL: its size or a flag is not of this version, or a function is
 * missing. [app thread |
 * never blocks] */
FERRY_API FERRY_MUST_USE int ferry_object_type_register(ferry *f, const ferry_object_ops *ops,
                                                        ferry_object_type *out);

/* Handler of a message to an object. `data` is the object's data here; it may change it, send,
 * create, and destroy or move the object, which then happens when the handler returns. prema.txt
 * C.1.2. */
typedef void ferry_object_fn(ferry *f, ferry_object object, void *data, int source,
                             const ferry_message *message);

/* Registers `fn` for messages to objects; as ferry_handler_register, and in the same numbering.
 * [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_object_handler_register(ferry *f, const char *name,
                                                           ferry_object_fn *fn, ferry_handler *out);

/* Names `data` on this rank. Takes `data` (freed with the type's destroy). An object takes up to
 * 440 bytes beside its data on the rank where it is. `waiting_bytes` does not count objects: memory
 * is their only limit (FERRY_ENOMEM). [app thread, handlers | never blocks] prema.txt C.2.3. */
FERRY_API FERRY_MUST_USE int ferry_object_create(ferry *f, ferry_object_type type, void *data,
                                                 ferry_object *out);

/* Destroys an object that is on this rank. Pending messages fail at their senders. FERRY_ENOENT:
 * not here, or destroyed by its running handler already. [app thread, handlers | never blocks] */
FERRY_API int ferry_object_destroy(ferry *f, ferry_object object);

/* The object's data when it is on this rank and at rest or in the running handler; else NULL.
 * Also NULL, with an error message, if a store has it on disk (ferry_store_add). Lends
 * until the next call that polls: until then the scheduler leaves the object here; after that it
 * may have moved. [app thread, handlers | never blocks] prema.txt C.2.3. */
FERRY_API void *ferry_object_data(ferry *f, ferry_object object);

/* Best guess of where the object is. [app thread, handlers | never blocks] prema.txt C.2.3. */
FERRY_API int ferry_object_locate(ferry *f, ferry_object object, int *rank);

/* Number of objects on this rank. [app thread, handlers | never blocks] */
FERRY_API size_t ferry_object_count(const ferry *f);

/* Sends `message` to the handler of `object`, wherever it lives, following migrations. Messages of
 * one rank to one object run in order. Without `track` borrows `message->data`; with it keeps the
 * data until submitted. Outside handlers it waits for room and credit, and runs tasks meanwhile.
 * FERRY_EAGAIN: docs/limits.md. FERRY_ENOENT: the object is known to be destroyed or lost. After
 * these, FERRY_EINVAL, FERRY_ENOMEM, FERRY_EPEER nothing was sent. `track` may report FERRY_ENOENT,
 * FERRY_EPEER (docs/messages.md). [app thread, handlers | may block and poll outside
 * them] prema.txt C.2.4. */
FERRY_API FERRY_MUST_USE int ferry_object_send(ferry *f, ferry_object object,
                                               const ferry_message *message,
                                               const ferry_track *track);

/* Moves an object that is on this rank to `rank`, with its pending messages. An object whose
 * handler runs moves when the handler returns. FERRY_ENOENT: not here, leaving, or destroyed by its
 * running handler. FERRY_ENOMEM, FERRY_EPEER: it stays, and nothing is lost. [app thread, handlers
 * | never blocks] prema.txt C.2.5. */
FERRY_API FERRY_MUST_USE int ferry_object_move(ferry *f, ferry_object object, int rank);

/* Bytes that ferry_object_install needs of an uninstalled object. They go to the other rank
 * unchanged, by any transport. */
typedef struct ferry_move_info {
    void *bytes;
    size_t size_bytes;
} ferry_move_info;

/* Takes an object from this rank for the program to carry to `rank`, another one. Its messages
 * follow it there and are kept until it is installed. Gives `info->bytes`, freed with free, and
 * `*data`, which is the program's from now on. ferry_quiesce does not wait for objects that the
 * program carries. Both ranks may send to the object meanwhile (docs/limits.md). FERRY_ENOENT: not
 * here, or leaving; FERRY_ESTATE: its handler runs; FERRY_EINVAL, FERRY_ENOMEM, and FERRY_EPEER,
 * `rank` is not there: it stays. [app thread, handlers | never blocks] prema.txt C.2.5
 * (mol_uninstall_obj). */
FERRY_API FERRY_MUST_USE int ferry_object_uninstall(ferry *f, ferry_object object, int rank,
                                                    ferry_move_info *info, void **data);

/* Makes an object that `source` uninstalled for this rank live here, with `data`, of its type.
 * Borrows `info`; takes `data`. FERRY_EINVAL: it is not such an object's, not as it was given, or
 * was installed already; FERRY_ENOMEM, and FERRY_EAGAIN until a poll has ended its last stay here
 * and its type is registered: nothing happened. [app thread, handlers | never blocks] prema.txt
 * C.2.5 (mol_install_obj). */
FERRY_API FERRY_MUST_USE int ferry_object_install(ferry *f, const ferry_move_info *info, void *data,
                                                  int source);

#ifdef __cplusplus
}
#endif
#endif
