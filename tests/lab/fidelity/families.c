/* One loop of every further family (reference.c says what all of them share): signature and result are the same.
 *
 * samples_us is not filled here.  Objects that one side has made and both use are set by use_objects() before a block:
 * the graph's communicator, the window and the displacement of the buffer on the peer, and the reply's byte.
 */
#include "reference.h"

#define SIGNATURE(name)                                                                                          \
    double name(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, int window,       \
                double *samples_us)
#define UNUSED (void)send, (void)recv, (void)size, (void)window, (void)samples_us

static MPI_Comm graph = MPI_COMM_NULL;
static MPI_Win rma = MPI_WIN_NULL;
static MPI_Aint there;
static char *ack;

void use_objects(MPI_Comm its_graph, MPI_Win its_window, MPI_Aint displacement, char *reply)
{
    graph = its_graph, rma = its_window, there = displacement, ack = reply;
}

/* Keep the processor busy: 25 x 25 matrix-vector products until the time is over, as OMB does. */
static float matrix[25][25], vector[25];
static volatile float product[25];

/* Arrays that are never written are constants to a compiler, and their product costs nothing. */
static void fill(float value)
{
    for (int row = 0; row < 25; row++) {
        vector[row] = value;
        for (int column = 0; column < 25; column++)
            matrix[row][column] = value;
    }
}

static void compute(double seconds)
{
    double begin = MPI_Wtime();

    while (MPI_Wtime() - begin < seconds)
        for (int row = 0; row < 25; row++) {
            float sum = 0;
            for (int column = 0; column < 25; column++)
                sum += matrix[row][column] * vector[column];
            product[row] = sum;
        }
}

/* Pure: call and wait.  Then call, as much computing as that took on this rank, wait.  *exposed: init + wait, which is
 * OMB's Overall without its Compute; returned: Pure.  Means over the ranks, on rank 0. */
static double overlap(MPI_Comm comm, char *send, char *recv, int size, int iterations, int warmup, double *exposed)
{
    double pure = 0, init = 0, waited = 0;
    int count = size / (int)sizeof(int);
    MPI_Request request;
    MPI_Status status;

    fill(size > 0);
    CHECK(MPI_Barrier(comm));
    for (int i = 0; i < iterations + warmup; i++) {
        double start = MPI_Wtime();
        CHECK(MPI_Iallreduce(send, recv, count, MPI_INT, MPI_SUM, comm, &request));
        CHECK(MPI_Wait(&request, &status));
        double stop = MPI_Wtime();
        if (i >= warmup)
            pure += stop - start;
        CHECK(MPI_Barrier(comm));
    }
    CHECK(MPI_Barrier(comm));
    for (int i = 0; i < iterations + warmup; i++) {
        double start = MPI_Wtime();
        CHECK(MPI_Iallreduce(send, recv, count, MPI_INT, MPI_SUM, comm, &request));
        double started = MPI_Wtime();
        compute(pure / iterations);
        double computed = MPI_Wtime();
        CHECK(MPI_Wait(&request, &status));
        double stop = MPI_Wtime();
        if (i >= warmup) {
            init += started - start;
            waited += stop - computed;
        }
        CHECK(MPI_Barrier(comm));
    }
    *exposed = averaged(comm, init + waited, iterations);
    return averaged(comm, pure, iterations);
}

SIGNATURE(iallreduce_pure)
{
    double exposed;

    UNUSED;
    return overlap(comm, send, recv, size, iterations, warmup, &exposed);
}

SIGNATURE(iallreduce_exposed)
{
    double exposed;

    UNUSED;
    overlap(comm, send, recv, size, iterations, warmup, &exposed);
    return exposed;
}

SIGNATURE(allreduce_persistent)
{
    double total = 0;
    MPI_Request request;
    MPI_Status status;

    UNUSED;
    CHECK(MPI_Allreduce_init(send, recv, size / (int)sizeof(int), MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    CHECK(MPI_Barrier(comm));
    for (int i = 0; i < iterations + warmup; i++) {
        double start = MPI_Wtime();
        CHECK(MPI_Start(&request));
        CHECK(MPI_Wait(&request, &status));
        double stop = MPI_Wtime();
        if (i >= warmup)
            total += stop - start;
        CHECK(MPI_Barrier(comm));
    }
    CHECK(MPI_Request_free(&request));
    return averaged(comm, total, iterations);
}

SIGNATURE(latency_persistent)
{
    double start = 0, total = 0;
    int rank = rank_in(comm);
    MPI_Request out, back;
    MPI_Status status;

    UNUSED;
    CHECK(MPI_Send_init(send, size, MPI_CHAR, 1 - rank, PING, comm, &out));
    CHECK(MPI_Recv_init(recv, size, MPI_CHAR, 1 - rank, PING, comm, &back));
    CHECK(MPI_Barrier(comm));
    if (rank == 0)
        for (int i = 0; i < iterations + warmup; i++) {
            if (i >= warmup)
                start = MPI_Wtime();
            CHECK(MPI_Start(&out));
            CHECK(MPI_Wait(&out, &status));
            CHECK(MPI_Start(&back));
            CHECK(MPI_Wait(&back, &status));
            if (i >= warmup)
                total += MPI_Wtime() - start;
        }
    else
        for (int i = 0; i < iterations + warmup; i++) {
            CHECK(MPI_Start(&back));
            CHECK(MPI_Wait(&back, &status));
            CHECK(MPI_Start(&out));
            CHECK(MPI_Wait(&out, &status));
        }
    CHECK(MPI_Request_free(&out));
    CHECK(MPI_Request_free(&back));
    return total * 1e6 / (2.0 * iterations);
}

SIGNATURE(neighbor_allgather)
{
    double total = 0;

    UNUSED;
    CHECK(MPI_Barrier(comm));
    for (int i = 0; i < iterations + warmup; i++) {
        double start = MPI_Wtime();
        CHECK(MPI_Neighbor_allgather(send, size, MPI_CHAR, recv, size, MPI_CHAR, graph));
        double stop = MPI_Wtime();
        if (i >= warmup)
            total += stop - start;
        CHECK(MPI_Barrier(comm));
    }
    return averaged(comm, total, iterations);
}

/* Rank 0 puts and flushes under one shared lock, rank 1 waits in the barrier.  *laps: the mean of put + flush;
 * returned: OMB's number, the whole loop / iterations, in which OMB 7.5 has the two readings of the clock as well. */
static double put(MPI_Comm comm, char *send, int size, int iterations, int warmup, double *laps)
{
    double begin = 0, end = 0, total = 0;
    int first = rank_in(comm) == 0;

    if (first)
        CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, rma));
    CHECK(MPI_Barrier(comm));
    if (first) {
        for (int i = 0; i < iterations + warmup; i++) {
            if (i == warmup)
                begin = MPI_Wtime();
            double start = MPI_Wtime();
            CHECK(MPI_Put(send, size, MPI_CHAR, 1, there, size, MPI_CHAR, rma));
            CHECK(MPI_Win_flush(1, rma));
            double stop = MPI_Wtime();
            if (i >= warmup)
                total += stop - start;
        }
        end = MPI_Wtime();
        CHECK(MPI_Win_unlock(1, rma));
    }
    CHECK(MPI_Barrier(comm));
    *laps = total * 1e6 / iterations;
    return (end - begin) * 1e6 / iterations;
}

SIGNATURE(put_latency)
{
    double laps;

    UNUSED;
    put(comm, send, size, iterations, warmup, &laps);
    return laps;
}

SIGNATURE(put_latency_loop)
{
    double laps;

    UNUSED;
    return put(comm, send, size, iterations, warmup, &laps);
}

/* Rank i sends windows to rank i + ranks/2, a barrier before each; MB/s of all pairs over the mean sender's time. */
SIGNATURE(mbw_mr)
{
    double start = 0, total = 0, sum = 0;
    int rank = rank_in(comm), ranks, pairs;
    MPI_Status status;

    UNUSED;
    if (window > MAX_WINDOW)
        abort();
    CHECK(MPI_Comm_size(comm, &ranks));
    pairs = ranks / 2;
    CHECK(MPI_Barrier(comm));
    if (rank < pairs)
        for (int i = 0; i < iterations + warmup; i++) {
            CHECK(MPI_Barrier(comm));
            if (i >= warmup)
                start = MPI_Wtime();
            for (int k = 0; k < window; k++)
                CHECK(MPI_Isend(send, size, MPI_CHAR, rank + pairs, DATA, comm, &requests[k]));
            CHECK(MPI_Waitall(window, requests, statuses));
            CHECK(MPI_Recv(ack, 1, MPI_CHAR, rank + pairs, REPLY, comm, &status));
            if (i >= warmup)
                total += MPI_Wtime() - start;
        }
    else
        for (int i = 0; i < iterations + warmup; i++) {
            CHECK(MPI_Barrier(comm));
            for (int k = 0; k < window; k++)
                CHECK(MPI_Irecv(recv, size, MPI_CHAR, rank - pairs, DATA, comm, &requests[k]));
            CHECK(MPI_Waitall(window, requests, statuses));
            CHECK(MPI_Send(ack, 1, MPI_CHAR, rank - pairs, REPLY, comm));
        }
    CHECK(MPI_Reduce(&total, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, comm));
    return rank == 0 ? (double)size / 1e6 * pairs * iterations * window / (sum / pairs) : 0;
}

/* OMB has nothing on communicators: the loop of its blocking collectives, with the free outside the timer. */
SIGNATURE(comm_dup)
{
    double total = 0;
    MPI_Comm made;

    UNUSED;
    CHECK(MPI_Barrier(comm));
    for (int i = 0; i < iterations + warmup; i++) {
        double start = MPI_Wtime();
        CHECK(MPI_Comm_dup(comm, &made));
        double stop = MPI_Wtime();
        if (i >= warmup)
            total += stop - start;
        CHECK(MPI_Comm_free(&made));
        CHECK(MPI_Barrier(comm));
    }
    return averaged(comm, total, iterations);
}
