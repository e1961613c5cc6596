"""Horovod's pytorch_synthetic_benchmark: the text of a training, and the share of communication in its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omb_py.results.dialects.dialect import Dialect, TextOptions, Transcript
from omb_py.results.store.row import Row
from omb_py.results.store.schema import stored_floats
from omb_py.results.units import counted

if TYPE_CHECKING:
    from omb_py.results.dialects.reading import TextReader


class Horovod(Dialect):
    """The text of Horovod's synthetic benchmarks; of ours only trainings have it."""

    name = "horovod"
    title = "Horovod"
    for_all = exports = False

    def transcript(self) -> Transcript:
        return HorovodTranscript()

    def readers(self) -> Sequence[TextReader]:
        """One for all its frameworks, which print the same."""
        from omb_py.results.dialects.training_log import HorovodText

        return (HorovodText(),)


class HorovodTranscript(Transcript):
    """The texts of trainings."""

    def row(self, row: Row, options: TextOptions) -> str:
        return horovod_text(row)


SPREAD = 1.96
"""Horovod prints this many standard deviations of the iterations' rates."""
SAMPLES = {"gpt2-124m": "seq"}
"""Name of a sample, by model; other models have images."""


def rates(samples_us: Sequence[float], steps: int, batch: int) -> list[float]:
    """Samples per second of one device, for each iteration of `steps` steps of `batch` samples.

    >>> rates([1e6, 3e6, 5e5, 5e5], 2, 4)
    [2.0, 8.0]
    """
    import numpy as np

    times = np.asarray(samples_us, np.float64).reshape(-1, steps).sum(axis=1)
    return [float(rate) for rate in batch * steps / times * 1e6]


def settings_of(row: Row) -> dict[str, str]:
    """The trained ``model`` and its settings, by name."""
    model, _, rest = dict(row["parameters"])["workload"].partition(":")
    return {"model": model, **dict(pair.split("=", 1) for pair in rest.split(",") if pair)}


def horovod_text(row: Row) -> str:
    """The lines of a row of benchmark ``train``, each with a line end.

    The time of a step is that of the slowest rank. The lines about communication and validation are omb-py's own.
    """
    import numpy as np

    settings, metrics, ranks = settings_of(row), dict(row["metrics"]), int(row["ranks"])
    device = "CPU" if row["device"] == "cpu" else "GPU"
    sample, batch = SAMPLES.get(settings["model"], "img"), int(settings["batch"])
    iteration_rates = rates(stored_floats(row["samples_us"]), int(metrics["steps"]), batch)
    mean, spread = float(np.mean(iteration_rates)), SPREAD * float(np.std(iteration_rates))
    lines = [
        f"Model: {settings['model']}",
        f"Batch size: {batch}",
        f"Number of {device}s: {ranks}",
        "Running warmup...",
        "Running benchmark...",
        *(f"Iter #{number}: {rate:.1f} {sample}/sec per {device}" for number, rate in enumerate(iteration_rates)),
        f"{sample.capitalize()}/sec per {device}: {mean:.1f} +-{spread:.1f}",
        f"Total {sample}/sec on {ranks} {device}(s): {ranks * mean:.1f} +-{ranks * spread:.1f}",
        communication(row),
        *calls_line(dict(row["metrics"])),
    ]
    if row["validated"] is False:
        lines.append("Ranks differ: they do not hold the same finite parameters after training: Fail")
    return "".join(f"{line}\n" for line in lines)


def calls_line(metrics: Mapping[str, float]) -> list[str]:
    """The line about the calls of a step, counted and predicted by the workload; none where nothing was counted."""
    if "calls" not in metrics:
        return []
    predicted = f"{metrics['predicted_calls']:.0f}, {metrics['predicted_payload']:.0f} B"
    beside = "as its workload predicts" if metrics["as_predicted"] else f"where its workload predicts {predicted}"
    calls = f"{counted(int(metrics['calls']), 'communication call')} of rank 0, {metrics['payload']:.0f} B"
    return [f"A step: {calls}, {beside}"]


def communication(row: Row) -> str:
    """The line about communication: the share of a step beyond the same step on one rank alone, in per cent.

    A rank that has no other communicates with nobody: what it takes beyond is the framework's own work.
    """
    metrics = dict(row["metrics"])
    step, exposed, half = float(row["mean_us"]), metrics["exposed_us"], metrics.get("exposed_half_us")
    # of a single step nothing says how far it is off
    spread = "" if half is None or len(row["samples_us"]) < 2 else f" +-{half / step * 100:.1f}"
    share = f"{exposed / step * 100:.1f}{spread} %"
    name, what = ("Exposed communication", "communication") if row["ranks"] > 1 else ("Overhead", "the framework")
    return f"{name}: {share} of a step: {step / 1000:.2f} ms with {what}, {metrics['alone_us'] / 1000:.2f} ms without"
