/* Goal: a rank that joins a running job is no PE, and shmem_init says so there. Method: PE 0 starts
 * this program again as a further rank, and goes on until that rank ends the job. */
#include "check.h"

#include <ferry/member.h>

int main(void)
{
    int first;
    unsigned turns = 0;
    begin();
    CHECK(shmem_n_pes() == 2);
    if (shmem_my_pe() == 0)
        CHECK(ferry_spawn(fy_compat.f, 1, NULL, &first) == 0);
    for (;;)
        fy_compat_turn(&turns);
}
