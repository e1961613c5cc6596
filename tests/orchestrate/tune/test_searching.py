"""The searches of a tuning, block by block: when they end, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.orchestrate.tune.searching import search_all


class Blocks:
    """A search that wants so many blocks of two launches with three cells each."""

    point, stopped = "allreduce", False

    def __init__(self, count: int) -> None:
        self.blocks: list[int] = []
        self.search = SimpleNamespace(block=0, design=SimpleNamespace(checks=(2,)), next_block=self.wanted)
        self.count = count

    def wanted(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(places=(0, 1, 2))] * 2 if self.search.block < self.count else []

    def block(self, wanted: Any, launcher: Any, store: Path) -> None:
        self.blocks.append(self.search.block)
        self.search.block += 1


@pytest.mark.parametrize(
    ("left_s", "blocks", "stopped"), [(0.5, [0, 1, 2, 3], False), (0.0, [], True), (-1.0, [], True)]
)
def test_a_search_goes_on_while_any_of_its_budget_is_left(left_s: float, blocks: list[int], stopped: bool) -> None:
    said: list[str] = []
    progress = SimpleNamespace(plan=lambda cells: None)
    run = SimpleNamespace(command=SimpleNamespace(progress=progress), note=said.append)
    searcher: Any = Blocks(4)
    launcher: Any = SimpleNamespace(left_s=left_s, run=run)
    search_all([searcher], launcher, Path("store"))
    assert (searcher.blocks, searcher.stopped) == (blocks, stopped)
    of_first_and_checks = ["block 1", "block 3"] if blocks else []
    assert said == [f"allreduce, {block}: 2 launches, 6 cells" for block in of_first_and_checks]
