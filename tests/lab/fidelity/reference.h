/* What the loops of reference.c and families.c share. */
#ifndef REFERENCE_H
#define REFERENCE_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                    \
    do {                                                               \
        int rc_ = (call);                                              \
        if (rc_ != MPI_SUCCESS) {                                      \
            fprintf(stderr, "reference: %s returned %d\n", #call, rc_); \
            abort();                                                   \
        }                                                              \
    } while (0)

enum { PING = 1, DATA = 100, REPLY = 101, MAX_WINDOW = 1024 };

static MPI_Request requests[2 * MAX_WINDOW];
static MPI_Status statuses[2 * MAX_WINDOW];

static inline int rank_in(MPI_Comm comm)
{
    int rank;
    CHECK(MPI_Comm_rank(comm, &rank));
    return rank;
}

/* The mean over the ranks of this rank's mean, on rank 0. */
static inline double averaged(MPI_Comm comm, double total, int iterations)
{
    double mine = total * 1e6 / iterations, sum = 0;
    int ranks;

    CHECK(MPI_Comm_size(comm, &ranks));
    CHECK(MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, comm));
    return sum / ranks;
}

#endif
