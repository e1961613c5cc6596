"""Spatial parallelism: neighboring tiles of a large image exchange edges (docs/workloads/model-parallel.md)."""

from __future__ import annotations

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Message
from omb_py.errors import UsageError
from omb_py.suites.workloads.calls import EXCHANGE, Call, Item, Product
from omb_py.suites.workloads.grid import divides, grid
from omb_py.suites.workloads.settings import Values

_AROUND = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def halo(v: Values, rank: int, ranks: int) -> list[Item]:
    """Before each convolution of kernel k a tile gets (k − 1)/2 rows or columns of each neighbor, and corners."""
    where = grid(ranks, {"columns": v["columns"], "rows": 0}, "rows")
    rows, columns = where.size("rows"), where.size("columns")
    wide = divides("pixels across", v["side"], "columns", columns)
    high = divides("pixels down", v["side"], "rows", rows)
    if v["kernel"] % 2 == 0:
        raise UsageError(f"kernel {v['kernel']} has no middle: use kernel={v['kernel'] + 1}")
    edge = (v["kernel"] - 1) // 2
    if edge > min(wide, high):
        raise UsageError(f"kernel {v['kernel']} reaches {edge} pixels, but a tile has {high} × {wide}: use fewer ranks")
    sends, receives = [], []
    for number, (dy, dx) in enumerate(_AROUND):
        column = where.shifted(rank, "columns", dx)
        peer = None if column is None else where.shifted(column, "rows", dy)
        if peer is None or not edge:
            continue
        pixels = (edge if dy else high) * (edge if dx else wide)
        nbytes = v["batch"] * pixels * v["channels"] * DTYPES[v["dtype"]].itemsize
        sends.append(Message(peer, nbytes, 1 + number))
        receives.append(Message(peer, nbytes, 1 + len(_AROUND) - 1 - number))  # the tag of the opposite direction
    exchange = Call(EXCHANGE, 0, v["dtype"], "halo", sends=tuple(sends), receives=tuple(receives))
    convolution = Product((v["channels"] * v["kernel"]) ** 2, v["batch"] * high * wide)
    layer: list[Item] = [exchange, convolution]
    return layer * v["layers"] if sends else []
