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

/* Types of smallest and largest values; those of puts and gets. */
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

/* Types of sums and products that have no order. */
#define SHMEM_COMPLEX_TYPES(X) X(complexf, float _Complex) X(complexd, double _Complex)

/* Sizes of elements, in bits, of calls that are named for them. */
#define SHMEM_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

#define SHMEM_ATOMIC_NAMES(operation)                                                              \
    int : shmem_int_##operation,                                                                   \
          long : shmem_long_##operation,                                                           \
                 long long : shmem_longlong_##operation,                                           \
                             unsigned int : shmem_uint_##operation,                                \
                                            unsigned long : shmem_ulong_##operation,               \
                                                            unsigned long long                     \
        : shmem_ulonglong_##operation

#define SHMEM_WAIT_NAMES(operation)                                                                \
    SHMEM_ATOMIC_NAMES(operation), short : shmem_short_##operation,                                \
                                           unsigned short : shmem_ushort_##operation

#define SHMEM_SWAP_NAMES(operation)                                                                \
    SHMEM_ATOMIC_NAMES(operation), float : shmem_float_##operation,                                \
                                           double : shmem_double_##operation

#define SHMEM_BIT_NAMES(operation)                                                                 \
    int32_t:                                                                                       \
    shmem_int32_##operation,                                                                       \
        int64_t : shmem_int64_##operation,                                                         \
                  unsigned int : shmem_uint_##operation,                                           \
                                 unsigned long : shmem_ulong_##operation,                          \
                                                 unsigned long long : shmem_ulonglong_##operation

#define SHMEM_REDUCE_BIT_NAMES(operation)                                                          \
    SHMEM_BIT_NAMES(operation), unsigned char : shmem_uchar_##operation,                           \
                                                unsigned short : shmem_ushort_##operation

#define SHMEM_NAMES(operation)                                                                     \
    SHMEM_WAIT_NAMES(operation), char : shmem_char_##operation,                                    \
                                        signed char : shmem_schar_##operation,                     \
                                                      unsigned char : shmem_uchar_##operation,     \
                                                                      float                        \
        : shmem_float_##operation,                                                                 \
          double : shmem_double_##operation,                                                       \
                   long double : shmem_longdouble_##operation

/* The function for the type that `pointer` points to. */
#define SHMEM_BY_TYPE(pointer, names) _Generic(*(pointer), names)

#endif
