"""Buffers of the simulated ranks, and the data that collectives leave in them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config
from omb_py.engine.measuring.payload import from_numbers, to_numbers
from omb_py.engine.measuring.reductions import work_type
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program, Region, Step
from omb_py.engine.program.steps import base

Bytes = NDArray[np.uint8]

SMALL_BYTES: Final = 1 << 18
"""With ``data=auto`` cells whose buffers have at most this many bytes over all ranks move their data."""

_AS_A_LIBRARY = np.errstate(over="ignore", invalid="ignore")
"""A library says nothing where many iterations reduce the same numbers until they overflow."""


def moves_data(config: Config, cell: Cell, programs: Mapping[int, Program]) -> bool:
    """Whether bytes are moved: as configured; with ``auto`` if they are checked, or few."""
    if config.data != "auto":
        return config.data == "on"
    total = sum(buffer.nbytes for program in programs.values() for buffer in program.buffers)
    return cell.validate or cell.distinct or total <= SMALL_BYTES


class RankMemory:
    """The buffers of all ranks. When no data is moved, all ranks share one scratch buffer for each size."""

    def __init__(self, programs: Mapping[int, Program], kind: str, moves: bool) -> None:
        self.moves = moves
        self._kind = kind
        self._sizes = {rank: {b.name: b.nbytes for b in program.buffers} for rank, program in programs.items()}
        self._own: dict[tuple[int, str], Bytes] = {}
        self._scratch: dict[int, Bytes] = {}
        if moves:
            self._own = {(r, name): self._new(n) for r, sizes in self._sizes.items() for name, n in sizes.items()}

    def of(self, rank: int, name: str) -> Bytes:
        """All bytes of a buffer of a rank. Raises KeyError."""
        return self._own[rank, name] if self.moves else self._share_scratch(self._sizes[rank][name])

    def size(self, rank: int, name: str) -> int:
        """Bytes of a buffer of a rank. Raises KeyError."""
        return self._sizes[rank][name]

    def view(self, rank: int, region: Region) -> Bytes | None:
        """A region of a rank's buffer; None if no data is moved."""
        return self.of(rank, region.buffer)[region.offset : region.offset + region.nbytes] if self.moves else None

    def _new(self, nbytes: int) -> Bytes:
        if self._kind in ("bytearray", "array"):
            return np.frombuffer(
                bytearray(nbytes) if self._kind == "bytearray" else array("B", bytes(nbytes)), np.uint8
            )
        return np.zeros(nbytes, np.uint8)

    def _share_scratch(self, nbytes: int) -> Bytes:
        if nbytes not in self._scratch:
            self._scratch[nbytes] = self._new(nbytes)
        return self._scratch[nbytes]


def copy_into(room: Bytes, data: Bytes, where: NDArray[np.bool_] | None) -> None:
    """Copy received data to `room`: all of it, or of a derived type only the bytes that travel (`where`)."""
    np.copyto(room, data, where=True if where is None else where)


@_AS_A_LIBRARY
def exchange(step: Step, sent: Bytes, dtype: np.dtype[Any] | None, reduction: np.ufunc | None) -> Bytes:
    """The data that ranks receive from a collective in which all send.

    Args:
        step: the collective, blocking or not.
        sent: the data of each rank, shape (ranks, bytes).
        dtype: element type of a reduction.
        reduction: operation of a reduction.

    Returns:
        One row that every rank receives, or a row for each rank.
    """
    ranks, nbytes = sent.shape
    match op := base(step.op):
        case "allreduce" | "reduce" | "reduce_scatter_block" | "reduce_scatter":
            assert dtype is not None and reduction is not None
            values = to_numbers(sent[:, : nbytes - nbytes % dtype.itemsize].view(dtype), step["dtype"])
            result = reduction.reduce(values, axis=0, keepdims=True, dtype=work_type(reduction, values.dtype))
            whole = np.ascontiguousarray(from_numbers(result, step["dtype"])).view(np.uint8)
            if op == "reduce_scatter":
                return _uneven(whole[0], [n * dtype.itemsize for n in step["counts"]])
            return whole.reshape(ranks, -1) if op == "reduce_scatter_block" else whole
        case "scan" | "exscan":
            assert dtype is not None and reduction is not None
            values = to_numbers(sent.view(dtype), step["dtype"])
            up_to = reduction.accumulate(values, axis=0, dtype=work_type(reduction, values.dtype))
            rows = np.ascontiguousarray(from_numbers(up_to, step["dtype"])).view(np.uint8)
            return np.roll(rows, 1, axis=0) if op == "exscan" else rows  # what rank 0 gets is undefined
        case "allgather" | "gather":
            return sent.reshape(1, ranks * nbytes)
        case "alltoall":
            block = nbytes // ranks
            blocks = sent[:, : ranks * block].reshape(ranks, ranks, block)
            return blocks.transpose(1, 0, 2).reshape(ranks, ranks * block)
    raise KeyError(op)


@_AS_A_LIBRARY
def combine(
    step: Step, send: Bytes | None, recv: Bytes | None, dtype: np.dtype[Any] | None, reduction: np.ufunc | None
) -> None:
    """Reduce two vectors of a rank into the second; nothing if no data is moved."""
    if send is None or recv is None:
        return
    assert dtype is not None and reduction is not None
    first, second = (to_numbers(part.view(dtype), step["dtype"]) for part in (send, recv))
    result = reduction(first, second, dtype=work_type(reduction, first.dtype))
    recv[...] = np.ascontiguousarray(from_numbers(result, step["dtype"])).view(np.uint8)


def _uneven(whole: Bytes, sizes: Sequence[int]) -> Bytes:
    """Consecutive blocks of a vector as rows, padded with zeros."""
    rows = np.zeros((len(sizes), max(sizes)), np.uint8)
    start = 0
    for row, nbytes in zip(rows, sizes, strict=True):
        row[:nbytes] = whole[start : start + nbytes]
        start += nbytes
    return rows
