/* Calls of the C library that a test makes fail, once or all. Linked with --wrap for each (the list
 * stands in tests/core/CMakeLists.txt). Also counts what has been allocated and not been freed. */
#ifndef FY_TEST_FAILING_H
#define FY_TEST_FAILING_H

#include <stdbool.h>

/* Call number `count` from now, from 0, fails; negative: none does. */
void failing_set(long count);

/* Whether the call that was to fail has failed. */
bool failing_reached(void);

/* All allocations fail until this is called again. */
void failing_all(bool on);

/* Blocks that wrapped calls have given and not got back. */
long failing_blocks(void);

#endif
