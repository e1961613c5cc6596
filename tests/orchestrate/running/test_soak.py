"""``--repeat-for``: passes in one launch, and their drift."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.orchestrate.running import rank_process
from omb_py.orchestrate.running.run_notes import PassDrift


def row(size: int, number: int, median: float) -> dict[str, Any]:
    return {
        "benchmark": "bcast",
        "backend": "mpi",
        "binding": "native",
        "dtype": "char",
        "op": None,
        "size_bytes": size,
        "median_us": median,
        "parameters": {"pass": str(number)} if number else {},
    }


def test_a_pass_is_compared_with_the_first_when_it_is_over() -> None:
    drift = PassDrift()
    said = [drift.add(row(size, number, 2.0 * size + number - 1)) for number in (1, 2, 3) for size in (1, 2)]
    assert said[:2] == ["", ""] and said[3] == said[5] == ""
    assert said[2] == "pass 1: 2 cells measured; later passes are compared with this one"
    assert said[4] == "pass 2, medians against the first: 1 B +50.0 %, 2 B +25.0 %"
    assert drift.line() == "pass 3, medians against the first: 1 B +100.0 %, 2 B +50.0 %"


def test_of_many_cells_the_largest_drifts_are_named() -> None:
    drift = PassDrift()
    for number in (1, 2):
        for size in range(1, 21):
            drift.add(row(size, number, 100.0 + (size if number == 2 else 0)))
    named = drift.line()
    assert "20 B +20.0 %" in named and "13 B +13.0 %" in named and "12 B" not in named
    assert named.endswith("and 12 more, which drifted less")


def test_outside_a_soak_nothing_is_said() -> None:
    drift = PassDrift()
    assert drift.add(row(1, 0, 1.0)) == "" and drift.number == 0


def test_every_pass_is_stored_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from omb_py import load

    # a second passes with each pass, however fast the machine is
    monkeypatch.setattr(rank_process, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    line = f"bcast --backend mock --repeat-for 3s -i 5 -m 8:16 --store {tmp_path / 'store'}"
    assert main(line.split()) == 0
    out, err = capsys.readouterr()
    frame = load(tmp_path / "store")
    passes = [int(parameters["pass"]) for parameters in frame.parameters.map(dict)]
    assert max(passes) == 3 and sorted(passes) == sorted(list(range(1, max(passes) + 1)) * 2)
    assert frame.launch_id.nunique() == 1
    assert out.count("# OSU MPI Broadcast") == max(passes)
    assert all(f"pass {number}" in err for number in range(1, max(passes) + 1))
