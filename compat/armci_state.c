/* Start and stop, memory, groups, order, and handles. */
#include "armci_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fy_armci_state fy_armci;

void fy_armci_check(const char *call, int process)
{
    if (!fy_armci.open)
        fy_compat_fail("%s before ARMCI_Init or after ARMCI_Finalize", call);
    if (process < 0 || process >= fy_compat.count)
        fy_compat_fail("%s: process %d does not exist (the job has 0..%d)", call, process,
                       fy_compat.count - 1);
}

size_t fy_armci_number(const char *call, int number, const char *what)
{
    if (number < 0)
        fy_compat_fail("%s: %d %s; expected 0 or more", call, number, what);
    return (size_t)number;
}

void fy_armci_address_check(const char *call, const void *address, const char *what)
{
    if (address == NULL)
        fy_compat_fail("%s: the %s is NULL", call, what);
}

void fy_armci_poll(void)
{
    if (fy_armci.open && !fy_compat.all_mapped)
        fy_compat_turn(&fy_armci.looks);
}

bool fy_armci_is_mapped(int process)
{
    return fy_compat.mapped[process];
}

int ARMCI_Init(void)
{
    if (fy_armci.open)
        return 0;
    fy_compat_open("ARMCI_Init", 0);
    fy_armci.open = true;
    fy_armci.unfinished =
        fy_compat_need("ARMCI_Init", calloc((size_t)fy_compat.count, sizeof(unsigned)));
    fy_armci_accumulate_begin();
    fy_compat_check("ARMCI_Init", ferry_barrier(fy_compat.f));
    return 0;
}

int ARMCI_Init_args(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return ARMCI_Init();
}

int ARMCI_Initialized(void)
{
    return fy_armci.open;
}

int ARMCI_Finalize(void)
{
    if (!fy_armci.open)
        return 0;
    fy_armci_mutexes_unlock();
    ARMCI_Barrier();
    fy_armci_mutexes_free();
    free(fy_armci.unfinished);
    free(fy_armci.ranges);
    memset(&fy_armci, 0, sizeof(fy_armci));
    fy_compat_close("ARMCI_Finalize");
    return 0;
}

void ARMCI_Cleanup(void)
{
}

void ARMCI_Error(const char *message, int code)
{
    char text[256];
    snprintf(text, sizeof(text), "ARMCI_Error: %s (%d)", message, code);
    if (fy_compat.f != NULL)
        ferry_abort(fy_compat.f, code == 0 ? 1 : code, text);
    fprintf(stderr, "ferry: %s\n", text);
    exit(1);
}

/* Groups. */

/* A handle that names no group holds the address of the state: no group has it, and NULL is the
 * group of all processes. */

static void set_group(ARMCI_Group *group, ferry_group *made)
{
    group->group = made == NULL ? (void *)&fy_armci : made;
}

static bool is_none(const ARMCI_Group *group)
{
    return group != NULL && group->group == (void *)&fy_armci;
}

ferry_group *fy_armci_group(const char *call, const ARMCI_Group *group)
{
    fy_armci_check(call, 0);
    if (is_none(group))
        fy_compat_fail("%s: the group is none; expected a group that process %d is in", call,
                       fy_compat.me);
    return group == NULL ? NULL : group->group;
}

void ARMCI_Group_get_world(ARMCI_Group *group)
{
    group->group = NULL;
}

void ARMCI_Group_get_default(ARMCI_Group *group)
{
    group->group = fy_armci.group;
}

void ARMCI_Group_set_default(const ARMCI_Group *group)
{
    fy_armci.group = fy_armci_group("ARMCI_Group_set_default", group);
}

int ARMCI_Group_rank(const ARMCI_Group *group, int *rank)
{
    static const char call[] = "ARMCI_Group_rank";
    fy_armci_check(call, 0);
    *rank = is_none(group)
                ? -1
                : ferry_group_place(fy_compat.f, fy_armci_group(call, group), fy_compat.me);
    return *rank < 0;
}

void ARMCI_Group_size(const ARMCI_Group *group, int *size)
{
    static const char call[] = "ARMCI_Group_size";
    fy_armci_check(call, 0);
    *size = is_none(group) ? -1 : ferry_group_count(fy_compat.f, fy_armci_group(call, group));
}

int ARMCI_Absolute_id(const ARMCI_Group *group, int rank)
{
    static const char call[] = "ARMCI_Absolute_id";
    fy_armci_check(call, 0);
    return is_none(group) ? -1 : ferry_group_rank(fy_compat.f, fy_armci_group(call, group), rank);
}

void ARMCI_Group_create_child(int count, int *processes, ARMCI_Group *group,
                              const ARMCI_Group *parent)
{
    static const char call[] = "ARMCI_Group_create";
    ferry_group *made = NULL, *from = fy_armci_group(call, parent);
    size_t room = fy_armci_number(call, count, "processes") + 1;
    int *ranks = fy_compat_need(call, calloc(room, sizeof(int)));
    if (count > 0)
        fy_armci_address_check(call, processes, "list of processes");
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++)
            if (processes[k] == processes[i])
                fy_compat_fail("%s: process %d is named twice", call, processes[i]);
        ranks[i] = ferry_group_rank(fy_compat.f, from, processes[i]);
        if (ranks[i] < 0)
            fy_compat_fail("%s: process %d is not in the parent (it has 0..%d)", call, processes[i],
                           ferry_group_count(fy_compat.f, from) - 1);
    }
    if (count > 0)
        fy_compat_check(call, ferry_group_create(fy_compat.f, from, ranks, count, &made));
    free(ranks);
    set_group(group, made);
}

void ARMCI_Group_create(int count, int *processes, ARMCI_Group *group)
{
    const ARMCI_Group parent = {fy_armci.group};
    ARMCI_Group_create_child(count, processes, group, &parent);
}

int ARMCIX_Group_split(const ARMCI_Group *parent, int colour, int key, ARMCI_Group *group)
{
    static const char call[] = "ARMCIX_Group_split";
    ferry_group *made = NULL, *from = fy_armci_group(call, parent);
    fy_compat_check(call, ferry_group_split(fy_compat.f, from, colour, key, &made));
    set_group(group, made);
    return 0;
}

void ARMCI_Group_free(ARMCI_Group *group)
{
    fy_armci_check("ARMCI_Group_free", 0);
    if (!is_none(group)) {
        if (fy_armci.group == group->group)
            fy_armci.group = NULL;
        ferry_group_free(fy_compat.f, group->group);
    }
    set_group(group, NULL);
}

/* Memory. */

/* A block of a process. */
typedef struct block {
    void *base;
    size_t size_bytes;
} block;

/* Gathers the blocks of the members of a group, and returns them; the caller frees them. No process
 * returns before all have called it. */
static block *gather_blocks(const char *call, ferry_group *members, block own)
{
    size_t count = (size_t)ferry_group_count(fy_compat.f, members);
    block *all = fy_compat_need(call, calloc(count, sizeof(*all)));
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_ALLGATHER,
                                   .in = &own,
                                   .out = all,
                                   .count = 1,
                                   .value_bytes = sizeof(own),
                                   .group = members};
    fy_compat_check(call, ferry_collective_run(fy_compat.f, &what));
    return all;
}

int ARMCI_Malloc_group(void *addresses[], armci_size_t bytes, const ARMCI_Group *group)
{
    static const char call[] = "ARMCI_Malloc";
    ferry_group *members = fy_armci_group(call, group);
    if (bytes < 0)
        fy_compat_fail("ARMCI_Malloc: %ld bytes; expected 0 or more", bytes);
    fy_armci_address_check(call, (void *)addresses, "array of addresses");
    block own = {.size_bytes = (size_t)bytes};
    if (bytes > 0)
        fy_compat_check(call, ferry_alloc(fy_compat.f, own.size_bytes, &own.base));
    block *all = gather_blocks(call, members, own);
    for (int i = 0; i < ferry_group_count(fy_compat.f, members); i++) {
        addresses[i] = all[i].base;
        fy_armci_range_add(call, ferry_group_rank(fy_compat.f, members, i), all[i].base,
                           all[i].size_bytes);
    }
    free(all);
    return 0;
}

int ARMCI_Malloc(void *addresses[], armci_size_t bytes)
{
    return ARMCI_Malloc_group(addresses, bytes, NULL);
}

int ARMCI_Free_group(void *address, const ARMCI_Group *group)
{
    static const char call[] = "ARMCI_Free";
    ferry_group *members = fy_armci_group(call, group);
    ARMCI_AllFence();
    block *all = gather_blocks(call, members, (block){.base = address});
    for (int i = 0; i < ferry_group_count(fy_compat.f, members); i++)
        fy_armci_range_remove(all[i].base);
    free(all);
    fy_compat_check(call, ferry_free(fy_compat.f, address));
    return 0;
}

int ARMCI_Free(void *address)
{
    return ARMCI_Free_group(address, NULL);
}

void *ARMCI_Malloc_local(armci_size_t bytes)
{
    void *own = NULL;
    fy_armci_check("ARMCI_Malloc_local", 0);
    return bytes > 0 && ferry_alloc(fy_compat.f, (size_t)bytes, &own) == 0 ? own : NULL;
}

int ARMCI_Free_local(void *address)
{
    fy_armci_check("ARMCI_Free_local", 0);
    fy_compat_check("ARMCI_Free_local", ferry_free(fy_compat.f, address));
    return 0;
}

/* Operations by messages. */

static void when_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    fy_armci_op *op = arg;
    (void)f;
    (void)receipt;
    if (op->submitted != NULL)
        *op->submitted = true;
    op->submitted = NULL; /* the waiting call may return, and its variable with it */
}

void fy_armci_op_drop(fy_armci_op *op)
{
    if (op->submitted != NULL)
        *op->submitted = true;
    if (op->pending != NULL)
        --*op->pending;
    fy_armci.unfinished[op->process]--;
    fy_armci.total--;
    free(op);
}

static void when_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    fy_armci_op_drop(arg);
}

static void when_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)arg;
    fy_compat_fail("an operation on process %d failed: %s", receipt->rank, receipt->reason);
}

fy_armci_op *fy_armci_op_create(int process, armci_hdl_t *handle, size_t data_bytes,
                                ferry_track *track)
{
    fy_armci_op *op = fy_compat_need("ARMCI", malloc(sizeof(*op) + data_bytes));
    *op = (fy_armci_op){.process = process};
    if (handle != NULL && handle->pending == NULL)
        handle->pending = fy_compat_need("ARMCI", calloc(1, sizeof(unsigned)));
    if (handle != NULL) {
        op->pending = handle->pending;
        ++*op->pending;
    }
    fy_armci.unfinished[process]++;
    fy_armci.total++;
    *track = (ferry_track)FERRY_TRACK_DEFAULTS;
    track->submitted = when_submitted;
    track->completed = when_completed;
    track->failed = when_failed;
    track->submitted_arg = track->completed_arg = track->failed_arg = op;
    return op;
}

void ARMCI_INIT_HANDLE(armci_hdl_t *handle)
{
    fy_armci_address_check("ARMCI_INIT_HANDLE", handle, "handle");
    *handle = (armci_hdl_t){NULL, 0};
}

void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    fy_armci_address_check("ARMCI_SET_AGGREGATE_HANDLE", handle, "handle");
    handle->aggregate = 1;
}

void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    fy_armci_address_check("ARMCI_UNSET_AGGREGATE_HANDLE", handle, "handle");
    handle->aggregate = 0;
}

int ARMCI_Wait(armci_hdl_t *handle)
{
    unsigned turns = 0;
    if (handle == NULL || handle->pending == NULL)
        return 0;
    while (*handle->pending > 0)
        fy_compat_turn(&turns);
    free(handle->pending);
    handle->pending = NULL;
    return 0;
}

int ARMCI_Test(armci_hdl_t *handle)
{
    unsigned turns = 0;
    if (handle != NULL && handle->pending != NULL && *handle->pending > 0)
        fy_compat_turn(&turns);
    else
        fy_armci_poll();
    if (handle != NULL && handle->pending != NULL && *handle->pending > 0)
        return 1;
    return ARMCI_Wait(handle);
}

int ARMCI_WaitAll(void)
{
    ARMCI_AllFence();
    return 0;
}

int ARMCI_WaitProc(int process)
{
    ARMCI_Fence(process);
    return 0;
}

/* Order. */

void ARMCI_Fence(int process)
{
    unsigned turns = 0;
    fy_armci_check("ARMCI_Fence", process);
    fy_armci_poll();
    while (fy_armci.unfinished[process] > 0)
        fy_compat_turn(&turns);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void ARMCI_AllFence(void)
{
    unsigned turns = 0;
    fy_armci_check("ARMCI_AllFence", 0);
    fy_armci_poll();
    while (fy_armci.total > 0)
        fy_compat_turn(&turns);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void ARMCI_Barrier(void)
{
    ARMCI_AllFence();
    fy_compat_check("ARMCI_Barrier", ferry_barrier(fy_compat.f));
}

void ARMCI_Access_begin(void *address)
{
    (void)address;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void ARMCI_Access_end(void *address)
{
    (void)address;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Where processes are. */

int ARMCI_Same_node(int process)
{
    fy_armci_check("ARMCI_Same_node", process);
    return fy_armci_is_mapped(process);
}

int armci_domain_same_id(armci_domain_t domain, int process)
{
    (void)domain;
    return ARMCI_Same_node(process);
}

int ARMCI_Uses_shm(void)
{
    return 1;
}

void ARMCI_Set_shm_limit(unsigned long bytes)
{
    (void)bytes;
}
