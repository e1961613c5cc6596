"""omb-py whose MPI calls go through the preloaded library of :mod:`tests.lab.parity.calls`."""

import ctypes
import sys

import mpi4py

mpi4py.rc.initialize = False  # the session does it, at its thread level

if __name__ == "__main__":
    from omb_py.backends.mpi import calls
    from omb_py.cli import main

    # the native binding asks mpi4py's module for addresses, and so would pass by what is preloaded
    calls._library = lambda: ctypes.CDLL(None)  # type: ignore[assignment]
    sys.exit(main())
