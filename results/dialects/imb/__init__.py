"""The text of the Intel MPI Benchmarks: their names for our benchmarks, and their tables."""
