/* Objects: application data with a global name that stays valid wherever the data moves.
 *
 * A `ferry_object` (the papers' mobile pointer) is one word, valid on every rank, and may travel in
 * messages. Each rank has a directory of best guesses where objects are. A rank that does not have
 * the object forwards the message, and the sender is told. Messages from one rank to one object are
 * handled in the order sent, across any number of migrations. A message to an object that no longer
 * exists fails at its sender. Handlers of one object never run at the same time. prema.txt 4.2,
 * C. */
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

/* How Ferry moves objects of a type. Callbacks get the rank and the object's data. `packed_size`
 * and `pack` may run on the helper thread while a task of ANOTHER object runs, so they use their
 * object alone. Where nothing else is said, the others run on the application thread. prema.txt
 * 5.2.2. */
typedef struct ferry_object_ops {
    size_t size; /* sizeof(ferry_object_ops) */
    const char *name;
    /* Bytes that `pack` will write. */
    size_t (*packed_size)(ferry *f, const void *data);
    /* Writes the object to `buffer` of the size asked for, 8-byte aligned. Does not free `data`. */
    void (*pack)(ferry *f, const void *data, void *buffer, size_t size_bytes);
    /* Makes the object again from the buffer, which is valid until it returns. NULL: it could not,
     * such as without memory. Then each poll calls it again. After 10 s the job ends with a
     * message, because the object would be lost. */
    void *(*unpack)(ferry *f, ferry_object object, const void *buffer, size_t size_bytes);
    /* Frees `data`: after the object has moved to another rank, or when it is destroyed. If it
     * needs to know which, keep the object's name in `data`: if the object was destroyed,
     * ferry_object_locate returns FERRY_ENOENT. */
    void (*destroy)(ferry *f, void *data);
    /* Load of one pending task of the object, in seconds or any unit used throughout. A negative or
     * infinite load, or a NaN, counts as 0. NULL: each task has the load given to
     * ferry_balance_add. Called when a message comes, when the object comes to a rank, and after
     * each task of the object for the tasks that wait (for 16 of them at most). It makes no calls
     * to Ferry. It runs on the application thread, and also inside a handler of the same object: in
     * the call by which that sends a message to the object. */
    double (*load)(ferry *f, const void *data, const ferry_message *message);
    /* How hard the object is to move, in any unit. NULL: the value given to ferry_balance_add. This
     * and `priority` make no calls to Ferry and return fast. Both may run on the helper thread
     * while a task of another object runs. */
    double (*granularity)(ferry *f, const void *data);
    /* How much the object should be on `rank`, for schedulers that use it; greater is better: an
     * entry of the papers' priority vector. `load` is the load of all its pending tasks.
     * `dependencies` says how many of the objects that it depends on (ferry_balance_add) are there,
     * by best guess. NULL: the priorities given to ferry_balance_add, else load * (1 +
     * dependencies). */
    double (*priority)(ferry *f, const void *data, int rank, double granularity, double load,
                       uint32_t dependencies);
    uint32_t flags; /* FERRY_OBJECT_SHARED or 0 */
    /* For data that is one block without pointers into itself: its length. Then the first four
     * callbacks may be NULL: Ferry copies the block, and frees it with free (FERRY_OBJECT_SHARED:
     * with ferry_free). If the lengths of such blocks differ, give `packed_size` instead. */
    size_t flat_bytes;
} ferry_object_ops;

#define FERRY_OBJECT_OPS_DEFAULTS                                                                  \
    {                                                                                              \
        sizeof(ferry_object_ops), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0             \
    }

/* The data, with all that it points to, is in the shared heap (ferry_alloc). Within a node such an
 * object moves by its pointer, in the same time for any size, and without packed_size, pack, unpack
 * and destroy. Between nodes, and for data that is not in the heap, these are called. */
#define FERRY_OBJECT_SHARED 1u

/* Registers a type. Every rank registers the same types in the same order. If an object comes to a
 * rank before its type is registered there, it waits. If that rank leaves, the object moves on to
 * another. Copies `ops`. FERRY_EINVAL: its size or a flag is not of this version, or a function is
 * missing. FERRY_ENOMEM: more than 256 types. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_object_type_register(ferry *f, const ferry_object_ops *ops,
                                                        ferry_object_type *out);

/* A handler of messages to an object. `data` is the object's data, which it may change. It may send
 * and create. It may destroy or move its object: that happens when the handler returns. prema.txt
 * C.1.2. */
typedef void ferry_object_fn(ferry *f, ferry_object object, void *data, int source,
                             const ferry_message *message);

/* Registers `fn` for messages to objects, in the same numbering as ferry_handler_register. Errors
 * as ferry_handler_register. [app thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_object_handler_register(ferry *f, const char *name,
                                                           ferry_object_fn *fn, ferry_handler *out);

/* Makes an object of `data` on this rank and gives its name. On success takes `data` (freed with
 * the type's destroy). On its rank an object takes up to 440 bytes besides its data. FERRY_EINVAL:
 * the type is not registered, or a pointer is NULL. FERRY_ENOMEM: memory is the only limit;
 * `waiting_bytes` does not count objects. [app thread, handlers | never blocks] prema.txt C.2.3. */
FERRY_API FERRY_MUST_USE int ferry_object_create(ferry *f, ferry_object_type type, void *data,
                                                 ferry_object *out);

/* Destroys an object that is on this rank. Pending messages fail at their senders. FERRY_ENOENT: it
 * is not here, or its running handler has destroyed it already. [app thread, handlers | never
 * blocks] */
FERRY_API int ferry_object_destroy(ferry *f, ferry_object object);

/* The object's data, if the object is on this rank and either at rest or the one whose handler
 * makes the call; else NULL. Also NULL, with an error message, if a store has it on disk
 * (ferry_store_add). Lends until the next call that polls; outside tasks, also until an object is
 * created, moved or destroyed. Until then the scheduler does not move the object. [app thread,
 * handlers | never blocks] prema.txt C.2.3. */
FERRY_API void *ferry_object_data(ferry *f, ferry_object object);

/* Sets `*rank` to the best guess of where the object is. FERRY_ENOENT: it does not exist.
 * FERRY_EINVAL: `object` names no object, or `rank` is NULL. [app thread, handlers | never blocks]
 * prema.txt C.2.3. */
FERRY_API int ferry_object_locate(ferry *f, ferry_object object, int *rank);

/* Number of objects on this rank. [app thread, handlers | never blocks] */
FERRY_API size_t ferry_object_count(const ferry *f);

/* Sends `message` to the handler of `object`, wherever it lives, following migrations. Messages of
 * one rank to one object run in order. Without `track` borrows `message->data`; with it keeps the
 * data until submitted. Outside handlers it waits for room and credit, and runs tasks meanwhile.
 * FERRY_EAGAIN: docs/limits.md. FERRY_ENOENT: the object is known to be destroyed or lost.
 * FERRY_EINVAL, FERRY_ENOMEM, FERRY_EPEER. After an error nothing was sent. `track` may report
 * FERRY_ENOENT, FERRY_EPEER (docs/messages.md). [app thread, handlers | may block and poll outside
 * them] prema.txt C.2.4. */
FERRY_API FERRY_MUST_USE int ferry_object_send(ferry *f, ferry_object object,
                                               const ferry_message *message,
                                               const ferry_track *track);

/* Moves an object that is on this rank to `rank`, with its pending messages. An object whose
 * handler runs moves when the handler returns. FERRY_ENOENT: it is not here, is about to leave, or
 * its running handler has destroyed it. FERRY_ENOMEM, FERRY_EPEER, FERRY_ESYSTEM (a store
 * cannot read it): it stays, and nothing is lost. [app thread, handlers | never blocks] prema.txt
 * C.2.5. */
FERRY_API FERRY_MUST_USE int ferry_object_move(ferry *f, ferry_object object, int rank);

/* The bytes that ferry_object_install needs of an uninstalled object. The program carries them to
 * the other rank unchanged, in any way. */
typedef struct ferry_move_info {
    void *bytes;
    size_t size_bytes;
} ferry_move_info;

/* Takes an object from this rank, so that the program can carry it to another rank, `rank`. Its
 * messages follow it there and wait until it is installed. Gives `info->bytes`, freed with free,
 * and `*data`, which now belongs to the program. `rank` must install it before it leaves or closes
 * (docs/balancing.md). Both ranks may send to it meanwhile. FERRY_ENOENT: it is not here, or is
 * about to leave. FERRY_ESTATE: its handler runs. FERRY_EPEER: `rank` has gone. FERRY_EINVAL,
 * FERRY_ENOMEM. After an error it stays. [app thread, handlers | never blocks] prema.txt C.2.5
 * (mol_uninstall_obj). */
FERRY_API FERRY_MUST_USE int ferry_object_uninstall(ferry *f, ferry_object object, int rank,
                                                    ferry_move_info *info, void **data);

/* Installs on this rank an object that rank `source` uninstalled for it, with `data` of its
 * type. Borrows `info`; takes `data`. FERRY_EINVAL: `info` is of no such object, was changed, or
 * was installed already, or `source` has died. FERRY_EAGAIN: its type is not registered here, or a
 * poll must first end its last stay here. FERRY_ENOMEM. After an error nothing happened. [app
 * thread, handlers | never blocks] prema.txt C.2.5 (mol_install_obj). */
FERRY_API FERRY_MUST_USE int ferry_object_install(ferry *f, const ferry_move_info *info, void *data,
                                                  int source);

#ifdef __cplusplus
}
#endif
#endif
