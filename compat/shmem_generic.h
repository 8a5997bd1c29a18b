/* Generic forms of shmem.h: one name for all types, in C11. shmem.h includes it; programs do not.
 *
 * The type that `dest`, `source` or `ivar` points to chooses the function. */
#ifndef FERRY_SHMEM_GENERIC_H
#define FERRY_SHMEM_GENERIC_H

#include "shmem_types.h"

#define shmem_put(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(put))(dest, __VA_ARGS__)
#define shmem_get(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(get))(dest, __VA_ARGS__)
#define shmem_put_nbi(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(put_nbi))(dest, __VA_ARGS__)
#define shmem_get_nbi(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(get_nbi))(dest, __VA_ARGS__)
#define shmem_p(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(p))(dest, __VA_ARGS__)
#define shmem_iput(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(iput))(dest, __VA_ARGS__)
#define shmem_iget(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(iget))(dest, __VA_ARGS__)
#define shmem_put_signal(dest, ...) SHMEM_BY_TYPE(dest, SHMEM_NAMES(put_signal))(dest, __VA_ARGS__)
#define shmem_put_signal_nbi(dest, ...)                                                            \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(put_signal_nbi))(dest, __VA_ARGS__)
#define shmem_g(source, ...) SHMEM_BY_TYPE(source, SHMEM_NAMES(g))(source, __VA_ARGS__)

#define shmem_atomic_fetch(source, ...)                                                            \
    SHMEM_BY_TYPE(source, SHMEM_SWAP_NAMES(atomic_fetch))(source, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(fetch, ...)                                                         \
    SHMEM_BY_TYPE(fetch, SHMEM_SWAP_NAMES(atomic_fetch_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_set(dest, ...)                                                                \
    SHMEM_BY_TYPE(dest, SHMEM_SWAP_NAMES(atomic_set))(dest, __VA_ARGS__)
#define shmem_atomic_swap(dest, ...)                                                               \
    SHMEM_BY_TYPE(dest, SHMEM_SWAP_NAMES(atomic_swap))(dest, __VA_ARGS__)
#define shmem_atomic_swap_nbi(fetch, ...)                                                          \
    SHMEM_BY_TYPE(fetch, SHMEM_SWAP_NAMES(atomic_swap_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_compare_swap(dest, ...)                                                       \
    SHMEM_BY_TYPE(dest, SHMEM_ATOMIC_NAMES(atomic_compare_swap))(dest, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(fetch, ...)                                                  \
    SHMEM_BY_TYPE(fetch, SHMEM_ATOMIC_NAMES(atomic_compare_swap_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_fetch_inc(dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_ATOMIC_NAMES(atomic_fetch_inc))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(fetch, ...)                                                     \
    SHMEM_BY_TYPE(fetch, SHMEM_ATOMIC_NAMES(atomic_fetch_inc_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_inc(dest, ...)                                                                \
    SHMEM_BY_TYPE(dest, SHMEM_ATOMIC_NAMES(atomic_inc))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_add(dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_ATOMIC_NAMES(atomic_fetch_add))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(fetch, ...)                                                     \
    SHMEM_BY_TYPE(fetch, SHMEM_ATOMIC_NAMES(atomic_fetch_add_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_add(dest, ...)                                                                \
    SHMEM_BY_TYPE(dest, SHMEM_ATOMIC_NAMES(atomic_add))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_and(dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_fetch_and))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(fetch, ...)                                                     \
    SHMEM_BY_TYPE(fetch, SHMEM_BIT_NAMES(atomic_fetch_and_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_and(dest, ...)                                                                \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_and))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_or(dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_fetch_or))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(fetch, ...)                                                      \
    SHMEM_BY_TYPE(fetch, SHMEM_BIT_NAMES(atomic_fetch_or_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_or(dest, ...)                                                                 \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_or))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_xor(dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_fetch_xor))(dest, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(fetch, ...)                                                     \
    SHMEM_BY_TYPE(fetch, SHMEM_BIT_NAMES(atomic_fetch_xor_nbi))(fetch, __VA_ARGS__)
#define shmem_atomic_xor(dest, ...)                                                                \
    SHMEM_BY_TYPE(dest, SHMEM_BIT_NAMES(atomic_xor))(dest, __VA_ARGS__)

#define shmem_wait_until(ivar, ...)                                                                \
    SHMEM_BY_TYPE(ivar, SHMEM_WAIT_NAMES(wait_until))(ivar, __VA_ARGS__)
#define shmem_test(ivar, ...) SHMEM_BY_TYPE(ivar, SHMEM_WAIT_NAMES(test))(ivar, __VA_ARGS__)
#define shmem_wait_until_all(ivars, ...)                                                           \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_all))(ivars, __VA_ARGS__)
#define shmem_wait_until_all_vector(ivars, ...)                                                    \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_all_vector))(ivars, __VA_ARGS__)
#define shmem_wait_until_any(ivars, ...)                                                           \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_any))(ivars, __VA_ARGS__)
#define shmem_wait_until_any_vector(ivars, ...)                                                    \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_any_vector))(ivars, __VA_ARGS__)
#define shmem_wait_until_some(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_some))(ivars, __VA_ARGS__)
#define shmem_wait_until_some_vector(ivars, ...)                                                   \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(wait_until_some_vector))(ivars, __VA_ARGS__)
#define shmem_test_all(ivars, ...)                                                                 \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_all))(ivars, __VA_ARGS__)
#define shmem_test_all_vector(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_all_vector))(ivars, __VA_ARGS__)
#define shmem_test_any(ivars, ...)                                                                 \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_any))(ivars, __VA_ARGS__)
#define shmem_test_any_vector(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_any_vector))(ivars, __VA_ARGS__)
#define shmem_test_some(ivars, ...)                                                                \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_some))(ivars, __VA_ARGS__)
#define shmem_test_some_vector(ivars, ...)                                                         \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(test_some_vector))(ivars, __VA_ARGS__)

#define shmem_broadcast(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(broadcast))(team, dest, __VA_ARGS__)
#define shmem_collect(team, dest, ...)                                                             \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(collect))(team, dest, __VA_ARGS__)
#define shmem_fcollect(team, dest, ...)                                                            \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(fcollect))(team, dest, __VA_ARGS__)
#define shmem_alltoall(team, dest, ...)                                                            \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(alltoall))(team, dest, __VA_ARGS__)
#define shmem_alltoalls(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(alltoalls))(team, dest, __VA_ARGS__)
#define shmem_sum_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(sum_reduce))(team, dest, __VA_ARGS__)
#define shmem_prod_reduce(team, dest, ...)                                                         \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(prod_reduce))(team, dest, __VA_ARGS__)
#define shmem_min_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(min_reduce))(team, dest, __VA_ARGS__)
#define shmem_max_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(max_reduce))(team, dest, __VA_ARGS__)
#define shmem_and_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(and_reduce))(team, dest, __VA_ARGS__)
#define shmem_or_reduce(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(or_reduce))(team, dest, __VA_ARGS__)
#define shmem_xor_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(xor_reduce))(team, dest, __VA_ARGS__)

#endif
