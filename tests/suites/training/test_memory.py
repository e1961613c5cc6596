"""A training that cannot fit is refused before it takes memory, and a lack of it later is one line."""

from __future__ import annotations

import pytest

from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem
from omb_py.suites.training import memory
from omb_py.suites.training.settings import parse_training


@pytest.fixture
def session() -> Session:
    session = Session.__new__(Session)
    session.size, session.local, session.hosts = 3, (1,), ("a", "b", "b")
    return session


@pytest.mark.parametrize(
    ("text", "floats"),
    [
        ("mlp:batch=10", 4 * 669_706 + 10 * 784),
        ("mlp:batch=10,parallel=fsdp", 3 * 669_706 + 10 * 784),
        ("resnet50:batch=2,image=100", 4 * 25_557_032 + 2 * 3 * 100 * 100),
        ("gpt2-124m:seq=8,layers=1", 4 * 46_473_216 + 8 * 50257),
    ],
)
def test_the_least_that_a_rank_takes(text: str, floats: int) -> None:
    assert memory.least_bytes(parse_training(text)) == 4 * floats


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mlp:batch=1000000000000", "mlp: 2 ranks on b need .* GB at the least, and 8.0 are free: use .* --batch"),
        ("resnet50:image=100000", "a smaller --batch or --image"),
        ("gpt2-124m:layers=10000", "a smaller --batch or --seq or --layers"),
    ],
)
def test_what_cannot_fit_is_refused(text: str, said: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 8_000_000_000)
    memory.check_memory(session, parse_training("gpt2-124m"))
    with pytest.raises(EnvironmentProblem, match=said):
        memory.check_memory(session, parse_training(text))


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: …")])
def test_a_lack_of_memory_within_a_step_says_what_to_do(error: Exception) -> None:
    with (
        pytest.raises(EnvironmentProblem, match="mlp: a step needs more memory: use fewer ranks, or a smaller --batch"),
        memory.name_lack_of_memory(parse_training("mlp")),
    ):
        raise error


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="another"), memory.name_lack_of_memory(parse_training("mlp")):
        raise RuntimeError("another")
