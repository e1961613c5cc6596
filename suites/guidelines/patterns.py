"""Self-consistent performance guidelines: no collective is slower than others of the same library that do its work.

A guideline says that its left side, a collective, is not slower than its right side, which does the same with other
calls of the same library; so the speed of the machine need not be known.  [J. L. Träff, W. Gropp, R. Thakur,
*Self-consistent MPI Performance Guidelines*, IEEE TPDS 21, 2010; S. Hunold et al., *PGMPI*, arXiv 1606.00215.]

Each guideline is a benchmark whose iteration times both sides, one after the other, with a barrier after each; their
order alternates, so that neither always runs with the caches that the other leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from omb_py.backends.capabilities import GROUPS, SCAN, SCATTER_FROM_ONE_PLACE
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, RankRule, Sizes, World
from omb_py.engine.program.language import Lap, Program, Stage
from omb_py.suites.guidelines import hierarchy
from omb_py.suites.guidelines import mockups as m
from omb_py.suites.shared import TWO_OR_MORE

LEFT, RIGHT = "left", "right"
IN_PARTS = RankRule("4 ranks or more, an even number", lambda n: n >= 4 and n % 2 == 0)
"""Ranks that can be cut into nodes or halves of two or more."""
COUNTS = Counts(200, 20, 60, 6)
SIZES = Sizes(4, 1 << 20)
PARTS = 4
"""Into so many parts split-robustness divides a message."""
GROWN = ("bcast", "reduce", "allreduce", "reduce_scatter_block", "gather", "scatter", "allgather", "alltoall")
"""Collectives whose monotony and split-robustness are checked."""
TWO_SIDES = Metric(
    "us", "left: the collective; right: its mock-up; each the mean over ranks", lap=LEFT, apart=(LEFT, RIGHT)
)


@dataclass(frozen=True, slots=True)
class Guideline:
    """The promise that `left` is not slower than the mock-up that `right` makes."""

    name: str
    """The benchmark's name, as ``gl5_allreduce``."""
    text: str
    """The promise in words, as ``allreduce ≤ reduce + bcast``."""
    left: str
    """The collective."""
    right: m.Make
    needs: str = ""
    """Feature that the mock-up needs (:attr:`omb_py.backends.capabilities.Capabilities.without`)."""
    ranks: RankRule = TWO_OR_MORE

    @property
    def benchmark(self) -> Benchmark:
        """The guideline as a benchmark with two sides."""

        def program(world: World, cell: Cell) -> Program:
            calls = m.Calls(world, cell)
            left, right = calls.left(self.left), self.right(calls)
            first = (Lap(), *left.body, Lap(LEFT), steps.barrier())
            second = (Lap(), *right.body, Lap(RIGHT), steps.barrier())
            reads, leaves = ((*a, *b) for a, b in zip(left.checks, right.checks, strict=True))
            stage = Stage(((*first, *second), (*second, *first)), check=(reads, leaves))
            return Program(m.buffers_of(first, second, reads, leaves), (stage,))

        return Benchmark(
            self.name,
            "guideline",
            self.text,
            program,
            TWO_SIDES,
            SIZES,
            COUNTS,
            self.ranks,
            "all",
            "int32",
            frozenset({"validation", "op", "in_place", "process_sync"}),
            lambda size, ranks: size,
            refuses=_refuses,
        )


def _refuses(cell: Cell) -> str:
    if cell.options.process_sync != "barrier":
        return "both sides of a guideline are followed by a barrier: leave --process-sync out"
    return "" if cell.options.cache == "hot" else "both sides of a guideline share their input: leave --cache out"


PATTERNS = (
    Guideline("gl1_allgather", "allgather ≤ gather + bcast", "allgather", m.gather_bcast),
    Guideline("gl2_allgather", "allgather ≤ alltoall", "allgather", m.alltoall_of_one, SCATTER_FROM_ONE_PLACE),
    Guideline("gl3_allgather", "allgather ≤ allreduce of all blocks", "allgather", m.sum_of_all),
    Guideline("gl4_allgather", "allgather ≤ allgatherv", "allgather", m.block_of("allgatherv")),
    Guideline("gl5_allreduce", "allreduce ≤ reduce + bcast", "allreduce", m.reduce_bcast),
    Guideline(
        "gl6_allreduce",
        "allreduce ≤ reduce_scatter_block + allgather",
        "allreduce",
        m.halves("reduce_scatter_block", "allgather", "allreduce"),
    ),
    Guideline(
        "gl7_allreduce",
        "allreduce ≤ reduce_scatter + allgatherv",
        "allreduce",
        m.halves("reduce_scatter", "allgatherv", "allreduce"),
    ),
    Guideline("gl8_alltoall", "alltoall ≤ alltoallv", "alltoall", m.block_of("alltoallv")),
    Guideline("gl9_bcast", "bcast ≤ scatter + allgather", "bcast", m.scatter_allgather),
    Guideline("gl10_bcast", "bcast ≤ allgatherv", "bcast", m.uneven_allgather),
    Guideline("gl11_gather", "gather ≤ allgather", "gather", m.block_of("allgather")),
    Guideline("gl12_gather", "gather ≤ gatherv", "gather", m.block_of("gatherv")),
    Guideline("gl13_gather", "gather ≤ reduce of all blocks", "gather", m.sum_at_root),
    Guideline("gl14_reduce", "reduce ≤ allreduce", "reduce", m.block_of("allreduce")),
    Guideline(
        "gl15_reduce",
        "reduce ≤ reduce_scatter_block + gather",
        "reduce",
        m.halves("reduce_scatter_block", "gather", "reduce"),
    ),
    Guideline(
        "gl16_reduce", "reduce ≤ reduce_scatter + gatherv", "reduce", m.halves("reduce_scatter", "gatherv", "reduce")
    ),
    Guideline(
        "gl17_reduce_scatter_block",
        "reduce_scatter_block ≤ reduce + scatter",
        "reduce_scatter_block",
        m.reduce_then("scatter", "reduce_scatter_block"),
    ),
    Guideline(
        "gl18_reduce_scatter_block",
        "reduce_scatter_block ≤ reduce_scatter",
        "reduce_scatter_block",
        m.vector_of("reduce_scatter"),
    ),
    Guideline(
        "gl19_reduce_scatter_block",
        "reduce_scatter_block ≤ allreduce",
        "reduce_scatter_block",
        m.vector_of("allreduce"),
    ),
    Guideline(
        "gl20_reduce_scatter",
        "reduce_scatter ≤ reduce + scatterv",
        "reduce_scatter",
        m.reduce_then("scatterv", "reduce_scatter"),
    ),
    Guideline("gl21_scan", "scan ≤ exscan + reduce_local", "scan", m.exscan_local, SCAN),
    Guideline("gl22_scatter", "scatter ≤ bcast of all blocks", "scatter", m.all_blocks("bcast")),
    Guideline("gl23_scatter", "scatter ≤ scatterv", "scatter", m.block_of("scatterv")),
    *(
        Guideline(f"gl24node_{op}", f"{op} ≤ {text}", op, make, GROUPS, IN_PARTS)
        for op, (text, make) in hierarchy.BY_NODES.items()
    ),
    *(
        Guideline(f"gl24lane_{op}", f"{op} ≤ {text}", op, make, GROUPS, IN_PARTS)
        for op, (text, make) in hierarchy.BY_LANES.items()
    ),
)
"""The patterns, numbered as in the catalogue of PGMPI and ReproMPI (docs/guidelines.md)."""
MONOTONY = tuple(Guideline(f"monotony_{op}", f"{op} of n ≤ {op} of 2n", op, m.larger(op)) for op in GROWN)
SPLIT = tuple(
    Guideline(f"split_{op}", f"{op} of n ≤ {PARTS} × {op} of n/{PARTS}", op, m.split(op, PARTS)) for op in GROWN
)

GUIDELINES: Mapping[str, Guideline] = MappingProxyType({g.name: g for g in (*PATTERNS, *MONOTONY, *SPLIT)})
BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType({name: g.benchmark for name, g in GUIDELINES.items()})
"""Benchmarks like :data:`omb_py.suites.registry.BENCHMARKS`, but without commands of their own."""
