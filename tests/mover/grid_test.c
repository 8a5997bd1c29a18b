/* Copies between grids against a loop over points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ferry/mover.h>

#include "dice.h"
#include "mover/kernels/move.h"

#ifdef FERRY_SANITIZED
enum { ROUNDS = 2000 };
#else
enum { ROUNDS = 6000 };
#endif

/* A grid with random gaps between rows and a random order of dimensions in memory. */
static ferry_grid random_grid(dice *d, ferry_region region, size_t element_bytes, size_t *bytes)
{
    ferry_grid grid = {.region = region, .element_bytes = element_bytes};
    int order[FERRY_DIMS_MAX];
    for (int i = 0; i < region.dims; i++) {
        int k = (int)dice_between(d, 0, i);
        order[i] = order[k];
        order[k] = i;
    }
    size_t stride = element_bytes;
    for (int i = 0; i < region.dims; i++) {
        grid.stride[order[i]] = (ptrdiff_t)stride;
        uint64_t gap = dice_between(d, 0, 3) == 0 ? (uint64_t)dice_between(d, 1, 3) : 0;
        stride *= ferry_region_extent(region, order[i]) + gap;
    }
    *bytes = stride;
    grid.data = malloc(stride);
    for (size_t i = 0; i < stride; i++)
        ((unsigned char *)grid.data)[i] = (unsigned char)dice_next(d);
    return grid;
}

/* Source point of a target point, for everything but coarsening. */
static ferry_point source_of(const ferry_plan_entry *c, ferry_point p)
{
    ferry_point q = c->from.low;
    for (int d = 0; d < c->to.dims; d++) {
        int64_t i = p.at[d] - c->to.low.at[d];
        if (c->relation == FERRY_SAMPLE)
            i *= c->ratio[d];
        if (c->relation == FERRY_REFINE)
            i = (p.at[d] + 1000 * c->ratio[d]) / c->ratio[d] -
                (c->to.low.at[d] + 1000 * c->ratio[d]) / c->ratio[d];
        q.at[c->axis[d]] += i;
    }
    return q;
}

/* Target point of a source point when coarsening. */
static ferry_point target_of(const ferry_plan_entry *c, ferry_point q)
{
    ferry_point p = c->to.low;
    for (int d = 0; d < c->to.dims; d++) {
        int a = c->axis[d];
        p.at[d] += (q.at[a] + 1000 * c->ratio[d]) / c->ratio[d] -
                   (c->from.low.at[a] + 1000 * c->ratio[d]) / c->ratio[d];
    }
    return p;
}

/* A random entry: `to`, then a `from` that fits. */
static ferry_plan_entry random_copy(dice *d, int dims)
{
    ferry_plan_entry c = {.relation = (uint8_t)dice_between(d, 0, 3)};
    c.to = dice_region(d, dims, dims < 3 ? 14 : dims < 5 ? 5 : 1, false);
    c.from.dims = dims;
    for (int i = 0; i < dims; i++) {
        int k = (int)dice_between(d, 0, i);
        c.axis[i] = c.axis[k];
        c.axis[k] = (int8_t)i;
    }
    for (int i = 0; i < dims; i++) {
        int64_t ratio = c.relation == FERRY_PLAIN ? 1 : dice_between(d, 1, dims < 5 ? 3 : 2);
        int64_t extent = (int64_t)ferry_region_extent(c.to, i), low = dice_between(d, -9, 9);
        c.ratio[i] = (int32_t)ratio;
        if (c.relation == FERRY_SAMPLE)
            extent = (extent - 1) * ratio + 1;
        if (c.relation == FERRY_REFINE)
            extent = (c.to.high.at[i] + 100 * ratio) / ratio -
                     (c.to.low.at[i] + 100 * ratio) / ratio + 1;
        if (c.relation == FERRY_COARSEN) {
            int64_t high = (low + 100 * ratio) / ratio + extent - 1 - 100;
            extent = high * ratio + dice_between(d, 0, ratio - 1) - low + 1;
            if (extent < 1 || (low + extent - 1 + 100 * ratio) / ratio != high + 100)
                extent = high * ratio - low + ratio;
        }
        c.from.low.at[c.axis[i]] = low;
        c.from.high.at[c.axis[i]] = low + extent - 1;
    }
    return c;
}

static int32_t reduced(ferry_reduction reduction, int32_t a, int32_t b)
{
    switch (reduction) {
    case FERRY_SUM:
        return (int32_t)((uint32_t)a + (uint32_t)b);
    case FERRY_MIN:
        return a < b ? a : b;
    case FERRY_MAX:
        return a > b ? a : b;
    case FERRY_PRODUCT:
        return (int32_t)((uint32_t)a * (uint32_t)b);
    case FERRY_AND:
        return a & b;
    case FERRY_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void one_point(const ferry_operation *op, const ferry_grid *to, ferry_point p,
                      const ferry_grid *from, ferry_point q, char *copy)
{
    char *target = copy + ((char *)ferry_grid_at(to, p) - (char *)to->data);
    const char *source = ferry_grid_at(from, q);
    if (op->reduction == FERRY_REPLACE) {
        memcpy(target, source, to->element_bytes);
        return;
    }
    for (size_t i = 0; i < to->element_bytes; i += 4) {
        int32_t a, b;
        memcpy(&a, target + i, 4);
        memcpy(&b, source + i, 4);
        a = reduced(op->reduction, a, b);
        memcpy(target + i, &a, 4);
    }
}

/* The expected memory of the target. */
static char *expect(const ferry_plan_entry *c, const ferry_operation *op, const ferry_grid *to,
                    const ferry_grid *from, size_t bytes)
{
    char *copy = malloc(bytes);
    memcpy(copy, to->data, bytes);
    const ferry_region *walked = c->relation == FERRY_COARSEN ? &c->from : &c->to;
    ferry_point p = walked->low;
    do {
        if (c->relation == FERRY_COARSEN)
            one_point(op, to, target_of(c, p), from, p, copy);
        else
            one_point(op, to, p, from, source_of(c, p), copy);
    } while (ferry_region_next(walked, &p));
    return copy;
}

/* Goal: any entry between any two grids moves what a loop over its points moves, and nothing else,
 * in one step or packed between.
 * Method: random entries, grids with gaps and permuted memory, sizes, operations; whole memory
 * compared. */
static void test_grid_move_agrees_with_points(void **state)
{
    (void)state;
    dice d = {21};
    static const size_t sizes[] = {1, 2, 4, 8, 12, 16, 24, 40, 100};
    for (int round = 0; round < ROUNDS; round++) {
        const bool many = round % 64 == 0;
        ferry_plan_entry c = random_copy(&d, (int)dice_between(&d, many ? 5 : 1, many ? 6 : 4));
        ferry_operation op = {.reduction = (ferry_reduction)dice_between(&d, 0, 7),
                              .type = FERRY_INT32};
        size_t element = sizes[dice_between(&d, op.reduction ? 2 : 0, many ? 3 : 8)];
        size_t to_bytes, from_bytes;
        if (op.reduction && element == 2)
            element = 4;
        if (c.relation == FERRY_COARSEN && op.reduction == FERRY_REPLACE)
            op.reduction = FERRY_SUM, element = 8;
        ferry_grid to =
            random_grid(&d, ferry_region_grow(c.to, ferry_point_all(1)), element, &to_bytes);
        ferry_grid from =
            random_grid(&d, ferry_region_grow(c.from, ferry_point_all(1)), element, &from_bytes);
        char *expected = expect(&c, &op, &to, &from, to_bytes), *before = malloc(to_bytes);
        memcpy(before, to.data, to_bytes);
        assert_int_equal(ferry_grid_move(&to, &from, &c, &op), 0);
        assert_memory_equal(to.data, expected, to_bytes);
        /* And in two steps, as a message carries it. */
        ferry_plan_entry pack, unpack;
        ferry_region dense;
        fy_copy_split(&c, &dense, &pack, &unpack);
        ferry_grid buffer =
            ferry_grid_over(dense, element, malloc(ferry_region_size(dense) * element));
        memcpy(to.data, before, to_bytes);
        assert_int_equal(ferry_grid_move(&buffer, &from, &pack, NULL), 0);
        assert_int_equal(ferry_grid_move(&to, &buffer, &unpack, &op), 0);
        assert_memory_equal(to.data, expected, to_bytes);
        free(buffer.data);
        free(before);
        free(expected);
        free(to.data);
        free(from.data);
    }
}

/* Goal: regions of other shapes but one size copy in their orders. Method: rows to a plane. */
static void test_grid_move_reshapes(void **state)
{
    (void)state;
    int32_t line[60], plane[12][10] = {{0}};
    for (int i = 0; i < 60; i++)
        line[i] = i;
    ferry_region r1 = ferry_region_sized(1, (int64_t[]){60});
    ferry_region r2 = ferry_region_sized(2, (int64_t[]){12, 10});
    ferry_grid from = ferry_grid_over(r1, 4, line), to = ferry_grid_over(r2, 4, plane);
    ferry_plan plan = {0};
    ferry_region part = ferry_region_make(2, (int64_t[]){1, 2}, (int64_t[]){10, 7});
    assert_int_equal(ferry_plan_copy(&plan, 0, part, 0, r1), 0);
    const ferry_plan_entry copy = ferry_plan_at(&plan, 0);
    assert_int_equal(ferry_grid_move(&to, &from, &copy, NULL), 0);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 10; j++)
            assert_int_equal(plane[i][j],
                             i >= 1 && i <= 10 && j >= 2 && j <= 7 ? (i - 1) * 6 + j - 2 : 0);
    ferry_plan_fini(&plan);
}

static void keep_larger(void *arg, void *target, ptrdiff_t target_stride, const void *source,
                        ptrdiff_t source_stride, size_t count)
{
    char *t = target;
    const char *s = source;
    *(size_t *)arg += count;
    for (; count > 0; count--, t += target_stride, s += source_stride)
        if (*(const double *)(const void *)s > *(double *)(void *)t)
            *(double *)(void *)t = *(const double *)(const void *)s;
}

/* Goal: numbers of every kind combine; the user's function sees each element once; misfits are
 * refused. Method: small rows. */
static void test_grid_move_combines(void **state)
{
    (void)state;
    double a[4] = {1, 5, 3, 7}, b[4] = {2, 4, 6, 8};
    float x[4] = {1, 5, 3, 7}, y[4] = {2, 4, 6, 8};
    int64_t i[4] = {1, 5, 3, 7}, j[4] = {2, 4, 6, 8};
    ferry_region r = ferry_region_sized(1, (int64_t[]){4});
    ferry_plan_entry copy = {.from = r, .to = r, .ratio = {1}};
    ferry_operation op = {.reduction = FERRY_SUM};
    ferry_grid ga = ferry_grid_over(r, 8, a), gb = ferry_grid_over(r, 8, b);
    assert_int_equal(ferry_grid_move(&ga, &gb, &copy, &op), 0);
    assert_true(a[0] == 3 && a[3] == 15);
    op = (ferry_operation){.reduction = FERRY_MIN, .type = FERRY_FLOAT};
    ferry_grid gx = ferry_grid_over(r, 4, x), gy = ferry_grid_over(r, 4, y);
    assert_int_equal(ferry_grid_move(&gx, &gy, &copy, &op), 0);
    assert_true(x[0] == 1 && x[1] == 4);
    op = (ferry_operation){.reduction = FERRY_MAX, .type = FERRY_INT64};
    ferry_grid gi = ferry_grid_over(r, 8, i), gj = ferry_grid_over(r, 8, j);
    assert_int_equal(ferry_grid_move(&gi, &gj, &copy, &op), 0);
    assert_true(i[0] == 2 && i[1] == 5);
    size_t seen = 0;
    op = (ferry_operation){.reduction = FERRY_USER, .fn = keep_larger, .arg = &seen};
    b[0] = 100;
    assert_int_equal(ferry_grid_move(&ga, &gb, &copy, &op), 0);
    assert_true(a[0] == 100 && a[1] == 9 && seen == 4);
    op = (ferry_operation){.reduction = FERRY_SUM, .type = FERRY_DOUBLE};
    assert_int_equal(ferry_grid_move(&gx, &gy, &copy, &op), FERRY_EINVAL);
    assert_int_equal(ferry_grid_move(&ga, &gy, &copy, NULL), FERRY_EINVAL);
    ferry_grid na = ferry_grid_over(r, 0, a), nb = ferry_grid_over(r, 0, b);
    assert_int_equal(ferry_grid_move(&na, &nb, &copy, &op), FERRY_EINVAL);
    assert_int_equal(ferry_grid_move(&na, &nb, &copy, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "elements of 0 bytes go to elements of 0"));
    assert_true(a[0] == 100);
    copy.to.high.at[0] = 4;
    assert_int_equal(ferry_grid_move(&ga, &gb, &copy, NULL), FERRY_EINVAL);
    assert_non_null(strstr(ferry_error_message(NULL), "[0:4] <= [0:3] is not inside"));
    copy.to = ferry_region_sized(1, (int64_t[]){3});
    copy.from = ferry_region_shift(copy.to, ferry_point_all(2));
    assert_int_equal(ferry_grid_move(&ga, &gb, &copy, NULL), FERRY_EINVAL);
    copy.from = copy.to;
    ferry_grid odd = ferry_grid_over(copy.to, 10, a);
    assert_int_equal(ferry_grid_move(&odd, &odd, &copy, &op), FERRY_EINVAL);
    copy.to.high.at[0] = -1;
    assert_int_equal(ferry_grid_move(&ga, &gb, &copy, NULL), FERRY_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_move_agrees_with_points),
        cmocka_unit_test(test_grid_move_reshapes),
        cmocka_unit_test(test_grid_move_combines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
