/* Goal: a wrong call of ARMCI ends the job and says what was wrong. Method: makes the mistake that
 * the argument names; CMakeLists.txt has the texts. */
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

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "none";
    int number = 0, strides[9] = {0}, shape[10] = {0};
    if (strcmp(mistake, "early") == 0)
        ARMCI_Barrier();
    ARMCI_Init();
    if (strcmp(mistake, "process") == 0)
        ARMCI_Put(&number, &number, 4, 9);
    else if (strcmp(mistake, "null") == 0)
        ARMCI_Get(NULL, &number, 4, 0);
    else if (strcmp(mistake, "levels") == 0)
        ARMCI_PutS(&number, strides, &number, strides, shape, 9, 0);
    else if (strcmp(mistake, "type") == 0)
        ARMCI_Acc(17, &number, &number, &number, 4, 0);
    else if (strcmp(mistake, "mutex") == 0)
        ARMCI_Lock(0, 0);
    else if (strcmp(mistake, "operation") == 0)
        armci_msg_igop(&number, 1, "xor");
    else if (strcmp(mistake, "none") == 0)
        none();
    else if (strcmp(mistake, "error") == 0)
        ARMCI_Error("the matrix is singular", 5);
    ARMCI_Finalize();
    return 0;
}
