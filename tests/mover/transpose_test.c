/* Goal: transpositions of every size move each element where it belongs and write nothing else,
 * near ones and streamed ones, with and without rests of tiles, where lines begin and where they do
 * not. Method: cubes of three axes turned round into the middle of a larger array, each element
 * with a value of its own, beside what cannot be touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover.h>

enum { LINE = 64, UNTOUCHED = 0x5a };

typedef struct cube {
    int64_t n[3];     /* extents of the source */
    size_t element;   /* bytes */
    int64_t margin;   /* elements before and after a row of the target */
    int64_t past_row; /* more elements to a row of it */
} cube;

/* Bytes that tell the element with that number from its neighbours. */
static void write_element(char *out, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(i % 4 < 3 ? (number >> 8 * (i % 4)) * 3 + i : number + i);
}

static void *memory(uint64_t bytes, int fill)
{
    void *data = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    assert_non_null(data);
    return memset(data, fill, bytes);
}

static void compare(const cube *c, const ferry_grid *to)
{
    const ferry_region all = to->region;
    char *wanted = malloc(c->element);
    bool same = true;
    for (ferry_point p = all.low; same;) {
        const int64_t i = p.at[2], j = p.at[1], k = p.at[0];
        memset(wanted, UNTOUCHED, c->element);
        if (i >= 0 && j >= 0 && k >= 0 && i < c->n[0] && j < c->n[1] && k < c->n[2])
            write_element(wanted, c->element, (uint64_t)((i * c->n[1] + j) * c->n[2] + k));
        same = memcmp(ferry_grid_at(to, p), wanted, c->element) == 0;
        if (!ferry_region_next(&all, &p))
            break;
    }
    free(wanted);
    assert_true(same);
}

static void turn(const cube *c)
{
    const uint64_t count = (uint64_t)(c->n[0] * c->n[1] * c->n[2]);
    ferry_plan_entry entry = {.relation = FERRY_PLAIN};
    entry.from = ferry_region_sized(3, c->n);
    entry.to = ferry_region_sized(3, (int64_t[]){c->n[2], c->n[1], c->n[0]});
    for (int d = 0; d < FERRY_DIMS_MAX; d++) {
        entry.axis[d] = (int8_t)(d < 3 ? 2 - d : d);
        entry.ratio[d] = 1;
    }
    ferry_region whole = ferry_region_grow(entry.to, ferry_point_all(1));
    whole.low.at[2] -= c->margin - 1;
    whole.high.at[2] += c->margin - 1;
    whole.high.at[2] += c->past_row;
    char *source = memory(count * c->element, 0);
    for (uint64_t i = 0; i < count; i++)
        write_element(source + i * c->element, c->element, i);
    const ferry_grid from = ferry_grid_over(entry.from, c->element, source);
    const ferry_grid to = ferry_grid_over(whole, c->element,
                                          memory(ferry_region_size(whole) * c->element, UNTOUCHED));
    assert_int_equal(ferry_grid_move(&to, &from, &entry, NULL), 0);
    compare(c, &to);
    free(source);
    free(to.data);
}

/* Every size of elements; under a sanitizer, which looks at each byte, every second. */
#ifdef FERRY_SANITIZED
enum { STEP = 2 };
#else
enum { STEP = 1 };
#endif

/* Rows of the target are a number of lines and so is the margin, as movers find it in arrays whose
 * extents are powers of two: then large ones are streamed. */
static void test_transpose_by_whole_lines(void **state)
{
    static const size_t elements[] = {1, 2, 4, 8, 16, 32, 64};
    (void)state;
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e += STEP) {
        const int64_t line = (int64_t)(LINE / elements[e]);
        for (int rest = 0; rest < 4; rest++) {
            cube c = {.element = elements[e], .margin = line};
            c.n[0] = 2 * line + rest; /* a row of the target ends within a tile */
            c.past_row = (line - rest % line) % line;
            c.n[1] = rest == 2 ? 1 : 3;
            c.n[2] = (1 << 20) / (c.n[0] * c.n[1] * (int64_t)c.element) + 1 + 5 * rest;
            turn(&c);
            c.n[2] = 21 - rest; /* and a small one */
            turn(&c);
        }
    }
}

/* Nothing is aligned. */
static void test_transpose_anywhere(void **state)
{
    static const size_t elements[] = {3, 4, 8, 12, 16, 24};
    (void)state;
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
        turn(&(cube){
            .n = {37, 3, 11000 / (int64_t)elements[e] + 400}, .element = elements[e], .margin = 1});
        turn(&(cube){.n = {19, 2, 33}, .element = elements[e], .margin = 3, .past_row = 1});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose_by_whole_lines),
        cmocka_unit_test(test_transpose_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
