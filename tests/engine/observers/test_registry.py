"""Observers by name: ours, and those of installed packages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omb_py.engine.measuring.measure import measure
from omb_py.engine.observers import registry
from omb_py.engine.observers.observer import Observer
from omb_py.errors import EnvironmentProblem
from omb_py.plug_ins import PlugIns
from omb_py.suites import find
from tests.support.machines.simulated import cell, session


class Operations(Observer):
    name, option = "operations", "--operations"

    def stop(self, operations: int) -> dict[str, float]:
        return {"operations": operations}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", lambda: PlugIns({"operations": Operations}, {"torn": "it is broken"}))


def test_ours_are_called_as_in_the_registry() -> None:
    assert [observer.name for observer in registry.observers()] == [*registry.OURS, "operations"]


def test_an_observer_of_another_package_adds_its_metrics() -> None:
    what = replace(cell("latency", iterations=20, warmup=5), observers={"operations": ""})
    assert measure(session(2), find("latency"), what).extra["operations"] == 2 * 25


@pytest.mark.parametrize(("name", "reason"), [("torn", "it is broken"), ("none", "no package provides it")])
def test_one_that_cannot_be_loaded_is_named_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"observer {name} cannot be loaded: {reason}"):
        registry.find(name)
