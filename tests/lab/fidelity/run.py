"""`make bench-fidelity`: does omb-py measure what C loops with OSU's formulas measure?

Five questions, each answered by launches of two ranks in which both sides run in the same processes, on the same
communicator and buffers, with the same warm-up, window, iterations and barriers, in alternation:

- ``native``: our native binding (A) against the C reference (B), bar ±3 %;
- ``families``: the same for a benchmark of every further family;
- ``mpi4py``: our mpi4py binding (A) against the barest mpi4py loop (B), at thread levels single and multiple,
  bar ±5 %; the native binding's number stands beside it, so that the cost of Python is seen;
- ``gloo``: our torch binding (A) against the barest torch.distributed loop (B), started by torchrun, bar ±5 %. A block
  gives the median of its calls, not the mean: some wait for the scheduler and take ten times as long. Many do under the
  usual policy (``gloo-normal``), so all run under SCHED_BATCH (docs/gloo.md); ``gloo-control`` is the bare loop against
  itself, under both;
- ``oneccl``: our native binding of oneCCL (A) against a bare C loop over its function (B), bar ±5 %, by the median of a
  block's calls.

Every launch is printed, and counts; but with ``--only-quiet`` those count that had the machine to themselves, and the
others are made again, at most as many: what decides is the time that other processes took, never the ratio. The verdict
over all of them is printed, too. Exit code 0: every cell inside its bar; 1: one is not, or that is not
decided (or a side left wrong data, see :func:`wrong_data`); 3: cannot run here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omb_py.errors import USAGE, UsageError
from tests.lab.fidelity.plan import BENCHMARKS, SERIES, Series, chosen, plan, unit
from tests.lab.fidelity.ratios import Verdict, judge, launch_log_ratio, pair_log_ratios
from tests.lab.fidelity.reference import FAMILIES, NoCompiler, beside_python, compile_reference
from tests.lab.quiet import Others, wait_for_quiet
from tests.support.machines.mpi import torchrun

ROOT = Path(__file__).resolve().parents[3]
LAUNCH_TIMEOUT_S = 300
DISTURBED = 0.2
"""Cores that other processes took during a launch, from which on it does not count with ``--only-quiet``."""


def mpiexec() -> list[str]:
    """The launcher of this environment with binding to cores."""
    program = beside_python("mpiexec")
    if program is None:
        raise NoCompiler(f"no mpiexec beside {sys.executable} nor on the PATH")
    version = subprocess.run([str(program), "--version"], capture_output=True, text=True, timeout=60, env=environment())
    binding = "--bind-to" if "Open MPI" in version.stdout or "open-mpi" in version.stdout else "-bind-to"
    return [str(program), "-n", "2", binding, "core"]


def launcher_of(series: Series) -> list[str]:
    """What starts the two ranks of a series. Raises NoCompiler when it is missing."""
    if series.backend != "gloo":
        return mpiexec()
    if find_spec("torch") is None:
        raise NoCompiler("PyTorch is not installed: pip install -e '.[gloo]'")
    return list(torchrun(2))


def environment() -> dict[str, str]:
    """Ours, with the repository importable, and Open MPI told that root may launch where we are root."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    if os.getuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env


def batch() -> None:
    """Give this process, and all that it starts, the policy ``batch`` (no privilege is needed)."""
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def run_command(command: Sequence[str], before: Callable[[], None] | None = None) -> tuple[int, str]:
    """Exit code and output. Raises RuntimeError when it takes too long; the launcher then ends its ranks."""
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=before,
    )
    try:
        told, _ = child.communicate(timeout=LAUNCH_TIMEOUT_S)
    except BaseException as error:
        child.terminate()
        try:
            child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"a launch took more than {LAUNCH_TIMEOUT_S} s") from None
        raise
    return child.returncode, told


def launch(
    launcher: Sequence[str], series: Series, cells: list[dict[str, Any]], reference: Path | None
) -> dict[str, Any]:
    """Run one launch; returns what rank 0 wrote. Raises RuntimeError when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        output, described = Path(folder) / "launch.json", Path(folder) / "plan.json"
        described.write_text(
            json.dumps(
                {
                    "cells": cells,
                    "sides": series.sides,
                    "thread_level": series.thread_level,
                    "backend": series.backend,
                    "reference": str(reference) if reference else None,
                    "output": str(output),
                }
            )
        )
        command = [*launcher, sys.executable, "-m", "tests.lab.fidelity.rank", str(described)]
        code, told = run_command(command, batch if series.batch else None)
        if code or not output.exists():
            raise RuntimeError(f"a launch ended with {code}:\n{told}")
        result: dict[str, Any] = json.loads(output.read_text())
        return result


def cell_ratio(cell: Mapping[str, Any]) -> float:
    """The launch's log ratio of a cell."""
    return launch_log_ratio([r for run in cell["runs"] for r in pair_log_ratios(run["order"], run["values"])])


def side_value(cell: Mapping[str, Any], side: str) -> float:
    """Median over the blocks of a side (A or B) of what it prints."""
    return statistics.median(
        v for run in cell["runs"] for s, v in zip(run["order"], run["values"], strict=True) if s == side
    )


def show_launch(number: int, series: Series, result: Mapping[str, Any]) -> None:
    """Print one launch."""
    a, b, extra = series.sides
    print(
        f"\n{series.name}: launch {number} · {result['library']} {result['library_version']} · thread level "
        f"{result['thread_level']} · {result['ranks']} ranks · {result['seconds']:.1f} s · waited {result['waited_s']:.0f} s "
        f"for a quiet machine · other processes {_cores(result['other_cores'])}"
    )
    width = _width(result)
    head = f"{'benchmark':<{width}}{'size':>8}{'unit':>6}{a + ' (A)':>14}{b + ' (B)':>14}{'A/B - 1':>10}"
    print(head + (f"{extra:>12}{'A - ' + extra:>14}" if extra else "") + f"{'iterations':>12}{'quads':>7}")
    for cell in result["cells"]:
        line = f"{cell['benchmark']:<{width}}{cell['size']:>8}{unit(cell['benchmark']):>6}"
        line += f"{side_value(cell, 'A'):>14.3f}{side_value(cell, 'B'):>14.3f}{100 * cell_ratio(cell):>9.2f}%"
        if extra:
            other = statistics.median(cell["extra_values"])
            line += f"{other:>12.3f}{cost_us(cell):>11.3f} us"
        print(line + f"{cell['iterations']:>12}{len(cell['runs']):>7}", flush=True)


def _width(result: Mapping[str, Any]) -> int:
    return max(10, 1 + max(len(cell["benchmark"]) for cell in result["cells"]))


def _cores(cores: float | None) -> str:
    return "not known" if cores is None else f"{cores:.2f} cores"


def cost_us(cell: Mapping[str, Any]) -> float:
    """What the mpi4py binding adds to the native one, in µs a call (bw: a message of the window)."""
    ours, native = side_value(cell, "A"), statistics.median(cell["extra_values"])
    if unit(cell["benchmark"]) == "us":
        return ours - native
    return cell["size"] / ours - cell["size"] / native  # bytes per MB/s are µs


def verdicts(series: Series, results: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Verdict]]:
    """A verdict on every cell over all launches."""
    columns: Iterable[tuple[Mapping[str, Any], ...]] = zip(*(r["cells"] for r in results), strict=True)
    return [(cells[0], judge([cell_ratio(c) for c in cells], series.bar)) for cells in columns]


def wrong_data(result: Mapping[str, Any]) -> str:
    """Which side of which cell left wrong data in which a check found some; empty where none did."""
    found = [
        f"{cell['benchmark']} at {cell['size']} bytes: {wrong} wrong bytes after side {side}"
        for cell in result["cells"]
        for side, wrong in cell.get("wrong_bytes", {}).items()
        if wrong
    ]
    return "; ".join(found)


def show_verdicts(series: Series, results: Sequence[Mapping[str, Any]]) -> bool:
    """Print the verdict on every cell; returns whether all passed."""
    first, (a, b, extra) = results[0], series.sides
    print(
        f"\n{series.name}: verdict over {len(results)} launches · {first['library']} {first['library_version']} · "
        f"{a} against {b} · bar ±{100 * series.bar:g} %"
    )
    width = _width(first)
    head = f"{'benchmark':<{width}}{'size':>8}{'mean A/B - 1':>14}{'95 % interval':>22}{'':>9}"
    print(head + (f"{'A - ' + extra + ' (us)':>20}" if extra else ""))
    everything = True
    for index, (cell, verdict) in enumerate(verdicts(series, results)):
        everything &= verdict.inside
        line = f"{cell['benchmark']:<{width}}{cell['size']:>8}{100 * verdict.ratio:>13.2f}%"
        interval = f"{100 * verdict.low:+.2f} … {100 * verdict.high:+.2f} %"
        line += f"{interval:>22}  {verdict.word:<9}"
        if extra:
            line += f"{statistics.median(cost_us(r['cells'][index]) for r in results):>18.3f}"
        print(line.rstrip(), flush=True)
    return everything


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fidelity", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--mode",
        choices=SERIES,
        default="all",
        help="control: the C reference against itself; late: against itself with a pause of one clock reading before "
        "each timed collective; gloo-normal: under the usual scheduling policy; gloo-control: the bare loop against itself",
    )
    parser.add_argument("--launches", type=int, default=10, metavar="N")
    parser.add_argument("--sizes", type=lambda text: [int(s) for s in text.split(",")], metavar="B,B,…")
    parser.add_argument(
        "--benchmarks",
        type=lambda text: text.split(","),
        metavar="NAME,NAME,…",
        help=f"of {', '.join(BENCHMARKS)}; native and control also bibw, barrier, allgather, alltoall; late: collectives; "
        f"families: of {', '.join(FAMILIES)}",
    )
    parser.add_argument("--effort", type=float, default=1.0, metavar="F", help="times the usual number of blocks")
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        metavar="S",
        help="wait before each launch for a quiet machine, at most so long",
    )
    parser.add_argument(
        "--only-quiet",
        action="store_true",
        help=f"launches during which other processes took {DISTURBED} cores or more are printed and made again",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="every block of every launch")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    options = parse(argv)
    try:
        selection = chosen(options.mode, options.benchmarks)
    except UsageError as error:
        print(f"bench-fidelity: {error}", file=sys.stderr)
        return USAGE
    try:
        launchers = {series.name: launcher_of(series) for series, _ in selection}
        reference = compile_reference() if any(series.backend == "mpi" for series, _ in selection) else None
    except NoCompiler as error:
        print(f"bench-fidelity cannot run here: {error}", file=sys.stderr)
        return 3
    if (os.cpu_count() or 1) < 2:
        print("bench-fidelity cannot run here: two ranks need two cores", file=sys.stderr)
        return 3
    print(
        f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    )
    fine, everything = True, []
    for series, rows in selection:
        cells = plan(series, rows, options.sizes or series.sizes, options.effort)
        results: list[dict[str, Any]] = []
        for number in range(1, 2 * options.launches + 1):
            try:
                waited, others = wait_for_quiet(options.patience), Others.start()
                result = launch(launchers[series.name], series, cells, reference)
                results.append({**result, "waited_s": waited, "other_cores": others.cores()})
            except RuntimeError as error:
                print(f"bench-fidelity: {error}", file=sys.stderr)
                return 3
            show_launch(number, series, results[-1])
            if wrong := wrong_data(results[-1]):
                print(f"bench-fidelity: {wrong}", file=sys.stderr)
                return 1
            if len(counted(results, options.only_quiet)) == options.launches:
                break
        decided = show_verdicts(series, results)
        if len(quiet := counted(results, options.only_quiet)) < len(results):
            print(
                f"\nof these, {len(quiet)} during which other processes took less than {DISTURBED} cores:", flush=True
            )
            decided = bool(quiet) and show_verdicts(series, quiet)
        fine &= decided
        everything.append({"series": series.name, "sides": series.sides, "bar": series.bar, "launches": results})
    if options.json:
        options.json.write_text(json.dumps(everything))
    return 0 if fine else 1


def counted(results: Sequence[dict[str, Any]], only_quiet: bool) -> list[dict[str, Any]]:
    """The launches that count."""
    return [r for r in results if not only_quiet or (r["other_cores"] or 0.0) < DISTURBED]


def cpu_model() -> str:
    """As the kernel names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
