"""The timed loop of a training: steps over all ranks alternate with steps of the same model without communication.

Loads PyTorch. The reasons are in docs/workloads/training.md.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from omb_py.engine.measuring.cell_result import CellResult, LapSeries
from omb_py.engine.measuring.measure import Phase
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem
from omb_py.suites.training.models import batch_of, build
from omb_py.suites.training.parallel import device_of, group_of, library_of, spread
from omb_py.suites.training.settings import Training, parse_training

RATE = 0.01
"""Learning rate of plain SGD, as in Horovod's synthetic benchmark."""
STEP, ALONE = "step", "alone"
"""Laps: a step of all ranks together; the same on a copy that each rank trains alone."""


class Model:
    """A model, its optimiser and its batch."""

    def __init__(self, net: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.net, (self.input, self.wanted) = net, batch
        self.optimiser = torch.optim.SGD(net.parameters(), lr=RATE)

    def step(self) -> Any:
        """Train one step and return the loss before it."""
        self.optimiser.zero_grad()
        loss: Any = functional.cross_entropy(self.net(self.input), self.wanted)
        loss.backward()
        self.optimiser.step()
        return loss.detach()


class Trainer:
    """The model over all ranks, and its copy on this rank alone. The watchdog asks it for its position."""

    labels = ("a step of training", "a step without communication", "a step that is traced")

    def __init__(self, session: Session, training: Training) -> None:
        self.session, self.training = session, training
        self.device = device_of(training)
        generator = torch.Generator().manual_seed(session.local[0])  # other data on each rank, as in training
        batch: Any = tuple(part.to(self.device) for part in batch_of(training, generator))
        nets = []
        for _ in (STEP, ALONE):
            torch.manual_seed(0)  # both models, on all ranks, start with the same parameters
            nets.append(build(training).to(self.device))
        self.parameters = sum(p.numel() for p in nets[0].parameters())
        together = spread(nets[0], training, self.device, group_of(training))
        self.models = {STEP: Model(together, batch), ALONE: Model(nets[1], batch)}
        self.losses: list[float] = []
        self._at = (0, 0)

    def position(self) -> tuple[int, int]:
        """(step, which of `labels`)."""
        return self._at

    def timed(self, lap: str, number: int) -> int:
        """Train one step, which all ranks begin together; its time in ns."""
        self._at = number, int(lap == ALONE)
        self._ready()
        self.session.barrier()
        began = time.perf_counter_ns()
        with self.session.guard():
            loss = self.models[lap].step()
        self._ready()
        took = time.perf_counter_ns() - began
        if lap == STEP:
            self.losses.append(float(loss))
        return took

    def _ready(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def pair(self, number: int) -> dict[str, int]:
        """Train a step together and a step alone, in an order that alternates; the time of each lap in ns."""
        laps = (STEP, ALONE) if number % 2 == 0 else (ALONE, STEP)
        return {lap: self.timed(lap, number) for lap in laps}

    def traced(self, file: Path) -> None:
        """Record a Kineto trace of one step on rank 0. Raises EnvironmentProblem if it cannot be written."""
        from torch.profiler import ProfilerActivity, profile

        self.timed(STEP, 0)  # DDP rebuilds its buckets after the first step
        self._at = 0, 2
        self.session.barrier()
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else Kineto prints when it starts and stops
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.device.type == "cuda" else [])]
        with self.session.guard():
            if 0 not in self.session.local:
                self.models[STEP].step()
                return
            with profile(activities=kinds, record_shapes=True) as recorded:
                self.models[STEP].step()
                self._ready()
        try:
            file.touch()
        except OSError as error:
            raise EnvironmentProblem(f"trace {file} cannot be written: {error.strerror}") from None
        recorded.export_chrome_trace(str(file))

    def same_everywhere(self) -> bool | None:
        """Whether all ranks hold the same parameters and all losses are finite; None if each rank holds a part."""
        if self.training["parallel"] != "ddp":
            return None
        parameters = hashlib.blake2b()
        for parameter in self.models[STEP].net.parameters():
            parameters.update(parameter.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        hashes = self.session.gather(parameters.hexdigest())
        return bool(self.session.share(len(set(hashes)) == 1 and bool(np.isfinite(self.losses).all())))

    def close(self) -> None:
        """Drop everything that refers to a process group."""
        self.models.clear()


def train(session: Session, cell: Cell, phase: Phase) -> CellResult:
    """Train, and time each step.

    Args:
        session: a session of a backend with a process group of PyTorch, with one rank a process.
        cell: `workload` names the model and its settings; `iterations` are timed after `warmup` steps.
        phase: called with the name of each phase.

    Returns:
        Laps ``step`` and ``alone`` in µs, a sample a step; complete on rank 0.

    Raises:
        EnvironmentProblem: no GPU, no such process group, or a trace that cannot be written.
    """
    training = parse_training(cell.options.workload)
    trainer = Trainer(session, training)
    session.watch(trainer)
    phase("loop")
    for number in range(-cell.sampling.warmup, 0):
        trainer.pair(number)
    pairs: list[dict[str, int]] = []
    began, stop = time.monotonic(), "fixed"
    for number in range(cell.sampling.iterations):
        pairs += [trainer.pair(number * training["steps"] + j) for j in range(training["steps"])]
        late = cell.sampling.time_limit is not None and time.monotonic() - began >= cell.sampling.time_limit
        if number + 1 < cell.sampling.iterations and session.share(late):
            stop = "time"
            break
    phase("write")
    shown = replace(cell.with_options(workload=training.shown), backend=training["backend"], device=trainer.device.type)
    version = hashlib.sha256(f"{training.shown};threads={torch.get_num_threads()}".encode()).hexdigest()[:16]
    result = CellResult(shown, len(pairs), stop, version, marks=library_of(training))
    _add_laps(session, pairs, result)
    result.extra = _numbers(result, trainer)
    result.validated = trainer.same_everywhere()
    result.wrong_bytes = None if result.validated is None else int(not result.validated)
    if training["trace"]:
        phase("loop")
        trainer.traced(Path(training["trace"]))
    trainer.close()
    return result


def _add_laps(session: Session, pairs: list[dict[str, int]], result: CellResult) -> None:
    """Add the two series of each lap, the ranks' means, and how often each rank was the slowest."""
    for lap in (STEP, ALONE):
        own = np.array([pair[lap] / 1000 for pair in pairs])
        slowest, whole = session.maximum(own), session.total(own)
        result.series[lap] = LapSeries(max=slowest, avg=whole / session.size)
        ranks = sorted(session.gather((session.local[0], float(own.mean()), float((own >= slowest).mean()))))
        result.laps[lap] = [mean for _, mean, _ in ranks]
        if lap == STEP:
            result.slowest_rank_share = [share for _, _, share in ranks]


def _numbers(result: CellResult, trainer: Trainer) -> dict[str, Any]:
    """Values of the row: the time of a step beyond one without communication (µs, %), model and losses."""
    together, alone = result.series[STEP]["max"], result.series[ALONE]["max"]
    beyond = together - alone
    deviation = float(beyond.std(ddof=1)) if len(beyond) > 1 else 0.0
    return {
        "alone_us": float(alone.mean()),
        "exposed_us": float(beyond.mean()),
        "exposed_half_us": 1.96 * deviation / len(beyond) ** 0.5,
        "share_pct": float(beyond.mean() / together.mean() * 100),
        "steps": float(trainer.training["steps"]),
        "parameters": float(trainer.parameters),
        "loss_first": trainer.losses[0],
        "loss_last": trainer.losses[-1],
    }
