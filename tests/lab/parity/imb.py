"""omb-py beside the binaries of the Intel MPI Benchmarks, over the same library: text and times.

``python -m tests.lab.parity.imb --impi FOLDER`` takes the folder that holds ``bin/IMB-MPI1`` and ``lib/libmpi.so.12``, as
the wheel ``impi-rt`` unpacks it. Each benchmark is measured in pairs of launches, one of each program; which goes first
is drawn. Both print their text: it must be the same but for the digits, and the table below gives the ratio of the
medians over the launches for each size, and that of the fastest launches, which tells more where launches are of two
kinds, fast and slow. The load is said, since times on a busy machine show nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omb_py.results.dialects.imb.names import FORMS, Part, counts_a_block
from omb_py.results.dialects.imb.text import bytes_of
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from omb_py.suites.registry import find
from tests.support.machines.mpi import run_command

BINARIES: Mapping[Part, str] = {
    "MPI-1": "IMB-MPI1",
    "MPI-NBC": "IMB-NBC",
    "MPI-RMA": "IMB-RMA",
    "IMB-P2P": "IMB-P2P",
    "MT": "IMB-MT",
}
WARMUP = "1000"
"""Iterations of ours before those that are timed."""
MT_THREADS = 2
"""Threads of a rank in IMB-MT, which OMP_NUM_THREADS tells it."""
USUAL = (
    "latency",
    "pingping",
    "sendrecv_call",
    "exchange",
    "uniband",
    "allreduce",
    "bcast",
    "corandom",
    "exchange_put",
)

FLUSHED_AT_THE_END = ("one_put_all", "one_get_all", "put_all_local", "get_all_local", "all_put_all", "all_get_all")
"""IMB calls one flush behind all iterations of these; ours then have many rounds a flush."""
AS_FLUSHED = ("-W", "100")

ONE_ELEMENT = {"fop_latency": 4, "cas_latency": 4}
"""Bytes of the benchmarks of one element: IMB's has four, that of C OMB and omb-py one unless a type is named."""

_MT_RULE = 80
"""Characters after the title of IMB-MT behind which the rule below it has ended."""
Times = dict[int, list[float]]


def commands(
    name: str, folder: Path, sizes: Sequence[int], repetitions: int, ranks: int, lengths: Path
) -> dict[str, list[str]]:
    """The command of each program, with the same sizes and repetitions; `lengths` is a file with the sizes for IMB."""
    form = FORMS[name]
    start = [str(folder / "bin" / "mpiexec.hydra"), "-n", str(ranks)]
    few = [] if form.part == "IMB-P2P" else ["-iter_policy", "off", "-npmin", str(ranks)]
    together = "aggregate" if find(name).metric.unit == "MB/s" else "non_aggregate"
    mode = ["-aggregate_mode", together] if form.mode else []
    theirs = ["-iter", str(repetitions), "-msglen", str(lengths), *few, *mode, form.name]
    # IMB-RMA has passive targets alone; some of ours begin with another call, as OMB's do
    flush = ["-s", "flush"] if form.part == "MPI-RMA" and "sync" in find(name).options else []
    flush += ["-w", "create"] if form.part == "MPI-RMA" and "window_kind" in find(name).options else []
    # IMB has sent more before it measures: over a new connection each fourth of 400 messages takes 20 us more
    blocks = ranks if counts_a_block(name) else 1
    words = ["-m", ",".join(str(size * blocks) for size in sizes), "-x", WARMUP, "-i", str(repetitions), *flush]
    words += ["--format", "imb", "--no-store"]
    if name in FLUSHED_AT_THE_END:
        words += AS_FLUSHED
    if form.part == "MT":
        counts = ",".join(map(str, sizes))
        theirs = ["-thread_level", "multiple", "-datatype", "char", "-repeat", str(repetitions), "-count", counts]
        theirs.append(form.name)
        words[words.index("-i") + 1] = str(MT_THREADS * repetitions)
        words += ["-t", str(MT_THREADS)]
    if find(name).sizes is None:
        del words[:2]
    if name in ONE_ELEMENT:
        words += ["-T", "int32"]
    return {
        "IMB": [*start, str(folder / "bin" / BINARIES[form.part]), *theirs],
        "omb-py": [*start, sys.executable, "-m", "omb_py", name, *words, "--quiet"],
    }


def times_of(text: str, sizes: Sequence[int]) -> dict[int, float]:
    """Size in bytes as IMB counts it, 0 where there is none -> the printed time in µs, or MB/s without a time."""
    values: dict[int, float] = {}
    for table in parse(text.encode(), Context()).tables:
        for row in table.rows:
            size = bytes_of(row, row["size_bytes"] or 0)
            if size in sizes:
                values[size] = _figure(row)
    return values


def _figure(row: Mapping[str, Any]) -> float:
    metrics = row["metrics"]
    # beside computing a non-blocking call takes as long as what is computed, which is ours to choose
    return float(metrics.get("pure", metrics.get("rank_max_us", row["value"])))


def layout(text: str) -> list[str]:
    """The first table of a text with its digits masked: title, columns and rows, each with its width."""
    above = text.find("List of Benchmarks")
    start = text.index("\n#-", above if above >= 0 else text.index("MT part") + _MT_RULE)
    table = text[start : text.index("\n\n", start + 1)]
    rows = [re.sub(r"[\d.]", "9", re.sub(r" +\d[\d.]*", _right, line)) for line in table.splitlines() if line]
    return list(dict.fromkeys(rows))


def _right(match: re.Match[str]) -> str:
    """A right-aligned number as its width alone."""
    return "9".rjust(len(match[0]))


def measured(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """What a program prints. Raises CalledProcessError or TimeoutExpired."""
    # IMB-MT needs libiomp5.so, which is not in the wheel but in intel-openmp
    library = f"{folder / 'lib'}:{folder / 'opt' / 'mpi' / 'libfabric' / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    places = {"LD_LIBRARY_PATH": library, "MPI4PY_LIBMPI": str(folder / "lib" / "libmpi.so.12")}
    environment = {**os.environ, "OMP_NUM_THREADS": str(MT_THREADS), **places}
    done = run_command(command, timeout=timeout_s, check=True, env=environment)
    return done.stdout


def compared(name: str, folder: Path, arguments: argparse.Namespace, draw: random.Random) -> tuple[bool, list[str]]:
    """Whether both texts have one layout, and a line for each size."""
    sizes = [ONE_ELEMENT.get(name, 0)]
    if find(name).sizes is not None:
        sizes = [int(size) for size in arguments.sizes.split(",")]
    lengths = Path(arguments.scratch) / "lengths"
    lengths.write_text("".join(f"{size}\n" for size in sizes))
    pair = commands(name, folder, sizes, arguments.repetitions, arguments.ranks, lengths)
    values: dict[str, Times] = {program: {size: [] for size in sizes} for program in pair}
    texts: dict[str, str] = {}
    for _ in range(arguments.launches):
        for program in draw.sample(sorted(pair), 2):
            texts[program] = measured(pair[program], folder, arguments.timeout)
            for size, value in times_of(texts[program], sizes).items():
                values[program][size].append(value)
    lines = []
    for size in sizes:
        if not all(values[program][size] for program in pair):
            continue
        theirs, ours = (statistics.median(values[program][size]) for program in ("IMB", "omb-py"))
        best = max if find(name).metric.unit == "MB/s" else min
        fastest = best(values["omb-py"][size]) / best(values["IMB"][size])
        lines.append(f"{name:<18} {size:>9} {theirs:>12.2f} {ours:>12.2f} {ours / theirs:>8.3f} {fastest:>8.3f}")
    same = layout(texts["IMB"]) == layout(texts["omb-py"])
    return same, lines if same else [*lines, *_difference(layout(texts["IMB"]), layout(texts["omb-py"]))]


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> list[str]:
    return [f"  IMB   : {line!r}" for line in theirs if line not in ours] + [
        f"  omb-py: {line!r}" for line in ours if line not in theirs
    ]


def main(words: list[str] | None = None) -> int:
    """Compare, print, and return 1 if a text has another layout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[], help=f"benchmarks as omb-py names them: {', '.join(USUAL)}")
    parser.add_argument("--impi", required=True, help="the folder of bin/ and lib/ of the wheel impi-rt")
    parser.add_argument("--sizes", default="8,4096", help="bytes, with commas")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--launches", type=int, default=5, help="of each program")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a launch")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the launches")
    parser.add_argument("--scratch", default=".", help="a folder for a file of sizes")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if name not in FORMS]
    folder = Path(arguments.impi)
    if unknown or not (folder / "bin" / "IMB-MPI1").exists():
        print(f"IMB has no {unknown[0]}" if unknown else f"{folder}: there is no bin/IMB-MPI1", file=sys.stderr)
        return 2
    few = [name for name in arguments.names if not find(name).ranks.admits(arguments.ranks)]
    if few:
        print(f"{few[0]} needs {find(few[0]).ranks.text}: use another --ranks", file=sys.stderr)
        return 2
    print(f"# load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {arguments.launches} launches each, interleaved")
    print(f"# {'benchmark':<16} {'size':>9} {'IMB':>12} {'omb-py':>12} {'ratio':>8} {'fastest':>8}")
    draw, differ = random.Random(arguments.seed), False
    for name in arguments.names or USUAL:
        same, lines = compared(name, folder, arguments, draw)
        differ = differ or not same
        print("\n".join(lines), flush=True)
    print(f"# load {os.getloadavg()[0]:.1f} at the end; layout of the tables: {'DIFFERENT' if differ else 'the same'}")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
