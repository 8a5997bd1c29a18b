/* Generic forms of shmem.h: one name for all types, in C11. shmem.h includes it; programs do not.
 *
 * The type that `dest`, `source` or `ivar` points to chooses the function. Puts, gets and atomic
 * operations may have a context before it. */
#ifndef FERRY_SHMEM_GENERIC_H
#define FERRY_SHMEM_GENERIC_H

#include "shmem_types.h"

#define shmem_put(...) SHMEM_CALL(SHMEM_NAMES, put, __VA_ARGS__)
#define shmem_get(...) SHMEM_CALL(SHMEM_NAMES, get, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEM_CALL(SHMEM_NAMES, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEM_CALL(SHMEM_NAMES, get_nbi, __VA_ARGS__)
#define shmem_p(...) SHMEM_CALL(SHMEM_NAMES, p, __VA_ARGS__)
#define shmem_iput(...) SHMEM_CALL(SHMEM_NAMES, iput, __VA_ARGS__)
#define shmem_iget(...) SHMEM_CALL(SHMEM_NAMES, iget, __VA_ARGS__)
#define shmem_put_signal(...) SHMEM_CALL(SHMEM_NAMES, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_CALL(SHMEM_NAMES, put_signal_nbi, __VA_ARGS__)
#define shmem_g(...) SHMEM_CALL(SHMEM_NAMES, g, __VA_ARGS__)

#define shmem_atomic_fetch(...) SHMEM_CALL(SHMEM_SWAP_NAMES, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) SHMEM_CALL(SHMEM_SWAP_NAMES, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_set(...) SHMEM_CALL(SHMEM_SWAP_NAMES, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) SHMEM_CALL(SHMEM_SWAP_NAMES, atomic_swap, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) SHMEM_CALL(SHMEM_SWAP_NAMES, atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...)                                                             \
    SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                                                         \
    SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)                                                            \
    SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)                                                            \
    SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEM_CALL(SHMEM_ATOMIC_NAMES, atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)                                                            \
    SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)                                                            \
    SHMEM_CALL(SHMEM_BIT_NAMES, atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEM_CALL(SHMEM_BIT_NAMES, atomic_xor, __VA_ARGS__)

#define shmem_wait_until(ivar, ...)                                                                \
    SHMEM_BY_TYPE(ivar, SHMEM_WAIT_NAMES(shmem_, wait_until))(ivar, __VA_ARGS__)
#define shmem_test(ivar, ...) SHMEM_BY_TYPE(ivar, SHMEM_WAIT_NAMES(shmem_, test))(ivar, __VA_ARGS__)
#define shmem_wait_until_all(ivars, ...)                                                           \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_all))(ivars, __VA_ARGS__)
#define shmem_wait_until_all_vector(ivars, ...)                                                    \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_all_vector))(ivars, __VA_ARGS__)
#define shmem_wait_until_any(ivars, ...)                                                           \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_any))(ivars, __VA_ARGS__)
#define shmem_wait_until_any_vector(ivars, ...)                                                    \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_any_vector))(ivars, __VA_ARGS__)
#define shmem_wait_until_some(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_some))(ivars, __VA_ARGS__)
#define shmem_wait_until_some_vector(ivars, ...)                                                   \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, wait_until_some_vector))(ivars, __VA_ARGS__)
#define shmem_test_all(ivars, ...)                                                                 \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_all))(ivars, __VA_ARGS__)
#define shmem_test_all_vector(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_all_vector))(ivars, __VA_ARGS__)
#define shmem_test_any(ivars, ...)                                                                 \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_any))(ivars, __VA_ARGS__)
#define shmem_test_any_vector(ivars, ...)                                                          \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_any_vector))(ivars, __VA_ARGS__)
#define shmem_test_some(ivars, ...)                                                                \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_some))(ivars, __VA_ARGS__)
#define shmem_test_some_vector(ivars, ...)                                                         \
    SHMEM_BY_TYPE(ivars, SHMEM_WAIT_NAMES(shmem_, test_some_vector))(ivars, __VA_ARGS__)

#define shmem_sync(team) shmem_team_sync(team)
#define shmem_broadcast(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, broadcast))(team, dest, __VA_ARGS__)
#define shmem_collect(team, dest, ...)                                                             \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, collect))(team, dest, __VA_ARGS__)
#define shmem_fcollect(team, dest, ...)                                                            \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, fcollect))(team, dest, __VA_ARGS__)
#define shmem_alltoall(team, dest, ...)                                                            \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, alltoall))(team, dest, __VA_ARGS__)
#define shmem_alltoalls(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, alltoalls))(team, dest, __VA_ARGS__)
#define shmem_sum_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_SUM_NAMES(shmem_, sum_reduce))(team, dest, __VA_ARGS__)
#define shmem_prod_reduce(team, dest, ...)                                                         \
    SHMEM_BY_TYPE(dest, SHMEM_SUM_NAMES(shmem_, prod_reduce))(team, dest, __VA_ARGS__)
#define shmem_min_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, min_reduce))(team, dest, __VA_ARGS__)
#define shmem_max_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_NAMES(shmem_, max_reduce))(team, dest, __VA_ARGS__)
#define shmem_and_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(shmem_, and_reduce))(team, dest, __VA_ARGS__)
#define shmem_or_reduce(team, dest, ...)                                                           \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(shmem_, or_reduce))(team, dest, __VA_ARGS__)
#define shmem_xor_reduce(team, dest, ...)                                                          \
    SHMEM_BY_TYPE(dest, SHMEM_REDUCE_BIT_NAMES(shmem_, xor_reduce))(team, dest, __VA_ARGS__)

#endif
