/* Start and stop of a PE, addresses of other PEs, and queries. */
#include "state.h"

#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fy_shmem_state fy_shmem_pe;

enum { DEFAULT_HEAP_BYTES = 64 << 20, TEXT_BYTES = 512, TURNS_PER_YIELD = 32 };

void fy_shmem_fail(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (fy_shmem_pe.f != NULL)
        ferry_abort(fy_shmem_pe.f, 1, text);
    fprintf(stderr, "shmem: %s\n", text);
    exit(1);
}

void fy_shmem_check(const char *call, int error)
{
    if (error != 0)
        fy_shmem_fail("%s: %s", call, ferry_error_message(fy_shmem_pe.f));
}

void fy_shmem_turn(unsigned *turns)
{
    int handled = ferry_poll(fy_shmem_pe.f);
    if (handled < 0)
        fy_shmem_check("shmem", handled);
    if (++*turns % TURNS_PER_YIELD == 0)
        sched_yield();
}

static bool is_within(const void *address, size_t size_bytes, const char *base, size_t base_bytes)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)base;
    return base != NULL && (uintptr_t)address >= (uintptr_t)base && offset <= base_bytes &&
           size_bytes <= base_bytes - offset;
}

void fy_shmem_look(const void *address, int pe)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (pe == s->me && (s->shared != NULL || is_within(address, 1, s->data, s->data_bytes)))
        fy_shmem_turn(&s->looks);
}

bool fy_shmem_is_symmetric(const void *address, size_t size_bytes)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    return is_within(address, size_bytes, s->heap, s->heap_bytes) ||
           is_within(address, size_bytes, s->data, s->data_bytes);
}

bool fy_shmem_locate(const void *address, size_t size_bytes, int pe, char **remote)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    if (s->f == NULL)
        fy_shmem_fail("a call before shmem_init or after shmem_finalize");
    if (pe < 0 || pe >= s->count)
        fy_shmem_fail("PE %d does not exist (the job has PEs 0..%d)", pe, s->count - 1);
    if (is_within(address, size_bytes, s->heap, s->heap_bytes)) {
        *remote = s->heaps[pe] + ((const char *)address - s->heap);
        return s->mapped[pe];
    }
    if (!is_within(address, size_bytes, s->data, s->data_bytes))
        fy_shmem_fail("%p with %zu bytes is not symmetric: expected memory of shmem_malloc or a "
                      "variable of the program",
                      address, size_bytes);
    *remote = s->datas[pe] + ((const char *)address - s->data);
    return pe == s->me;
}

/* SHMEM_SYMMETRIC_SIZE. */
static size_t heap_size(void)
{
    const char *text = getenv("SHMEM_SYMMETRIC_SIZE");
    if (text == NULL || *text == '\0')
        return DEFAULT_HEAP_BYTES;
    char *end;
    double size = strtod(text, &end);
    static const char letters[] = "kmgt";
    const char *letter = *end == '\0' ? NULL : strchr(letters, *end | 0x20);
    for (const char *l = letters; letter != NULL && l <= letter; l++)
        size *= 1024;
    if (end == text || !(size >= 1) || size > 0x1p46 ||
        (*end != '\0' && (letter == NULL || end[1] != '\0')))
        fy_shmem_fail("SHMEM_SYMMETRIC_SIZE is \"%s\"; expected a number, then K, M, G or T", text);
    return ((size_t)size + 63) / 64 * 64;
}

/* The first object is the program. Its last segment that can be written has its variables. */
static int find_data(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) == 0)
            continue;
        uintptr_t base = info->dlpi_addr + segment->p_vaddr;
        memcpy(&fy_shmem_pe.data, &base, sizeof(base));
        fy_shmem_pe.data_bytes = segment->p_memsz;
    }
    return 1;
}

/* In a handler a get without track works if the source is in memory that this process sees. */
static void probe(ferry *f, int source, const ferry_message *message)
{
    (void)source;
    (void)message;
    fy_shmem_state *s = &fy_shmem_pe;
    for (int pe = 0; pe < s->count; pe++) {
        uint64_t word;
        s->mapped[pe] =
            pe == s->me || ferry_get(f, pe, &word, s->heaps[pe], sizeof(word), NULL) == 0;
    }
}

static void *need(void *memory)
{
    if (memory == NULL)
        fy_shmem_fail("shmem_init: no memory");
    return memory;
}

static void exchange(char *base, char ***out)
{
    fy_shmem_state *s = &fy_shmem_pe;
    *out = need(calloc((size_t)s->count, sizeof(char *)));
    fy_shmem_check("shmem_init", ferry_allgather(s->f, &base, sizeof(char *), *out));
}

/* Finds the ranges that this process sees, and makes the team of their PEs. */
static void find_mapped(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    ferry_handler handler;
    s->mapped = need(calloc((size_t)s->count, sizeof(bool)));
    fy_shmem_check("shmem_init", ferry_handler_register(s->f, "shmem probe", probe, &handler));
    ferry_op op = {0};
    const ferry_message message = {.handler = handler};
    const ferry_track track = {.size = sizeof(track), .op = &op};
    fy_shmem_check("shmem_init", ferry_request_send(s->f, s->me, &message, &track));
    fy_shmem_check("shmem_init", ferry_op_wait(s->f, &op));
    int first = 0, seen = 0;
    for (int pe = s->count - 1; pe >= 0; pe--) {
        if (s->mapped[pe]) {
            first = pe;
            seen++;
        }
    }
    int all = 0, whole = seen == s->count;
    fy_shmem_check("shmem_init", ferry_allreduce(s->f, FERRY_INT32, FERRY_MIN, &whole, &all, 1));
    if (!all)
        fy_shmem_check("shmem_init", ferry_group_split(s->f, NULL, first, s->me, &s->shared));
}

void shmem_init(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (s->f != NULL)
        return;
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    s->heap_bytes = heap_size();
    if (s->heap_bytes > (size_t)8 << 30)
        options.heap_bytes = s->heap_bytes + ((size_t)8 << 30);
    if (ferry_open(&options, &s->f) != 0)
        fy_shmem_fail("shmem_init: %s", ferry_error_message(NULL));
    s->me = ferry_rank(s->f);
    s->count = ferry_ranks(s->f);
    fy_shmem_check("shmem_init (SHMEM_SYMMETRIC_SIZE, FERRY_HEAP_BYTES)",
                   ferry_alloc(s->f, s->heap_bytes + FY_SHMEM_ALIGNMENT, &s->reserved));
    s->heap = (char *)s->reserved + (-(uintptr_t)s->reserved) % FY_SHMEM_ALIGNMENT;
    dl_iterate_phdr(find_data, NULL);
    if (s->data != NULL)
        fy_shmem_check("shmem_init", ferry_memory_register(s->f, s->data, s->data_bytes));
    exchange(s->heap, &s->heaps);
    exchange(s->data, &s->datas);
    find_mapped();
    fy_shmem_heap_begin();
    fy_shmem_atomics_begin();
    shmem_barrier_all();
}

int shmem_init_thread(int requested, int *provided)
{
    (void)requested;
    shmem_init();
    shmem_query_thread(provided);
    return 0;
}

void shmem_query_thread(int *provided)
{
    *provided = SHMEM_THREAD_FUNNELED;
}

void shmem_finalize(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (s->f == NULL)
        return;
    shmem_barrier_all();
    if (s->data != NULL)
        fy_shmem_check("shmem_finalize", ferry_memory_unregister(s->f, s->data));
    fy_shmem_check("shmem_finalize", ferry_free(s->f, s->reserved));
    int error = ferry_close(s->f);
    s->f = NULL;
    if (error != 0)
        fy_shmem_fail("shmem_finalize: %s", ferry_strerror(error));
    free(s->heaps);
    free(s->datas);
    free(s->mapped);
    free(s->blocks);
    memset(s, 0, sizeof(*s));
}

void shmem_global_exit(int status)
{
    if (fy_shmem_pe.f == NULL)
        exit(status);
    ferry_abort(fy_shmem_pe.f, status, "shmem_global_exit");
}

int shmem_my_pe(void)
{
    return fy_shmem_pe.me;
}

int shmem_n_pes(void)
{
    return fy_shmem_pe.count;
}

int shmem_pe_accessible(int pe)
{
    return pe >= 0 && pe < fy_shmem_pe.count;
}

int shmem_addr_accessible(const void *address, int pe)
{
    return shmem_pe_accessible(pe) && fy_shmem_is_symmetric(address, 1);
}

void *shmem_ptr(const void *dest, int pe)
{
    char *remote;
    if (!shmem_addr_accessible(dest, pe) || !fy_shmem_locate(dest, 1, pe, &remote))
        return NULL;
    return remote;
}

void shmem_info_get_version(int *major, int *minor)
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char *name)
{
    snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING);
}

void shmem_pcontrol(int level, ...)
{
    (void)level;
}
