"""omb-py beside C OMB, over the same library: ``python -m tests.lab.parity FOLDER``.

The folder holds OMB's programs (``osu_latency`` and so on, at any depth), built against the MPI library of this Python.
Each benchmark runs with the same words in both programs, omb-py under OMB's name, as ``omb-py osu-names`` links it.
Both must end with the same exit code, and their texts must be the same but for the digits of what was measured. Every
launch pair is a line: ``same``, ``refused`` (by both), ``documented`` (they differ, and docs/coverage.md
says why), or ``DIFFERENT`` with the lines that differ. Behind a pair that both measure stands the ratio of the printed
values (omb-py / C, median over the sizes). One launch of each on a busy machine shows the order of magnitude, no more:
``tests.lab.fidelity`` compares times.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import ndiff
from pathlib import Path

from omb_py.errors import OmbError
from omb_py.results.dialects.omb.titles import TITLES, family
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from tests.support.machines.mpi import mpiexec, run_command

GIVE = "name the folder of OMB's programs (osu_latency and so on): python -m tests.lab.parity FOLDER"
Words = tuple[str, ...]
COMMON: tuple[Words, ...] = (("-m", "4:64"), ("-i", "20"), ("-x", "2"))
ALL: tuple[Words, ...] = (("-z",), ("-z1,50,99",), ("-z100",), ("-T", "mpi_int"), ("-T", "all"))
WRONG: tuple[Words, ...] = (("--bogus",), ("-i", "0"), ("-m", "16:8"), ("-T", "bogus"), ("-v",))
OF_FAMILY: dict[str, tuple[Words, ...]] = {
    "pt2pt": (*ALL, ("-c",), ("-c", "-z"), ("-D", "vect:8:4"), ("-D", "cont"), ("-b", "multiple"), ("-m", "0:8")),
    "collective": (*ALL, ("-f",), ("-c",), ("-f", "-c", "-z"), ("-D", "vect:8:4"), ("-l",), ("-k", "rotate")),
    "non-blocking": (*ALL, ("-f",), ("-c",), ("-f", "-c", "-z"), ("-t", "5"), ("-f", "-t", "5"), ("-k", "rotate")),
    "persistent": (*ALL, ("-f",), ("-f", "-c", "-z")),
    "neighborhood": (*ALL, ("-f",), ("-N", "cart:1:1"), ("-N", "cart:2:1")),
    "one-sided": (*ALL, ("-s", "lock", "-w", "create"), ("-s", "fence"), ("-s", "pscw"), ("-w", "dynamic"), ("-c",)),
    "startup": (("-h",),),
}
"""Family -> words beyond the common ones."""
OF_ONE = {"mbw_mr": (("-V",), ("-R", "0"), ("-p", "1")), "bw": (("-W", "16"),), "partitioned_latency": (("-q", "4"),)}
RANKS = (2, 3, 4)
"""Each benchmark runs on these, and with its other words on the first that it admits."""
LEAST = {"neighborhood": 4}
"""Ranks of the variants of a family: OMB refuses a grid in which neighbors repeat."""
REFUSED = {1, 9}
"""Exit statuses of MPICH's mpiexec where all ranks refuse after MPI_Init: 9 where it killed the last of them."""
NO_END, NO_START = 124, 127
"""Exit statuses of a program that does not end in time, and of one that is not there or lacks a library."""
DOCUMENTED = (
    (
        r"-m 16:8|-i 0|-T bogus|--bogus",
        "a wrong value is refused in one line; OMB goes on, or prints its usage on stdout",
    ),
    (r"neighbor_.* -n 2\b|cart:2:1", "neighbors repeat in a small grid: measured, with a note; OMB stops with 0"),
    (
        r"osu_cas_latency .*-T (all|mpi_float)",
        "a type that no MPI library swaps is refused; with OMB the library aborts",
    ),
    (r"osu_(init|hello) .*-[hv]\b", "the help, or the title alone; OMB does not know -h and -v there and measures"),
    (r"osu_bw_fan_(in|out) .*-v\b", "the title needs no second node; OMB looks for one first"),
    (r"osu_partitioned_latency .*-[zD]", "percentiles, or -D refused; OMB's program ends by signal 11"),
    (r"osu_latency_mp .*-b\b|osu_i?bcast .*-k\b", "buffers as of latency, a root that moves; OMB refuses them there"),
    (r"osu_fop_latency .*-c\b", "the sum of two MPI_CHAR is right here; OMB's own check of it fails"),
    (r"mbw_mr .*-D vect", "of a message without a byte 0 messages a second; OMB divides by 0"),
    (r"osu_multi_lat .*-z", "multi_lat -z has values"),
    (r"osu_latency_mt .*-c", "latency_mt -c checks, OMB refuses its own default numbers of threads"),
    (r"osu_latency_mt", "latency_mt adds up over all iterations"),
    (r"osu_(mbw_mr|multi_lat) .*-n 3\b", "refused at once; OMB does not end"),
    (r"osu_(put|get)_.*(-T|-c)|barrier.*(-T|-c)|-D .*-c", "checked, or with that type, where OMB has none"),
    (r"_persistent .*-c", "checked: OMB's check of persistent reductions fails"),
)
"""What differs on purpose: a pattern of the label, and the reason, which docs/coverage.md has too."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One launch of each program with the same words."""

    label: str
    verdict: str
    lines: tuple[str, ...] = ()
    """Why, and what differs."""


def variants(name: str) -> tuple[tuple[int, Words], ...]:
    """(ranks, words) of each variant of a benchmark."""
    kind = str(family(name))
    words = (*OF_FAMILY[kind], *OF_ONE.get(name, ()), *WRONG)
    return (*((ranks, ()) for ranks in RANKS), *((LEAST.get(kind, RANKS[0]), more) for more in words))


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
    if re.match("Time took|nprocs:", line):  # their width is that of the number
        return re.sub(r"\d+(\.\d+| ms)", "9", line)
    return re.sub(r" *\d+\.\d+", lambda match: "9".rjust(len(match[0])), line)


def values(text: str) -> dict[int, float]:
    """Size in bytes -> the printed value of the first table; nothing of a text that is none."""
    try:
        tables = parse(text.encode(), Context()).tables
    except OmbError:
        return {}
    return {row["size_bytes"] or 0: float(row["value"]) for row in tables[0].rows if row["value"]} if tables else {}


def ratio(theirs: str, ours: str) -> float:
    """Median over the sizes of omb-py's value over C's; NaN where none is in both."""
    of_c, of_py = values(theirs), values(ours)
    ratios = [of_py[size] / of_c[size] for size in of_c.keys() & of_py.keys() if of_c[size]]
    return statistics.median(ratios) if ratios else float("nan")


def printed(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """(exit status, stdout) of a command."""
    try:
        done = run_command(command, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return NO_END, ""
    return done.returncode, done.stdout


def judge(label: str, theirs: tuple[int, str], ours: tuple[int, str]) -> Pair:
    """Compare exit codes and texts of C and of omb-py."""
    (code, text), (own, own_text) = theirs, ours
    if code == own == NO_END:
        return Pair(label, "DIFFERENT", ("neither ends in time",))
    if code == NO_START:
        return Pair(label, "DIFFERENT", ("C's program does not start: ldd says which library it lacks",))
    lines = [f"exit status {code} of C, {own} of omb-py"] if code != own and {code, own} != REFUSED else []
    if not (code and own):
        lines += [line for line in ndiff(masked(text), masked(own_text)) if line[0] in "-+"]
    if not lines:
        return (
            Pair(label, "refused", (f"by both with {code}" if code == own else f"with {code} by C, {own} by omb-py",))
            if code
            else Pair(f"{label}: {ratio(text, own_text):.2f}", "same")
        )
    reason = next((reason for pattern, reason in DOCUMENTED if re.search(pattern, label)), None)
    return Pair(label, "documented", (reason,)) if reason else Pair(label, "DIFFERENT", tuple(lines))


def compared(name: str, binary: Path, link: Path, launcher: Words, timeout_s: float) -> Iterator[Pair]:
    """Every variant of a benchmark."""
    for ranks, more in variants(name):
        common = [] if family(name) == "startup" else [pair for pair in COMMON if pair[0] not in more]
        words = (*(word for pair in common for word in pair), *more)
        start = (*launcher, "-n", str(ranks))
        theirs = printed([*start, str(binary), *words], timeout_s)
        ours = printed([*start, sys.executable, str(link), *words, "--no-store", "--quiet"], timeout_s)
        yield judge(f"osu_{name} {' '.join((*words, '-n', str(ranks)))}", theirs, ours)


def linked(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """Benchmark -> a program of OMB's name that is omb-py of this checkout."""
    links = {name: folder / f"osu_{name}" for name in names}
    for link in links.values():
        link.write_text("import sys\n\nfrom omb_py.cli import main\n\nsys.exit(main())\n")
    return links


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print; 1 where a pair differs without a reason, 2 where there are no programs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.parity", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="the folder of OMB's programs")
    parser.add_argument("--benchmarks", metavar="NAME,…", help="these alone, without osu_")
    parser.add_argument("--mpiexec", help="what starts the ranks (default: that of this Python)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a launch")
    given = parser.parse_args(words)
    binaries = programs(given.folder) if given.folder else {}
    if not binaries:
        print(f"{given.folder} has no osu_* program: {GIVE}" if given.folder else GIVE, file=sys.stderr)
        return 2
    launcher = (given.mpiexec,) if given.mpiexec else mpiexec()
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        names = given.benchmarks.split(",") if given.benchmarks else list(TITLES)
        links = linked(Path(scratch), names)
        for name in names:
            if name not in binaries:
                print(f"missing    osu_{name}: not in {given.folder}")
                verdicts["missing"] += 1
                continue
            for pair in compared(name, binaries[name], links[name], launcher, given.timeout):
                verdicts[pair.verdict] += 1
                print(f"{pair.verdict:<10} {pair.label}", *pair.lines, sep="\n    ", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return int(verdicts["DIFFERENT"] > 0)
