"""The difference of what a library counts, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import find
from omb_py.engine.observers.counters import LibraryCounters, counts_text
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from tests.support.planning import check
from tests.support.planted_knobs import open_mpi


class Counting(Session):
    """Rank 0 of two: each reading finds the numbers of `readings` on this rank, and a third of them on the other."""

    backend, size, local, hosts = "mpi", 2, (0,), ("a", "a")

    def __init__(self, *readings: float) -> None:
        self.readings, self.asked = list(readings), []

    def counted(self, names: Sequence[str]) -> Mapping[str, float]:
        self.asked.append(tuple(names))
        value = self.readings.pop(0)
        return {name: value * place for place, name in enumerate(names, 1)}

    def gather(self, value: Any) -> list[Any]:
        return [value, {name: part / 3 for name, part in value.items()}]


def test_the_difference_is_that_of_two_readings_over_the_ranks() -> None:
    session = Counting(100, 109)
    difference = LibraryCounters(session, "sent,late")  # type: ignore[arg-type]
    difference.start()
    assert difference.stop(1) == {
        "pvar.sent": 12,
        "pvar.sent.min": 3,
        "pvar.sent.max": 9,
        "pvar.late": 24,
        "pvar.late.min": 6,
        "pvar.late.max": 18,
    }
    assert session.asked == [("sent", "late")] * 2


def test_other_processes_than_that_of_rank_0_have_nothing_to_say() -> None:
    session = Counting(1, 2)
    session.gather = lambda value: []  # type: ignore[method-assign]
    difference = LibraryCounters(session, "sent")  # type: ignore[arg-type]
    difference.start()
    assert difference.stop(1) == {}


def test_a_session_of_another_backend_counts_nothing() -> None:
    with pytest.raises(EnvironmentProblem, match="backend mpi counts nothing: leave --pvar out"):
        Session.counted(Counting(), ("sent",))


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Capabilities]:
    mpi = find("mpi").capabilities
    monkeypatch.setattr(type(mpi), "knobs", lambda self: open_mpi())
    return {"mpi": mpi, "mock": find("mock").capabilities}


def test_names_are_those_that_the_library_lists(offers: dict[str, Capabilities]) -> None:
    known = "pml_monitoring_messages_count"
    assert check(Request("allreduce", pvars=known), offers).request.observers == {"pvars": known}
    with pytest.raises(UsageError, match=r"unknown performance variable 'pml_messages_count': did you mean pml_moni"):
        check(Request("allreduce", pvars=f"{known},pml_messages_count"), offers)


def test_a_backend_that_counts_nothing_is_named(offers: dict[str, Capabilities]) -> None:
    with pytest.raises(EnvironmentProblem, match="backend mock counts nothing that can be read: leave --pvar out"):
        check(Request("allreduce", backends=("mock",), pvars="sent"), offers)


def test_a_benchmark_without_a_loop_refuses_it(offers: dict[str, Capabilities]) -> None:
    with pytest.raises(UsageError, match="init has no timed loop in which the library could count"):
        check(Request("init", backends=("mock",), pvars="sent"), offers)


def test_without_the_option_the_library_is_not_asked(
    offers: dict[str, Capabilities], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(offers["mpi"]), "knobs", lambda self: pytest.fail("asked"))
    assert check(Request("allreduce"), offers).request.observers == {}


def test_a_table_shows_the_sums() -> None:
    assert counts_text({"metrics": {"pvar.sent": 12.0, "pvar.sent.min": 1.0, "pvar.sent.max": 9.0}}) == "sent=12"
