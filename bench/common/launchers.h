/* Launchers: how the ranks of a side are started by an MPI library's own launcher, for the prefix
 * of a bench_launcher. */
#ifndef BENCH_LAUNCHERS_H
#define BENCH_LAUNCHERS_H

#define BENCH_OPEN_MPI                                                                             \
    {                                                                                              \
        "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",  \
            "pml", "ob1", "--mca", "btl", "self,vader"                                             \
    }

#define BENCH_MPICH                                                                                \
    {                                                                                              \
        "mpiexec.mpich"                                                                            \
    }

#endif
