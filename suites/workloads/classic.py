"""Classic machine learning: the calls of each iteration (docs/workloads/classic.md)."""

from __future__ import annotations

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.calls import Call, Item, Product, padded
from omb_py.suites.workloads.settings import Values

INDEX_BYTES = 8


def kmeans(v: Values, rank: int, ranks: int) -> list[Item]:
    """K-means: each iteration adds up the sums and counts of the clusters' points, and the inertia."""
    item = DTYPES[v["dtype"]].itemsize
    sums = (v["clusters"] * v["features"] + v["clusters"]) * item
    distances = Product(v["clusters"] * v["features"], v["points"])
    iteration: list[Item] = [
        distances,
        Call("allreduce", sums, v["dtype"], "centres"),
        Call("allreduce", item, v["dtype"], "inertia", work=0.0),
    ]
    return iteration * int(v["iterations"])


def knn(v: Values, rank: int, ranks: int) -> list[Item]:
    """Nearest neighbors: rank 0 broadcasts queries and gathers each rank's k nearest points as distance and index."""
    item = DTYPES[v["dtype"]].itemsize
    queries, neighbors = v["queries"] * v["features"] * item, v["k"] * v["queries"] * (item + INDEX_BYTES)
    return [
        Call("bcast", queries, v["dtype"], "queries", work=0.0),
        Product(v["queries"] * v["features"], v["points"]),
        Call("gather", padded(neighbors, 1, v["dtype"]), v["dtype"], "neighbors"),
    ]


def pca(v: Values, rank: int, ranks: int) -> list[Item]:
    """Principal components: all ranks add up mean and covariance, or with tsvd each power iteration's block."""
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
    """Matrix product: broadcast one matrix, scatter the rows of the other, gather the rows of the product."""
    item, n = DTYPES[v["dtype"]].itemsize, v["side"]
    rows = -(-n // ranks)
    return [
        Call("bcast", n * n * item, v["dtype"], "right", work=0.0),
        Call("scatter", rows * n * item, v["dtype"], "left", work=0.0),
        Product(n * n, rows),
        Call("gather", rows * n * item, v["dtype"], "product"),
    ]
