"""Import the files of other tools into the store: OMB, OMB-Py, nccl-tests, rccl-tests, Intel MPI Benchmarks.

``formats.parse`` turns a file's bytes into tables and problems and has no side effects; ``storing.store_bytes`` writes
the valid tables. A reader of a text format gets the lines from one of its titles up to the next title of another tool.
"""
