"""The tool interface of MPI (MPI_T, MPI-4.1 chapter 15): control variables, and what a library counts."""
