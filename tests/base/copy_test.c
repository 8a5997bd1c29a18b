/* Goal: copies are those of memmove, whatever their size and however their ranges lie. Method:
 * sizes around one and several pieces, ranges apart and overlapping either way, against memmove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/copy.h"

enum { PIECE = FY_COPY_PIECE_BYTES, ROOM = 8 * PIECE };

static void fill(unsigned char *block)
{
    for (size_t i = 0; i < ROOM; i++)
        block[i] = (unsigned char)(i * 7 + i / 251);
}

static void test_copy_equals_memmove(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 77};
    static const size_t places[][2] = {{0, 4 * PIECE}, {4 * PIECE, 0}, {5, 6}, {6, 5},
                                       {0, PIECE + 3}, {PIECE + 3, 0}, {9, 9}};
    unsigned char *block = malloc(ROOM), *expected = malloc(ROOM);
    assert_true(block != NULL && expected != NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t j = 0; j < sizeof(places) / sizeof(places[0]); j++) {
            fill(block);
            fill(expected);
            fy_copy(block + places[j][0], block + places[j][1], sizes[i]);
            memmove(expected + places[j][0], expected + places[j][1], sizes[i]);
            assert_memory_equal(block, expected, ROOM);
        }
    }
    free(block);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy_equals_memmove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
