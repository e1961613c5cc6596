"""The MPI calls of C OMB's loops beside omb-py's, counted: ``python -m tests.lab.parity.calls FOLDER``.

The folder is that of ``python -m tests.lab.parity``. A library of our own (calls.c) stands before MPI in both programs and
notes each call. In C's calls the loops are found as what repeats once an iteration; the same calls, one behind the other,
with the same counts, types, peers, tags and roots, must stand in omb-py's. What surrounds the loops is not compared.
With Open MPI, whose handles are addresses, types are not compared either.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from tests.lab.parity.omb import GIVE, printed, programs
from tests.support.c_library import shared_library
from tests.support.machines.mpi import mpiexec, run_command

ITERATIONS, WARMUP = 9, 3
COMMON = ("-m", "64:64", "-i", str(ITERATIONS), "-x", str(WARMUP))
LONGEST = 60
"""Calls of an iteration at most."""
NUMBERS = frozenset(
    "count block each received number partitions partition_items peer tag root target source dtype op partition".split()
)
"""Operands that are compared."""
VARIANTS = """
latency
latency -D vect:8:4
latency -b multiple
bw -W 4
bibw -W 4
multi_lat
mbw_mr -W 4
latency_persistent
bw_persistent -W 4
bibw_persistent -W 4
allreduce
allreduce -z
bcast
gather
gather -k rotate -n 3
scatter -k rotate -n 3
reduce -k fixed:1
reduce -l
alltoallv
alltoallw
reduce_scatter
allgather -l
scatter -l
iallreduce
iallreduce -t 3
ibarrier
barrier
barrier_persistent
allreduce_persistent
neighbor_allgather -n 3
ineighbor_alltoall -n 3
put_latency
put_latency -s fence
get_latency -s pscw
put_bw -W 4
put_bibw -W 4
acc_latency
get_acc_latency
fop_latency
cas_latency
"""
Calls = list[str]


def operands() -> dict[str, tuple[str, ...]]:
    """MPI function -> its operands by name."""
    from omb_py.backends.mpi.calls import CALLS

    return {function: tuple(words.split()) for function, words in reversed(CALLS.values())}


def build(folder: Path, library: str) -> Path:
    """Compile the library that notes calls and goes on to MPI's `library`. Raises CalledProcessError."""
    (folder / "wrapped.h").write_text("".join(f"WRAP({function})\n" for function in sorted(operands())))
    flags = ("-w", f"-I{folder}", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{Path(library).parent}")
    return shared_library(Path(__file__).with_name("calls.c"), folder / "calls.so", *flags)


def read(path: Path, names: Mapping[str, Sequence[str]]) -> Calls:
    """The calls of a rank: function and the operands that are compared."""
    lines = (line.split() for line in path.read_text().splitlines()) if path.exists() else ()
    return [_call(function, given, names[function]) for function, *given in lines]


def _call(function: str, given: Sequence[str], names: Sequence[str]) -> str:
    def shown(name: str, word: str) -> str:
        value = ctypes.c_int(int(word)).value
        own = value < 0 or int(word) >> 32 not in (0, -1)  # a type that the program made, or an address
        return "*" if own and name in ("dtype", "op") else str(value)

    pairs = zip(names, given, strict=False)
    return " ".join([function, *(f"{name}={shown(name, word)}" for name, word in pairs if name in NUMBERS)])


def loops(calls: Sequence[str], times: int) -> list[Calls]:
    """What repeats `times` times or more, by the names of the functions, with all its repetitions; the shortest unit."""
    names = [call.split()[0] for call in calls]
    regions, at = [], 0
    while at < len(names):
        for length in range(1, min(LONGEST, (len(names) - at) // times) + 1):
            unit, end = names[at : at + length], at + length
            while names[end : end + length] == unit:
                end += length
            if end - at >= length * times:
                regions.append(list(calls[at:end]))
                at = end - 1
                break
        at += 1
    return regions


def contains(calls: Sequence[str], region: Sequence[str]) -> bool:
    """Whether a region of C's stands among the calls of omb-py, one call behind the other."""
    first = (start for start, call in enumerate(calls) if call == region[0])
    return any(list(calls[start : start + len(region)]) == list(region) for start in first)


def wrong_loops(theirs: Sequence[str], ours: Sequence[str]) -> list[str]:
    """The loops of C that omb-py has not, as lines.

    Of a loop of one call, as of barriers, only as many as there are iterations are looked for: others stand beside it.
    ``tests/backends/mpi/test_calls.py`` counts the calls of a single iteration.
    """
    times, lines = ITERATIONS + WARMUP, []
    for region in loops(theirs, times):
        inside = region[: len(region) // times * times] if len(set(region)) > 1 else region[:times]
        if not contains(ours, inside):
            counted = [(call, len(list(group))) for call, group in groupby(region[: 2 * LONGEST])]
            lines.append("not in omb-py: " + ", ".join(f"{number} x {call}" for call, number in counted[:8]))
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print; 1 where a loop differs, 2 where there are no programs."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.parity.calls", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of OMB's programs")
    given = parser.parse_args(words)
    binaries = programs(given.folder)
    if not binaries:
        print(f"{given.folder} has no osu_* program: {GIVE}", file=sys.stderr)
        return 2
    names, wrong = operands(), 0
    with tempfile.TemporaryDirectory() as scratch:
        library = run_command([sys.executable, "-c", _LIBRARY], check=True).stdout.strip()
        shim = build(Path(scratch), library)
        for variant in VARIANTS.strip().splitlines():
            name, *more = variant.split()
            ranks = int(more.pop()) if "-n" in more else 2
            more = [word for word in more if word != "-n"]
            start, calls = (*mpiexec(), "-n", str(ranks)), {}
            common = [*COMMON[2:]] if name in ("barrier", "ibarrier", "barrier_persistent") else [*COMMON]
            ours = [sys.executable, "-m", "tests.lab.parity.noted", name, *common, *more, "--no-store", "--quiet"]
            for who, command in (("C", [str(binaries[name]), *common, *more]), ("omb-py", ours)):
                folder = Path(scratch) / f"{name}-{who}"
                folder.mkdir(exist_ok=True)
                noting = {"CALLS_FOLDER": folder, "CALLS_LIBRARY": library, "LD_PRELOAD": shim}
                variables = [f"{key}={value}" for key, value in noting.items()]
                code, _ = printed([*start, "env", *variables, *command], 90)
                calls[who] = [read(folder / str(rank), names) for rank in range(ranks)] if not code else []
            lines = ["a program failed"] if not all(calls.values()) else []
            for rank, (theirs, own) in enumerate(zip(calls["C"], calls["omb-py"], strict=False)):
                lines += [f"rank {rank}: {line}" for line in wrong_loops(theirs, own)]
            number = sum(len(loops(each, ITERATIONS + WARMUP)) for each in calls["C"])
            wrong += bool(lines)
            print(f"{'DIFFERENT' if lines else 'same':<10} {variant}: {number} loops", *lines, sep="\n    ", flush=True)
    print(f"{wrong} variants differ")
    return int(wrong > 0)


_LIBRARY = """
import ctypes, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
lines = open("/proc/self/maps").read().splitlines()
print(next(line.split()[-1] for line in lines if "/libmpi.so" in line))
"""

if __name__ == "__main__":
    sys.exit(main())
