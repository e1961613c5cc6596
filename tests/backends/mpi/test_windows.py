"""One-sided operations on real processes: one launch, every window kind × synchronisation × binding, bytes checked."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from omb_py.engine.program.rma import SYNCS, WINDOWS
from tests.support.machines.mpi import report
from tests.support.sessions.one_sided import EVERYWHERE, cells, named

pytestmark = [pytest.mark.mpi, pytest.mark.each_library, pytest.mark.slow]
BINDINGS = ("native", "mpi4py")


@cache
def told() -> dict[str, Any]:
    """What the launch said of each combination."""
    result: dict[str, Any] = report("tests.support.sessions.one_sided", 2)
    return result


@pytest.mark.parametrize("binding", BINDINGS)
def test_every_byte_is_right_on_origin_and_target(binding: str) -> None:
    found = {named(cell): told()[named(cell)] for _, cell in cells(binding)}
    assert {what: said for what, said in found.items() if said != [True, 0, True]} == {}
    for name in EVERYWHERE[binding]:
        assert {f"{binding} {name} {kind} {sync}" for kind in WINDOWS for sync in SYNCS} <= set(found)


@pytest.mark.parametrize("binding", BINDINGS)
def test_one_inverted_byte_is_found_on_either_side(binding: str) -> None:
    found = {what: said for what, said in told().items() if what.startswith(f"spoiled {binding} ")}
    assert len(found) == 2 * (10 if binding == "mpi4py" else 8 * 2 + 1 + 2)
    assert {what for what, validated in found.items() if validated is not False} == set()
