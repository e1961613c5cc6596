"""MPI through whatever library mpi4py loads: Open MPI, MPICH, Intel MPI."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "MpiSession")
