/* Marks what the core library exports for Ferry's own data library, which is linked to it, and for
 * nobody else. */
#ifndef FY_SHARED_H
#define FY_SHARED_H

#define FY_SHARED __attribute__((visibility("default")))

#endif
