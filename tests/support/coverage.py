"""docs/coverage.md, every MPI benchmark of OMB 7.5 and where it is: ``python -m tests.support.coverage`` writes it."""

from __future__ import annotations

from pathlib import Path

from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites.registry import BENCHMARKS
from tests.backends.mpi.test_calls import ELSEWHERE, EXPECTED
from tests.support.omb_variants import VARIANTS

FILE = Path(__file__).parents[2] / "docs" / "coverage.md"
CALLS, DATA = "tests/backends/mpi/test_calls.py", "tests/backends/test_conformance.py"
NODES = "tests/backends/mpi/test_nodes.py"

HEAD = """# Coverage of OMB 7.5

Every MPI benchmark of OSU Micro-Benchmarks 7.5 on host buffers, its name here, the bindings that do it, and the tests
that run it on real MPI processes: one asserts the calls of an iteration with their counts, one that every byte arrives
(on 2, 3 and 4 ranks where the benchmark admits them). CI runs both on MPICH and on Open MPI. This page is made by
`python -m tests.support.coverage`; a test holds it to the code.

| OMB 7.5 | here | bindings | calls and counts | data |
|---|---|---|---|---|
"""

TAIL = """
Only here: {only}.

`python -m tests.lab.parity FOLDER` builds C OMB from its sources against the MPI of this Python,
runs each benchmark with the same words in both (`-z`, `-f`, `-c`, `-T`, `-D`, `-l`, `-k`, `-t`, `-s`, `-w`, `-V`), and
prints the lines that differ and the ratio of the values. The sources are not part of this repository.

Options whose text or value once differed from C's, what is printed now, and the test that holds it:

| benchmark and options | now | test |
|---|---|---|
{variants}
Different on purpose:
- `-z99.9`: OMB 7.5 holds whole percentiles and heads the column P99; here it is P99.9, and there may be more than five;
- `multi_lat -z` (OMB 7.5 prints heads without values), and `-z1` with few iterations (it reads before its array);
- `-c` on benchmarks where OMB has none (put, get, congestion, derived datatypes): every byte is checked;
- `-T` of put and get: OMB says "supports only MPI_CHAR" and goes on; here the type is used;
- the counts of later types of `-T all`: OMB 7.5 never switches back from those of large messages.

Left out, with the reason:
- `-P` (PAPI counters): another tool's work; `perf stat` around a launch gives them without a build against PAPI.
- `-p` (number of pairs of mbw_mr) and `-u` (exchanges before each validated one): accepted, and a note says that they
  have no effect. OMB 7.5 parses `-p` and then uses half of the ranks; here `-c` checks iterations of its own.
- `-a`, `-d openacc`, `-d sycl`: the size of OMB's dummy kernel, and other ways to program a GPU.
- OMB's `-G` (graphs by gnuplot and ImageMagick): here `-G tty|png|pdf` draws the curve itself
  ([report.md](report.md#pictures)).
- OpenSHMEM, UPC, UPC++: other programming models than message passing.
- OMB-J (Java) and OMB-Py: the same benchmarks in other languages; OMB-Py's are the ones here with `--binding mpi4py`.
- `-D indx` beyond its message: OMB 7.5 sends the pieces of the file once at every size, also where the message is
  smaller, and leaves out the last piece although it counts it. Here they are repeated as often as they fit;
  `-D once:FILE` sends them once.
- NCCL and RCCL (`osu_xccl_*`): not MPI. `--backend nccl` measures them under OMB's titles ([nccl.md](nccl.md)).

"""


def page() -> str:
    """The whole page."""
    rows = []
    for name in TITLES:
        calls = f"`{CALLS}`" if name in EXPECTED else f"`{ELSEWHERE[name]}`"
        data = "no data" if "validation" not in BENCHMARKS[name].options else f"`{DATA}`"
        if BENCHMARKS[name].ranks.over_nodes:
            data = f"`{NODES}`"
        bindings = "before bindings" if BENCHMARKS[name].once else "native, mpi4py"
        rows.append(f"| osu_{name} | `omb-py {name}` | {bindings} | {calls} | {data} |\n")
    only = ", ".join(name for name in BENCHMARKS if name not in TITLES)
    variants = "".join(f"| {v.words} | {v.now} | `{v.path}` |\n" for v in VARIANTS)
    return HEAD + "".join(rows) + TAIL.format(only=only, variants=variants)


if __name__ == "__main__":
    FILE.write_text(page())
