"""Graphs of neighbors: ``-N cart:DIMENSIONS:RADIUS`` or ``-N graph:FILE``, as in OMB.

A file has a line ``source, target`` for each edge and ``#`` before comments. Its edges are sent to the ranks as the
text ``graph:0>1,1>0``, so that other hosts need no file.
"""

from __future__ import annotations

from pathlib import Path

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.grammar.values import pair_of

_MOST_DIMENSIONS = 8


def parse_neighborhood(text: str) -> str:
    """Read ``cart:D:R`` or ``graph:FILE``, and return the graph as the text that ranks get: ``graph:0>1,1>0``.

    >>> parse_neighborhood("cart:2:1")
    'cart:2:1'

    Raises:
        UsageError: neither, or a file that cannot be read or has a bad line.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind == "cart" and colon:
        return _grid(text, rest)
    if kind == "graph" and rest:
        return "graph:" + ",".join(f"{source}>{target}" for source, target in _edges_of(Path(rest)))
    raise UsageError(f"neighborhood {text!r}: write cart:DIMENSIONS:RADIUS or graph:FILE")


def _grid(text: str, rest: str) -> str:
    numbers = pair_of(rest, ":")
    if numbers is None:
        raise UsageError(f"neighborhood {text!r}: write cart:DIMENSIONS:RADIUS, as cart:1:1")
    dimensions, radius = numbers
    if not 1 <= dimensions <= _MOST_DIMENSIONS or not 1 <= radius <= 64 or (2 * radius + 1) ** dimensions > 1 << 16:
        most = f"1 to {_MOST_DIMENSIONS} dimensions, and at most 65535 neighbors a rank"
        raise UsageError(f"neighborhood {text!r}: {most}")
    return f"cart:{dimensions}:{radius}"


def _edges_of(path: Path) -> list[tuple[int, int]]:
    edges = []
    for number, body in entries(path, "graph file", "-N graph:FILE with lines SOURCE, TARGET"):
        edge = pair_of(body, ",")
        if edge is None:
            raise UsageError(f"{path}:{number}: {body!r} is no edge: write SOURCE, TARGET as two ranks, such as 0, 1")
        edges.append(edge)
    if not edges:
        raise UsageError(f"graph file {path} has no edge: write lines SOURCE, TARGET, such as 0, 1")
    return edges


def dims_create(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Split `ranks` into `dimensions` factors, as equal as possible and not increasing, as MPI_Dims_create does.

    >>> dims_create(12, 2)
    (4, 3)
    """
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] = (ranks, *(1,) * (dimensions - 1))
    for factor in range(1, ranks + 1):
        if ranks % factor == 0:
            factors = tuple(sorted((factor, *dims_create(ranks // factor, dimensions - 1)), reverse=True))
            best = min(best, factors)
    return best


def has_repeated_neighbors(neighborhood: str, ranks: int) -> bool:
    """Whether the grid ``cart:DIMENSIONS:RADIUS`` is so small that a rank is a neighbor more than once.

    >>> [has_repeated_neighbors("cart:1:1", ranks) for ranks in (2, 3)]
    [True, False]
    """
    kind, _, rest = neighborhood.partition(":")
    if kind != "cart":
        return False
    dimensions, radius = map(int, rest.split(":"))
    return 2 * radius + 1 > min(dims_create(ranks, dimensions))


def check_graph(neighborhood: str, ranks: int) -> None:
    """Raises UsageError when an edge names a rank that is not there."""
    kind, _, rest = neighborhood.partition(":")
    if kind != "graph":
        return
    for edge in rest.split(","):
        for end in edge.split(">"):
            if int(end) >= ranks:
                raise UsageError(f"the graph has an edge {edge}, but the ranks are 0 to {ranks - 1}: use more ranks")
