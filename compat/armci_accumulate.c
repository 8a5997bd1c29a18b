/* Accumulates: target = target + scale * source, number by number.
 *
 * Each number is added atomically, so accumulates of several processes on it all count. If the
 * target is mapped in the calling process, the call adds there itself. For other memory it scales
 * the source into packets, and a handler at the target adds them. A packet has pieces, each a head
 * and its numbers. A complex number is two numbers. */
#include "armci_state.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

enum { PACKET_BYTES = 16 << 10, PART_BYTES = 2048 };

typedef struct piece {
    uint64_t target;
    uint64_t bytes;
} piece;

#define ADD(NAME, TYPE, WORD)                                                                      \
    static void add_##NAME(char *target, const char *values, size_t bytes)                         \
    {                                                                                              \
        for (size_t at = 0; at + sizeof(TYPE) <= bytes; at += sizeof(TYPE)) {                      \
            WORD *word = (WORD *)(void *)(target + at);                                            \
            WORD old = __atomic_load_n(word, __ATOMIC_RELAXED), sum;                               \
            do {                                                                                   \
                TYPE there, value;                                                                 \
                memcpy(&there, &old, sizeof(there));                                               \
                memcpy(&value, values + at, sizeof(value));                                        \
                there = (TYPE)(there + value);                                                     \
                memcpy(&sum, &there, sizeof(sum));                                                 \
            } while (!__atomic_compare_exchange_n(word, &old, sum, false, __ATOMIC_ACQ_REL,        \
                                                  __ATOMIC_RELAXED));                              \
        }                                                                                          \
    }
ADD(int, unsigned, uint32_t)
ADD(long, unsigned long, uint64_t)
ADD(float, float, uint32_t)
ADD(double, double, uint64_t)

#define SCALE(NAME, TYPE)                                                                          \
    static void scale_##NAME(char *out, const char *values, size_t bytes, const void *scale)       \
    {                                                                                              \
        TYPE factor, value;                                                                        \
        memcpy(&factor, scale, sizeof(factor));                                                    \
        for (size_t at = 0; at + sizeof(value) <= bytes; at += sizeof(value)) {                    \
            memcpy(&value, values + at, sizeof(value));                                            \
            value = (TYPE)(value * factor);                                                        \
            memcpy(out + at, &value, sizeof(value));                                               \
        }                                                                                          \
    }
SCALE(int, unsigned)
SCALE(long, unsigned long)
SCALE(float, float)
SCALE(double, double)
SCALE(complex, float _Complex)
SCALE(double_complex, double _Complex)

typedef struct type {
    size_t bytes, word_bytes; /* of a number, and of the part that is added atomically */
    void (*add)(char *target, const char *values, size_t bytes);
    void (*scale)(char *out, const char *values, size_t bytes, const void *scale);
} type;

static const type types[] = {
    [ARMCI_ACC_INT] = {sizeof(int), sizeof(int), add_int, scale_int},
    [ARMCI_ACC_LNG] = {sizeof(long), sizeof(long), add_long, scale_long},
    [ARMCI_ACC_FLT] = {sizeof(float), sizeof(float), add_float, scale_float},
    [ARMCI_ACC_DBL] = {sizeof(double), sizeof(double), add_double, scale_double},
    [ARMCI_ACC_CPL] = {2 * sizeof(float), sizeof(float), add_float, scale_complex},
    [ARMCI_ACC_DCP] = {2 * sizeof(double), sizeof(double), add_double, scale_double_complex},
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* The state of an accumulate by messages. */
typedef struct accumulation {
    const char *call;
    int process, number;
    const type *type;
    const void *scale;
    armci_hdl_t *handle;
    fy_armci_op *op; /* the packet that is being filled, or NULL */
    ferry_track track;
    size_t used;
} accumulation;

static void send_packet(accumulation *m)
{
    if (m->op == NULL)
        return;
    const ferry_message message = {.handler = fy_armci.accumulate,
                                   .word_count = 1,
                                   .words = {(uint64_t)m->number},
                                   .data = m->op->data,
                                   .size_bytes = m->used};
    fy_compat_check(m->call, ferry_request_send(fy_compat.f, m->process, &message, &m->track));
    m->op = NULL;
}

/* Makes room in the packet for a piece of `*bytes`. If not all fit, makes `*bytes` smaller. */
static char *piece_add(accumulation *m, char *target, size_t *bytes)
{
    if (m->op != NULL && PACKET_BYTES - m->used < sizeof(piece) + sizeof(double _Complex))
        send_packet(m);
    if (m->op == NULL) {
        m->op = fy_armci_op_create(m->process, m->handle, PACKET_BYTES, &m->track);
        m->used = 0;
    }
    size_t room = (PACKET_BYTES - m->used - sizeof(piece)) / m->type->bytes * m->type->bytes;
    *bytes = *bytes < room ? *bytes : room;
    const piece head = {(uintptr_t)target, *bytes};
    memcpy(m->op->data + m->used, &head, sizeof(head));
    char *values = m->op->data + m->used + sizeof(head);
    m->used += sizeof(head) + (*bytes + 7) / 8 * 8;
    return values;
}

static void add_block(void *arg, const char *source, char *target, size_t bytes)
{
    accumulation *m = arg;
    if (bytes > 0)
        fy_armci_address_check(m->call, m->scale, "scale");
    if (bytes % m->type->bytes != 0 || (uintptr_t)target % m->type->word_bytes != 0)
        fy_compat_fail("%s: %zu bytes at %p; expected whole numbers of %zu bytes at a multiple of "
                       "%zu",
                       m->call, bytes, (void *)target, m->type->bytes, m->type->word_bytes);
    bool mapped = fy_armci_is_mapped(m->process);
    if (bytes > 0)
        fy_armci_remote_check(m->call, m->process, target, bytes);
    char part[PART_BYTES];
    for (size_t at = 0, now; at < bytes; at += now) {
        now = bytes - at;
        if (mapped) {
            now = now < sizeof(part) ? now : sizeof(part);
            m->type->scale(part, source + at, now, m->scale);
            m->type->add(target + at, part, now);
        } else {
            char *values = piece_add(m, target + at, &now);
            m->type->scale(values, source + at, now, m->scale);
        }
    }
}

/* Adds the pieces of a packet. A piece must be memory of this process that others may reach. */
static void accumulate(ferry *f, int source, const ferry_message *message)
{
    char copy[PACKET_BYTES];
    const char *data = message->data;
    if (message->words[0] >= TYPES || message->size_bytes > PACKET_BYTES)
        fy_compat_fail("an accumulate of process %d has type %llu and %zu bytes; expected 0 to %d, "
                       "at most %d",
                       source, (unsigned long long)message->words[0], message->size_bytes,
                       TYPES - 1, PACKET_BYTES);
    const type *of = &types[message->words[0]];
    for (size_t at = 0; at + sizeof(piece) <= message->size_bytes;) {
        piece head;
        memcpy(&head, data + at, sizeof(head));
        at += sizeof(head);
        void *target = (void *)(uintptr_t)head.target;
        if (head.bytes > message->size_bytes - at || head.target % of->word_bytes != 0 ||
            ferry_get(f, fy_compat.me, copy, target, head.bytes, NULL) != 0)
            fy_compat_fail("an accumulate of process %d to %p with %llu bytes; expected memory of "
                           "ARMCI_Malloc",
                           source, target, (unsigned long long)head.bytes);
        of->add(target, data + at, head.bytes);
        at += (head.bytes + 7) / 8 * 8;
    }
}

void fy_armci_accumulate_begin(void)
{
    fy_compat_check("ARMCI_Init", ferry_handler_register(fy_compat.f, "armci accumulate",
                                                         accumulate, &fy_armci.accumulate));
}

static accumulation begin(const char *call, int number, const void *scale, int process,
                          armci_hdl_t *handle)
{
    fy_armci_check(call, process);
    if (number < 0 || number >= TYPES)
        fy_compat_fail("%s: type %d; expected ARMCI_ACC_INT to ARMCI_ACC_DCP", call, number);
    return (accumulation){.call = call,
                          .process = process,
                          .number = number,
                          .type = &types[number],
                          .scale = scale,
                          .handle = handle};
}

static int add_strided(accumulation m, const fy_armci_blocks *blocks)
{
    if (fy_armci_blocks_check(m.call, blocks))
        fy_armci_blocks_each(blocks, add_block, &m);
    send_packet(&m);
    return 0;
}

static int add_vector(accumulation m, const armci_giov_t *pieces, int count)
{
    (void)fy_armci_pieces_check(m.call, pieces, count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < pieces[i].ptr_array_len; k++)
            add_block(&m, pieces[i].src_ptr_array[k], pieces[i].dst_ptr_array[k],
                      (size_t)pieces[i].bytes);
    send_packet(&m);
    return 0;
}

/* The source is always copied, so calls with a handle are the same as those without one. */

int ARMCI_NbAcc(int number, const void *scale, void *source, void *target, int bytes, int process,
                armci_hdl_t *handle)
{
    const fy_armci_blocks blocks = {.source = source, .target = target, .count = &bytes};
    return add_strided(begin("ARMCI_Acc", number, scale, process, handle), &blocks);
}

int ARMCI_Acc(int number, const void *scale, void *source, void *target, int bytes, int process)
{
    return ARMCI_NbAcc(number, scale, source, target, bytes, process, NULL);
}

int ARMCI_NbAccS(int number, const void *scale, void *source, int source_strides[], void *target,
                 int target_strides[], int count[], int levels, int process, armci_hdl_t *handle)
{
    const fy_armci_blocks blocks = {source, target, source_strides, target_strides, count, levels};
    return add_strided(begin("ARMCI_AccS", number, scale, process, handle), &blocks);
}

int ARMCI_AccS(int number, const void *scale, void *source, int source_strides[], void *target,
               int target_strides[], int count[], int levels, int process)
{
    return ARMCI_NbAccS(number, scale, source, source_strides, target, target_strides, count,
                        levels, process, NULL);
}

int ARMCI_NbAccV(int number, const void *scale, armci_giov_t *pieces, int count, int process,
                 armci_hdl_t *handle)
{
    return add_vector(begin("ARMCI_AccV", number, scale, process, handle), pieces, count);
}

int ARMCI_AccV(int number, const void *scale, armci_giov_t *pieces, int count, int process)
{
    return ARMCI_NbAccV(number, scale, pieces, count, process, NULL);
}
