/* A program of ARMCI: it puts a value and gets it back. */
#include <stdio.h>

#include <armci.h>
#include <ferry/export.h>

int main(void)
{
    void *parts[1];
    ARMCI_Init();
    ARMCI_Malloc(parts, sizeof(int));
    ARMCI_PutValueInt(3, parts[0], 0);
    int ok = ARMCI_GetValueInt(parts[0], 0) == 3;
    ARMCI_Free(parts[0]);
    if (ok)
        printf("hello from rank %d of %d, Ferry %s\n", armci_msg_me(), armci_msg_nproc(),
               FERRY_VERSION);
    ARMCI_Finalize();
    return 0;
}
