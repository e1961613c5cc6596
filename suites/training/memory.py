"""Whether a training fits the memory of a host, said before it takes it. Nothing here loads PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omb_py.engine.measuring.host_memory import available_bytes
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem
from omb_py.suites.training.frameworks import find_framework
from omb_py.suites.training.settings import GPT2, MODELS, Training, model_of
from omb_py.suites.workloads.models import MLP, model, transformer

_FLOAT: Final = 4
_SIGNS: Final = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What PyTorch says of a lack of memory, on GPU and CPU."""


def least_bytes(training: Training) -> int:
    """Memory that a rank takes at the least: two models, their gradients, and the largest tensor of a batch.

    One model is that of all ranks; if it is divided, its gradients are not counted.
    """
    whole = training["parallel"] in find_framework(training["framework"]).whole
    parameters = model(model_of(training)).parameters
    if training.model == GPT2:
        sample = training["seq"] * transformer(GPT2).vocabulary
    else:
        sample = 3 * training["image"] ** 2 if "image" in training.values else MLP[0]
    return int(_FLOAT * ((4 if whole else 3) * parameters + training["batch"] * sample))


def check_memory(session: Session, training: Training) -> None:
    """Raises EnvironmentProblem, on all ranks alike, if a host has less memory than its ranks need at the least."""
    here = session.hosts[min(session.local)]
    ranks, free = session.hosts.count(here), available_bytes()
    needed = ranks * least_bytes(training)
    own = ""
    if needed > free:
        own = f"{_ranks(ranks)} on {here} need {needed / 1e9:,.1f} GB at the least, and {free / 1e9:,.1f} are free"
    text = session.share(next(filter(None, session.gather(own)), ""))
    if text:
        raise EnvironmentProblem(f"{training.model}: {text}: {_smaller(training)}")


def _ranks(count: int) -> str:
    return f"{count} rank{'s' if count > 1 else ''}"


def _smaller(training: Training) -> str:
    keys = [key for key in ("batch", "image", "seq", "layers") if key in MODELS[training.model]]
    return f"use fewer ranks, or a smaller {' or '.join(f'--{key}' for key in keys)}"


@contextmanager
def name_lack_of_memory(training: Training) -> Iterator[None]:
    """A context in which PyTorch's errors of a lack of memory become an EnvironmentProblem that says what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(sign in str(error).lower() for sign in _SIGNS):
            raise
        raise EnvironmentProblem(f"{training.model}: a step needs more memory: {_smaller(training)}") from None
