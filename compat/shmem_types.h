/* Types of shmem.h: lists of OpenSHMEM's names of types, X(name, C type), and the names of
 * functions by C type. shmem.h includes it; programs do not. */
#ifndef FERRY_SHMEM_TYPES_H
#define FERRY_SHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Types of atomic operations on bits. */
#define SHMEM_BIT_TYPES(X)                                                                         \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)

/* Types of the other atomic operations on integers. */
#define SHMEM_ATOMIC_TYPES(X)                                                                      \
    SHMEM_BIT_TYPES(X)                                                                             \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(size, size_t)                                                                                \
    X(ptrdiff, ptrdiff_t)

/* Types of atomic fetch, set and swap. */
#define SHMEM_SWAP_TYPES(X) SHMEM_ATOMIC_TYPES(X) X(float, float) X(double, double)

/* Types that a PE waits for. */
#define SHMEM_WAIT_TYPES(X) SHMEM_ATOMIC_TYPES(X) X(short, short) X(ushort, unsigned short)

/* Types of reductions by bits. */
#define SHMEM_REDUCE_BIT_TYPES(X)                                                                  \
    X(uchar, unsigned char)                                                                        \
    X(ushort, unsigned short)                                                                      \
    SHMEM_BIT_TYPES(X)                                                                             \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(size, size_t)

/* Types of reductions to the smallest or largest value, and of puts and gets. */
#define SHMEM_TYPES(X)                                                                             \
    SHMEM_REDUCE_BIT_TYPES(X)                                                                      \
    X(char, char)                                                                                  \
    X(schar, signed char)                                                                          \
    X(short, short)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(ptrdiff, ptrdiff_t)                                                                          \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    X(longdouble, long double)

/* Types of sums and products that cannot be ordered by size. */
#define SHMEM_COMPLEX_TYPES(X) X(complexf, float _Complex) X(complexd, double _Complex)

/* Sizes of elements, in bits, of calls that are named for them. */
#define SHMEM_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* clang-format off */
/* The names of an operation's functions by C type; `before` is shmem_ or shmem_ctx_. */
#define SHMEM_ATOMIC_NAMES(before, operation) \
    int: before##int_##operation, long: before##long_##operation, \
    long long: before##longlong_##operation, unsigned int: before##uint_##operation, \
    unsigned long: before##ulong_##operation, unsigned long long: before##ulonglong_##operation

#define SHMEM_WAIT_NAMES(before, operation) \
    SHMEM_ATOMIC_NAMES(before, operation), short: before##short_##operation, \
    unsigned short: before##ushort_##operation

#define SHMEM_SWAP_NAMES(before, operation) \
    SHMEM_ATOMIC_NAMES(before, operation), float: before##float_##operation, \
    double: before##double_##operation

#define SHMEM_BIT_NAMES(before, operation) \
    int32_t: before##int32_##operation, int64_t: before##int64_##operation, \
    unsigned int: before##uint_##operation, unsigned long: before##ulong_##operation, \
    unsigned long long: before##ulonglong_##operation

#define SHMEM_REDUCE_BIT_NAMES(before, operation) \
    SHMEM_BIT_NAMES(before, operation), unsigned char: before##uchar_##operation, \
    unsigned short: before##ushort_##operation, int8_t: before##int8_##operation, \
    int16_t: before##int16_##operation

#define SHMEM_NAMES(before, operation) \
    SHMEM_WAIT_NAMES(before, operation), char: before##char_##operation, \
    signed char: before##schar_##operation, unsigned char: before##uchar_##operation, \
    float: before##float_##operation, double: before##double_##operation, \
    long double: before##longdouble_##operation

#define SHMEM_SUM_NAMES(before, operation) \
    SHMEM_NAMES(before, operation), float _Complex: before##complexf_##operation, \
    double _Complex: before##complexd_##operation

/* clang-format on */

/* The function for the type that `pointer` points to. */
#define SHMEM_BY_TYPE(pointer, names) _Generic(*(pointer), names)

/* Calls the function for the type of the first pointer among the arguments. If a context stands
 * before it, calls the function with a context. */
#define SHMEM_FIRST(first, ...) first
#define SHMEM_SECOND(first, second, ...) second
#define SHMEM_POINTER(first, second, ...)                                                          \
    _Generic((first), shmem_ctx_t : (second), default : (first))
#define SHMEM_CALL(names, operation, ...)                                                          \
    _Generic(SHMEM_FIRST(__VA_ARGS__, 0), shmem_ctx_t                                              \
             : SHMEM_BY_TYPE(SHMEM_POINTER(__VA_ARGS__, 0), names(shmem_ctx_, operation)), default \
             : SHMEM_BY_TYPE(SHMEM_POINTER(__VA_ARGS__, 0), names(shmem_, operation)))(            \
        __VA_ARGS__)

#endif
