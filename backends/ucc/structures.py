"""Structures and numbers of ``ucc.h`` (UCC 1.2 to 1.10): what a call is given."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, Union, c_double, c_int, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Final

VARIABLE: Final = "OMB_PY_UCC"
"""Names a file of the library, where the system's loader does not find it."""

OK: Final = 0
IN_PROGRESS: Final = 1
NO_MESSAGE: Final = -6
"""``UCC_ERR_NO_MESSAGE``: an error that has no number of its own."""

COLLECTIVES: Final = {
    "allgather": 0,
    "allgatherv": 1,
    "allreduce": 2,
    "alltoall": 3,
    "alltoallv": 4,
    "barrier": 5,
    "bcast": 6,
    "gather": 9,
    "gatherv": 10,
    "reduce": 11,
    "reduce_scatter_block": 12,
    "reduce_scatter": 13,
    "scatterv": 15,
}
"""Our blocking steps -> the bit of ucc_coll_type_t. UCC's reduce_scatter has blocks of one size, as our ``…_block``.

Its scatter (14) is left out: on host memory UCC 1.10 has it for a team of one rank alone.
"""
TYPES: Final = {
    "char": 0,
    "int8": 0,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "uint8": 5,
    "uint16": 6,
    "uint32": 7,
    "uint64": 8,
    "float16": 10,
    "float32": 11,
    "float64": 12,
    "bfloat16": 13,
    "complex64": 15,
    "complex128": 16,
}
"""Our types -> number of a predefined ucc_datatype_t, which stands above three bits of its class."""
_CLASS_BITS: Final = 3
OPS: Final = dict(zip("sum prod max min land lor lxor band bor bxor maxloc minloc avg".split(), range(13), strict=True))
"""Our reductions -> ucc_reduction_op_t."""

HAS_FLAGS: Final = 1 << 0
"""Bit of ucc_coll_args_t.mask."""
IN_PLACE: Final = 1 << 0
PERSISTENT: Final = 1 << 1
WIDE_COUNTS: Final = 1 << 2 | 1 << 3
"""Counts and displacements of vector collectives have 64 bits."""


def datatype(dtype: str) -> int:
    """The ucc_datatype_t of an element type."""
    return TYPES[dtype] << _CLASS_BITS


class LibraryParameters(Structure):
    """``ucc_lib_params_t``."""

    _fields_ = (
        ("mask", c_uint64),
        ("thread_mode", c_int),
        ("coll_types", c_uint64),
        ("reduction_types", c_uint64),
        ("sync_type", c_int),
    )


ALLGATHER: Final = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_void_p))
OF_REQUEST: Final = ctypes.CFUNCTYPE(c_int, c_void_p)


class OutOfBand(Structure):
    """``ucc_oob_coll_t``: how ranks exchange bytes before they are connected."""

    _fields_ = (
        ("allgather", ALLGATHER),
        ("req_test", OF_REQUEST),
        ("req_free", OF_REQUEST),
        ("coll_info", c_void_p),
        ("n_oob_eps", c_uint32),
        ("oob_ep", c_uint32),
    )


class _MemoryParameters(Structure):
    _fields_ = (("segments", c_void_p), ("n_segments", c_uint64))


class ContextParameters(Structure):
    """``ucc_context_params_t``."""

    HAS_OOB: Final = 1 << 2
    _fields_ = (
        ("mask", c_uint64),
        ("type", c_int),
        ("sync_type", c_int),
        ("oob", OutOfBand),
        ("ctx_id", c_uint64),
        ("mem_params", _MemoryParameters),
    )


class EndpointMap(Structure):
    """``ucc_ep_map_t`` of the kind array: the rank in the context of each rank of a team."""

    ARRAY: Final = 3
    _fields_ = (("type", c_int), ("ep_num", c_uint64), ("map", c_void_p), ("elem_size", c_size_t))


class TeamParameters(Structure):
    """``ucc_team_params_t``."""

    HAS_EP: Final = 1 << 2
    HAS_EP_RANGE: Final = 1 << 4
    HAS_EP_MAP: Final = 1 << 10
    _fields_ = (
        ("mask", c_uint64),
        ("flags", c_uint64),
        ("ordering", c_int),
        ("outstanding_colls", c_uint64),
        ("ep", c_uint64),
        ("ep_list", c_void_p),
        ("ep_range", c_int),
        ("team_size", c_uint64),
        ("sync_type", c_int),
        ("oob", OutOfBand),
        ("p2p_conn", c_void_p * 5),
        ("mem_params", _MemoryParameters),
        ("ep_map", EndpointMap),
        ("id", c_uint64),
    )


class BufferInfo(Structure):
    """``ucc_coll_buffer_info_t``; the type of memory stays 0, the host."""

    _fields_ = (("buffer", c_void_p), ("count", c_uint64), ("datatype", c_uint64), ("mem_type", c_int))


class BlocksInfo(Structure):
    """``ucc_coll_buffer_info_v_t``."""

    _fields_ = (
        ("buffer", c_void_p),
        ("counts", c_void_p),
        ("displacements", c_void_p),
        ("datatype", c_uint64),
        ("mem_type", c_int),
    )


class _Info(Union):
    _fields_ = (("info", BufferInfo), ("info_v", BlocksInfo))


class CollectiveArguments(Structure):
    """``ucc_coll_args_t``."""

    _fields_ = (
        ("mask", c_uint64),
        ("coll_type", c_uint32),
        ("src", _Info),
        ("dst", _Info),
        ("op", c_int),
        ("flags", c_uint64),
        ("root", c_uint64),
        ("error_type", c_int),
        ("tag", c_uint16),
        ("global_work_buffer", c_void_p),
        ("cb", c_void_p * 2),
        ("timeout", c_double),
        ("active_set", c_int64 * 3),
        ("src_memh", c_void_p),
        ("dst_memh", c_void_p),
    )
