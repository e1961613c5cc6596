/* The reference of `make bench-fidelity`: loops in C with the formulas of OSU Micro-Benchmarks 7.5.
 *
 * Written for omb-py from a description of what OMB measures (docs/performance.md); no code of OMB is in here.
 *
 * Every function takes (comm, send, recv, size, iterations, warmup, window, samples_us) and returns the number
 * that OMB prints: microseconds, or MB/s (MB = 10^6 bytes).  Point-to-point: on rank 0, 0 elsewhere.
 * Collectives: the mean over the ranks of each rank's mean, on rank 0, 0 elsewhere.  When samples_us is not NULL
 * it receives this rank's time of each iteration.  The clock is read around every operation; a barrier follows
 * every collective call, outside the timer; return codes are checked; one barrier comes before the loop.
 */
#include "reference.h"

double latency(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, int window,
               double *samples_us)
{
    double start = 0, stop = 0, total = 0;
    int rank = rank_in(comm);
    MPI_Status status;

    (void)window;
    CHECK(MPI_Barrier(comm));
    if (rank == 0) {
        for (int i = 0; i < iterations + warmup; i++) {
            if (i >= warmup)
                start = MPI_Wtime();
            CHECK(MPI_Send(send, size, MPI_CHAR, 1, PING, comm));
            CHECK(MPI_Recv(recv, size, MPI_CHAR, 1, PING, comm, &status));
            if (i >= warmup) {
                stop = MPI_Wtime();
                total += stop - start;
                if (samples_us)
                    samples_us[i - warmup] = (stop - start) * 1e6 / 2;
            }
        }
        return total * 1e6 / (2.0 * iterations);
    }
    if (rank == 1) {
        for (int i = 0; i < iterations + warmup; i++) {
            CHECK(MPI_Recv(recv, size, MPI_CHAR, 0, PING, comm, &status));
            CHECK(MPI_Send(send, size, MPI_CHAR, 0, PING, comm));
        }
    }
    return 0;
}

double bw(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, int window,
          double *samples_us)
{
    double start = 0, stop = 0, total = 0;
    int rank = rank_in(comm);
    MPI_Status status;

    if (window > MAX_WINDOW)
        abort();
    CHECK(MPI_Barrier(comm));
    if (rank == 0) {
        for (int i = 0; i < iterations + warmup; i++) {
            if (i >= warmup)
                start = MPI_Wtime();
            for (int k = 0; k < window; k++)
                CHECK(MPI_Isend(send, size, MPI_CHAR, 1, DATA, comm, &requests[k]));
            CHECK(MPI_Waitall(window, requests, statuses));
            CHECK(MPI_Recv(recv, 1, MPI_CHAR, 1, REPLY, comm, &status));
            if (i >= warmup) {
                stop = MPI_Wtime();
                total += stop - start;
                if (samples_us)
                    samples_us[i - warmup] = (stop - start) * 1e6;
            }
        }
        return (double)size / 1e6 * iterations * window / total;
    }
    if (rank == 1) {
        for (int i = 0; i < iterations + warmup; i++) {
            for (int k = 0; k < window; k++)
                CHECK(MPI_Irecv(recv, size, MPI_CHAR, 0, DATA, comm, &requests[k]));
            CHECK(MPI_Waitall(window, requests, statuses));
            CHECK(MPI_Send(send, 1, MPI_CHAR, 0, REPLY, comm));
        }
    }
    return 0;
}

double bibw(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, int window,
            double *samples_us)
{
    double start = 0, stop = 0, total = 0;
    int rank = rank_in(comm);
    MPI_Request *sends = requests + MAX_WINDOW;

    if (window > MAX_WINDOW)
        abort();
    CHECK(MPI_Barrier(comm));
    if (rank > 1)
        return 0;
    for (int i = 0; i < iterations + warmup; i++) {
        if (rank == 0 && i >= warmup)
            start = MPI_Wtime();
        for (int k = 0; k < window; k++)
            CHECK(MPI_Irecv(recv, size, MPI_CHAR, 1 - rank, DATA, comm, &requests[k]));
        for (int k = 0; k < window; k++)
            CHECK(MPI_Isend(send, size, MPI_CHAR, 1 - rank, DATA, comm, &sends[k]));
        CHECK(MPI_Waitall(window, sends, statuses + MAX_WINDOW));
        CHECK(MPI_Waitall(window, requests, statuses));
        if (rank == 0 && i >= warmup) {
            stop = MPI_Wtime();
            total += stop - start;
            if (samples_us)
                samples_us[i - warmup] = (stop - start) * 1e6;
        }
    }
    return rank == 0 ? 2.0 * size / 1e6 * iterations * window / total : 0;
}

/* name, and name_late: the same with one more reading of the clock between the barrier and the timer, about 30 ns. */
#define COLLECTIVE(name, call)                    \
    LOOP(name, (void)0, call, MPI_Barrier(comm)) \
    LOOP(name##_late, MPI_Wtime(), call, MPI_Barrier(comm))
#define LOOP(name, before, call, behind)                                                                    \
    double name(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, int window,    \
                double *samples_us)                                                                         \
    {                                                                                                       \
        double total = 0;                                                                                   \
        int count = size / (int)sizeof(int);                                                                \
                                                                                                            \
        (void)window, (void)send, (void)recv, (void)count;                                                  \
        CHECK(MPI_Barrier(comm));                                                                           \
        for (int i = 0; i < iterations + warmup; i++) {                                                     \
            before;                                                                                         \
            double start = MPI_Wtime();                                                                     \
            CHECK(call);                                                                                    \
            double stop = MPI_Wtime();                                                                      \
            if (i >= warmup) {                                                                              \
                total += stop - start;                                                                      \
                if (samples_us)                                                                             \
                    samples_us[i - warmup] = (stop - start) * 1e6;                                          \
            }                                                                                               \
            CHECK(behind);                                                                                  \
        }                                                                                                   \
        return averaged(comm, total, iterations);                                                           \
    }

/* barriers stand back to back */
LOOP(barrier, (void)0, MPI_Barrier(comm), MPI_SUCCESS)
LOOP(barrier_late, MPI_Wtime(), MPI_Barrier(comm), MPI_SUCCESS)
COLLECTIVE(bcast, MPI_Bcast(send, size, MPI_CHAR, 0, comm))
COLLECTIVE(allreduce, MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, comm))
COLLECTIVE(allgather, MPI_Allgather(send, size, MPI_CHAR, recv, size, MPI_CHAR, comm))
COLLECTIVE(alltoall, MPI_Alltoall(send, size, MPI_CHAR, recv, size, MPI_CHAR, comm))
