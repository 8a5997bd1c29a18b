/* ARMCI on Ferry: programs that include armci.h run on Ferry's ranks.
 *
 * A process is a rank. Names and meanings are those of ARMCI 1.5. docs/guide/from-armci.md says
 * what differs and what is left out. Remote memory is what ARMCI_Malloc gives. Strides and counts
 * are in bytes; `count[0]` is the contiguous part.
 *
 * ARMCI has no handle, so the library keeps one state for the process. One thread of a process
 * calls these functions. A call that fails ends the job with a message, as ferry_abort does. */
#ifndef FERRY_ARMCI_H
#define FERRY_ARMCI_H

#include <stddef.h>
#include <stdint.h>

#include <ferry/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef long armci_size_t;
enum { ARMCI_MAX_STRIDE_LEVEL = 8 };

/* Start and stop. ARMCI_Init may be called again and does nothing then. */
FERRY_API int ARMCI_Init(void);
FERRY_API int ARMCI_Init_args(int *argc, char ***argv);
FERRY_API int ARMCI_Initialized(void);
FERRY_API int ARMCI_Finalize(void);
FERRY_API void ARMCI_Cleanup(void);
FERRY_API void ARMCI_Error(const char *message, int code) __attribute__((noreturn));

/* Groups of processes. All processes of the parent, which for ARMCI_Group_create is the default
 * group, make a call that makes groups. After the default group is freed, the default is all. */
typedef struct ARMCI_Group {
    void *group; /* NULL: all. A process outside a new group gets a value that names no group */
} ARMCI_Group;
FERRY_API void ARMCI_Group_create(int count, int *processes, ARMCI_Group *group);
FERRY_API void ARMCI_Group_create_child(int count, int *processes, ARMCI_Group *group,
                                        const ARMCI_Group *parent);
FERRY_API int ARMCIX_Group_split(const ARMCI_Group *parent, int colour, int key,
                                 ARMCI_Group *group);
FERRY_API void ARMCI_Group_get_world(ARMCI_Group *group);
FERRY_API void ARMCI_Group_get_default(ARMCI_Group *group);
FERRY_API void ARMCI_Group_set_default(const ARMCI_Group *group);
FERRY_API int ARMCI_Group_rank(const ARMCI_Group *group, int *rank);
FERRY_API void ARMCI_Group_size(const ARMCI_Group *group, int *size);
FERRY_API int ARMCI_Absolute_id(const ARMCI_Group *group, int rank);
FERRY_API void ARMCI_Group_free(ARMCI_Group *group);

/* Memory. ARMCI_Malloc gives the addresses of all processes; each asks for a size of its own, and 0
 * bytes have the address NULL. */
FERRY_API int ARMCI_Malloc(void *addresses[], armci_size_t bytes);
FERRY_API int ARMCI_Free(void *address);
FERRY_API int ARMCI_Malloc_group(void *addresses[], armci_size_t bytes, const ARMCI_Group *group);
FERRY_API int ARMCI_Free_group(void *address, const ARMCI_Group *group);
FERRY_API void *ARMCI_Malloc_local(armci_size_t bytes);
FERRY_API int ARMCI_Free_local(void *address);

/* Puts, gets and accumulates: contiguous, strided (S) and of many pieces (V). A put returns when
 * the source may change, a get when the data is here. */
typedef enum ARMCI_Acc_e {
    ARMCI_ACC_INT,
    ARMCI_ACC_LNG,
    ARMCI_ACC_FLT,
    ARMCI_ACC_DBL,
    ARMCI_ACC_CPL,
    ARMCI_ACC_DCP
} ARMCI_Acc_t;

typedef struct armci_giov_t {
    void **src_ptr_array, **dst_ptr_array;
    int bytes, ptr_array_len;
} armci_giov_t;

FERRY_API int ARMCI_Put(void *source, void *target, int bytes, int process);
FERRY_API int ARMCI_Get(void *source, void *target, int bytes, int process);
FERRY_API int ARMCI_Acc(int type, const void *scale, void *source, void *target, int bytes,
                        int process);
FERRY_API int ARMCI_PutS(void *source, int source_strides[], void *target, int target_strides[],
                         int count[], int levels, int process);
FERRY_API int ARMCI_GetS(void *source, int source_strides[], void *target, int target_strides[],
                         int count[], int levels, int process);
FERRY_API int ARMCI_AccS(int type, const void *scale, void *source, int source_strides[],
                         void *target, int target_strides[], int count[], int levels, int process);
FERRY_API int ARMCI_PutV(armci_giov_t *pieces, int count, int process);
FERRY_API int ARMCI_GetV(armci_giov_t *pieces, int count, int process);
FERRY_API int ARMCI_AccV(int type, const void *scale, armci_giov_t *pieces, int count, int process);
FERRY_API int ARMCI_Put_flag(void *source, void *target, int bytes, int *flag, int value,
                             int process);
FERRY_API int ARMCI_PutS_flag(void *source, int source_strides[], void *target,
                              int target_strides[], int count[], int levels, int *flag, int value,
                              int process);
FERRY_API void ARMCI_Copy(const void *source, void *target, int bytes);

/* The same calls, which do not wait. A handle names one operation; with aggregation, all operations
 * begun with it until ARMCI_Wait. Without a handle (NULL), ARMCI_WaitAll waits for them. */
typedef struct armci_hdl_t {
    unsigned *pending; /* operations by messages that have not ended; NULL: none */
    int aggregate;
} armci_hdl_t;
FERRY_API void ARMCI_INIT_HANDLE(armci_hdl_t *handle);
FERRY_API void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
FERRY_API void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);
FERRY_API int ARMCI_NbPut(void *source, void *target, int bytes, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbGet(void *source, void *target, int bytes, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbAcc(int type, const void *scale, void *source, void *target, int bytes,
                          int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbPutS(void *source, int source_strides[], void *target, int target_strides[],
                           int count[], int levels, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbGetS(void *source, int source_strides[], void *target, int target_strides[],
                           int count[], int levels, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbAccS(int type, const void *scale, void *source, int source_strides[],
                           void *target, int target_strides[], int count[], int levels, int process,
                           armci_hdl_t *handle);
FERRY_API int ARMCI_NbPutV(armci_giov_t *pieces, int count, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbGetV(armci_giov_t *pieces, int count, int process, armci_hdl_t *handle);
FERRY_API int ARMCI_NbAccV(int type, const void *scale, armci_giov_t *pieces, int count,
                           int process, armci_hdl_t *handle);
FERRY_API int ARMCI_Wait(armci_hdl_t *handle);
FERRY_API int ARMCI_Test(armci_hdl_t *handle);
FERRY_API int ARMCI_WaitProc(int process);
FERRY_API int ARMCI_WaitAll(void);

/* Puts and gets of single values. */
#define ARMCI_VALUES(X) X(Int, int) X(Long, long) X(Float, float) X(Double, double)
#define ARMCI_DECLARE_VALUE(NAME, TYPE)                                                            \
    FERRY_API int ARMCI_PutValue##NAME(TYPE value, void *target, int process);                     \
    FERRY_API int ARMCI_NbPutValue##NAME(TYPE value, void *target, int process,                    \
                                         armci_hdl_t *handle);                                     \
    FERRY_API TYPE ARMCI_GetValue##NAME(void *source, int process);
ARMCI_VALUES(ARMCI_DECLARE_VALUE)

/* Order and waiting. A fence waits until the puts and accumulates of this process are done at
 * `process`. */
FERRY_API void ARMCI_Fence(int process);
FERRY_API void ARMCI_AllFence(void);
FERRY_API void ARMCI_Barrier(void);
FERRY_API void ARMCI_Access_begin(void *address);
FERRY_API void ARMCI_Access_end(void *address);

/* Changes a word of another process atomically. The old value goes to `old`. */
typedef enum ARMCI_Rmw_e {
    ARMCI_FETCH_AND_ADD,
    ARMCI_FETCH_AND_ADD_LONG,
    ARMCI_SWAP,
    ARMCI_SWAP_LONG
} ARMCI_Rmw_t;
FERRY_API int ARMCI_Rmw(int verb, void *old, void *target, int value, int process);

/* Mutexes. All processes call ARMCI_Create_mutexes, each with the number of its own mutexes.
 * Processes get a mutex in the order in which they ask. */
FERRY_API int ARMCI_Create_mutexes(int count);
FERRY_API int ARMCI_Destroy_mutexes(void);
FERRY_API void ARMCI_Lock(int mutex, int process);
FERRY_API void ARMCI_Unlock(int mutex, int process);

/* Where processes are. */
typedef enum armci_domain_e { ARMCI_DOMAIN_SMP } armci_domain_t;
FERRY_API int ARMCI_Same_node(int process);
FERRY_API int armci_domain_same_id(armci_domain_t domain, int process);
FERRY_API int ARMCI_Uses_shm(void);
FERRY_API void ARMCI_Set_shm_limit(unsigned long bytes);

/* Messages and collectives. `operation` is "+", "*", "min", "max", "absmin" or "absmax". */
FERRY_API int armci_msg_me(void);
FERRY_API int armci_msg_nproc(void);
FERRY_API void armci_msg_abort(int code) __attribute__((noreturn));
FERRY_API double armci_timer(void);
FERRY_API void armci_msg_snd(int tag, void *data, int bytes, int to);
FERRY_API void armci_msg_rcv(int tag, void *data, int room, int *bytes, int from);
FERRY_API int armci_msg_rcvany(int tag, void *data, int room, int *bytes);
FERRY_API void armci_msg_barrier(void);
FERRY_API void armci_msg_group_barrier(const ARMCI_Group *group);
FERRY_API void armci_msg_bcast(void *data, int bytes, int root);
FERRY_API void armci_msg_brdcst(void *data, int bytes, int root);
#define ARMCI_REDUCED(X)                                                                           \
    X(igop, int) X(lgop, long) X(llgop, long long) X(fgop, float) X(dgop, double)
#define ARMCI_DECLARE_REDUCED(NAME, TYPE)                                                          \
    FERRY_API void armci_msg_##NAME(TYPE *x, int count, const char *operation);                    \
    FERRY_API void armci_msg_group_##NAME(TYPE *x, int count, const char *operation,               \
                                          const ARMCI_Group *group);
ARMCI_REDUCED(ARMCI_DECLARE_REDUCED)

#ifdef __cplusplus
}
#endif
#endif
