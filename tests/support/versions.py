"""The hash of what each benchmark does, kept in a file: ``python -m tests.support.versions`` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import program_hash
from omb_py.options.table import make_cell
from omb_py.suites.registry import BENCHMARKS

FILE = Path(__file__).with_name("versions.json")


def version(name: str) -> str:
    """Hash of the first two ranks at 1024 bytes with default options, on as few ranks as the benchmark admits."""
    benchmark = BENCHMARKS[name]
    cell = make_cell(name, "mpi", "native", 1024 if benchmark.sizes else 0, dtype=benchmark.dtype)
    ranks = next(n for n in range(2, 65) if benchmark.ranks.admits(n))
    hosts = tuple("ab"[2 * rank // ranks] for rank in range(ranks))
    return program_hash(*(benchmark.program(World(rank, ranks, hosts), cell) for rank in (0, 1)))


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: version(name) for name in BENCHMARKS}, indent=2) + "\n")
