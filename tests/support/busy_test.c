/* Goal: what a busy machine leaves out is printed, and fails where all has to be tested. */
#include "busy.h"

int main(void)
{
    left_out("%d of %d parts", 1, 2);
    return 0;
}
