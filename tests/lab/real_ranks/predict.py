"""How well sweeps predict steps: Gloo and MPI at 2 and 4 ranks, steps whose sizes were held out from the fit.

    python -m tests.lab.real_ranks.predict [--store DIR] [--backend LIST] [--ranks LIST] [--seconds S] [--few]

Sweeps are of powers of two; a call counts whose size is none. Prints for each backend and number of ranks the distribution of the
error, |predicted / measured - 1|, of calls and of whole steps, with hot and with cold curves, and what explains it. Sweeps and
steps are made in the same launches; how far launches differ is printed beside, since no prediction can be closer. Exit code 1 where
that could not be measured or predicted; how large the error is does not matter. With --store the sweeps stay there.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from omb_py.orchestrate.workloads.prediction import Forecast, asks, forecasts, steps_of, sweeps
from omb_py.results.analysis.step_prediction import MESSAGES, put_beside
from omb_py.suites.workloads.families import parse_workload
from tests.lab.quiet import watched

SIZES, FEW_SIZES = "4:16M", "4:1M:4"
REDUCTIONS, OTHERS = ("allreduce", "reduce_scatter_block"), ("allgather", "alltoall", "alltoallv", "bcast", "gather")
WORKLOADS = (
    "ddp:model=mlp",
    "ddp:model=resnet50,scale=1/13",
    "ddp:model=resnet50,cap=3M,scale=1/5",
    "horovod:model=resnet50,scale=1/11",
    "zero:model=mlp",
    "zero:model=resnet50,scale=1/30",
    "fsdp:model=mlp",
    "fsdp:model=gpt2-124m,scale=1/100",
    "tensor:dtype=float32,layers=2,scale=1/7",
    "tensor:dtype=float32,layers=2,sequence=on,scale=1/7",
    "ulysses:dtype=float32,layers=2,scale=1/7",
    "decode:dtype=float32,layers=4,batch=3",
    "moe:tokens=13",
    "moe:tokens=13,traffic=zipf",
    "kmeans",
    "kmeans:clusters=17,features=19",
    "knn:features=100",
    "pca:features=100",
    "matmul:side=300",
    "ring:model=mlp",
    "context:dtype=float32,layers=2,scale=1/7",
    "pipeline:dtype=float32,layers=4,scale=1/7",
)
AT_FOUR = ("fsdp:model=mlp,shard=2,replica=2", "tensor:dtype=float32,tp=2,layers=2,scale=1/7")
"""With groups of ranks, which two ranks cannot have."""
FEW = ("ddp:model=mlp", "knn:features=100", "ring:model=mlp")


@dataclass(frozen=True, slots=True)
class Error:
    """One prediction beside its measurement."""

    what: str
    ratio: float
    """Predicted over measured."""

    @property
    def size(self) -> float:
        """How far off, relative: twice as long and half as long are both 1."""
        return max(self.ratio, 1 / self.ratio) - 1


def suite(caches: Sequence[str], workloads: Sequence[str], seconds: float, few: bool) -> str:
    """The sweeps and steps of one backend and number of ranks, as a suite."""
    sizes = FEW_SIZES if few else SIZES
    reductions, others = (REDUCTIONS[:1], ("bcast", "gather")) if few else (REDUCTIONS, OTHERS)
    lines = [
        'name = "predict"',
        'description = "sweeps, and steps that they predict"',
        "[defaults]",
        f'time-limit = "{seconds:g}s"',
    ]
    for cache in caches:
        for names, more in ((reductions, ['type = "float32"']), (others, [])):
            lines += [
                "[[entry]]",
                f"benchmarks = {list(names)}",
                f'message-size = "{sizes}"',
                f'cache = "{cache}"',
                *more,
            ]
    lines += ["[[entry]]", 'benchmarks = ["step"]', f"workload = {list(workloads)}"]
    return "\n".join(lines).replace("'", '"') + "\n"


def power_of_two(size: int) -> bool:
    return size & (size - 1) == 0


def held_out(workload: str, ranks: int) -> set[str]:
    """The rows of the table of calls of which no size is one of the sweeps'."""
    found: dict[str, bool] = {}
    for ask in (ask for own in asks(parse_workload(workload), ranks) for ask in own):
        sizes = [m.nbytes for m in (*ask.sends, *ask.receives)] if ask.benchmark == MESSAGES else [ask.size_bytes]
        found[ask.row] = found.get(ask.row, True) and not any(map(power_of_two, sizes))
    return {row for row, apart in found.items() if apart}


def errors_of(one: Forecast) -> tuple[list[Error], list[Error]]:
    """(of its rows of calls whose sizes are held out, of the whole step where all are)."""
    rows, calls, steps = held_out(one.workload, int(one.side["ranks"])), [], []
    *lines, whole = put_beside(one.prediction, one.times)
    for line in lines:
        if line.what in rows and line.predicted_us and line.measured_us:
            calls.append(Error(f"{one.workload}: {line.what}", line.predicted_us / line.measured_us))
    if len(calls) == len(rows) == len(lines) and whole.predicted_us and whole.measured_us:
        steps.append(Error(one.workload, whole.predicted_us / whole.measured_us))
    return calls, steps


def percentile(values: Iterable[float], p: float) -> float:
    """The smallest value that at least a share `p` of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(p * len(ranked)) - 1)]


def distribution(errors: Sequence[Error]) -> str:
    """``n 40, median 9 %, p90 35 %, worst 80 % (ddp: …), bias -3 %``."""
    if not errors:
        return "n 0"
    sizes = [e.size for e in errors]
    worst = max(errors, key=lambda e: e.size)
    bias = math.exp(median(math.log(e.ratio) for e in errors)) - 1
    return (
        f"n {len(errors)}, median {100 * median(sizes):.0f} %, p90 {100 * percentile(sizes, 0.9):.0f} %, "
        f"worst {100 * worst.size:.0f} % ({worst.what}), bias {100 * bias:+.0f} %"
    )


def explained(
    hot: Sequence[Error], cold: Sequence[Error], metrics: Sequence[Mapping[str, float]], ranks: int, cores: int
) -> str:
    """What of the error comes from where, as far as the numbers show it."""
    words = []
    if hot and cold:
        warm, chilled = (median(e.size for e in errors) for errors in (hot, cold))
        better = "explain a part of it" if chilled < 0.8 * warm else "do not explain it"
        words.append(
            f"cold caches {better} (median {100 * warm:.0f} % from hot curves, {100 * chilled:.0f} % from cold ones)"
        )
    shares = [m["flight_us"] / m["serial_us"] for m in metrics if m.get("serial_us")]
    if shares:
        words.append(f"all in flight takes {100 * median(shares):.0f} % of one by one (overlap is not predicted)")
    words.append(
        f"{ranks} ranks on {cores} cores: "
        + ("oversubscribed, calls wait for ranks that are not running" if ranks > cores else "not oversubscribed")
    )
    return "; ".join(words)


def measure(store: Path, backend: str, ranks: int, seconds: float, few: bool, messages: bool, launches: int) -> bool:
    """Make the sweeps and steps, and sweeps of `messages`, which are between two ranks always; whether that worked."""
    workloads = FEW if few else (*WORKLOADS, *(AT_FOUR if ranks >= 4 else ()))
    python = [sys.executable, "-m", "omb_py"]
    kept = ["--backend", backend, "--store", str(store), "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "predict.toml"
        file.write_text(suite(("hot",) if few else ("hot", "rotate"), workloads, seconds, few))
        lines = [[*python, "run", str(file), "-n", str(ranks), "--launches", str(launches), *kept]]
        for cache in () if not messages else ("hot",) if few else ("hot", "rotate"):
            sizes = FEW_SIZES if few else SIZES
            lines.append(
                [*python, "latency", "-n", "2", "-m", sizes, "--cache", cache, "--time-limit", f"{seconds:g}s", *kept]
            )
        for words in lines:
            done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                print(f"exit code {done.returncode}: {' '.join(words)}\n{done.stderr}", flush=True)
                return False
    return True


def floors_of(forecasts: Sequence[Forecast]) -> list[float]:
    """How far launches of the same step differ, for each row of calls whose sizes are held out."""
    named = [(one, held_out(one.workload, int(one.side["ranks"]))) for one in forecasts]
    floors = [one.times[row].floor for one, rows in named for row in sorted(rows) if row in one.times]
    return [floor for floor in floors if floor is not None]


def judged(store: Path, backend: str, ranks: int) -> bool:
    """Print the distributions; whether there is a prediction of any step."""
    steps = [row for row in steps_of(store, {"backend": backend}) if row["ranks"] == ranks]
    texts = dict.fromkeys(str(dict(row["parameters"])["workload"]) for row in steps)
    told: dict[str, tuple[list[Error], list[Error]]] = {}
    metrics: list[Mapping[str, float]] = []
    for cache in ("hot", "rotate"):
        rows: list[dict[str, Any]] = sweeps(store, {"backend": backend, "cache": cache})
        every = [one for text in texts for one in forecasts(parse_workload(text), ranks, rows, steps)]
        made = [one for one in every if one.times]
        pairs = [errors_of(one) for one in made]
        told[cache] = [e for calls, _ in pairs for e in calls], [e for _, whole in pairs for e in whole]
        metrics = [one.metrics for one in made]
        for gap in dict.fromkeys(gap for one in made for gap in one.prediction.missing if cache == "hot"):
            print(f"  not predicted: {gap.benchmark} at {gap.ranks} ranks: {gap.why}")
    floors = floors_of(made)
    (hot, whole), (cold, cold_whole) = told["hot"], told["rotate"]
    print(f"{backend}, {ranks} ranks, calls, hot curves:  {distribution(hot)}")
    print(f"{backend}, {ranks} ranks, calls, cold curves: {distribution(cold)}")
    print(f"{backend}, {ranks} ranks, steps, hot curves:  {distribution(whole)}")
    print(f"{backend}, {ranks} ranks, steps, cold curves: {distribution(cold_whole)}")
    if floors:
        print(
            f"{backend}, {ranks} ranks, launches differ by {100 * median(floors):.0f} % (median of {len(floors)} calls)"
        )
    print(f"  why: {explained(hot, cold, metrics, ranks, len(os.sched_getaffinity(0)))}", flush=True)
    return bool(hot)


def main(words: list[str] | None = None) -> int:
    """Measure, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--backend", default="gloo,mpi")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--seconds", type=float, default=0.12, help="longest time of a cell")
    parser.add_argument("--launches", type=int, default=5, help="of each backend and number of ranks")
    parser.add_argument("--few", action="store_true", help="three workloads, small sizes: to see whether it runs")
    args = parser.parse_args(words)
    fine, kept = True, nullcontext(str(args.store)) if args.store else tempfile.TemporaryDirectory()
    with watched(5 if args.few else 60), kept as folder:
        for backend in args.backend.split(","):
            for number, ranks in enumerate(map(int, args.ranks.split(","))):
                done = measure(Path(folder), backend, ranks, args.seconds, args.few, not number, args.launches)
                fine = done and judged(Path(folder), backend, ranks) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
