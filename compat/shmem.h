/* OpenSHMEM 1.5 on Ferry: programs that include shmem.h run on Ferry's ranks.
 *
 * A PE is a rank. The names, types and meanings are those of the OpenSHMEM specification 1.5.
 * docs/guide/from-openshmem.md says what differs and what is left out. Symmetric memory is what
 * shmem_malloc gives, and the global and static variables of the program itself.
 *
 * OpenSHMEM has no handle, so the library keeps one state for the process. Threads of a PE make
 * calls one at a time (SHMEM_THREAD_SERIALIZED). A call that fails ends the job with a message, as
 * ferry_abort does. */
#ifndef FERRY_SHMEM_H
#define FERRY_SHMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ferry/export.h>

#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "Ferry"

enum { SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE };
enum { SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_GE };
enum { SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD };
enum { SHMEM_MALLOC_ATOMICS_REMOTE = 1, SHMEM_MALLOC_SIGNAL_REMOTE = 2 };

/* Start and stop. shmem_init reserves SHMEM_SYMMETRIC_SIZE bytes (a number, then K, M, G or T;
 * default 64M) on each PE. */
FERRY_API void shmem_init(void);
FERRY_API int shmem_init_thread(int requested, int *provided);
FERRY_API void shmem_query_thread(int *provided);
FERRY_API void shmem_finalize(void);
FERRY_API void shmem_global_exit(int status) __attribute__((noreturn));
FERRY_API int shmem_my_pe(void);
FERRY_API int shmem_n_pes(void);
FERRY_API int shmem_pe_accessible(int pe);
FERRY_API int shmem_addr_accessible(const void *address, int pe);
FERRY_API void *shmem_ptr(const void *dest, int pe);
FERRY_API void shmem_info_get_version(int *major, int *minor);
FERRY_API void shmem_info_get_name(char *name);
/* Does nothing. A profiling tool may replace it. */
FERRY_API void shmem_pcontrol(int level, ...);

/* Symmetric memory. All PEs make the same calls in the same order. */
FERRY_API void *shmem_malloc(size_t size);
FERRY_API void *shmem_malloc_with_hints(size_t size, long hints);
FERRY_API void *shmem_calloc(size_t count, size_t size);
FERRY_API void *shmem_align(size_t alignment, size_t size);
FERRY_API void *shmem_realloc(void *address, size_t size);
FERRY_API void shmem_free(void *address);

/* Puts and gets. */
#define SHMEM_DECLARE_RMA(NAME, TYPE)                                                              \
    FERRY_API void shmem_##NAME##_put(TYPE *dest, const TYPE *source, size_t nelems, int pe);      \
    FERRY_API void shmem_##NAME##_get(TYPE *dest, const TYPE *source, size_t nelems, int pe);      \
    FERRY_API void shmem_##NAME##_put_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe);  \
    FERRY_API void shmem_##NAME##_get_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe);  \
    FERRY_API void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe);                               \
    FERRY_API TYPE shmem_##NAME##_g(const TYPE *source, int pe);                                   \
    FERRY_API void shmem_##NAME##_iput(TYPE *dest, const TYPE *source, ptrdiff_t dst,              \
                                       ptrdiff_t sst, size_t nelems, int pe);                      \
    FERRY_API void shmem_##NAME##_iget(TYPE *dest, const TYPE *source, ptrdiff_t dst,              \
                                       ptrdiff_t sst, size_t nelems, int pe);                      \
    FERRY_API void shmem_##NAME##_put_signal(TYPE *dest, const TYPE *source, size_t nelems,        \
                                             uint64_t *sig_addr, uint64_t signal, int sig_op,      \
                                             int pe);                                              \
    FERRY_API void shmem_##NAME##_put_signal_nbi(TYPE *dest, const TYPE *source, size_t nelems,    \
                                                 uint64_t *sig_addr, uint64_t signal, int sig_op,  \
                                                 int pe);
SHMEM_TYPES(SHMEM_DECLARE_RMA)

#define SHMEM_DECLARE_SIZED(NAME, BYTES)                                                           \
    FERRY_API void shmem_put##NAME(void *dest, const void *source, size_t nelems, int pe);         \
    FERRY_API void shmem_get##NAME(void *dest, const void *source, size_t nelems, int pe);         \
    FERRY_API void shmem_put##NAME##_nbi(void *dest, const void *source, size_t nelems, int pe);   \
    FERRY_API void shmem_get##NAME##_nbi(void *dest, const void *source, size_t nelems, int pe);   \
    FERRY_API void shmem_put##NAME##_signal(void *dest, const void *source, size_t nelems,         \
                                            uint64_t *sig_addr, uint64_t signal, int sig_op,       \
                                            int pe);                                               \
    FERRY_API void shmem_put##NAME##_signal_nbi(void *dest, const void *source, size_t nelems,     \
                                                uint64_t *sig_addr, uint64_t signal, int sig_op,   \
                                                int pe);
SHMEM_SIZES(SHMEM_DECLARE_SIZED)
SHMEM_DECLARE_SIZED(mem, 1)

#define SHMEM_DECLARE_STRIDED(NAME, BYTES)                                                         \
    FERRY_API void shmem_iput##NAME(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,  \
                                    size_t nelems, int pe);                                        \
    FERRY_API void shmem_iget##NAME(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,  \
                                    size_t nelems, int pe);
SHMEM_SIZES(SHMEM_DECLARE_STRIDED)

/* Atomic operations. */
#define SHMEM_DECLARE_SWAP(NAME, TYPE)                                                             \
    FERRY_API TYPE shmem_##NAME##_atomic_fetch(const TYPE *source, int pe);                        \
    FERRY_API void shmem_##NAME##_atomic_fetch_nbi(TYPE *fetch, const TYPE *source, int pe);       \
    FERRY_API void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe);                      \
    FERRY_API TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe);                     \
    FERRY_API void shmem_##NAME##_atomic_swap_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe);
SHMEM_SWAP_TYPES(SHMEM_DECLARE_SWAP)

#define SHMEM_DECLARE_ATOMIC(NAME, TYPE)                                                           \
    FERRY_API TYPE shmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe);  \
    FERRY_API void shmem_##NAME##_atomic_compare_swap_nbi(TYPE *fetch, TYPE *dest, TYPE cond,      \
                                                          TYPE value, int pe);                     \
    FERRY_API TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe);                            \
    FERRY_API void shmem_##NAME##_atomic_fetch_inc_nbi(TYPE *fetch, TYPE *dest, int pe);           \
    FERRY_API void shmem_##NAME##_atomic_inc(TYPE *dest, int pe);
SHMEM_ATOMIC_TYPES(SHMEM_DECLARE_ATOMIC)

#define SHMEM_DECLARE_FETCH(NAME, TYPE, VERB)                                                      \
    FERRY_API TYPE shmem_##NAME##_atomic_fetch_##VERB(TYPE *dest, TYPE value, int pe);             \
    FERRY_API void shmem_##NAME##_atomic_fetch_##VERB##_nbi(TYPE *fetch, TYPE *dest, TYPE value,   \
                                                            int pe);                               \
    FERRY_API void shmem_##NAME##_atomic_##VERB(TYPE *dest, TYPE value, int pe);
#define SHMEM_DECLARE_ADD(NAME, TYPE) SHMEM_DECLARE_FETCH(NAME, TYPE, add)
SHMEM_ATOMIC_TYPES(SHMEM_DECLARE_ADD)
#define SHMEM_DECLARE_BITS(NAME, TYPE)                                                             \
    SHMEM_DECLARE_FETCH(NAME, TYPE, and)                                                           \
    SHMEM_DECLARE_FETCH(NAME, TYPE, or)                                                            \
    SHMEM_DECLARE_FETCH(NAME, TYPE, xor)
SHMEM_BIT_TYPES(SHMEM_DECLARE_BITS)

/* Order and waiting. */
FERRY_API void shmem_fence(void);
FERRY_API void shmem_quiet(void);
FERRY_API void shmem_barrier_all(void);
FERRY_API void shmem_sync_all(void);
FERRY_API uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
FERRY_API uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);

#define SHMEM_DECLARE_WATCH(NAME, TYPE, SUFFIX, VALUE)                                             \
    FERRY_API void shmem_##NAME##_wait_until_all##SUFFIX(TYPE *ivars, size_t nelems,               \
                                                         const int *status, int cmp, VALUE);       \
    FERRY_API size_t shmem_##NAME##_wait_until_any##SUFFIX(TYPE *ivars, size_t nelems,             \
                                                           const int *status, int cmp, VALUE);     \
    FERRY_API size_t shmem_##NAME##_wait_until_some##SUFFIX(                                       \
        TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, VALUE);           \
    FERRY_API int shmem_##NAME##_test_all##SUFFIX(TYPE *ivars, size_t nelems, const int *status,   \
                                                  int cmp, VALUE);                                 \
    FERRY_API size_t shmem_##NAME##_test_any##SUFFIX(TYPE *ivars, size_t nelems,                   \
                                                     const int *status, int cmp, VALUE);           \
    FERRY_API size_t shmem_##NAME##_test_some##SUFFIX(TYPE *ivars, size_t nelems, size_t *indices, \
                                                      const int *status, int cmp, VALUE);
#define SHMEM_DECLARE_WAIT(NAME, TYPE)                                                             \
    FERRY_API void shmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value);                 \
    FERRY_API int shmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value);                        \
    SHMEM_DECLARE_WATCH(NAME, TYPE, , TYPE cmp_value)                                              \
    SHMEM_DECLARE_WATCH(NAME, TYPE, _vector, TYPE *cmp_values)
SHMEM_WAIT_TYPES(SHMEM_DECLARE_WAIT)

/* Locks: a symmetric long, 0 at first. PEs get a lock in the order in which they ask for it. */
FERRY_API void shmem_set_lock(long *lock);
FERRY_API void shmem_clear_lock(long *lock);
FERRY_API int shmem_test_lock(long *lock);

/* Teams. */
typedef struct fy_shmem_team *shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2) /* the PEs that shmem_ptr reaches from this one */
typedef struct shmem_team_config {
    int num_contexts; /* only kept for shmem_team_get_config; there is no limit */
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 1L

FERRY_API int shmem_team_my_pe(shmem_team_t team);
FERRY_API int shmem_team_n_pes(shmem_team_t team);
FERRY_API int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);
FERRY_API int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                                       const shmem_team_config_t *config, long config_mask,
                                       shmem_team_t *new_team);
FERRY_API int shmem_team_split_2d(shmem_team_t parent, int xrange,
                                  const shmem_team_config_t *xaxis_config, long xaxis_mask,
                                  shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                                  long yaxis_mask, shmem_team_t *yaxis_team);
FERRY_API int shmem_team_get_config(shmem_team_t team, long config_mask,
                                    shmem_team_config_t *config);
FERRY_API void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe);
FERRY_API int shmem_team_sync(shmem_team_t team);
FERRY_API void shmem_team_destroy(shmem_team_t team);

/* Contexts: operations that are ordered and waited for together. shmem_ctx.h has the calls. */
typedef struct fy_shmem_ctx {
    shmem_team_t team;
    long options;
} * shmem_ctx_t;
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
enum { SHMEM_CTX_SERIALIZED = 1, SHMEM_CTX_PRIVATE = 2, SHMEM_CTX_NOSTORE = 4 };

FERRY_API int shmem_ctx_create(long options, shmem_ctx_t *ctx);
FERRY_API int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
FERRY_API void shmem_ctx_destroy(shmem_ctx_t ctx);
FERRY_API int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);
FERRY_API void shmem_ctx_fence(shmem_ctx_t ctx);
FERRY_API void shmem_ctx_quiet(shmem_ctx_t ctx);

/* Collectives. They return 0, or -1 for SHMEM_TEAM_INVALID. */
#define SHMEM_DECLARE_COLLECTIVE(BEFORE, AFTER, TYPE)                                              \
    FERRY_API int BEFORE##broadcast##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source,      \
                                           size_t nelems, int root);                               \
    FERRY_API int BEFORE##collect##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source,        \
                                         size_t nelems);                                           \
    FERRY_API int BEFORE##fcollect##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source,       \
                                          size_t nelems);                                          \
    FERRY_API int BEFORE##alltoall##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source,       \
                                          size_t nelems);                                          \
    FERRY_API int BEFORE##alltoalls##AFTER(shmem_team_t team, TYPE *dest, const TYPE *source,      \
                                           ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
#define SHMEM_DECLARE_COLLECTIVES(NAME, TYPE) SHMEM_DECLARE_COLLECTIVE(shmem_##NAME##_, , TYPE)
SHMEM_TYPES(SHMEM_DECLARE_COLLECTIVES)
SHMEM_DECLARE_COLLECTIVE(shmem_, mem, void)

#define SHMEM_DECLARE_REDUCE(NAME, TYPE, VERB)                                                     \
    FERRY_API int shmem_##NAME##_##VERB##_reduce(shmem_team_t team, TYPE *dest,                    \
                                                 const TYPE *source, size_t nreduce);
#define SHMEM_DECLARE_SUM(NAME, TYPE)                                                              \
    SHMEM_DECLARE_REDUCE(NAME, TYPE, sum) SHMEM_DECLARE_REDUCE(NAME, TYPE, prod)
#define SHMEM_DECLARE_MIN(NAME, TYPE)                                                              \
    SHMEM_DECLARE_REDUCE(NAME, TYPE, min) SHMEM_DECLARE_REDUCE(NAME, TYPE, max)
#define SHMEM_DECLARE_REDUCE_BITS(NAME, TYPE)                                                      \
    SHMEM_DECLARE_REDUCE(NAME, TYPE, and)                                                          \
    SHMEM_DECLARE_REDUCE(NAME, TYPE, or) SHMEM_DECLARE_REDUCE(NAME, TYPE, xor)
SHMEM_TYPES(SHMEM_DECLARE_SUM)
SHMEM_TYPES(SHMEM_DECLARE_MIN)
SHMEM_REDUCE_BIT_TYPES(SHMEM_DECLARE_REDUCE_BITS)
#ifndef __cplusplus
SHMEM_COMPLEX_TYPES(SHMEM_DECLARE_SUM)
#endif

#include "shmem_ctx.h"

#ifdef __cplusplus
}
#else
#include "shmem_generic.h"
#endif
#endif
