"""Wall time of a default sweep against C with OMB 7.5's counts: ``python -m tests.lab.fidelity.sweep_time``.

Both sides are whole commands, launch included, and are interleaved in a random order: ``mpiexec -n N sweep BENCHMARK`` in
C (sweep.c) and ``omb-py BENCHMARK -n N``. Prints the median of each side's seconds and of the ratios of the pairs. Exit
code 1 where a median ratio is above the bar, 3 where the C side cannot be built.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab.fidelity.reference import BUILD, HERE, NoCompiler, beside_python
from tests.support.machines.mpi import run_command

BAR = 1.5
LIMIT_S = 300
SOURCES = (HERE / "sweep.c", HERE / "reference.c")


def compile_sweep() -> Path:
    """Build the C side. Raises NoCompiler."""
    mpicc = beside_python("mpicc")
    if mpicc is None:
        raise NoCompiler(f"no mpicc beside {sys.executable} nor on the PATH")
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"sweep-{Path(sys.prefix).name}"
    done = run_command([mpicc, "-O3", "-o", program, *SOURCES], timeout=120)
    if done.returncode:
        raise NoCompiler(done.stderr.strip())
    return program


def seconds(words: Sequence[str]) -> float:
    """How long a command takes. Raises RuntimeError where it fails."""
    began = time.monotonic()
    done = run_command(words, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return time.monotonic() - began


def sides(benchmark: str, ranks: int, program: Path, options: Sequence[str]) -> dict[str, list[str]]:
    """The command of each side."""
    mpiexec = str(beside_python("mpiexec"))
    version = run_command([mpiexec, "--version"]).stdout
    binding = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in version or "open-mpi" in version else []
    return {
        "C": [mpiexec, "-n", str(ranks), *binding, str(program), benchmark],
        "omb-py": [sys.executable, "-m", "omb_py", benchmark, "-n", str(ranks), "--no-store", *options],
    }


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", default="latency,bw,allreduce,alltoall")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--pairs", type=int, default=5, help="launches of each side (default: %(default)s)")
    parser.add_argument("options", nargs="*", help="further options of omb-py, after --")
    chosen = parser.parse_args()
    try:
        program = compile_sweep()
    except NoCompiler as error:
        print(f"the C side cannot be built: {error}", file=sys.stderr)
        return 3
    order, above = random.Random(0), 0
    print(f"{'benchmark':<10} {'ranks':>5} {'C, s':>8} {'omb-py, s':>10} {'ratio':>7} {'least':>7} {'most':>7}")
    for benchmark in chosen.benchmarks.split(","):
        for ranks in map(int, chosen.ranks.split(",")):
            if benchmark in ("latency", "bw") and ranks != 2:
                continue  # these take two ranks
            commands = sides(benchmark, ranks, program, chosen.options)
            took: dict[str, list[float]] = {side: [] for side in commands}
            for _ in range(chosen.pairs):
                for side in order.sample(tuple(commands), len(commands)):
                    took[side].append(seconds(commands[side]))
            ratios = [ours / theirs for ours, theirs in zip(took["omb-py"], took["C"], strict=True)]
            ratio = statistics.median(ratios)
            above += ratio > BAR
            middle = {side: statistics.median(values) for side, values in took.items()}
            print(
                f"{benchmark:<10} {ranks:>5} {middle['C']:>8.2f} {middle['omb-py']:>10.2f} {ratio:>7.2f} "
                f"{min(ratios):>7.2f} {max(ratios):>7.2f}",
                flush=True,
            )
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
