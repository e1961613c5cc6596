"""What a training says of its length, from steps that took a known time."""

from __future__ import annotations

import time

import pytest

from omb_py.engine.program.benchmark import Sampling
from omb_py.suites.training.schedule import AGAIN_S, TrainingSchedule
from omb_py.suites.training.settings import parse_training

NOON = time.mktime((2026, 1, 1, 12, 0, 0, 0, 1, -1))  # also where it is summer then


class Timed:
    """A schedule whose clock goes by the steps that are counted."""

    def __init__(self, text: str, sampling: Sampling) -> None:
        self.now = NOON
        self.schedule = TrainingSchedule(parse_training(text), sampling, lambda: self.now)

    def count(self, seconds: float) -> str:
        self.now += seconds
        return self.schedule.count(seconds)


def test_a_long_training_says_at_once_what_it_does_and_when_it_ends() -> None:
    timed = Timed("resnet50", Sampling(10, False, 10))
    assert timed.schedule.begin_text(25_557_032) == (
        "train: resnet50, 25,557,032 parameters, 32 samples per rank and step: 10 steps to warm up, then 10 × 10 "
        "steps, each once together and once on every rank alone, without communication; the first shows when it ends"
    )
    assert timed.count(40) == (
        "train: step 1 of 110 took 40 s, together and alone: about 1 h 13 min left, until 13:13; for a shorter "
        "run: --batch 2, or -x 1 -i 2 --steps 2"
    )
    assert [timed.count(30), timed.count(29)] == ["", ""], "it is not said again at every step"
    said = timed.count(AGAIN_S)
    assert said.startswith("train: step 4 of 110 took 1 min, together and alone: about 1 h 10 min left")
    assert "shorter" not in said


def test_a_short_training_says_nothing_of_its_end() -> None:
    timed = Timed("mlp:batch=2", Sampling(10, False, 10))
    assert {timed.count(0.05) for _ in range(110)} == {""}


def test_the_last_step_ends_it() -> None:
    timed = Timed("gpt2-124m:steps=1", Sampling(2, False, 0))
    assert timed.count(11) == (
        "train: step 1 of 2 took 11 s, together and alone: about 11 s left, until 12:00; for a shorter run: "
        "-x 1 -i 2 --steps 2"
    )
    assert timed.count(100) == ""


@pytest.mark.parametrize(("limit", "left"), [(None, "33 min"), (60.0, "4 min 20 s"), (1e6, "33 min")])
def test_a_limit_of_time_ends_it_sooner(limit: float | None, left: str) -> None:
    """The only warm-up is done. An iteration that has begun when the limit is reached is ended: 10 steps of 20 s."""
    timed = Timed("resnet50", Sampling(10, False, 1, time_limit=limit))
    assert f"about {left} left" in timed.count(20)
