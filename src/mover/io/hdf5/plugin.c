/* The plug-in ferry-hdf5.so, which calls the HDF5 library for the first member. Each call
 * opens the file, and leaves nothing open.
 *
 * With a damaged file the library may crash or never return. After a full disk it crashes when the
 * process exits. So each call runs in a child process, which sends the result through a pipe. If
 * the child ends without a result, the call fails and says how the child ended. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hdf5.h>

#include <ferry/error.h>

#include "base/shared.h"
#include "mover/io/dataset.h"

/* Writes the reason of a failure, if `text` has none yet. Returns false. */
static bool hdf5_refuse(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool hdf5_refuse(char *text, const char *format, ...)
{
    if (text[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, FY_HDF5_TEXT, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* Called for each entry of the library's error stack. The first one has the cause. */
static herr_t keep_reason(unsigned n, const H5E_error2_t *entry, void *text)
{
    if (n == 0)
        (void)hdf5_refuse(text, "%s", entry->desc != NULL ? entry->desc : "no reason given");
    return 0;
}

/* Whether a call worked. If not, takes the reason now: the library forgets it at the next call. */
static bool good(int64_t result, char *text)
{
    if (result < 0) {
        (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, text);
        (void)hdf5_refuse(text, "HDF5 gives no reason");
    }
    return result >= 0;
}

/* The type of numbers in files, which is little-endian on every machine. Lends it. */
static hid_t type_of(ferry_type number)
{
    switch (number) {
    case FERRY_DOUBLE:
        return H5T_IEEE_F64LE;
    case FERRY_FLOAT:
        return H5T_IEEE_F32LE;
    case FERRY_INT32:
        return H5T_STD_I32LE;
    case FERRY_INT64:
        return H5T_STD_I64LE;
    case FERRY_UINT64:
        return H5T_STD_U64LE;
    case FERRY_BYTE:
        return H5T_STD_U8LE;
    default:
        return H5I_INVALID_HID;
    }
}

static bool put_attribute(hid_t where, const char *name, hid_t in_file, hid_t in_memory,
                          hsize_t count, const void *values, char *text)
{
    hid_t space = count > 0 ? H5Screate_simple(1, &count, NULL) : H5Screate(H5S_SCALAR);
    bool works = good(space, text);
    hid_t attribute =
        works ? H5Acreate2(where, name, in_file, space, H5P_DEFAULT, H5P_DEFAULT) : -1;
    works = works && good(attribute, text) && good(H5Awrite(attribute, in_memory, values), text);
    if (attribute >= 0)
        (void)H5Aclose(attribute);
    if (space >= 0)
        (void)H5Sclose(space);
    return works;
}

/* Writes an attribute as ASCII of a fixed length without an end mark, as VTK's readers expect. */
static bool put_text(hid_t where, const char *name, const char *value, char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    bool works = good(type, text) && good(H5Tset_size(type, strlen(value)), text) &&
                 good(H5Tset_strpad(type, H5T_STR_NULLPAD), text) &&
                 put_attribute(where, name, type, type, 0, value, text);
    if (type >= 0)
        (void)H5Tclose(type);
    return works;
}

static bool put_numbers(hid_t root, const fy_image *image, char *text)
{
    static const int64_t version[2] = {1, 0};
    static const double direction[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    hid_t whole = H5T_STD_I64LE, real = H5T_IEEE_F64LE;
    hid_t integer = H5T_NATIVE_INT64, number = H5T_NATIVE_DOUBLE;
    return put_attribute(root, "Version", whole, integer, 2, version, text) &&
           put_attribute(root, "WholeExtent", whole, integer, 6, image->extent, text) &&
           put_attribute(root, "Origin", real, number, 3, image->origin, text) &&
           put_attribute(root, "Spacing", real, number, 3, image->spacing, text) &&
           put_attribute(root, "Direction", real, number, 9, direction, text);
}

static bool make_image(hid_t file, const fy_image *image, char *text)
{
    hid_t root = H5Gcreate2(file, "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), cells = -1;
    bool works = good(root, text) && put_text(root, "Type", "ImageData", text) &&
                 put_numbers(root, image, text);
    if (works)
        cells = H5Gcreate2(root, image->group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    works = works && good(cells, text) && put_text(cells, "Scalars", image->scalars, text);
    if (cells >= 0)
        (void)H5Gclose(cells);
    if (root >= 0)
        (void)H5Gclose(root);
    return works;
}

/* Makes the array, contiguous and allocated now. The ranks write its values. */
static bool make_array(hid_t file, const fy_dataset *set, uint64_t *offset, char *text)
{
    hsize_t extent[FERRY_DIMS_MAX + 1];
    for (int d = 0; d < set->dims; d++)
        extent[d] = set->extent[d];
    hid_t space = H5Screate_simple(set->dims, extent, NULL), array = -1;
    hid_t path = H5Pcreate(H5P_LINK_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    bool works = space >= 0 && path >= 0 && how >= 0 &&
                 good(H5Pset_create_intermediate_group(path, 1), text) &&
                 good(H5Pset_layout(how, H5D_CONTIGUOUS), text) &&
                 good(H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY), text) &&
                 good(H5Pset_fill_time(how, H5D_FILL_TIME_NEVER), text);
    if (works)
        array = H5Dcreate2(file, set->name, type_of(set->number), space, path, how, H5P_DEFAULT);
    works = works && good(array, text);
    if (works) {
        haddr_t at = H5Dget_offset(array);
        works = at != HADDR_UNDEF || hdf5_refuse(text, "HDF5 gave \"%s\" no room", set->name);
        *offset = at;
    }
    if (array >= 0)
        works = good(H5Dclose(array), text) && works;
    (void)H5Pclose(how);
    (void)H5Pclose(path);
    (void)H5Sclose(space);
    return works || hdf5_refuse(text, "HDF5 is out of memory");
}

static bool create_file(const char *path, const fy_dataset *set, const fy_image *image,
                        uint64_t *offset, char *text)
{
    hid_t how = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    /* Large arrays begin at a page. */
    if (good(how, text) && good(H5Pset_alignment(how, 65536, 4096), text))
        file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, how);
    bool works = good(file, text) && (image == NULL || make_image(file, image, text)) &&
                 make_array(file, set, offset, text);
    if (file >= 0)
        works = good(H5Fclose(file), text) && works;
    if (how >= 0)
        (void)H5Pclose(how);
    return works;
}

static void print_extents(char *out, size_t size, int dims, const uint64_t *extent)
{
    size_t used = 0;
    out[0] = '\0';
    for (int d = 0; d < dims && used < size; d++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%" PRIu64, d > 0 ? " x " : "", extent[d]);
}

static bool check_type(hid_t array, const fy_dataset *set, char *text)
{
    static const char *const names[] = {"float64", "float32", "int32", "int64"};
    hid_t type = H5Dget_type(array);
    if (!good(type, text))
        return false;
    bool same = H5Tequal(type, type_of(set->number)) > 0;
    if (!same) {
        H5T_class_t class = H5Tget_class(type);
        bool integer = class == H5T_INTEGER;
        (void)hdf5_refuse(text, "dataset \"%s\" has %s%s of %zu bits, expected little-endian %s",
                          set->name, H5Tget_order(type) == H5T_ORDER_BE ? "big-endian " : "",
                          integer && H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned integers"
                          : integer                                    ? "integers"
                          : class == H5T_FLOAT                         ? "floats"
                                                                       : "values of another class",
                          8 * H5Tget_size(type), names[set->number]);
    }
    (void)H5Tclose(type);
    return same;
}

/* Checks the extents of the array. Leading dimensions of extent 1 are ignored on both sides. */
static bool check_shape(hid_t array, const fy_dataset *set, char *text)
{
    hsize_t extent[H5S_MAX_RANK];
    uint64_t has[H5S_MAX_RANK];
    char is[120], wanted[120];
    hid_t space = H5Dget_space(array);
    int dims = space < 0 ? -1 : H5Sget_simple_extent_dims(space, extent, NULL);
    bool works = good(dims, text);
    if (space >= 0)
        (void)H5Sclose(space);
    if (!works)
        return false;
    for (int d = 0; d < dims; d++)
        has[d] = extent[d];
    int skip = 0, leave = 0;
    while (dims - skip > set->dims && has[skip] == 1)
        skip++;
    while (set->dims - leave > dims && set->extent[leave] == 1)
        leave++;
    if (dims - skip == set->dims - leave &&
        memcmp(has + skip, set->extent + leave, (size_t)(dims - skip) * sizeof *has) == 0)
        return true;
    print_extents(is, sizeof is, dims, has);
    print_extents(wanted, sizeof wanted, set->dims, set->extent);
    return hdf5_refuse(text, "dataset \"%s\" has extents %s, expected %s", set->name, is, wanted);
}

/* Checks that the array is contiguous in this file, and finds its offset. */
static bool check_layout(hid_t array, const fy_dataset *set, uint64_t *offset, char *text)
{
    hid_t how = H5Dget_create_plist(array);
    if (!good(how, text))
        return false;
    H5D_layout_t layout = H5Pget_layout(how);
    int others = H5Pget_external_count(how);
    (void)H5Pclose(how);
    haddr_t at = H5Dget_offset(array);
    if (layout != H5D_CONTIGUOUS || others != 0)
        return hdf5_refuse(text, "dataset \"%s\" is %s, expected a contiguous one", set->name,
                           layout == H5D_CHUNKED   ? "chunked or compressed"
                           : layout == H5D_COMPACT ? "compact"
                                                   : "in other files");
    if (at == HADDR_UNDEF)
        return hdf5_refuse(text, "dataset \"%s\" has never been written", set->name);
    *offset = at;
    return true;
}

static bool find_array(const char *path, const fy_dataset *set, uint64_t *offset, char *text)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t array = good(file, text) ? H5Dopen2(file, set->name, H5P_DEFAULT) : -1;
    bool works = good(array, text) && check_type(array, set, text) &&
                 check_shape(array, set, text) && check_layout(array, set, offset, text);
    if (array >= 0)
        (void)H5Dclose(array);
    if (file >= 0)
        (void)H5Fclose(file);
    return works;
}

/* A call to be made in a child. */
typedef struct request {
    const char *path;
    const fy_dataset *set;
    const fy_image *image;
    bool creates;
} request;

typedef struct result {
    bool works;
    uint64_t offset;
    char text[FY_HDF5_TEXT];
} result;

_Static_assert(sizeof(result) <= 512, "a pipe takes it whole");

/* Seconds after which a child is killed: the library does not return. */
enum { PATIENCE_S = 60 };

static _Noreturn void be_child(const request *q, int to)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    result out = {.works = false};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        (void)signal(fatal[i], SIG_DFL);
    (void)prctl(PR_SET_DUMPABLE, 0); /* no core file: the parent reports the crash */
    (void)alarm(PATIENCE_S);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    out.works = q->creates ? create_file(q->path, q->set, q->image, &out.offset, out.text)
                           : find_array(q->path, q->set, &out.offset, out.text);
    ssize_t written = write(to, &out, sizeof(out));
    _exit(written != (ssize_t)sizeof(out)); /* not exit: the library may crash there */
}

static bool read_result(int from, result *out)
{
    ssize_t got;
    do
        got = read(from, out, sizeof(*out));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(*out);
}

/* Writes how a child ended that has sent no result. */
static void explain_end(int status, char *text)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGALRM)
        (void)hdf5_refuse(text, "HDF5 did not come to an end within %d s", PATIENCE_S);
    else if (number != 0)
        (void)hdf5_refuse(text, "HDF5 crashed (%s): the file is damaged", strsignal(number));
    else
        (void)hdf5_refuse(text, "HDF5 ended its process");
}

static bool hdf5_run_child(const request *q, uint64_t *offset, char *text)
{
    int ends[2], status = 0;
    result out;
    text[0] = '\0';
    if (pipe(ends) != 0)
        return hdf5_refuse(text, "no pipe to a process for HDF5: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        be_child(q, ends[1]);
    int failure = errno;
    (void)close(ends[1]);
    bool told = pid > 0 && read_result(ends[0], &out);
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid < 0)
        return hdf5_refuse(text, "no process for HDF5: %s", strerror(failure));
    if (!told) {
        explain_end(status, text);
        return false;
    }
    *offset = out.offset;
    memcpy(text, out.text, sizeof(out.text));
    return out.works;
}

static int hdf5_create(const char *path, const fy_dataset *set, const fy_image *image,
                       uint64_t *offset, char *text)
{
    const request q = {.path = path, .set = set, .image = image, .creates = true};
    return hdf5_run_child(&q, offset, text) ? 0 : FERRY_ESYSTEM;
}

static int hdf5_find(const char *path, const fy_dataset *set, uint64_t *offset, char *text)
{
    const request q = {.path = path, .set = set};
    return hdf5_run_child(&q, offset, text) ? 0 : FERRY_EINVAL;
}

FY_SHARED extern const fy_hdf5_table fy_hdf5_functions;
const fy_hdf5_table fy_hdf5_functions = {
    .version = FY_HDF5_VERSION, .create = hdf5_create, .find = hdf5_find};
