"""Kinds of memory and of Python objects that a user's program may hold, by name. This module loads no package."""

from __future__ import annotations

from typing import Final

MEMORY: Final = ("numpy", "bytearray", "array", "torch")
"""Kinds of memory; a library reads and writes the bytes themselves."""
OBJECT: Final = "object"
"""No memory: Python objects that mpi4py's lower-case methods pickle, send and make again."""
BUFFERS: Final = (*MEMORY, OBJECT)
ON_DEVICE: Final = ("cupy", "torch", "numba")
"""Arrays that a program may hold on a device (:mod:`omb_py.engine.devices.memory`); ``numpy`` there: plain memory."""
TORCH_PIP: Final = "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"

OBJECT_ITEM_BYTES: Final = {"bytes": 1, "ndarray": 1, "list": 8, "dict": 8, "dataclass": 16}
"""Kind of object -> payload bytes of one item (:mod:`omb_py.engine.program.pickled_objects`)."""
OBJECTS: Final = tuple(OBJECT_ITEM_BYTES)
OBJECT_STEPS: Final = frozenset(
    (
        "barrier send recv bcast reduce allreduce gather scatter allgather alltoall neighbor_allgather "
        "neighbor_alltoall"
    ).split()
)
"""Steps that mpi4py has for objects."""
OUT_OF_BAND_STEPS: Final = OBJECT_STEPS - {"reduce", "allreduce", "neighbor_allgather", "neighbor_alltoall"}
"""Steps that mpi4py.util.pkl5 has."""
