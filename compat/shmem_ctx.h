/* The calls of shmem.h with a context as first argument. shmem.h includes this file; programs do
 * not.
 *
 * A context has the PEs of its team. Ferry keeps one order for all contexts. So a fence or quiet of
 * one context acts on all, which is more than OpenSHMEM requires. */
#ifndef FERRY_SHMEM_CTX_H
#define FERRY_SHMEM_CTX_H

#include "shmem.h"

/* The rank of PE `pe` of the context's team. Ends the job if the PE does not exist. */
FERRY_API int fy_shmem_ctx_pe(shmem_ctx_t ctx, int pe);

#define SHMEM_CTX_RMA(NAME, TYPE)                                                                  \
    static inline void shmem_ctx_##NAME##_put(shmem_ctx_t ctx, TYPE *dest, const TYPE *source,     \
                                              size_t nelems, int pe)                               \
    {                                                                                              \
        shmem_##NAME##_put(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                        \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_get(shmem_ctx_t ctx, TYPE *dest, const TYPE *source,     \
                                              size_t nelems, int pe)                               \
    {                                                                                              \
        shmem_##NAME##_get(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                        \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_put_nbi(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, \
                                                  size_t nelems, int pe)                           \
    {                                                                                              \
        shmem_##NAME##_put_nbi(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                    \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_get_nbi(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, \
                                                  size_t nelems, int pe)                           \
    {                                                                                              \
        shmem_##NAME##_get_nbi(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                    \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_p(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe)       \
    {                                                                                              \
        shmem_##NAME##_p(dest, value, fy_shmem_ctx_pe(ctx, pe));                                   \
    }                                                                                              \
    static inline TYPE shmem_ctx_##NAME##_g(shmem_ctx_t ctx, const TYPE *source, int pe)           \
    {                                                                                              \
        return shmem_##NAME##_g(source, fy_shmem_ctx_pe(ctx, pe));                                 \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_iput(shmem_ctx_t ctx, TYPE *dest, const TYPE *source,    \
                                               ptrdiff_t dst, ptrdiff_t sst, size_t nelems,        \
                                               int pe)                                             \
    {                                                                                              \
        shmem_##NAME##_iput(dest, source, dst, sst, nelems, fy_shmem_ctx_pe(ctx, pe));             \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_iget(shmem_ctx_t ctx, TYPE *dest, const TYPE *source,    \
                                               ptrdiff_t dst, ptrdiff_t sst, size_t nelems,        \
                                               int pe)                                             \
    {                                                                                              \
        shmem_##NAME##_iget(dest, source, dst, sst, nelems, fy_shmem_ctx_pe(ctx, pe));             \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_put_signal(                                              \
        shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr,        \
        uint64_t signal, int sig_op, int pe)                                                       \
    {                                                                                              \
        shmem_##NAME##_put_signal(dest, source, nelems, sig_addr, signal, sig_op,                  \
                                  fy_shmem_ctx_pe(ctx, pe));                                       \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_put_signal_nbi(                                          \
        shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr,        \
        uint64_t signal, int sig_op, int pe)                                                       \
    {                                                                                              \
        shmem_##NAME##_put_signal_nbi(dest, source, nelems, sig_addr, signal, sig_op,              \
                                      fy_shmem_ctx_pe(ctx, pe));                                   \
    }
SHMEM_TYPES(SHMEM_CTX_RMA)

#define SHMEM_CTX_SIZED(NAME, BYTES)                                                               \
    static inline void shmem_ctx_put##NAME(shmem_ctx_t ctx, void *dest, const void *source,        \
                                           size_t nelems, int pe)                                  \
    {                                                                                              \
        shmem_put##NAME(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                           \
    }                                                                                              \
    static inline void shmem_ctx_get##NAME(shmem_ctx_t ctx, void *dest, const void *source,        \
                                           size_t nelems, int pe)                                  \
    {                                                                                              \
        shmem_get##NAME(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                           \
    }                                                                                              \
    static inline void shmem_ctx_put##NAME##_nbi(shmem_ctx_t ctx, void *dest, const void *source,  \
                                                 size_t nelems, int pe)                            \
    {                                                                                              \
        shmem_put##NAME##_nbi(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                     \
    }                                                                                              \
    static inline void shmem_ctx_get##NAME##_nbi(shmem_ctx_t ctx, void *dest, const void *source,  \
                                                 size_t nelems, int pe)                            \
    {                                                                                              \
        shmem_get##NAME##_nbi(dest, source, nelems, fy_shmem_ctx_pe(ctx, pe));                     \
    }                                                                                              \
    static inline void shmem_ctx_put##NAME##_signal(                                               \
        shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig_addr,        \
        uint64_t signal, int sig_op, int pe)                                                       \
    {                                                                                              \
        shmem_put##NAME##_signal(dest, source, nelems, sig_addr, signal, sig_op,                   \
                                 fy_shmem_ctx_pe(ctx, pe));                                        \
    }                                                                                              \
    static inline void shmem_ctx_put##NAME##_signal_nbi(                                           \
        shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig_addr,        \
        uint64_t signal, int sig_op, int pe)                                                       \
    {                                                                                              \
        shmem_put##NAME##_signal_nbi(dest, source, nelems, sig_addr, signal, sig_op,               \
                                     fy_shmem_ctx_pe(ctx, pe));                                    \
    }
SHMEM_SIZES(SHMEM_CTX_SIZED)
SHMEM_CTX_SIZED(mem, 1)

#define SHMEM_CTX_STRIDED(NAME, BYTES)                                                             \
    static inline void shmem_ctx_iput##NAME(shmem_ctx_t ctx, void *dest, const void *source,       \
                                            ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)   \
    {                                                                                              \
        shmem_iput##NAME(dest, source, dst, sst, nelems, fy_shmem_ctx_pe(ctx, pe));                \
    }                                                                                              \
    static inline void shmem_ctx_iget##NAME(shmem_ctx_t ctx, void *dest, const void *source,       \
                                            ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)   \
    {                                                                                              \
        shmem_iget##NAME(dest, source, dst, sst, nelems, fy_shmem_ctx_pe(ctx, pe));                \
    }
SHMEM_SIZES(SHMEM_CTX_STRIDED)

#define SHMEM_CTX_SWAP(NAME, TYPE)                                                                 \
    static inline TYPE shmem_ctx_##NAME##_atomic_fetch(shmem_ctx_t ctx, const TYPE *source,        \
                                                       int pe)                                     \
    {                                                                                              \
        return shmem_##NAME##_atomic_fetch(source, fy_shmem_ctx_pe(ctx, pe));                      \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_fetch_nbi(shmem_ctx_t ctx, TYPE *fetch,           \
                                                           const TYPE *source, int pe)             \
    {                                                                                              \
        shmem_##NAME##_atomic_fetch_nbi(fetch, source, fy_shmem_ctx_pe(ctx, pe));                  \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_set(shmem_ctx_t ctx, TYPE *dest, TYPE value,      \
                                                     int pe)                                       \
    {                                                                                              \
        shmem_##NAME##_atomic_set(dest, value, fy_shmem_ctx_pe(ctx, pe));                          \
    }                                                                                              \
    static inline TYPE shmem_ctx_##NAME##_atomic_swap(shmem_ctx_t ctx, TYPE *dest, TYPE value,     \
                                                      int pe)                                      \
    {                                                                                              \
        return shmem_##NAME##_atomic_swap(dest, value, fy_shmem_ctx_pe(ctx, pe));                  \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_swap_nbi(shmem_ctx_t ctx, TYPE *fetch,            \
                                                          TYPE *dest, TYPE value, int pe)          \
    {                                                                                              \
        shmem_##NAME##_atomic_swap_nbi(fetch, dest, value, fy_shmem_ctx_pe(ctx, pe));              \
    }
SHMEM_SWAP_TYPES(SHMEM_CTX_SWAP)

#define SHMEM_CTX_FETCH(NAME, TYPE, VERB)                                                          \
    static inline TYPE shmem_ctx_##NAME##_atomic_fetch_##VERB(shmem_ctx_t ctx, TYPE *dest,         \
                                                              TYPE value, int pe)                  \
    {                                                                                              \
        return shmem_##NAME##_atomic_fetch_##VERB(dest, value, fy_shmem_ctx_pe(ctx, pe));          \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_fetch_##VERB##_nbi(                               \
        shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe)                              \
    {                                                                                              \
        shmem_##NAME##_atomic_fetch_##VERB##_nbi(fetch, dest, value, fy_shmem_ctx_pe(ctx, pe));    \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_##VERB(shmem_ctx_t ctx, TYPE *dest, TYPE value,   \
                                                        int pe)                                    \
    {                                                                                              \
        shmem_##NAME##_atomic_##VERB(dest, value, fy_shmem_ctx_pe(ctx, pe));                       \
    }
#define SHMEM_CTX_ATOMIC(NAME, TYPE)                                                               \
    static inline TYPE shmem_ctx_##NAME##_atomic_compare_swap(shmem_ctx_t ctx, TYPE *dest,         \
                                                              TYPE cond, TYPE value, int pe)       \
    {                                                                                              \
        return shmem_##NAME##_atomic_compare_swap(dest, cond, value, fy_shmem_ctx_pe(ctx, pe));    \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_compare_swap_nbi(                                 \
        shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe)                   \
    {                                                                                              \
        shmem_##NAME##_atomic_compare_swap_nbi(fetch, dest, cond, value,                           \
                                               fy_shmem_ctx_pe(ctx, pe));                          \
    }                                                                                              \
    static inline TYPE shmem_ctx_##NAME##_atomic_fetch_inc(shmem_ctx_t ctx, TYPE *dest, int pe)    \
    {                                                                                              \
        return shmem_##NAME##_atomic_fetch_inc(dest, fy_shmem_ctx_pe(ctx, pe));                    \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, TYPE *fetch,       \
                                                               TYPE *dest, int pe)                 \
    {                                                                                              \
        shmem_##NAME##_atomic_fetch_inc_nbi(fetch, dest, fy_shmem_ctx_pe(ctx, pe));                \
    }                                                                                              \
    static inline void shmem_ctx_##NAME##_atomic_inc(shmem_ctx_t ctx, TYPE *dest, int pe)          \
    {                                                                                              \
        shmem_##NAME##_atomic_inc(dest, fy_shmem_ctx_pe(ctx, pe));                                 \
    }                                                                                              \
    SHMEM_CTX_FETCH(NAME, TYPE, add)
SHMEM_ATOMIC_TYPES(SHMEM_CTX_ATOMIC)

#define SHMEM_CTX_BITS(NAME, TYPE)                                                                 \
    SHMEM_CTX_FETCH(NAME, TYPE, and)                                                               \
    SHMEM_CTX_FETCH(NAME, TYPE, or)                                                                \
    SHMEM_CTX_FETCH(NAME, TYPE, xor)
SHMEM_BIT_TYPES(SHMEM_CTX_BITS)

#endif
