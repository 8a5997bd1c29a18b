/* Layout: Z order, chunks, parents and neighbours. */
#include "fmm/layout.h"

#include <stdlib.h>

/* The place of a cell in the Z order of its level. */
uint32_t layout_box_of(const cell *c)
{
    uint32_t place = 0;
    for (int bit = c->level - 1; bit >= 0; bit--)
        for (int d = 0; d < 3; d++)
            place = 2 * place + ((uint32_t)c->at[d] >> bit & 1);
    return place;
}

static cell cell_of(int level, uint32_t place)
{
    cell c = {.level = level};
    for (int bit = 0; bit < 3 * level; bit++)
        c.at[2 - bit % 3] |= (int32_t)(place >> bit & 1) << bit / 3;
    return c;
}

/* Parents of levels 1 to `level` - 1. */
static uint32_t parents_to(int level)
{
    uint32_t count = 0;
    for (int l = 1; l < level; l++)
        count += 1u << 3 * l;
    return count;
}

cell layout_box(const layout *l, uint32_t box)
{
    return cell_of(l->level, box);
}

cell layout_parent(const layout *l, uint32_t element)
{
    uint32_t place = element - l->chunks;
    int level = 1;
    for (; place >= 1u << 3 * level; level++)
        place -= 1u << 3 * level;
    return cell_of(level, place);
}

uint32_t layout_parent_of(const layout *l, const cell *c)
{
    return l->chunks + parents_to(c->level) + layout_box_of(c);
}

uint32_t layout_box_at(const layout *l, const double at[3])
{
    cell c = {.level = l->level};
    for (int d = 0; d < 3; d++)
        c.at[d] = (int32_t)(at[d] * (double)(1L << l->level));
    return layout_box_of(&c);
}

uint32_t layout_chunk(const layout *l, uint32_t element)
{
    if (layout_is_chunk(l, element))
        return element;
    cell c = layout_parent(l, element);
    return l->chunk_of[layout_box_of(&c) << 3 * (l->level - c.level)];
}

int layout_rank(const layout *l, uint32_t element)
{
    return l->rank[layout_chunk(l, element)];
}

/* Boxes of the next chunk of a rank that has `left` boxes without one. */
static uint32_t chunk_size(uint32_t size, uint32_t left)
{
    uint32_t next = size != 0 ? size : (left + 1) / 2;
    return next < left ? next : left;
}

static void fill(layout *l, uint32_t size)
{
    for (int r = 0; r < l->ranks; r++) {
        uint32_t box = (uint32_t)((uint64_t)l->boxes * (uint64_t)r / (uint64_t)l->ranks);
        uint32_t end = (uint32_t)((uint64_t)l->boxes * ((uint64_t)r + 1) / (uint64_t)l->ranks);
        while (box < end) {
            uint32_t next = box + chunk_size(size, end - box);
            l->first[l->chunks] = box;
            l->rank[l->chunks] = r;
            while (box < next)
                l->chunk_of[box++] = l->chunks;
            l->chunks++;
        }
    }
    l->first[l->chunks] = l->boxes;
}

bool layout_init(layout *l, int level, int ranks, uint32_t size)
{
    *l = (layout){.level = level, .ranks = ranks, .boxes = 1u << 3 * level};
    l->first = malloc((l->boxes + 1) * sizeof *l->first);
    l->chunk_of = malloc(l->boxes * sizeof *l->chunk_of);
    l->rank = malloc(l->boxes * sizeof *l->rank);
    if (l->first == NULL || l->chunk_of == NULL || l->rank == NULL)
        return false;
    fill(l, size);
    l->elements = l->chunks + parents_to(level);
    return true;
}

void layout_fini(layout *l)
{
    free(l->first);
    free(l->chunk_of);
    free(l->rank);
}

/* Fills ranks in turn with runs of at most `most`. False: chunks are left. */
static bool split_by(layout *l, const double *weights, double most)
{
    int rank = 0;
    double sum = 0;
    for (uint32_t c = 0; c < l->chunks; c++) {
        if (sum + weights[c] > most && sum > 0) {
            rank++;
            sum = 0;
        }
        if (rank == l->ranks || weights[c] > most)
            return false;
        sum += weights[c];
        l->rank[c] = rank;
    }
    return true;
}

void layout_split(layout *l, const double *weights)
{
    enum { HALVINGS = 40 };
    double low = 0, high = 0;
    for (uint32_t c = 0; c < l->chunks; c++)
        high += weights[c];
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (split_by(l, weights, middle))
            high = middle;
        else
            low = middle;
    }
    (void)split_by(l, weights, high);
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts `list`, and leaves out what stands there twice and `self`. */
static uint32_t sort_unique(uint32_t *list, uint32_t count, uint32_t self)
{
    uint32_t kept = 0;
    qsort(list, count, sizeof *list, compare);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] != self && (kept == 0 || list[kept - 1] != list[i]))
            list[kept++] = list[i];
    return kept;
}

/* Appends the elements of the cells that touch `c`, with its own. */
static uint32_t add_touching(const layout *l, const cell *c, uint32_t *list, uint32_t count)
{
    const int32_t side = 1 << c->level;
    for (int i = 0; i < 27; i++) {
        cell other = {.level = c->level,
                      .at = {c->at[0] + i / 9 - 1, c->at[1] + i / 3 % 3 - 1, c->at[2] + i % 3 - 1}};
        bool inside = true;
        for (int d = 0; d < 3; d++)
            inside = inside && other.at[d] >= 0 && other.at[d] < side;
        if (inside)
            list[count++] = c->level == l->level ? l->chunk_of[layout_box_of(&other)]
                                                 : layout_parent_of(l, &other);
    }
    return count;
}

uint32_t *layout_neighbours(const layout *l, uint32_t element, uint32_t *count)
{
    const bool is_chunk = layout_is_chunk(l, element);
    const uint32_t boxes = is_chunk ? l->first[element + 1] - l->first[element] : 1;
    uint32_t *list = malloc(27 * (size_t)boxes * sizeof *list), n = 0;
    for (uint32_t i = 0; list != NULL && i < boxes; i++) {
        cell c = is_chunk ? layout_box(l, l->first[element] + i) : layout_parent(l, element);
        n = add_touching(l, &c, list, n);
    }
    if (list != NULL)
        *count = sort_unique(list, n, element);
    return list;
}
