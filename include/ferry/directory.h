/* Directory protocols: what the writer of one needs. A protocol decides which ranks are told where
 * an object is. Users name one by FERRY_DIRECTORY or ferry_options. prema.txt 4.2.4.1, C.2.1. */
#ifndef FERRY_DIRECTORY_H
#define FERRY_DIRECTORY_H

#include <ferry/object.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Directory protocols, for writers of one. A protocol decides which ranks are told where an object
 * is, besides the two ranks of each move. So it can spend messages of its own to save forwards. A
 * message finds its object under any protocol: the creator and each rank that the object has left
 * know where it went. All ranks of a job have the same protocol: "lazy", "home", "eager", or one in
 * a shared object, whose path has a '/' in it; named by FERRY_DIRECTORY or ferry_options. prema.txt
 * 4.2.4.1, C.2.1. */
typedef struct ferry_directory_protocol {
    size_t size; /* sizeof(ferry_directory_protocol) */
    const char *name;
    /* Move number `movement` has brought `object` to this rank. Later moves have larger numbers.
     * May be NULL. */
    void (*arrived)(ferry *f, ferry_object object, uint32_t movement);
    /* A message of rank `origin` has found `object` on this rank after `hops` forwards, one at
     * least. Move `movement` brought the object here; it may have moved again since. */
    void (*found)(ferry *f, ferry_object object, uint32_t movement, int origin, uint32_t hops);
    /* This rank is the home of `object`. It has learnt from rank `place` that the object is there.
     * May be NULL. */
    void (*learnt)(ferry *f, ferry_object object, uint32_t movement, int place);
    /* Every rank keeps what the home tells it, even if it has not asked, and is told when the
     * object is destroyed. */
    bool everyone;
} ferry_directory_protocol;

#define FERRY_DIRECTORY_PROTOCOL_DEFAULTS                                                          \
    {                                                                                              \
        sizeof(ferry_directory_protocol), NULL, NULL, NULL, NULL, false                            \
    }

/* A shared object with a protocol defines a `const ferry_directory_protocol` under this name. */
#define FERRY_DIRECTORY_SYMBOL "ferry_directory_plugin"

/* Tells `rank` that move number `movement` has brought `object` to rank `place`. A rank that knows
 * a later move drops this. Call it with the `movement` that a function of the protocol was given.
 * `place` is this rank or, in `learnt`, the rank given. If `rank` is this rank, nothing happens. A
 * `rank` or `place` that does not exist is logged. [app thread, inside the functions of a protocol
 * | never blocks] */
FERRY_API void ferry_directory_tell(ferry *f, int rank, ferry_object object, uint32_t movement,
                                    int place);

/* The home of `object`: the rank that created it or, if that has left, its successor. If that rank
 * has died, it is another: the same on all ranks once they have agreed on the death in
 * ferry_quiesce. -1: `object` names none. [app thread, handlers | never blocks] */
FERRY_API int ferry_directory_home(const ferry *f, ferry_object object);

#ifdef __cplusplus
}
#endif
#endif
