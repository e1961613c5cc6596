"""Other tools' files as rows of the store: OMB, OMB-Py, nccl-tests, rccl-tests, Intel MPI Benchmarks.

``formats.parse`` makes tables and problems of a file's bytes and touches nothing else; ``storing.store_bytes`` writes
the good tables. A reader of a text format is given the lines from one of its titles up to the next title of another
tool.
"""
