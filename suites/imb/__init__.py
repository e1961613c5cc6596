"""Benchmarks of the Intel MPI Benchmarks (IMB) that OMB does not have (docs/imb.md)."""
