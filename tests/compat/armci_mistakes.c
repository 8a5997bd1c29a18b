/* Goal: a wrong call of ARMCI ends the job and says what was wrong. Method: makes the mistake that
 * the argument names; CMakeLists.txt has the texts. */
#include <string.h>

#include <armci.h>

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
    else if (strcmp(mistake, "error") == 0)
        ARMCI_Error("the matrix is singular", 5);
    ARMCI_Finalize();
    return 0;
}
