/* Goal: HDF5 files and blocks that do not fit are refused, with what was expected, and an earlier
 * file stays. No change of a file's bytes makes reading it crash, hang, or fail without a message.
 * Method: a program of any number of ranks that makes bad files with the HDF5 library, and changes
 * good ones from a seed. Arguments: where the files are, how many are changed, the seed. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "crashing.h"
#include "kinds.h"
#include "odd.h"

/* How a dataset of another program differs from what is expected. */
typedef struct foreign {
    const char *says; /* in rank 0's message; NULL: it is read */
    int layout;       /* H5D_layout_t, or -1: late */
    int dims;
    hsize_t extent[3];
} foreign;

static hid_t foreign_type(size_t i)
{
    return i == 0   ? H5T_IEEE_F64BE
           : i == 1 ? H5T_IEEE_F32LE
           : i == 2 ? H5T_STD_U64LE
                    : H5T_IEEE_F64LE;
}

static const foreign foreigners[] = {
    {"big-endian floats of 64 bits, expected little-endian float64", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"floats of 32 bits, expected little-endian float64", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"unsigned integers of 64 bits, expected", H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {"extents 5 x 6, expected 6 x 5", H5D_CONTIGUOUS, 2, {5, 6, 0}},
    {"extents 6 x 5 x 1, expected 6 x 5", H5D_CONTIGUOUS, 3, {6, 5, 1}},
    {"extents 30, expected 6 x 5", H5D_CONTIGUOUS, 1, {30, 0, 0}},
    {"is chunked or compressed, expected a contiguous one", H5D_CHUNKED, 2, {6, 5, 0}},
    {"is compact, expected a contiguous one", H5D_COMPACT, 2, {6, 5, 0}},
    {"has never been written", -1, 2, {6, 5, 0}},
    {NULL, H5D_CONTIGUOUS, 2, {6, 5, 0}},
    {NULL, H5D_CONTIGUOUS, 3, {1, 6, 5}},
};

static void make_foreign(ferry *f, const char *path, const kind *k, size_t i)
{
    const foreign *g = &foreigners[i];
    double values[30];
    ferry_region domain = domain_of(k);
    ferry_point p = domain.low;
    int n = 0;
    do
        values[n++] = wanted_at(k, p, 0);
    while (ferry_region_next(&domain, &p));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(g->dims, g->extent, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_layout(how, g->layout < 0 ? H5D_CONTIGUOUS : (H5D_layout_t)g->layout) >= 0);
    CHECK(g->layout != H5D_CHUNKED || H5Pset_chunk(how, g->dims, g->extent) >= 0);
    hid_t array = H5Dcreate2(file, "value", foreign_type(i), space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(array >= 0);
    CHECK(g->layout < 0 ||
          H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    CHECK(H5Dclose(array) >= 0 && H5Pclose(how) >= 0 && H5Sclose(space) >= 0);
    CHECK(H5Fclose(file) >= 0);
}

static bool refused(ferry *f, int error, const char *says)
{
    bool first = ferry_rank(f) == 0;
    return error == FERRY_EINVAL && (!first || strstr(ferry_error_message(f), says) != NULL);
}

static const kind small = {"bad.h5", "value", "value",      FERRY_DOUBLE,
                           1,        2,       {0, 0, 0, 0}, {5, 4, 0, 0}};

static void read_foreign(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 2, 1);
    for (size_t i = 0; i < sizeof foreigners / sizeof *foreigners; i++) {
        if (ferry_rank(f) == 0)
            make_foreign(f, path, &small, i);
        CHECK(ferry_barrier(f) == 0);
        int error = read_kind(&small, x, path);
        if (foreigners[i].says != NULL)
            CHECK(refused(f, error, foreigners[i].says));
        else
            CHECK(error == 0);
        if (error == 0)
            check_numbers(f, &small, x);
        CHECK(ferry_barrier(f) == 0);
    }
    ferry_xarray_destroy(x);
}

/* A file that lost its end, at every length; and no HDF5 file, no such dataset, no file. */
static void read_damaged(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 2, 0);
    kind other = small;
    other.full = "nothing";
    give_numbers(&small, x);
    CHECK(write_kind(&small, x, path, small.name) == 0);
    CHECK(refused(f, read_kind(&other, x, path), "nothing"));
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long length = ftell(file);
    (void)fclose(file);
    for (long left = length - 1; left >= 0; left = left > 100 ? left - 97 : left - 50) {
        if (ferry_rank(f) == 0)
            CHECK(truncate(path, left) == 0);
        CHECK(ferry_barrier(f) == 0);
        CHECK(refused(f, read_kind(&small, x, path), path));
    }
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(unlink(path) == 0);
    CHECK(ferry_barrier(f) == 0);
    CHECK(read_kind(&small, x, path) == FERRY_ENOENT);
    ferry_xarray_destroy(x);
}

static void store(ferry *f, const char *path, const unsigned char *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, size_bytes, file) == size_bytes && fclose(file) == 0);
}

/* A file in which the HDF5 library crashes is refused, or read by a library that does not. */
static void read_crashing(ferry *f, const char *path)
{
    unsigned char bytes[CRASHING_BYTES + 16] = {0};
    ferry_xarray *x = make(f, &small, 3, 1);
    for (size_t i = 0; i < sizeof crashing / sizeof *crashing; i++)
        memcpy(bytes + crashing[i].at, crashing[i].bytes, sizeof crashing[i].bytes);
    if (ferry_rank(f) == 0)
        store(f, path, bytes, CRASHING_BYTES);
    CHECK(ferry_barrier(f) == 0);
    int error = read_kind(&small, x, path);
    CHECK(error == 0 || refused(f, error, path));
    CHECK(ferry_barrier(f) == 0);
    ferry_xarray_destroy(x);
}

/* No room for the file: the call fails, and what the library still has of it does no harm when the
 * program ends. */
static void write_without_room(ferry *f, const char *path)
{
    struct rlimit full, before;
    ferry_xarray *x = make(f, &small, 2, 0);
    give_numbers(&small, x);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    full = before;
    full.rlim_cur = 512;
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK(ferry_barrier(f) == 0 && setrlimit(RLIMIT_FSIZE, &full) == 0);
    CHECK(write_kind(&small, x, path, small.name) < 0);
    CHECK(ferry_barrier(f) == 0 && setrlimit(RLIMIT_FSIZE, &before) == 0);
    ferry_xarray_destroy(x);
}

/* A good file, changed a byte, a field or a length at a time. Values may be others then: a
 * contiguous dataset has no checksum. */
static void read_changed(ferry *f, const char *path, int rounds, uint64_t seed)
{
    enum { FILE_MAX = 1 << 14 };
    unsigned char good[FILE_MAX], bad[FILE_MAX];
    dice d = {seed};
    int refusals = 0;
    ferry_xarray *out = make(f, &small, 2, 0), *x = make(f, &small, 3, 1);
    give_numbers(&small, out);
    CHECK(write_kind(&small, out, path, small.name) == 0);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    const size_t length = fread(good, 1, sizeof good, file);
    CHECK(length > 0 && length < sizeof good && fclose(file) == 0);
    for (int round = 0; round < rounds; round++) {
        size_t size_bytes = length;
        memcpy(bad, good, sizeof bad);
        for (int64_t i = dice_between(&d, 0, 2); i >= 0; i--)
            change(&d, bad, &size_bytes, sizeof bad);
        CHECK(ferry_barrier(f) == 0);
        if (ferry_rank(f) == 0)
            store(f, path, bad, size_bytes);
        CHECK(ferry_barrier(f) == 0);
        const int error = read_kind(&small, x, path);
        CHECK(error == 0 || refused(f, error, path));
        refusals += error != 0;
        if (ferry_rank(f) == 0) {
            CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
            store(f, path, good, length);
        }
        CHECK(ferry_barrier(f) == 0 && read_kind(&small, x, path) == 0);
        check_numbers(f, &small, x);
    }
    CHECK(refusals > rounds / 4 && refusals < rounds);
    ferry_xarray_destroy(out);
    ferry_xarray_destroy(x);
}

/* Block 0 is a row higher or lower than it should be; the rank in whose part of the whole that is
 * says so. */
static void write_bad_shares(ferry *f, const char *path)
{
    ferry_xarray *x = make(f, &small, 3, 0);
    CHECK(x->blocks.numbers != NULL);
    for (int change = -1; change <= 1; change += 2) {
        ferry_block *first = ferry_rank(f) == 0 ? &x->blocks.blocks[0] : NULL;
        if (first != NULL)
            first->region.high.at[0] += change;
        uint64_t told;
        CHECK(write_kind(&small, x, path, "value") == FERRY_EINVAL);
        const char *says = ferry_error_message(f);
        told = strstr(says, change > 0 ? "overlaps block" : "no block has [") != NULL;
        CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &told, &told, 1) == 0 && told > 0);
        if (first != NULL)
            first->region.high.at[0] -= change;
    }
    ferry_xarray_destroy(x);
}

/* A write that fails leaves the earlier file, and no other. */
static void write_badly(ferry *f, const char *path)
{
    char other[600];
    ferry_xarray *x = make(f, &small, 2, 0);
    kind picture = small, odd = small;
    picture.file = "bad.vtkhdf";
    odd.number = FERRY_INT16;
    give_numbers(&small, x);
    CHECK(write_kind(&small, x, path, small.name) == 0);
    CHECK(refused(f, write_kind(&odd, x, path, "value"), "type 6"));
    CHECK(refused(f, write_kind(&small, x, path, ""), "name"));
    CHECK(refused(f, write_kind(&picture, x, path_of(other, path, ".vtkhdf"), "a/b"), "a/b"));
    CHECK(write_kind(&small, x, path, "/") < 0);
    CHECK(write_kind(&small, x, "/nonexistent/file.h5", "value") == FERRY_ESYSTEM);
    write_bad_shares(f, path);
    ferry_region region = x->blocks.blocks[0].region;
    x->blocks.blocks[0].region.high.at[0]++;
    CHECK(refused(f, write_kind(&small, x, path, "value"), "block 0"));
    x->blocks.blocks[0].region = region;
    x->blocks.blocks[0].region.high.at[0]--;
    CHECK(refused(f, write_kind(&small, x, path, "value"), "[1:1,0:1]"));
    x->blocks.blocks[0].region = region;
    CHECK(access(path_of(other, path, ".new"), F_OK) != 0);
    CHECK(read_kind(&small, x, path) == 0);
    check_numbers(f, &small, x);
    CHECK(ferry_barrier(f) == 0);
    if (ferry_rank(f) == 0)
        CHECK(unlink(path) == 0);
    ferry_xarray_destroy(x);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    char path[600];
    CHECK(argc > 1);
    if (ferry_rank(f) == 0) /* the library may not be thread-safe, and only rank 0 calls it */
        (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    read_foreign(f, path_of(path, argv[1], small.file));
    read_damaged(f, path);
    read_crashing(f, path);
    write_without_room(f, path);
    read_changed(f, path, argc > 2 ? atoi(argv[2]) : 400,
                 argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    write_badly(f, path);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
