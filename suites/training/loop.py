"""The timed loop of a training: steps over all ranks, and steps of the same model without communication, in turn.

Loads PyTorch. What is measured and why: docs/decisions/0026-share-of-communication.md.
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

from omb_py.engine.measuring.measure import Measured, Phase
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
        """One step of training; the loss before it."""
        self.optimiser.zero_grad()
        loss: Any = functional.cross_entropy(self.net(self.input), self.wanted)
        loss.backward()
        self.optimiser.step()
        return loss.detach()


class Trainer:
    """The model over all ranks, and its copy on this rank alone. Also what the watchdog asks for its position."""

    labels = ("a step of training", "a step without communication", "a step that is traced")

    def __init__(self, session: Session, what: Training) -> None:
        self.session, self.what = session, what
        self.device = device_of(what)
        generator = torch.Generator().manual_seed(session.local[0])  # other data on each rank, as in training
        batch: Any = tuple(part.to(self.device) for part in batch_of(what, generator))
        nets = []
        for _ in (STEP, ALONE):
            torch.manual_seed(0)
            nets.append(build(what).to(self.device))
        self.parameters = sum(p.numel() for p in nets[0].parameters())
        together = spread(nets[0], what, self.device, group_of(what))
        self.models = {STEP: Model(together, batch), ALONE: Model(nets[1], batch)}
        self.losses: list[float] = []
        self._at = (0, 0)

    def position(self) -> tuple[int, int]:
        """(step, which of `labels`)."""
        return self._at

    def timed(self, lap: str, number: int) -> int:
        """Nanoseconds of a step, begun together."""
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
        """A step together and one alone; which comes first changes from pair to pair."""
        laps = (STEP, ALONE) if number % 2 == 0 else (ALONE, STEP)
        return {lap: self.timed(lap, number) for lap in laps}

    def traced(self, file: Path) -> None:
        """Record a step: a Kineto trace of rank 0. Raises EnvironmentProblem where it cannot be written."""
        from torch.profiler import ProfilerActivity, profile

        self.timed(STEP, 0)  # buckets of the first step are others
        self._at = 0, 2
        self.session.barrier()
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells of its own start and stop
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
        """Whether all ranks hold the same parameters; None where each holds its part."""
        if self.what["parallel"] != "ddp":
            return None
        held = hashlib.blake2b()
        for parameter in self.models[STEP].net.parameters():
            held.update(parameter.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        found = self.session.gather(held.hexdigest())
        return bool(self.session.share(len(set(found)) == 1 and bool(np.isfinite(self.losses).all())))

    def close(self) -> None:
        """Let go of everything that refers to a process group."""
        self.models.clear()


def train(session: Session, cell: Cell, phase: Phase) -> Measured:
    """Train, and time each step.

    Args:
        session: of a backend with a process group of PyTorch, one rank a process.
        cell: `workload` says what is trained; `iterations` of so many steps are timed after `warmup` steps.
        phase: told what is being done.

    Returns:
        Laps ``step`` and ``alone`` in µs, a sample a step; complete where rank 0 is.

    Raises:
        EnvironmentProblem: no GPU, no such process group, a trace that cannot be written.
    """
    what = parse_training(cell.workload)
    held = Trainer(session, what)
    session.watch(held)
    phase("loop")
    started = time.monotonic()
    for number in range(-cell.warmup, 0):
        held.pair(number)
    taken: list[dict[str, int]] = []
    began, stop = time.monotonic(), "fixed"
    for number in range(cell.iterations):
        taken += [held.pair(number * what["steps"] + j) for j in range(what["steps"])]
        late = cell.time_limit is not None and time.monotonic() - began >= cell.time_limit
        if number + 1 < cell.iterations and session.share(late):
            stop = "time"
            break
    phase("write")
    shown = replace(cell, workload=what.shown, backend=what["backend"], device=held.device.type)
    version = hashlib.sha256(f"{what.shown};threads={torch.get_num_threads()}".encode()).hexdigest()[:16]
    result = Measured(shown, len(taken), stop, version, marks=library_of(what))
    _reduced(session, taken, result)
    result.extra = _numbers(result, held)
    result.validated = held.same_everywhere()
    result.wrong_bytes = None if result.validated is None else int(not result.validated)
    if what["trace"]:
        phase("loop")
        held.traced(Path(what["trace"]))
    held.close()
    result.elapsed_s = time.monotonic() - started
    return result


def _reduced(session: Session, taken: list[dict[str, int]], result: Measured) -> None:
    """The two series of each lap, the ranks' means, and how often each rank was the slowest."""
    for lap in (STEP, ALONE):
        mine = np.array([pair[lap] / 1000 for pair in taken])
        slowest, whole = session.maximum(mine), session.total(mine)
        result.series[lap] = {"max": slowest, "avg": whole / session.size}
        told = sorted(session.gather((session.local[0], float(mine.mean()), float((mine >= slowest).mean()))))
        result.laps[lap] = [mean for _, mean, _ in told]
        if lap == STEP:
            result.slowest_rank_share = [share for _, _, share in told]


def _numbers(result: Measured, held: Trainer) -> dict[str, Any]:
    """What a step takes beyond one without communication (µs, %), and what was trained."""
    together, alone = result.series[STEP]["max"], result.series[ALONE]["max"]
    beyond = together - alone
    spread_ = float(beyond.std(ddof=1)) if len(beyond) > 1 else 0.0
    return {
        "alone_us": float(alone.mean()),
        "exposed_us": float(beyond.mean()),
        "exposed_half_us": 1.96 * spread_ / len(beyond) ** 0.5,
        "share_pct": float(beyond.mean() / together.mean() * 100),
        "steps": float(held.what["steps"]),
        "parameters": float(held.parameters),
        "loss_first": held.losses[0],
        "loss_last": held.losses[-1],
    }
