"""Cost of operations: Hockney's alpha-beta model, and the usual algorithms of collectives on top of it.

``alpha`` is the start-up time of a message, ``beta`` the time per byte, p the number of ranks. As libraries do, a
collective takes the cheaper of an algorithm for short and one for long messages. A matrix product takes its floating
point operations at ``gflops``.
"""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.backends.mock.algorithms import Selection


@dataclass(frozen=True, slots=True)
class Costs:
    """Times in nanoseconds of operations among `ranks` ranks."""

    alpha: float
    beta: float
    ranks: int
    gflops: float = 50.0
    algorithms: Selection | None = None
    """Algorithms of collectives with planted costs, in place of the model's."""

    @property
    def rounds(self) -> int:
        """Rounds of a doubling algorithm: ceil(log2 p)."""
        return (self.ranks - 1).bit_length()

    def message(self, nbytes: float) -> float:
        """Time from the start of a send to the arrival of its last byte."""
        return self.alpha + nbytes * self.beta

    def wire(self, nbytes: float) -> float:
        """Time for which a message keeps its sender's link busy."""
        return nbytes * self.beta

    def product(self, flop: int) -> int:
        """Time of a matrix product of so many floating point operations."""
        return round(flop / self.gflops)

    def barrier(self) -> float:
        """Time of a dissemination barrier."""
        return self.rounds * self.alpha

    def bcast(self, nbytes: float) -> float:
        """Binomial tree; or scatter and allgather (van de Geijn)."""
        p, rounds = self.ranks, self.rounds
        tree = rounds * self.message(nbytes)
        scattered = (rounds + p - 1) * self.alpha + 2 * (p - 1) / p * nbytes * self.beta
        return min(tree, scattered)

    def allreduce(self, nbytes: float) -> float:
        """Recursive doubling; or reduce-scatter and allgather (Rabenseifner). The arithmetic costs nothing."""
        p, rounds = self.ranks, self.rounds
        doubling = rounds * self.message(nbytes)
        halving = 2 * rounds * self.alpha + 2 * (p - 1) / p * nbytes * self.beta
        return min(doubling, halving)

    def allgather(self, nbytes: float) -> float:
        """Recursive doubling, `nbytes` from each rank."""
        return self.rounds * self.alpha + (self.ranks - 1) * nbytes * self.beta

    def alltoall(self, nbytes: float) -> float:
        """Bruck; or pairwise exchange. `nbytes` for each destination."""
        p, rounds = self.ranks, self.rounds
        bruck = rounds * self.alpha + rounds * p / 2 * nbytes * self.beta
        pairwise = (p - 1) * self.message(nbytes)
        return min(bruck, pairwise)

    def reduce_scatter(self, nbytes: float) -> float:
        """Recursive halving of a vector of `nbytes`."""
        return self.rounds * self.alpha + (self.ranks - 1) / self.ranks * nbytes * self.beta

    def neighbor(self, nbytes: float, edges: int) -> float:
        """A message to each neighbor, one after the other: `nbytes` each."""
        return edges * self.message(nbytes)

    def collective(self, op: str, nbytes: float, edges: int = 1) -> float:
        """Time of a collective, blocking or not, by the name of its blocking form.

        `nbytes` is the vector of a reduction or broadcast, else the (mean) block of one rank; `edges` is the number of
        a rank's neighbors. Raises KeyError for an unknown name.
        """
        planted = self.algorithms.of(op, self.ranks, nbytes) if self.algorithms else None
        if planted is not None:
            return planted.alpha + nbytes * planted.beta
        match op.removesuffix("v").removesuffix("w"):
            case "barrier":
                return self.barrier()
            case "bcast":
                return self.bcast(nbytes)
            case "allreduce" | "reduce":  # a tree, or reduce-scatter and gather: as a broadcast, backwards
                return self.allreduce(nbytes)
            case "scan" | "exscan":  # recursive doubling
                return self.rounds * self.message(nbytes)
            case "reduce_scatter" | "reduce_scatter_block":
                return self.reduce_scatter(nbytes)
            case "allgather" | "gather" | "scatter":  # binomial tree: as many bytes through its top
                return self.allgather(nbytes)
            case "alltoall":
                return self.alltoall(nbytes)
            case "comm_dup" | "comm_create":  # to agree on a number
                return self.allreduce(8)
            case "comm_split":  # to tell each other colour and key
                return self.allgather(8)
            case "comm_free":
                return self.barrier()
            case "neighbor_allgather" | "neighbor_alltoall":
                return self.neighbor(nbytes, edges)
        raise KeyError(op)
