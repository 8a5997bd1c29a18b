/* Puts and gets. A contiguous one is a strided one without levels. */
#include "armci_state.h"

#include <stdlib.h>
#include <string.h>

/* Ends the job if the arrays of a strided call are not there. */
static void check_arrays(const char *call, const fy_armci_blocks *b)
{
    fy_armci_address_check(call, b->count, "array of counts");
    if (b->levels > 0) {
        fy_armci_address_check(call, b->source_strides, "array of source strides");
        fy_armci_address_check(call, b->target_strides, "array of target strides");
    }
}

bool fy_armci_blocks_check(const char *call, const fy_armci_blocks *blocks)
{
    bool any = true;
    if (blocks->levels < 0 || blocks->levels > ARMCI_MAX_STRIDE_LEVEL)
        fy_compat_fail("%s: %d stride levels; expected 0 to %d", call, blocks->levels,
                       ARMCI_MAX_STRIDE_LEVEL);
    check_arrays(call, blocks);
    for (int i = 0; i <= blocks->levels; i++) {
        if (blocks->count[i] < 0)
            fy_compat_fail("%s: count[%d] is %d; expected 0 or more", call, i, blocks->count[i]);
        any = any && blocks->count[i] > 0;
    }
    if (any) {
        fy_armci_address_check(call, blocks->source, "source");
        fy_armci_address_check(call, blocks->target, "target");
    }
    return any;
}

/* Runs `fn` for the blocks of the levels below `level`. */
static void each(const fy_armci_blocks *b, int level, const char *source, char *target,
                 fy_armci_block_fn *fn, void *arg)
{
    if (level == 0) {
        fn(arg, source, target, (size_t)b->count[0]);
        return;
    }
    for (int i = 0; i < b->count[level]; i++)
        each(b, level - 1, source + (ptrdiff_t)i * b->source_strides[level - 1],
             target + (ptrdiff_t)i * b->target_strides[level - 1], fn, arg);
}

void fy_armci_blocks_each(const fy_armci_blocks *blocks, fy_armci_block_fn *fn, void *arg)
{
    each(blocks, blocks->levels, blocks->source, blocks->target, fn, arg);
}

static void copy_block(void *arg, const char *source, char *target, size_t bytes)
{
    (void)arg;
    memmove(target, source, bytes);
}

/* How a call copies. */
typedef struct transfer {
    const char *call;
    int process;
    bool put;    /* to `process`; else a get from it */
    bool blocks; /* the call returns when the local buffer may be used */
    armci_hdl_t *handle;
} transfer;

/* Waits until the local buffer may be used: a put sets `*submitted`, a get ends `handle`. */
static void await(const transfer *how, const bool *submitted, armci_hdl_t *handle)
{
    unsigned turns = 0;
    if (!how->blocks)
        return;
    if (!how->put)
        (void)ARMCI_Wait(handle);
    while (how->put && !*submitted)
        fy_compat_turn(&turns);
}

/* Ends the job if the remote side of the blocks is not memory of the process. */
static void check_remote(const transfer *how, const fy_armci_blocks *b)
{
    const char *first = how->put ? b->target : b->source;
    const int *strides = how->put ? b->target_strides : b->source_strides;
    size_t size_bytes = (size_t)b->count[0];
    for (int i = 0; i < b->levels; i++) {
        ptrdiff_t span = (ptrdiff_t)strides[i] * (b->count[i + 1] - 1);
        first += span < 0 ? span : 0;
        size_bytes += (size_t)(span < 0 ? -span : span);
    }
    fy_armci_remote_check(how->call, how->process, first, size_bytes);
}

static int copy_strided(const transfer *how, const fy_armci_blocks *b)
{
    ferry_stride strides[ARMCI_MAX_STRIDE_LEVEL];
    armci_hdl_t own = {NULL, 0};
    bool submitted = false;
    ferry_track track;
    fy_armci_check(how->call, how->process);
    if (!fy_armci_blocks_check(how->call, b))
        return 0;
    if (fy_armci_is_mapped(how->process)) {
        check_remote(how, b);
        if (!how->put)
            fy_armci_poll();
        fy_armci_blocks_each(b, copy_block, NULL);
        return 0;
    }
    for (int i = 0; i < b->levels; i++)
        strides[i] =
            (ferry_stride){(size_t)b->count[i + 1], b->target_strides[i], b->source_strides[i]};
    const ferry_strided what = {b->target, b->source, (size_t)b->count[0], b->levels, strides};
    bool waits = how->blocks && !how->put;
    fy_armci_op *op = fy_armci_op_create(how->process, waits ? &own : how->handle, 0, &track);
    op->submitted = how->blocks && how->put ? &submitted : NULL;
    fy_compat_check(how->call, how->put
                                   ? ferry_put_strided(fy_compat.f, how->process, &what, &track)
                                   : ferry_get_strided(fy_compat.f, how->process, &what, &track));
    await(how, &submitted, &own);
    return 0;
}

static int copy_plain(const transfer *how, const void *source, void *target, int bytes)
{
    const fy_armci_blocks blocks = {.source = source, .target = target, .count = &bytes};
    return copy_strided(how, &blocks);
}

/* Ends the job if the addresses of pieces are not there. */
static void check_addresses(const char *call, const armci_giov_t *iov)
{
    if (iov->ptr_array_len == 0)
        return;
    fy_armci_address_check(call, iov->src_ptr_array, "array of sources");
    fy_armci_address_check(call, iov->dst_ptr_array, "array of targets");
    for (int k = 0; k < iov->ptr_array_len && iov->bytes > 0; k++) {
        fy_armci_address_check(call, iov->src_ptr_array[k], "source");
        fy_armci_address_check(call, iov->dst_ptr_array[k], "target");
    }
}

size_t fy_armci_pieces_check(const char *call, const armci_giov_t *pieces, int count)
{
    size_t all = 0;
    if (fy_armci_number(call, count, "descriptors") > 0)
        fy_armci_address_check(call, pieces, "array of descriptors");
    for (int i = 0; i < count; i++) {
        if (pieces[i].bytes < 0 || pieces[i].ptr_array_len < 0)
            fy_compat_fail("%s: %d pieces of %d bytes; expected 0 or more", call,
                           pieces[i].ptr_array_len, pieces[i].bytes);
        check_addresses(call, &pieces[i]);
        all += (size_t)pieces[i].ptr_array_len;
    }
    return all;
}

static int copy_vector(const transfer *how, const armci_giov_t *iov, int count)
{
    fy_armci_check(how->call, how->process);
    size_t all = fy_armci_pieces_check(how->call, iov, count), used = 0;
    bool mapped = fy_armci_is_mapped(how->process), submitted = false,
         waits = how->blocks && !how->put;
    if (all == 0)
        return 0;
    if (mapped && !how->put)
        fy_armci_poll();
    ferry_piece *pieces = mapped ? NULL : fy_compat_need(how->call, calloc(all, sizeof(*pieces)));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < iov[i].ptr_array_len; k++) {
            if (mapped)
                fy_armci_remote_check(how->call, how->process,
                                      how->put ? iov[i].dst_ptr_array[k] : iov[i].src_ptr_array[k],
                                      (size_t)iov[i].bytes);
            if (mapped)
                memmove(iov[i].dst_ptr_array[k], iov[i].src_ptr_array[k], (size_t)iov[i].bytes);
            else
                pieces[used++] = (ferry_piece){iov[i].dst_ptr_array[k], iov[i].src_ptr_array[k],
                                               (size_t)iov[i].bytes};
        }
    if (mapped)
        return 0;
    armci_hdl_t own = {NULL, 0};
    ferry_track track;
    fy_armci_op *op = fy_armci_op_create(how->process, waits ? &own : how->handle, 0, &track);
    op->submitted = how->blocks && how->put ? &submitted : NULL;
    fy_compat_check(how->call,
                    how->put ? ferry_put_vector(fy_compat.f, how->process, pieces, used, &track)
                             : ferry_get_vector(fy_compat.f, how->process, pieces, used, &track));
    free(pieces);
    await(how, &submitted, &own);
    return 0;
}

void ARMCI_Copy(const void *source, void *target, int bytes)
{
    size_t size_bytes = fy_armci_number("ARMCI_Copy", bytes, "bytes");
    if (size_bytes == 0)
        return;
    fy_armci_address_check("ARMCI_Copy", source, "source");
    fy_armci_address_check("ARMCI_Copy", target, "target");
    memmove(target, source, size_bytes);
}

/* Defines a call without a handle, and the one with a handle. */
#define COPIES(NAME, PUT)                                                                          \
    int ARMCI_##NAME(void *source, void *target, int bytes, int process)                           \
    {                                                                                              \
        const transfer how = {"ARMCI_" #NAME, process, PUT, true, NULL};                           \
        return copy_plain(&how, source, target, bytes);                                            \
    }                                                                                              \
    int ARMCI_Nb##NAME(void *source, void *target, int bytes, int process, armci_hdl_t *handle)    \
    {                                                                                              \
        const transfer how = {"ARMCI_Nb" #NAME, process, PUT, false, handle};                      \
        return copy_plain(&how, source, target, bytes);                                            \
    }                                                                                              \
    int ARMCI_##NAME##S(void *source, int source_strides[], void *target, int target_strides[],    \
                        int count[], int levels, int process)                                      \
    {                                                                                              \
        const transfer how = {"ARMCI_" #NAME "S", process, PUT, true, NULL};                       \
        const fy_armci_blocks blocks = {source,         target, source_strides,                    \
                                        target_strides, count,  levels};                           \
        return copy_strided(&how, &blocks);                                                        \
    }                                                                                              \
    int ARMCI_Nb##NAME##S(void *source, int source_strides[], void *target, int target_strides[],  \
                          int count[], int levels, int process, armci_hdl_t *handle)               \
    {                                                                                              \
        const transfer how = {"ARMCI_Nb" #NAME "S", process, PUT, false, handle};                  \
        const fy_armci_blocks blocks = {source,         target, source_strides,                    \
                                        target_strides, count,  levels};                           \
        return copy_strided(&how, &blocks);                                                        \
    }                                                                                              \
    int ARMCI_##NAME##V(armci_giov_t *pieces, int count, int process)                              \
    {                                                                                              \
        const transfer how = {"ARMCI_" #NAME "V", process, PUT, true, NULL};                       \
        return copy_vector(&how, pieces, count);                                                   \
    }                                                                                              \
    int ARMCI_Nb##NAME##V(armci_giov_t *pieces, int count, int process, armci_hdl_t *handle)       \
    {                                                                                              \
        const transfer how = {"ARMCI_Nb" #NAME "V", process, PUT, false, handle};                  \
        return copy_vector(&how, pieces, count);                                                   \
    }
COPIES(Put, true)
COPIES(Get, false)

int ARMCI_PutS_flag(void *source, int source_strides[], void *target, int target_strides[],
                    int count[], int levels, int *flag, int value, int process)
{
    (void)ARMCI_PutS(source, source_strides, target, target_strides, count, levels, process);
    ARMCI_Fence(process);
    return ARMCI_Put(&value, flag, (int)sizeof(value), process);
}

int ARMCI_Put_flag(void *source, void *target, int bytes, int *flag, int value, int process)
{
    return ARMCI_PutS_flag(source, NULL, target, NULL, &bytes, 0, flag, value, process);
}

/* The source of a put of one value is on the stack. So even the call with a handle waits until the
 * source may change. */
#define VALUES(NAME, TYPE)                                                                         \
    int ARMCI_PutValue##NAME(TYPE value, void *target, int process)                                \
    {                                                                                              \
        return ARMCI_Put(&value, target, (int)sizeof(value), process);                             \
    }                                                                                              \
    int ARMCI_NbPutValue##NAME(TYPE value, void *target, int process, armci_hdl_t *handle)         \
    {                                                                                              \
        const transfer how = {"ARMCI_NbPutValue", process, true, true, handle};                    \
        return copy_plain(&how, &value, target, (int)sizeof(value));                               \
    }                                                                                              \
    TYPE ARMCI_GetValue##NAME(void *source, int process)                                           \
    {                                                                                              \
        TYPE value;                                                                                \
        (void)ARMCI_Get(source, &value, (int)sizeof(value), process);                              \
        return value;                                                                              \
    }
ARMCI_VALUES(VALUES)
