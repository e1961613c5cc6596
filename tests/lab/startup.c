/* The least that an MPI program does: start, one ping-pong of 8 bytes, end. With an argument ping-pongs go on for so many seconds. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, more = 1;
    char message[8] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (double end = MPI_Wtime() + (argc > 1 ? atof(argv[1]) : 0); more;) {
        more = MPI_Wtime() < end;
        if (rank == 0) {
            message[0] = (char)more;
            MPI_Send(message, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(message, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(message, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
            more = message[0];
        }
    }
    MPI_Finalize();
    return 0;
}
