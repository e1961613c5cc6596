"""How often ``compare --run`` finds a C ping-pong over MPI slower, whose library was made slower by a preload.

    python -m tests.lab.real_ranks.planted [--share 0.1] [--comparisons 20] [--launches 10] [--rounds 1] [--budget SECONDS] [--load N] [--iterations N]

Each comparison starts the program in turn as it is and with a library before MPI's: after each MPI_Recv rank 0 spins
for a share of the time since the last one, which is one round trip. ``--share 0`` counts false alarms. ``--budget`` is
that of ``compare``, and chooses the launches; ``--load`` keeps N cores busy. Prints every comparison, how its launches
spread, and the share of cells that are SLOWER and UNCLEAR: of all, and of the comparisons whose launches spread by less
than a tenth. Needs a C compiler and mpi.h beside this Python.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.reading import OutputReading
from omb_py.orchestrate.programs.session import ProgramsDesign, compare_programs
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import CompareReport
from tests.lab.error_rates.accept import rate
from tests.lab.quiet import Others
from tests.lab.startup import load
from tests.support.c_library import shared_library
from tests.support.machines.mpi import AS_ROOT
from tests.support.ping_pong import compile_ping_pong

CALM = 0.1
"""Launches that spread by less are those of a machine that nobody else uses."""
ITERATIONS = 8000
"""A launch of some tenths of a second."""
SPIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
typedef int (*Recv)(void *, int, int, int, int, int, void *);
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int MPI_Recv(void *data, int count, int type, int peer, int tag, int comm, void *status) {
  static Recv real;
  static double share = -1, last;
  double until;
  int code;
  if (!real) {
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    real = (Recv) dlsym(RTLD_NEXT, "MPI_Recv");
    share = rank && atoi(rank) == 0 ? atof(getenv("PLANTED_SHARE")) : 0;
  }
  if (share == 0) return real(data, count, type, peer, tag, comm, status);
  code = real(data, count, type, peer, tag, comm, status);
  until = now();
  if (last) until += share * (until - last);
  while (now() < until) {}
  last = now();
  return code;
}
"""


def compare_once(command: str, spin: Path, given: argparse.Namespace, store: Path, seed: int) -> CompareReport:
    """One comparison of the program with itself behind the preload."""
    variables = {"BASE": {}, "NEW": {"LD_PRELOAD": str(spin), "PLANTED_SHARE": str(given.share)}}
    programs = {side: SideProgram(side, command, RankEnvironment(variables=variables[side])) for side in SIDES}
    rules = CompareRules(rounds=given.rounds)
    return compare_programs(
        ProgramsDesign(
            programs, OutputReading(), rules, given.launches, store, 60.0, seed, quiet=True, budget_s=given.budget
        )
    )


def spread(report: CompareReport) -> float:
    """Relative standard deviation of BASE's launches, the mean over cells."""
    cells: dict[str, list[float]] = {}
    for row in report.base.rows:
        cells.setdefault(str(row["comparability_key"]), []).append(float(row["value"]))
    return statistics.fmean(statistics.stdev(values) / statistics.fmean(values) for values in cells.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--comparisons", type=int, default=20)
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    given = parser.parse_args()
    os.environ.update(AS_ROOT)
    counts = {"all": Counter[str](), "calm": Counter[str]()}
    others = Others.start()
    with tempfile.TemporaryDirectory() as name, load(given.load):
        folder = Path(name)
        command = compile_ping_pong(folder, given.iterations).replace(" -n 2 ", " --bind-to core -n 2 ")
        (folder / "spin.c").write_text(SPIN)
        spin = shared_library(folder / "spin.c", folder / "libspin.so")
        for seed in range(given.comparisons):
            report = compare_once(command, spin, given, folder / f"store{seed}", seed)
            verdicts = [judged.answers["median"] for judged in report.judged]
            apart = spread(report)
            for kind in ("all", "calm") if apart < CALM else ("all",):
                counts[kind].update(answer.verdict for answer in verdicts)
            told = ", ".join(f"{answer.ratio:.3f} {answer.verdict}" for answer in verdicts)
            print(f"  {seed}: {told}; launches {report.base.count}, spread {apart:.1%}", flush=True)
    for kind, of_kind in counts.items():
        if cells := of_kind.total():
            slower, unclear = (rate(of_kind[verdict], cells) for verdict in ("SLOWER", "UNCLEAR"))
            print(f"{kind}: of {cells} cells SLOWER in {slower}, UNCLEAR in {unclear}")
    print(f"others used {others.cores():.1f} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
