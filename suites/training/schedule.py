"""What a training says while it runs: what is done, how long a step takes, and when it will end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from omb_py.engine.program.benchmark import Sampling
from omb_py.grammar.values import duration_text
from omb_py.suites.training.settings import Training

_SOON_S: Final = 10.0
"""What ends within this time needs no word of when."""
AGAIN_S: Final = 60.0
"""Seconds after which it is said again how far the training is."""


@dataclass(slots=True)
class TrainingSchedule:
    """The steps of a training, each done by all ranks together and by each alone."""

    training: Training
    sampling: Sampling
    clock: Callable[[], float] = time.time
    done: int = 0
    _said: float = 0.0
    _took: list[float] = field(default_factory=list)
    """Seconds of each step of both kinds."""

    @property
    def steps(self) -> int:
        return self.sampling.warmup + self.sampling.iterations * int(self.training["steps"])

    def begin_text(self, parameters: int) -> str:
        """Say what is done, before the first step."""
        model, sampling = self.training.model, self.sampling
        return (
            f"train: {model}, {parameters:,} parameters, {_count(self.training['batch'], 'sample')} per rank and step: "
            f"{_count(sampling.warmup, 'step')} to warm up, then {sampling.iterations} × "
            f"{_count(self.training['steps'], 'step')}, each once together and once on every rank alone, without "
            "communication; the first shows when it ends"
        )

    def count(self, seconds: float) -> str:
        """Count a step that took so long together and alone. Say when the last one will end, if that is due."""
        self.done += 1
        self._took.append(seconds)
        left = self._estimate_left_s()
        now = self.clock()
        if left < _SOON_S or (self.done > 1 and now - self._said < AGAIN_S):
            return ""
        self._said = now
        until = time.strftime("%H:%M", time.localtime(now + left))
        took = f"{seconds:.2g} s" if seconds < _SOON_S else duration_text(seconds)
        smaller = "--batch 2, or " if self.training["batch"] > 2 else ""
        sooner = f"; for a shorter run: {smaller}-x 1 -i 2 --steps 2" if self.done == 1 else ""
        return (
            f"train: step {self.done} of {self.steps} took {took}, together and alone: "
            f"about {duration_text(left)} left, until {until}{sooner}"
        )

    def _estimate_left_s(self) -> float:
        usual = self._took[1:] or self._took  # the first step also prepares
        step = sum(usual) / len(usual)
        warming = max(0, self.sampling.warmup - self.done)
        timed = (self.steps - self.done - warming) * step
        if self.sampling.time_limit is not None:  # no iteration begins after it
            spent = sum(self._took[self.sampling.warmup :])
            timed = min(timed, max(0.0, self.sampling.time_limit - spent) + int(self.training["steps"]) * step)
        return warming * step + timed


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
