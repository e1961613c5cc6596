"""Planted algorithms: the first one, a variable or a file chooses, and each call costs what was planted."""

from __future__ import annotations

from pathlib import Path

import pytest

import omb_py
from omb_py.backends.mock.algorithms import FILE_VARIABLE, VARIABLE, Algorithm, read_algorithm, selection
from omb_py.errors import EnvironmentProblem, LaunchFailed, UsageError

TREE, RING = Algorithm("tree", 2000.0, 1.0), Algorithm("ring", 10_000.0, 0.1)
SETTINGS = "algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns"


def times(settings: str = SETTINGS) -> dict[int, float]:
    """Size -> time in µs of an allreduce."""
    result = omb_py.run(
        "allreduce", backends=("mock",), ranks=4, sizes="8,1K,64K", iterations="5", mock=settings, store=None
    )
    return dict(zip(result.frame["size_bytes"], result.frame["median_us"], strict=True))


@pytest.mark.slow
def test_the_first_algorithm_is_the_default_and_a_variable_chooses_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert times() == pytest.approx({8: 2.008, 1024: 3.024, 65536: 67.536})
    monkeypatch.setenv(VARIABLE, "ring")
    assert times() == pytest.approx({8: 10.0008, 1024: 10.1024, 65536: 16.5536}, rel=1e-4)


def test_a_file_chooses_by_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_text("# by size\nbcast 4 0 - ring\nallreduce 4 2048 - ring\nallreduce 2 0 - ring\n")
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    assert times() == pytest.approx({8: 2.008, 1024: 3.024, 65536: 16.5536}, rel=1e-4)


@pytest.mark.slow
def test_a_faulty_algorithm_strikes_only_where_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(times(f"{SETTINGS},algorithm=bad:1us:1ns:die")) == 3
    monkeypatch.setenv(VARIABLE, "bad")
    with pytest.raises(LaunchFailed, match="rank 3"):
        times(f"{SETTINGS},algorithm=bad:1us:1ns:die")
    with pytest.raises(LaunchFailed, match="hangs"):
        times(f"{SETTINGS},algorithm=bad:1us:1ns:hang")


@pytest.mark.parametrize(
    "text", ["ring", "ring:1us", ":1us:1ns", "ring:1us:1ns:hang:x", "ring:1us:1ns:late", "ring:a:b"]
)
def test_a_bad_algorithm_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_algorithm(text)


def test_an_unknown_algorithm_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no algorithm 'rng': did you mean ring"):
        selection((TREE, RING), {VARIABLE: "rng"})
    path = tmp_path / "rules"
    path.write_text("allreduce 4 0 ring\n")
    with pytest.raises(UsageError, match="line 1: 'allreduce 4 0 ring' is not of the form"):
        selection((TREE, RING), {FILE_VARIABLE: str(path)})
    with pytest.raises(EnvironmentProblem, match="cannot read"):
        selection((TREE, RING), {FILE_VARIABLE: str(tmp_path / "none")})
