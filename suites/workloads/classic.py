"""Classic machine learning: what each iteration reduces (docs/workloads/classic.md)."""

from __future__ import annotations

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.calls import Call, Item, Product, padded
from omb_py.suites.workloads.settings import Values

INDEX_BYTES = 8


def kmeans(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each iteration adds the sums of the clusters' points and their counts, and the inertia."""
    item = DTYPES[v["dtype"]].itemsize
    sums = (v["clusters"] * v["features"] + v["clusters"]) * item
    distances = Product(v["clusters"] * v["features"], v["points"])
    once: list[Item] = [
        distances,
        Call("allreduce", sums, v["dtype"], "centres"),
        Call("allreduce", item, v["dtype"], "inertia", work=0.0),
    ]
    return once * int(v["iterations"])


def knn(v: Values, rank: int, ranks: int) -> list[Item]:
    """The k nearest of each rank's points for each query, as distance and index, to rank 0; queries from there."""
    item = DTYPES[v["dtype"]].itemsize
    asked, found = v["queries"] * v["features"] * item, v["k"] * v["queries"] * (item + INDEX_BYTES)
    return [
        Call("bcast", asked, v["dtype"], "queries", work=0.0),
        Product(v["queries"] * v["features"], v["points"]),
        Call("gather", padded(found, 1, v["dtype"]), v["dtype"], "neighbors"),
    ]


def pca(v: Values, rank: int, ranks: int) -> list[Item]:
    """Mean and covariance are added (pca); or each power iteration adds the projected block (tsvd)."""
    item, features = DTYPES[v["dtype"]].itemsize, v["features"]
    if v["method"] == "pca":
        return [
            Call("allreduce", (features + 1) * item, v["dtype"], "mean"),
            Product(features * features, v["points"]),
            Call("allreduce", features * features * item, v["dtype"], "covariance"),
        ]
    block = Call("allreduce", features * v["components"] * item, v["dtype"], "block")
    iteration: list[Item] = [Product(features * v["components"], v["points"], 2), block]
    return iteration * int(v["iterations"])


def matmul(v: Values, rank: int, ranks: int) -> list[Item]:
    """One matrix to all, a part of the rows of the other to each, the parts of the product back."""
    item, n = DTYPES[v["dtype"]].itemsize, v["side"]
    rows = -(-n // ranks)
    return [
        Call("bcast", n * n * item, v["dtype"], "right", work=0.0),
        Call("scatter", rows * n * item, v["dtype"], "left", work=0.0),
        Product(n * n, rows),
        Call("gather", rows * n * item, v["dtype"], "product"),
    ]
