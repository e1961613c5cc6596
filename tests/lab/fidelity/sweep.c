/* One sweep of OSU Micro-Benchmarks 7.5 with its default sizes and counts, over the loops of reference.c:
 *
 *     sweep latency|bw|allreduce|alltoall
 *
 * Written for omb-py from a description of OMB (docs/performance.md); no code of OMB is in here.
 */
#include <string.h>

#include "reference.h"

typedef double Loop(MPI_Comm, char *, char *, int, int, int, int, double *);
extern Loop latency, bw, allreduce, alltoall;

static const struct {
    const char *name;
    Loop *loop;
    int least, most, iterations, warmup, iterations_large, warmup_large;
} sweeps[] = {
    {"latency", latency, 1, 1 << 22, 10000, 100, 1000, 10},
    {"bw", bw, 1, 1 << 22, 100, 10, 20, 2},
    {"allreduce", allreduce, 4, 1 << 20, 1000, 100, 100, 10},
    {"alltoall", alltoall, 1, 1 << 20, 1000, 100, 100, 10},
};
enum { LARGE = 8192, WINDOW = 64 };

int main(int argc, char **argv)
{
    int rank, ranks;

    CHECK(MPI_Init(&argc, &argv));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    rank = rank_in(MPI_COMM_WORLD);
    for (size_t k = 0; argc == 2 && k < sizeof sweeps / sizeof *sweeps; k++) {
        if (strcmp(argv[1], sweeps[k].name))
            continue;
        size_t bytes = (size_t)ranks * sweeps[k].most;
        /* written as OMB does: pages that nobody wrote are all one page of zeros, which stays in the cache */
        char *send = memset(malloc(bytes), 'a', bytes), *recv = memset(malloc(bytes), 'b', bytes);
        for (int size = sweeps[k].least; size <= sweeps[k].most; size *= 2) {
            int large = size > LARGE;
            double value = sweeps[k].loop(MPI_COMM_WORLD, send, recv, size,
                                          large ? sweeps[k].iterations_large : sweeps[k].iterations,
                                          large ? sweeps[k].warmup_large : sweeps[k].warmup, WINDOW, NULL);
            if (rank == 0)
                printf("%-10d%18.2f\n", size, value);
        }
        free(send);
        free(recv);
    }
    CHECK(MPI_Finalize());
    return 0;
}
