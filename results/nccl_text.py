"""nccl-tests' table, to the character: a head of three lines, then 13 words a row.

Out of place and in place stand side by side, so a line is made of two rows of the store; what was not measured is N/A.
GB/s are 10^9 bytes. Widths and rounding are those of nccl-tests 2.19 (`#wrong` six wide).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.engine.dtypes import DTYPES

BENCHMARKS: Mapping[str, str] = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "alltoallv": "alltoallv", "broadcast": "bcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter",
    "sendrecv": "sendrecv", "hypercube": "hypercube", "all_reduce_bias": "allreduce_bias",
}  # fmt: skip
"""nccl-tests' name of a collective -> ours."""
TYPES: Mapping[str, str] = {
    "int8": "int8", "uint8": "uint8", "int32": "int32", "uint32": "uint32", "int64": "int64", "uint64": "uint64",
    "half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16", "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e5m2",
}  # fmt: skip
"""nccl-tests' name of a type -> ours."""

_NAMES = {ours: theirs for theirs, ours in BENCHMARKS.items()}
_SAID = {ours: theirs for theirs, ours in TYPES.items()} | {"char": "int8"}
_BLOCKS = frozenset({"all_gather", "gather", "scatter", "alltoall", "alltoallv", "hypercube"})

HEAD = (
    "#\n"
    f"#{'out-of-place':>74}{'in-place':>31}          \n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong"
    "     time   algbw   busbw  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
    "             (us)  (GB/s)  (GB/s)         \n"
)
"""The head of a table, each line ended."""


def per_rank(name: str) -> bool:
    """Whether the *count* of nccl-tests is a rank's block and *size* all of them together."""
    return name in _BLOCKS


def needs_ranks(name: str) -> bool:
    """Whether *count* follows from *size* only with the number of ranks."""
    return name in _BLOCKS or name == "reduce_scatter"


@dataclass(frozen=True, slots=True)
class Half:
    """The four words of one placement; None is printed as N/A."""

    time_us: float | None = None
    algbw: float | None = None
    """GB/s."""
    busbw: float | None = None
    wrong: float | None = None
    """Elements."""


def line(
    size: int, count: int, dtype: str, op: str | None, root: int | None, out_of_place: Half, in_place: Half
) -> str:
    """A row, ended.

    Args:
        size: bytes of the whole operation.
        count: elements as the call of NCCL counts them.
        dtype: our name of the type.
        op: the reduction; None prints ``none``.
        root: None prints -1.
        out_of_place: its numbers.
        in_place: its numbers.
    """
    said = _SAID.get(dtype, dtype)
    start = f"{size:12d}  {count:12d}  {said:>8}  {op or 'none':>6}  {-1 if root is None else root:>6}"
    return start + _half(out_of_place) + _half(in_place) + "\n"


def real(value: float, width: int) -> str:
    """A number in `width` places, with as many decimals, two at most, as fit (nccl-tests' util.cu)."""
    if not math.isfinite(value):
        return f"{value:{width}f}"
    digits = 0
    while digits < 19 and value >= 10**digits:
        digits += 1
    if digits < width - 2:
        return f"{value:{width}.2f}"
    if digits < width - 1:
        return f"{value:{width}.1f}"
    if digits < width + 1:
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if width >= 7 else f"{value:{width}.0e}"


def footer(lines: Sequence[tuple[Half, Half]]) -> str:
    """The last lines of a table: wrong elements, and the plain mean of busbw over all lines and placements."""
    halves = [half for pair in lines for half in pair if half.time_us is not None]
    wrong = sum(bool(half.wrong) for half in halves)
    bus = [half.busbw or 0.0 for half in halves]
    mean = sum(bus) / len(bus) if bus else 0.0
    return f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n# Avg bus bandwidth    : {mean:g} \n#\n"


def to_nccl(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows of the store as nccl-tests would print them, a table for each launch and collective.

    Only benchmarks that nccl-tests has are printed; a row of another is left out, so what is left may be empty.
    """
    tables: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[bool, Mapping[str, Any]]]] = {}
    for row in rows:
        name = _NAMES.get(row["benchmark"])
        if name is None or row.get("unit") != "us":
            continue
        alike = ("launch_id", "backend", "library_version", "binding", "device", "buffer", "process_sync", "cache")
        table = tables.setdefault((name, *(row.get(key) for key in alike)), {})
        cell = (_size(row), _count(row, name), row.get("dtype") or "", row.get("op"), row.get("root"))
        table.setdefault(cell, {})[bool(row.get("in_place"))] = row
    return "".join(_table(key[0], table) for key, table in tables.items())


def _table(name: str, table: Mapping[tuple[Any, ...], Mapping[bool, Mapping[str, Any]]]) -> str:
    out, pairs = [f"# Collective test starting: {name}_perf\n{HEAD}"], []
    for (size, count, dtype, op, root), halves in table.items():
        pair = (half_of(halves.get(False)), half_of(halves.get(True)))
        pairs.append(pair)
        out.append(line(size, count, dtype, op, root, *pair))
    return "".join(out) + footer(pairs) + f"# Collective test concluded: {name}_perf\n"


def half_of(row: Mapping[str, Any] | None) -> Half:
    """The words of a row; all N/A where there is none."""
    if row is None:
        return Half()
    metrics = row.get("metrics") or {}
    wrong = metrics.get("wrong_elements")
    if wrong is None and row.get("validated") is not None:
        itemsize = DTYPES[row["dtype"]].itemsize if row.get("dtype") in DTYPES else 1
        wrong = math.ceil((row.get("wrong_bytes") or 0) / itemsize)
    bus = row.get("busbw_gbps")
    return Half(row.get("value"), row.get("algbw_gbps"), 0.0 if bus is None and row.get("ranks") == 1 else bus, wrong)


def _size(row: Mapping[str, Any]) -> int:
    total = row.get("bytes_total")
    return int(row.get("size_bytes") or 0) if total is None else int(total)


def _count(row: Mapping[str, Any], name: str) -> int:
    """Elements as the call of NCCL counts them: a block where *size* is of all ranks."""
    said = (row.get("metrics") or {}).get("nccl_count")
    if said is not None:
        return int(said)
    itemsize = DTYPES[row["dtype"]].itemsize if row.get("dtype") in DTYPES else 1
    ranks = int(row.get("ranks") or 1) if needs_ranks(name) else 1
    return _size(row) // itemsize // ranks


def _half(half: Half) -> str:
    words = [
        "N/A" if value is None else real(value, width)
        for value, width in ((half.time_us, 7), (half.algbw, 6), (half.busbw, 6))
    ]
    wrong = "N/A" if half.wrong is None else f"{half.wrong:g}"
    return f"  {words[0]:>7}  {words[1]:>6}  {words[2]:>6}  {wrong:>6}"
