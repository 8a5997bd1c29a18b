/* Goal: a wrong call of ARMCI ends the job and says what was wrong. Method: makes the mistake that
 * the argument names; CMakeLists.txt has the texts. */
#include <stdio.h>
#include <string.h>

#include <armci.h>

/* Process 1 is not in the group of process 0, and knows it. */
static void none(void)
{
    ARMCI_Group group;
    int process = 0, rank, size;
    void *parts[2];
    ARMCI_Group_create(1, &process, &group);
    if (armci_msg_me() == 1) {
        if (ARMCI_Group_rank(&group, &rank) != 1 || rank != -1)
            ARMCI_Error("a rank in no group", rank);
        ARMCI_Group_size(&group, &size);
        if (size != -1 || ARMCI_Absolute_id(&group, 0) != -1)
            ARMCI_Error("no group has a size or members", size);
        ARMCI_Group_free(&group);
        (void)ARMCI_Malloc_group(parts, 8, &group);
    }
}

static const char *mistake = "none at all";

static int is(const char *name)
{
    return strcmp(mistake, name) == 0;
}

static void early(void)
{
    ARMCI_Group group = {NULL};
    int number;
    if (is("early"))
        ARMCI_Barrier();
    else if (is("early_rank"))
        (void)ARMCI_Group_rank(&group, &number);
    else if (is("early_size"))
        ARMCI_Group_size(&group, &number);
    else if (is("early_id"))
        (void)ARMCI_Absolute_id(&group, 0);
    else if (is("early_free"))
        ARMCI_Group_free(&group);
}

/* Pieces of calls with many. */
static void make_mistake_in_pieces(void *there)
{
    int number = 0;
    void *sources[] = {&number}, *nothing[] = {NULL}, *targets[] = {there};
    armci_giov_t pieces = {sources, targets, 4, 1};
    if (is("pieces_bytes"))
        pieces.bytes = -4;
    else if (is("pieces_length"))
        pieces.ptr_array_len = -1;
    else if (is("pieces_null"))
        pieces.src_ptr_array = nothing;
    if (is("pieces_count"))
        (void)ARMCI_PutV(&pieces, -3, 0);
    else if (is("pieces_null"))
        (void)ARMCI_PutV(&pieces, 1, 0);
    else if (strncmp(mistake, "pieces", 6) == 0)
        (void)ARMCI_AccV(ARMCI_ACC_INT, &number, &pieces, 1, 0);
}

static void make_mistake_with_null(void *there)
{
    int number = 0, strides[] = {8}, shape[] = {4, 2};
    if (is("null"))
        ARMCI_Get(NULL, &number, 4, 0);
    else if (is("null_source"))
        ARMCI_Acc(ARMCI_ACC_INT, &number, NULL, there, 4, 0);
    else if (is("null_scale"))
        ARMCI_Acc(ARMCI_ACC_INT, NULL, &number, there, 4, 0);
    else if (is("null_target"))
        ARMCI_Acc(ARMCI_ACC_INT, &number, &number, NULL, 4, 0);
    else if (is("null_word"))
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &number, NULL, 1, 0);
    else if (is("null_old"))
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD, NULL, there, 1, 0);
    else if (is("null_strides"))
        ARMCI_PutS(&number, strides, there, NULL, shape, 1, 0);
    else if (is("null_shape"))
        ARMCI_PutS(&number, strides, there, strides, NULL, 0, 0);
    else if (is("null_operation"))
        armci_msg_igop(&number, 1, NULL);
    else if (is("null_handle"))
        ARMCI_INIT_HANDLE(NULL);
    else if (is("null_copy"))
        ARMCI_Copy(NULL, there, 8);
}

/* Addresses that are not memory of the other process, though the caller may write there. */
static void make_mistake_in_address(void *parts[])
{
    int me = armci_msg_me(), other = 1 - me, number = 0, strides[] = {32}, shape[] = {8, 3};
    void *sources[] = {&number}, *targets[] = {parts[me]};
    armci_giov_t pieces = {sources, targets, 4, 1};
    if (is("own_put"))
        ARMCI_Put(&number, &number, 4, other);
    else if (is("own_part"))
        ARMCI_Put(&number, parts[me], 4, other);
    else if (is("own_get"))
        ARMCI_Get(&number, parts[me], 4, other);
    else if (is("own_word"))
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &number, &number, 1, other);
    else if (is("own_sum"))
        ARMCI_Acc(ARMCI_ACC_INT, &number, &number, parts[me], 4, other);
    else if (is("own_pieces"))
        ARMCI_PutV(&pieces, 1, other);
    else if (is("beyond"))
        ARMCI_PutS(parts[me], strides, parts[other], strides, shape, 1, other);
    else if (is("freed") && ARMCI_Free(parts[me]) == 0)
        ARMCI_Put(&number, parts[other], 4, other);
}

/* Process 0 holds the mutex of process 1. */
static void make_mistake_with_mutex(void)
{
    if (!is("locked") && !is("destroyed") && !is("keep"))
        return;
    ARMCI_Create_mutexes(2);
    if (armci_msg_me() == 0)
        ARMCI_Lock(1, 1);
    if (is("locked") && armci_msg_me() == 0)
        ARMCI_Lock(1, 1);
    ARMCI_Barrier();
    if (is("destroyed"))
        ARMCI_Destroy_mutexes();
    if (!is("keep") || armci_msg_me() == 0)
        return;
    ARMCI_Lock(1, 1);
    ARMCI_Unlock(1, 1);
    puts("it has the mutex");
}

static void make_negative_mistake(void)
{
    ARMCI_Group group;
    int number = 0, processes[] = {0, 99}, same[] = {1, 1};
    if (is("negative_send"))
        armci_msg_snd(1, &number, -4, 0);
    else if (is("negative_room"))
        armci_msg_rcv(1, &number, -1, NULL, armci_msg_me());
    else if (is("negative_broadcast"))
        armci_msg_bcast(&number, -4, 0);
    else if (is("negative_reduction"))
        armci_msg_igop(&number, -1, "+");
    else if (is("negative_copy"))
        ARMCI_Copy(&number, processes, -4);
    else if (is("negative_group"))
        ARMCI_Group_create(-1, processes, &group);
    else if (is("twice"))
        ARMCI_Group_create(2, same, &group);
    else if (is("outside_parent"))
        ARMCI_Group_create(2, processes, &group);
}

int main(int argc, char **argv)
{
    void *parts[2];
    int number = 0, strides[9] = {0}, shape[10] = {0};
    mistake = argc > 1 ? argv[1] : mistake;
    early();
    ARMCI_Init();
    (void)ARMCI_Malloc(parts, 64);
    make_mistake_in_pieces(parts[0]);
    make_mistake_with_null(parts[0]);
    make_negative_mistake();
    make_mistake_in_address(parts);
    make_mistake_with_mutex();
    if (is("process"))
        ARMCI_Put(&number, &number, 4, 9);
    else if (is("levels"))
        ARMCI_PutS(&number, strides, &number, strides, shape, 9, 0);
    else if (is("type"))
        ARMCI_Acc(17, &number, &number, &number, 4, 0);
    else if (is("unlock") && ARMCI_Create_mutexes(1) == 0)
        ARMCI_Unlock(0, 1);
    else if (is("mutex"))
        ARMCI_Lock(0, 0);
    else if (is("operation"))
        armci_msg_igop(&number, 1, "xor");
    else if (is("none"))
        none();
    else if (is("far_word") && armci_msg_me() == 0)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &number, (void *)64, 1, 1);
    else if (is("error"))
        ARMCI_Error("the matrix is singular", 5);
    ARMCI_Finalize();
    return 0;
}
