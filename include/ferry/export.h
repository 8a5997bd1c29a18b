/* Marks what the libraries export, and the attributes that public headers use. */
#ifndef FERRY_EXPORT_H
#define FERRY_EXPORT_H

#define FERRY_VERSION_MAJOR 0
#define FERRY_VERSION_MINOR 1
#define FERRY_VERSION_PATCH 0
#define FERRY_VERSION "0.1.0"

#if defined(__GNUC__)
#define FERRY_API __attribute__((visibility("default")))
#define FERRY_MUST_USE __attribute__((warn_unused_result))
#else
#define FERRY_API
#define FERRY_MUST_USE
#endif

/* The initialiser of a struct that does not begin with its size, such as ferry_message: all zero.
 * C11 and C++17 accept it without a warning. */
#if defined(__cplusplus)
#define FERRY_ZERO                                                                                 \
    {                                                                                              \
    }
#else
#define FERRY_ZERO                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }
#endif

/* A conversion that C11 and C++17 accept without a warning, for inline functions of headers. */
#if defined(__cplusplus)
#define FERRY_CAST(type, value) static_cast<type>(value)
#else
#define FERRY_CAST(type, value) ((type)(value))
#endif

#endif
