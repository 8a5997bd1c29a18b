/* Start and stop of a PE, addresses of other PEs, and queries. */
#include "state.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fy_shmem_state fy_shmem_pe;

enum { DEFAULT_HEAP_BYTES = 64 << 20 };

static bool is_within(const void *address, size_t size_bytes, const char *base, size_t base_bytes)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)base;
    return base != NULL && (uintptr_t)address >= (uintptr_t)base && offset <= base_bytes &&
           size_bytes <= base_bytes - offset;
}

void fy_shmem_poll_for(const void *address, int pe)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (pe == fy_compat.me && (s->shared != NULL || is_within(address, 1, s->data, s->data_bytes)))
        fy_compat_turn(&s->looks);
}

bool fy_shmem_is_symmetric(const void *address, size_t size_bytes)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    return is_within(address, size_bytes, s->heap, s->heap_bytes) ||
           is_within(address, size_bytes, s->data, s->data_bytes);
}

void fy_shmem_check(void)
{
    if (fy_shmem_pe.heap == NULL)
        fy_compat_fail("%s: a call before shmem_init or after shmem_finalize",
                       fy_compat.call != NULL ? fy_compat.call : "shmem");
}

void fy_shmem_too_many(const char *call, size_t count)
{
    fy_compat_fail("%s: %zu values are too many", call, count);
}

bool fy_shmem_locate_data(const void *address, size_t size_bytes, int pe, char **remote)
{
    const fy_shmem_state *s = &fy_shmem_pe;
    fy_shmem_check();
    if (pe < 0 || pe >= fy_compat.count)
        fy_compat_fail("%s: PE %d does not exist (the job has PEs 0..%d)", fy_compat.call, pe,
                       fy_compat.count - 1);
    if (!is_within(address, size_bytes, s->data, s->data_bytes))
        fy_compat_fail("%s: %p with %zu bytes is not symmetric: expected memory of shmem_malloc or "
                       "a variable of the program that is not const",
                       fy_compat.call, address, size_bytes);
    *remote = s->datas[pe] + ((const char *)address - s->data);
    return pe == fy_compat.me;
}

/* The value of SHMEM_SYMMETRIC_SIZE, or its default. */
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
        fy_compat_fail("SHMEM_SYMMETRIC_SIZE is \"%s\"; expected a number, then K, M, G or T",
                       text);
    return ((size_t)size + 63) / 64 * 64;
}

/* Finds the program's variables: the last writable segment of the first object. */
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

static void exchange(char *base, char ***out)
{
    *out = fy_compat_need("shmem_init", calloc((size_t)fy_compat.count, sizeof(char *)));
    fy_compat_check("shmem_init", ferry_allgather(fy_compat.f, &base, sizeof(char *), *out));
}

/* Makes the team of the PEs whose ranges are mapped in this process. */
static void find_shared(void)
{
    int first = 0;
    while (!fy_compat.mapped[first])
        first++;
    if (!fy_compat.all_mapped)
        fy_compat_check("shmem_init", ferry_group_split(fy_compat.f, NULL, first, fy_compat.me,
                                                        &fy_shmem_pe.shared));
}

void shmem_init(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    const size_t large = (size_t)8 << 30;
    if (s->heap != NULL)
        return;
    s->heap_bytes = heap_size();
    fy_compat_open("shmem_init", s->heap_bytes > large ? s->heap_bytes + large : 0);
    fy_compat_check("shmem_init (SHMEM_SYMMETRIC_SIZE, FERRY_HEAP_BYTES)",
                    ferry_alloc(fy_compat.f, s->heap_bytes + FY_SHMEM_ALIGNMENT, &s->reserved));
    s->heap = (char *)s->reserved + (-(uintptr_t)s->reserved) % FY_SHMEM_ALIGNMENT;
    dl_iterate_phdr(find_data, NULL);
    if (s->data != NULL)
        fy_compat_check("shmem_init", ferry_memory_register(fy_compat.f, s->data, s->data_bytes));
    exchange(s->heap, &s->heaps);
    exchange(s->data, &s->datas);
    find_shared();
    fy_shmem_heap_begin();
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
    *provided = SHMEM_THREAD_SERIALIZED;
}

void shmem_finalize(void)
{
    fy_shmem_state *s = &fy_shmem_pe;
    if (s->heap == NULL)
        return;
    int holder;
    for (const void *lock; (lock = fy_compat_held(&holder)) != NULL;)
        fy_shmem_unlock((long *)(uintptr_t)lock);
    shmem_barrier_all();
    fy_shmem_teams_end();
    if (s->data != NULL)
        fy_compat_check("shmem_finalize", ferry_memory_unregister(fy_compat.f, s->data));
    fy_compat_check("shmem_finalize", ferry_free(fy_compat.f, s->reserved));
    free(s->heaps);
    free(s->datas);
    free(s->blocks);
    memset(s, 0, sizeof(*s));
    fy_compat_close("shmem_finalize");
}

void shmem_global_exit(int status)
{
    if (fy_compat.f == NULL)
        exit(status);
    ferry_abort(fy_compat.f, status & 0xff, "shmem_global_exit"); /* as exit keeps it */
}

/* Ends the job if no job is open: there are no PEs then. */
static void check_started(const char *call)
{
    if (fy_compat.count == 0)
        fy_compat_fail("%s before shmem_init or after shmem_finalize", call);
}

int shmem_my_pe(void)
{
    check_started("shmem_my_pe");
    return fy_compat.me;
}

int shmem_n_pes(void)
{
    check_started("shmem_n_pes");
    return fy_compat.count;
}

int shmem_pe_accessible(int pe)
{
    return pe >= 0 && pe < fy_compat.count;
}

int shmem_addr_accessible(const void *address, int pe)
{
    return shmem_pe_accessible(pe) && fy_shmem_is_symmetric(address, 1);
}

void *shmem_ptr(const void *dest, int pe)
{
    char *remote;
    FY_SHMEM_CALL();
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
