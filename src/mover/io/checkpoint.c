/* Checkpoints. From the floor plan every rank knows the place of each block in the file. So it
 * writes its own blocks and records without messages. With a share of a floor plan, a rank's own
 * blocks have consecutive numbers, and a sum over the ranks before it gives the place of the
 * first. */
#include "mover/io/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ferry/collective.h>
#include <ferry/mover_file.h>

#include "base/alloc.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"
#include "mover/geometry/tree.h"
#include "mover/io/disk.h"
#include "mover/plan/plan.h"

uint64_t fy_checksum(const void *data, size_t size_bytes)
{
    const unsigned char *at = data;
    uint64_t check = 0x9e3779b97f4a7c15u + size_bytes;
    while (size_bytes > 0) {
        uint64_t word = 0;
        size_t some = size_bytes < 8 ? size_bytes : 8;
        memcpy(&word, at, some);
        /* Each step is a bijection of `check` for a given word, and of the word. */
        check = (check ^ word) * 0xd6e8feb86659fd93u;
        check ^= check >> 32;
        at += some;
        size_bytes -= some;
    }
    return check;
}

static int refused(ferry *f, const char *what, const char *path)
{
    return fy_disk_refused(f, "checkpoint", what, path);
}

static int damaged(ferry *f, const char *path, const char *what)
{
    return fy_mover_fail(f, FERRY_EINVAL, "checkpoint: %s %s", path, what);
}

static uint64_t aligned(uint64_t offset)
{
    return (offset + FY_CHECKPOINT_ALIGN - 1) / FY_CHECKPOINT_ALIGN * FY_CHECKPOINT_ALIGN;
}

/* The offset of the first block. */
static uint64_t data_start(size_t block_count)
{
    return aligned(sizeof(fy_checkpoint_header) + block_count * sizeof(fy_checkpoint_record));
}

static uint64_t record_offset(size_t i)
{
    return sizeof(fy_checkpoint_header) + i * sizeof(fy_checkpoint_record);
}

/* The part of a rank. With a share its blocks have the numbers from `first` on. */
typedef struct writing {
    const ferry_xarray *x;
    uint64_t first, file_bytes;
} writing;

/* Writes block number `i` and its record; `dense` has room for it. */
static int write_block(int fd, const ferry_xarray *x, int32_t i, uint64_t offset, void *dense)
{
    const ferry_block *block = ferry_floorplan_block(&x->blocks, i);
    const ferry_grid *grid = ferry_xarray_grid(x, i);
    ferry_grid packed = ferry_grid_over(block->region, x->element_bytes, dense);
    int error = fy_disk_copy(&packed, grid, block->region);
    if (error)
        return error;
    size_t bytes = (size_t)ferry_region_size(block->region) * x->element_bytes;
    fy_checkpoint_record record = {
        .owner = (uint64_t)block->owner, .offset = offset, .data_check = fy_checksum(dense, bytes)};
    for (int d = 0; d < x->blocks.dims; d++) {
        record.low[d] = block->region.low.at[d];
        record.high[d] = block->region.high.at[d];
    }
    record.check = fy_checksum(&record, offsetof(fy_checkpoint_record, check));
    error = fy_disk_write(fd, dense, bytes, offset);
    return error ? error : fy_disk_write(fd, &record, sizeof record, record_offset((size_t)i));
}

static uint64_t block_bytes(const ferry_xarray *x, const ferry_block *block)
{
    return ferry_region_size(block->region) * x->element_bytes;
}

static bool is_own(const ferry_xarray *x, size_t i)
{
    return x->blocks.blocks[i].owner == ferry_rank(x->f);
}

/* Writes this rank's blocks. With a whole floor plan it also sets `w->file_bytes`, the end of the
 * last block. */
static int write_blocks(writing *w, int fd, void *dense)
{
    const ferry_xarray *x = w->x;
    const bool whole = x->blocks.numbers == NULL;
    uint64_t offset = whole ? data_start(x->blocks.count) : w->first;
    int error = 0;
    for (size_t i = 0; i < x->blocks.count && error == 0; i++) {
        if (is_own(x, i))
            error = write_block(fd, x, fy_block_number(&x->blocks, i), offset, dense);
        if (whole || is_own(x, i))
            offset = aligned(offset + block_bytes(x, &x->blocks.blocks[i]));
    }
    if (whole)
        w->file_bytes = offset;
    return error;
}

/* Writes this rank's part; the first member writes the header too. */
static int write_part(void *arg, int fd, const char *path, uint64_t number)
{
    writing *w = arg;
    const ferry_xarray *x = w->x;
    uint64_t largest = 1;
    (void)number;
    for (size_t i = 0; i < x->blocks.count; i++) {
        const uint64_t bytes = block_bytes(x, &x->blocks.blocks[i]);
        largest = is_own(x, i) && bytes > largest ? bytes : largest;
    }
    void *dense = fy_malloc(largest);
    if (dense == NULL)
        return fy_mover_fail(x->f, FERRY_ENOMEM, "checkpoint: no memory for a block");
    int error = write_blocks(w, fd, dense);
    free(dense);
    fy_checkpoint_header header = {.version = FY_CHECKPOINT_VERSION,
                                   .dims = (uint32_t)x->blocks.dims,
                                   .element_bytes = x->element_bytes,
                                   .block_count = x->blocks.numbers != NULL ? x->blocks.total
                                                                            : x->blocks.count,
                                   .file_bytes = w->file_bytes};
    memcpy(header.magic, FY_CHECKPOINT_MAGIC, sizeof header.magic);
    header.check = fy_checksum(&header, offsetof(fy_checkpoint_header, check));
    const bool first = fy_mover_place(x->f) == 0;
    if (error == 0 && first)
        error = fy_disk_write(fd, &header, sizeof header, 0);
    if (error == 0 && first)
        error = fy_disk_resize(fd, w->file_bytes);
    return error == FERRY_ESYSTEM ? refused(x->f, "write", path) : error;
}

/* Finds the place of this rank's blocks, and the size of the file. */
static int place_share(writing *w)
{
    const ferry_xarray *x = w->x;
    uint64_t bytes = 0, before = 0;
    for (size_t i = 0; i < x->blocks.count; i++)
        if (is_own(x, i))
            bytes += aligned(block_bytes(x, &x->blocks.blocks[i]));
    int error = ferry_scan(x->f, FERRY_UINT64, FERRY_SUM, &bytes, &before, 1);
    if (error == 0)
        error = ferry_allreduce(x->f, FERRY_UINT64, FERRY_SUM, &bytes, &bytes, 1);
    w->first = data_start(x->blocks.total) + before;
    w->file_bytes = data_start(x->blocks.total) + bytes;
    return error;
}

int ferry_checkpoint_write(const ferry_xarray *x, const char *path)
{
    writing w = {.x = x};
    const fy_disk_writer writer = {.who = "checkpoint", .fill = write_part, .arg = &w};
    int error = x->blocks.numbers != NULL ? place_share(&w) : 0;
    return error ? error : fy_disk_replace(x->f, 0, path, &writer);
}

enum { RECORDS_HELD = 256 };

/* A checkpoint that is open for reading. A part of its table is in memory. */
typedef struct reader {
    ferry *f;
    const char *path;
    int fd;
    fy_checkpoint_header header;
    fy_checkpoint_record *records; /* from number `first` on */
    size_t first, held;
} reader;

static int check_record(const reader *r, size_t i, uint64_t file_bytes)
{
    const fy_checkpoint_record *record = &r->records[i - r->first];
    ferry_region region = ferry_region_make((int)r->header.dims, record->low, record->high);
    uint64_t size = ferry_region_size(region);
    bool good = record->check == fy_checksum(record, offsetof(fy_checkpoint_record, check)) &&
                size > 0 && size <= file_bytes / r->header.element_bytes &&
                record->offset <= file_bytes && record->owner <= INT32_MAX &&
                size * r->header.element_bytes <= file_bytes - record->offset;
    if (good)
        return 0;
    return fy_mover_fail(r->f, FERRY_EINVAL, "checkpoint: %s: the record of block %zu is damaged",
                         r->path, i);
}

/* Reads and checks record `i`. Lends it until the next call. */
static int find_record(reader *r, size_t i, const fy_checkpoint_record **out)
{
    int error = 0;
    if (i < r->first || i >= r->first + r->held) {
        const size_t left = (size_t)r->header.block_count - i;
        r->first = i;
        r->held = left < RECORDS_HELD ? left : RECORDS_HELD;
        if (fy_disk_read(r->fd, r->records, r->held * sizeof *r->records, record_offset(i)))
            error = refused(r->f, "read", r->path);
        for (size_t k = i; k < i + r->held && error == 0; k++)
            error = check_record(r, k, r->header.file_bytes);
        if (error)
            r->held = 0;
    }
    *out = &r->records[i - r->first];
    return error;
}

/* Reads the header and the table. Checks all of it before it is used. */
static int read_table(reader *r)
{
    struct stat status;
    fy_checkpoint_header *h = &r->header;
    int error = fy_disk_read(r->fd, h, sizeof *h, 0);
    if (error == 0 && (memcmp(h->magic, FY_CHECKPOINT_MAGIC, sizeof h->magic) != 0 ||
                       h->check != fy_checksum(h, offsetof(fy_checkpoint_header, check))))
        error = FERRY_EINVAL;
    if (error == FERRY_EINVAL)
        return damaged(r->f, r->path, "is no checkpoint, or its header is damaged");
    if (error != 0 || fstat(r->fd, &status) != 0)
        return refused(r->f, "read", r->path);
    if (h->version != FY_CHECKPOINT_VERSION)
        return damaged(r->f, r->path, "is of another version");
    if ((uint64_t)status.st_size < h->file_bytes)
        return damaged(r->f, r->path, "is cut short");
    if (h->dims < 1 || h->dims > FERRY_DIMS_MAX || h->element_bytes == 0 ||
        h->block_count > INT32_MAX || data_start(h->block_count) > h->file_bytes)
        return damaged(r->f, r->path, "has a header with impossible values");
    r->records = fy_malloc(RECORDS_HELD * sizeof *r->records);
    if (r->records == NULL)
        return fy_mover_fail(r->f, FERRY_ENOMEM, "checkpoint: no memory for %s", r->path);
    const fy_checkpoint_record *unused;
    for (size_t i = 0; i < h->block_count && error == 0; i++)
        error = find_record(r, i, &unused);
    return error;
}

static void reader_close(reader *r)
{
    free(r->records);
    if (r->fd >= 0)
        close(r->fd);
}

static int reader_open(reader *r, ferry *f, const char *path)
{
    *r = (reader){.f = f, .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (r->fd < 0)
        return refused(f, "open", path);
    int error = read_table(r);
    if (error)
        reader_close(r);
    return error;
}

static int make_plan(reader *r, ferry_floorplan *out)
{
    ferry_floorplan plan = {.dims = (int32_t)r->header.dims};
    int error = 0;
    for (size_t i = 0; i < r->header.block_count && error == 0; i++) {
        const fy_checkpoint_record *record;
        error = find_record(r, i, &record);
        if (error)
            break;
        error = ferry_floorplan_add(&plan, ferry_region_make(plan.dims, record->low, record->high),
                                    (int)record->owner);
        if (error)
            (void)fy_mover_fail(r->f, error, "checkpoint: no memory for %s", r->path);
    }
    if (error)
        ferry_floorplan_fini(&plan);
    else
        *out = plan;
    return error;
}

int ferry_checkpoint_plan(ferry *f, const char *path, ferry_floorplan *blocks,
                          size_t *element_bytes)
{
    reader r;
    int error = reader_open(&r, f, path);
    if (error)
        return error;
    error = make_plan(&r, blocks);
    if (error == 0)
        *element_bytes = (size_t)r.header.element_bytes;
    reader_close(&r);
    return error;
}

/* Reads block `i` of the file and copies it to the grids of `x` that it intersects. If it
 * intersects none, it is not read. */
static int read_block(reader *r, size_t i, const fy_tree *grids, ferry_xarray *x)
{
    const fy_checkpoint_record *record;
    int error = find_record(r, i, &record);
    if (error)
        return error;
    const ferry_region block = ferry_region_make(x->blocks.dims, record->low, record->high);
    const ferry_region *region = &block;
    fy_tree_walk walk;
    uint32_t number;
    const ferry_region *whole;
    fy_tree_find(&walk, grids, region);
    if (!fy_tree_next(&walk, &number, &whole))
        return 0;
    size_t bytes = (size_t)ferry_region_size(*region) * x->element_bytes;
    void *dense = fy_malloc(bytes);
    if (dense == NULL)
        return fy_mover_fail(r->f, FERRY_ENOMEM, "checkpoint: no memory for block %zu", i);
    error = fy_disk_read(r->fd, dense, bytes, record->offset);
    if (error == FERRY_ESYSTEM)
        error = refused(r->f, "read", r->path);
    else if (error || fy_checksum(dense, bytes) != record->data_check)
        error = fy_mover_fail(r->f, FERRY_EINVAL, "checkpoint: %s: block %zu %s is damaged",
                              r->path, i, fy_region_show(region).text);
    const ferry_grid packed = ferry_grid_over(*region, x->element_bytes, dense);
    while (error == 0) {
        error = fy_disk_copy(&x->grids[number], &packed, ferry_region_intersect(*region, *whole));
        if (!fy_tree_next(&walk, &number, &whole))
            break;
    }
    free(dense);
    return error;
}

int ferry_checkpoint_read(const char *path, ferry_xarray *x)
{
    reader r;
    fy_tree grids;
    int error = reader_open(&r, x->f, path);
    if (error)
        return error;
    if ((int32_t)r.header.dims != x->blocks.dims || r.header.element_bytes != x->element_bytes) {
        error = fy_mover_fail(x->f, FERRY_EINVAL,
                              "checkpoint: %s has %u dimensions and elements of %llu bytes, the "
                              "xarray %d and %zu",
                              path, r.header.dims, (unsigned long long)r.header.element_bytes,
                              x->blocks.dims, x->element_bytes);
        reader_close(&r);
        return error;
    }
    error =
        fy_tree_init(&grids, x->blocks.dims, &x->grids->region, sizeof *x->grids, x->local_count);
    for (size_t i = 0; i < r.header.block_count && error == 0; i++)
        error = read_block(&r, i, &grids, x);
    fy_tree_fini(&grids);
    reader_close(&r);
    return error;
}
