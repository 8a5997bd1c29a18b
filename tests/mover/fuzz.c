/* Goal: no bytes of a file, of a text or of another rank make the mover crash, hang, or accept what
 * is not valid. A refusal has a message, and what comes after it works. Method: from a seed. The
 * first argument says what to do:
 * - text changes texts of regions and points.
 * - file changes a checkpoint, a byte, a field or a length at a time, and reads it; half of the
 *   times with checksums that fit again.
 * - frames has the last rank send the first frames of every kind with contents that are random or
 *   nearly right: before, while and after the ranks make shares of floor plans and movers together.
 *
 * The other arguments are how often or, ending in s, how many seconds, and the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ferry/mover_file.h>

#include "arrays.h"
#include "core/outgoing.h"
#include "mover/bind/exchange.h"
#include "mover/geometry/box.h"
#include "mover/io/checkpoint.h"
#include "mover/run/state.h"
#include "odd.h"

static void text(ferry *f, dice *d)
{
    static const char *const texts[] = {"[0:9,0:4]", "[]", "( 1 , -2,3)", "()",
                                        "[-2305843009213693952:2305843009213693952]"};
    char any[64], again[400];
    size_t size = strlen(strcpy(any, texts[dice_between(d, 0, 4)]));
    ferry_region r = {.dims = -7}, s;
    ferry_point p, q;
    int dims = -7, same;
    for (int64_t i = dice_between(d, 0, 3); i >= 0; i--)
        change(d, (unsigned char *)any, &size, sizeof any - 1);
    any[size] = '\0';
    if (ferry_region_parse(any, &r) == 0) {
        CHECK(r.dims == 0 || fy_box_is_sound(&r, r.dims));
        ferry_region_format(r, again, sizeof again);
        CHECK(ferry_region_parse(again, &s) == 0 && memcmp(&r, &s, sizeof r) == 0);
    } else {
        CHECK(r.dims == -7);
    }
    if (ferry_point_parse(any, &p, &dims) == 0) {
        CHECK(dims >= 0 && dims <= FERRY_DIMS_MAX);
        ferry_point_format(p, dims, again, sizeof again);
        CHECK(ferry_point_parse(again, &q, &same) == 0 && same == dims);
        CHECK(memcmp(&p, &q, sizeof p) == 0);
    } else {
        CHECK(dims == -7);
    }
}

enum { FILE_MAX = 1 << 17 };

/* Makes the checksums of header and records fit what they say. */
static void mend(unsigned char *bytes, size_t size_bytes)
{
    fy_checkpoint_header h;
    if (size_bytes < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    h.check = fy_checksum(&h, offsetof(fy_checkpoint_header, check));
    memcpy(bytes, &h, sizeof h);
    for (size_t at = sizeof h; at + sizeof(fy_checkpoint_record) <= size_bytes && at < 8192;
         at += sizeof(fy_checkpoint_record)) {
        fy_checkpoint_record record;
        memcpy(&record, bytes + at, sizeof record);
        record.check = fy_checksum(&record, offsetof(fy_checkpoint_record, check));
        memcpy(bytes + at, &record, sizeof record);
    }
}

/* Header and table as a machine of the other byte order would have written them. */
static void swap_bytes(unsigned char *bytes, size_t size_bytes)
{
    uint64_t word;
    uint32_t half;
    for (size_t at = 8; at + 8 <= size_bytes && at < 2048; at += 8) {
        memcpy(&word, bytes + at, 8);
        word = __builtin_bswap64(word);
        memcpy(bytes + at, &word, 8);
    }
    for (size_t at = 8; at < 16 && at + 4 <= size_bytes; at += 4) {
        memcpy(&half, bytes + at, 4);
        half = __builtin_bswap32(half);
        memcpy(bytes + at, &half, 4);
    }
}

typedef struct sample {
    unsigned char bytes[FILE_MAX], changed[FILE_MAX];
    size_t size_bytes;
    char path[64];
    int fd;
    ferry_xarray *x;
} sample;

static sample *make_sample(ferry *f)
{
    ferry_floorplan blocks;
    char path[64];
    sample *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    CHECK(ferry_floorplan_tile(box(2, 12), ferry_point_of(5, 4, 0), &blocks) == 0);
    s->x = make_array(f, &blocks, ferry_point_all(1), false);
    fill(s->x, 3);
    snprintf(path, sizeof path, "fuzz_%ld.chk", (long)getpid());
    CHECK(ferry_checkpoint_write(s->x, path) == 0);
    FILE *in = fopen(path, "rb");
    CHECK(in != NULL);
    s->size_bytes = fread(s->bytes, 1, sizeof s->bytes, in);
    fclose(in);
    unlink(path);
    CHECK(s->size_bytes > 4096 && s->size_bytes < sizeof s->bytes);
    s->fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(s->fd >= 0);
    snprintf(s->path, sizeof s->path, "/proc/self/fd/%d", s->fd);
    ferry_floorplan_fini(&blocks);
    return s;
}

static void read_file(ferry *f, const sample *s, size_t size_bytes)
{
    ferry_floorplan blocks = {.dims = -7};
    size_t element_bytes = 0;
    CHECK(ftruncate(s->fd, 0) == 0);
    CHECK(pwrite(s->fd, s->changed, size_bytes, 0) == (ssize_t)size_bytes);
    int error = ferry_checkpoint_plan(f, s->path, &blocks, &element_bytes);
    if (error == 0) {
        CHECK(element_bytes > 0);
        CHECK(ferry_floorplan_check(f, &blocks, INT32_MAX, (ferry_region){0}, 0) == 0 ||
              strlen(ferry_error_message(f)) > 0);
        ferry_floorplan_fini(&blocks);
    } else {
        CHECK(error == FERRY_EINVAL && blocks.dims == -7);
        CHECK(strstr(ferry_error_message(f), s->path) != NULL);
    }
    error = ferry_checkpoint_read(s->path, s->x);
    CHECK(error == 0 || (error == FERRY_EINVAL && strstr(ferry_error_message(f), s->path) != NULL));
}

static void file(ferry *f, dice *d, sample *s)
{
    size_t size_bytes = s->size_bytes;
    memcpy(s->changed, s->bytes, size_bytes);
    const int64_t what = dice_between(d, 0, 15);
    for (int64_t i = dice_between(d, 0, 3); i >= 0 && what > 0; i--) {
        size_t head = dice_between(d, 0, 3) ? (size_bytes < 1200 ? size_bytes : 1200) : size_bytes;
        const bool all = head == size_bytes;
        change(d, s->changed, &head, FILE_MAX);
        if (all || dice_between(d, 0, 7) == 0)
            size_bytes = head;
    }
    if (what == 1)
        swap_bytes(s->changed, size_bytes);
    if (what > 1 && what % 2 == 0)
        mend(s->changed, size_bytes);
    read_file(f, s, size_bytes);
}

/* One frame that fits nothing, or nearly fits what comes next. */
static void send_odd(ferry *f, dice *d)
{
    uint64_t data[64];
    const fy_movers *movers = fy_movers_of(f);
    fy_frame frame = {.kind = FY_KIND_MOVER,
                      .word_count = 3,
                      .aux = (uint32_t)dice_between(d, 0, FY_MOVER_POST + 1),
                      .data = data,
                      .size_bytes = dice_next(d) % sizeof data};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = odd(d);
    for (int i = 0; i < 3; i++)
        frame.words[i] = odd(d);
    if (dice_between(d, 0, 3) > 0)
        frame.words[0] = frame.aux == FY_MOVER_POST
                             ? movers->next_exchange + dice_next(d) % 2
                             : fy_mover_name(movers->next - (uint32_t)(dice_next(d) % 2), 1);
    if (frame.aux == FY_MOVER_POST && dice_between(d, 0, 3) > 0) {
        /* The parts of a share: a region, then two halves of a word. */
        ferry_region *r = (ferry_region *)(void *)data;
        *r = dice_region(d, 2, 20, true);
        r->dims = dice_between(d, 0, 3) > 0 ? 2 : (int32_t)odd(d);
        if (dice_between(d, 0, 3) == 0)
            r->high.at[dice_between(d, 0, 1)] = (int64_t)odd(d);
        frame.words[1] = dice_next(d) % 2;
        frame.words[2] = 0;
        frame.size_bytes = sizeof *r + 8;
        data[sizeof *r / 8] = dice_between(d, 0, 1) ? odd(d) : dice_next(d) % 9;
    }
    CHECK(fy_send(f, FY_DATA, 0, &frame) == 0);
}

static void send_many(ferry *f, dice *d)
{
    if (ferry_rank(f) == ferry_ranks(f) - 1 && ferry_rank(f) > 0)
        for (int64_t i = dice_between(d, 0, 4); i > 0; i--)
            send_odd(f, d);
}

static bool all_went_on(ferry *f, int error)
{
    uint64_t failed = error != 0;
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &failed, &failed, 1) == 0);
    return failed == 0;
}

/* Whether odd frames are sent, may have been, or have all been handled. */
typedef enum stage { SEND, SUFFER, CLEAN } stage;

static void move(ferry *f, const ferry_plan *plan, ferry_xarray *x, stage at)
{
    ferry_mover *m;
    int error = ferry_mover_bind(f, plan, x, x, NULL, &m);
    if (error == 0) {
        error = ferry_mover_start(m, NULL);
        error = error ? error : ferry_mover_wait(m);
        CHECK(ferry_mover_free(m) == 0);
    }
    CHECK(error == 0 || (at != CLEAN && strlen(ferry_error_message(f)) > 0));
}

/* A share and a mover over it; but at CLEAN each may fail, and says why. */
static void together(ferry *f, dice *d, stage at)
{
    ferry_floorplan own = {.dims = 2}, share = {.dims = -7};
    ferry_regions near = {0};
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_plan plan = {0};
    ferry_xarray *x;
    halo.low = halo.high = ferry_point_all(1);
    for (int i = 0; i < 4; i++)
        CHECK(ferry_floorplan_add(
                  &own, ferry_region_shift(box(2, 5), ferry_point_of(5 * ferry_rank(f), 5 * i, 0)),
                  0) == 0);
    CHECK(ferry_halo_near(&own, &halo, &near) == 0);
    if (at == SEND)
        send_many(f, d);
    int error = ferry_floorplan_share(f, &own, &near, &share);
    CHECK(error == 0 || (at != CLEAN && strlen(ferry_error_message(f)) > 0 && share.dims == -7));
    if (error == 0) {
        error = ferry_xarray_create(f, &share, sizeof(double), halo.low, &x);
        CHECK(error == 0 || at != CLEAN);
        const bool have = error == 0;
        if (have)
            error = ferry_plan_halo(&plan, &share, &halo, ferry_rank(f));
        if (all_went_on(f, error)) {
            if (at == SEND)
                send_many(f, d);
            move(f, &plan, x, at);
        } else {
            CHECK(at != CLEAN);
        }
        if (have)
            ferry_xarray_destroy(x);
        ferry_floorplan_fini(&share);
    }
    ferry_plan_fini(&plan);
    ferry_regions_fini(&near);
    ferry_floorplan_fini(&own);
    CHECK(ferry_barrier(f) == 0);
}

static void nothing(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
}

/* A message has been handled when a request that was sent after it has. */
static void drain(ferry *f, ferry_handler behind)
{
    const ferry_message message = {.handler = behind};
    if (ferry_rank(f) == ferry_ranks(f) - 1)
        CHECK(ferry_request_sync(f, 0, &message) == 0);
    CHECK(ferry_barrier(f) == 0);
}

/* A handshake may be kept for the mover after next, which is then refused, but no other. */
static void frames(ferry *f, dice *d, ferry_handler behind)
{
    const dice silent = *d;
    send_many(f, d);
    together(f, d, SEND);
    drain(f, behind);
    *d = (dice){silent.state + 1};
    together(f, d, SUFFER);
    together(f, d, CLEAN);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "text", *often = argc > 2 ? argv[2] : "1000";
    const bool timed = strchr(often, 's') != NULL;
    const uint64_t start = ferry_now(f), most = strtoull(often, NULL, 10);
    dice d = {argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
    sample *s = strcmp(what, "file") == 0 ? make_sample(f) : NULL;
    uint64_t i = 0, over = 0;
    ferry_handler behind;
    CHECK(ferry_handler_register(f, "behind", nothing, &behind) == 0);
    for (; !over; i++) {
        if (strcmp(what, "text") == 0)
            text(f, &d);
        else if (s != NULL)
            file(f, &d, s);
        else
            frames(f, &d, behind);
        over = timed ? ferry_now(f) - start >= most * 1000000000u : i + 1 >= most;
        if (s == NULL && strcmp(what, "frames") == 0)
            CHECK(ferry_broadcast(f, 0, &over, sizeof over) == 0);
    }
    if (ferry_rank(f) == 0)
        printf("%s: %llu rounds\n", what, (unsigned long long)i);
    if (s != NULL) {
        close(s->fd);
        free_array(s->x);
        free(s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
