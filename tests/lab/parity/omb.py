"""omb-py beside C OMB, over the same library: ``python -m tests.lab.parity FOLDER``.

The folder holds OMB's programs (``osu_latency`` and so on, at any depth), built against the MPI library of this Python.
Each benchmark runs with the same words in both programs. Their texts must be the same but for the digits of what was
measured; the lines that differ are printed, and for each variant the ratio of the printed values (omb-py / C, median
over the sizes). One launch of each on a busy machine shows the order of magnitude, no more: ``tests.lab.fidelity``
compares times. docs/coverage.md says what remains, and why.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from difflib import ndiff
from pathlib import Path

from omb_py.results.dialects.omb.titles import TITLES, family
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.mpi import environment, mpiexec

GIVE = "name the folder of OMB's programs (osu_latency and so on): python -m tests.lab.parity FOLDER"
COMMON = ("-m", "4:64", "-i", "20", "-x", "2")
ALL = ((), ("-z",), ("-z1,50,99",), ("-T", "mpi_int"), ("-T", "all"))
OF_FAMILY: dict[str, tuple[tuple[str, ...], ...]] = {
    "pt2pt": (*ALL, ("-c",), ("-c", "-z"), ("-D", "vect:8:4"), ("-D", "cont"), ("-b", "multiple")),
    "collective": (*ALL, ("-f",), ("-c",), ("-f", "-c", "-z"), ("-D", "vect:8:4"), ("-l",), ("-k", "rotate")),
    "non-blocking": (*ALL, ("-f",), ("-c",), ("-f", "-c", "-z"), ("-t", "5"), ("-f", "-t", "5")),
    "persistent": (*ALL, ("-f",), ("-f", "-c", "-z")),
    "neighborhood": (*ALL, ("-f",), ("-N", "cart:1:1")),
    "one-sided": (*ALL, ("-s", "lock", "-w", "create"), ("-s", "fence"), ("-s", "pscw"), ("-c",)),
    "startup": ((),),
}
"""Family -> words beyond the common ones. What a program refuses is left out where the other refuses it, too."""
OF_ONE = {"mbw_mr": (("-V",), ("-R", "0"), ("-p", "1")), "bw": (("-W", "16"),), "partitioned_latency": (("-q", "4"),)}


def variants(name: str) -> tuple[tuple[str, ...], ...]:
    """The words of each variant of a benchmark."""
    return (*OF_FAMILY[str(family(name))], *OF_ONE.get(name, ()))


def programs(folder: Path) -> dict[str, Path]:
    """Benchmark -> its program below a folder."""
    present = {path.name.removeprefix("osu_"): path for path in sorted(folder.rglob("osu_*")) if _is_program(path)}
    return {name: present[name] for name in TITLES if name in present}


def _is_program(path: Path) -> bool:
    return path.is_file() and not path.suffix and bool(path.stat().st_mode & 0o111)


def masked(text: str) -> list[str]:
    """The lines of a text with what was measured masked by its width; sizes, counts and titles stay."""
    return [_row(line) if re.match(r"\s*\d|nprocs:|Time took", line) else line for line in text.splitlines()]


def _row(line: str) -> str:
    return re.sub(r" *\d+\.\d+| *\d+ ms", lambda match: "9".rjust(len(match[0])), line)


def values(text: str) -> dict[int, float]:
    """Size in bytes -> the printed value of the first table."""
    tables = parse(text.encode(), Context()).tables
    return {row["size_bytes"]: float(row["value"]) for row in tables[0].rows if row["value"]} if tables else {}


def ratio(theirs: str, ours: str) -> float:
    """Median over the sizes of omb-py's value over C's; NaN where none is in both."""
    of_c, of_py = values(theirs), values(ours)
    ratios = [of_py[size] / of_c[size] for size in of_c.keys() & of_py.keys() if of_c[size]]
    return statistics.median(ratios) if ratios else float("nan")


def printed(launcher: Sequence[str], ranks: int, words: Sequence[str]) -> tuple[int, str]:
    """(exit status, stdout) of a program on so many ranks; status 124 when it does not end."""
    command = [*launcher, "-n", str(ranks), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(), check=False)
    except subprocess.TimeoutExpired:
        return 124, ""
    return done.returncode, done.stdout


def compared(name: str, binary: Path, launcher: Sequence[str]) -> Iterator[tuple[str, bool, list[str]]]:
    """(variant with its ratio, whether the texts are the same, the lines that differ) of every variant."""
    ranks = next(n for n in (2, 4) if BENCHMARKS[name].ranks.admits(n))
    for more in variants(name):
        words = (*(COMMON if family(name) != "startup" else ()), *more)
        ours = [sys.executable, "-m", "omb_py", name, *words, "--no-store", "--quiet"]
        (code, theirs), (own, text) = (printed(launcher, ranks, w) for w in ([str(binary), *words], ours))
        label = f"osu_{name} {' '.join(words)}".strip()
        if code and own:
            continue
        if code or own:
            yield label, False, [f"exit status {code} of C, {own} of omb-py"]
            continue
        differ = [line for line in ndiff(masked(theirs), masked(text)) if line[0] in "-+"]
        yield f"{label}: {ratio(theirs, text):.2f}", not differ, differ


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print; 1 where a text differs, 2 where there are no programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.parity", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="the folder of OMB's programs")
    parser.add_argument("--benchmarks", metavar="NAME,…", help="these alone, without osu_")
    parser.add_argument("--mpiexec", help="what starts the ranks (default: that of this Python)")
    given = parser.parse_args(words)
    binaries = programs(given.folder) if given.folder else {}
    if not binaries:
        print(f"{given.folder} has no osu_* program: {GIVE}" if given.folder else GIVE, file=sys.stderr)
        return 2
    launcher = (given.mpiexec,) if given.mpiexec else mpiexec()
    same = other = 0
    for name in given.benchmarks.split(",") if given.benchmarks else TITLES:
        if name not in binaries:
            print(f"osu_{name}: not in {given.folder}")
            continue
        for label, equal, lines in compared(name, binaries[name], launcher):
            same, other = same + equal, other + (not equal)
            print(f"{'same' if equal else 'DIFFERENT'}  {label}", *lines, sep="\n    ", flush=True)
    print(f"{same} variants have the same text, {other} differ")
    return int(other > 0)
