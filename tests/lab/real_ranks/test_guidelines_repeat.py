"""What makes two sets of violations the same."""

from __future__ import annotations

import pytest

from omb_py.results.checks.guideline_report import Report
from omb_py.results.checks.guidelines import Judged, Pair, Rules
from tests.lab.real_ranks.guidelines_repeat import compared, lines


def report(*words: str) -> Report:
    judged = [
        Judged(Pair(f"gl{k}_allgather", "allgather ≤ x", 8, (1.0,), (1.0,)), word, 2, 1, 2, 1, 3, 0, 0, 10)  # type: ignore[arg-type]
        for k, word in enumerate(words)
    ]
    return Report(judged, Rules())


V, H, U = "VIOLATED", "HOLDS", "UNCLEAR"


@pytest.mark.parametrize(
    ("first", "second", "everywhere", "contradicted", "undecided", "same"),
    [
        ((V, H, U), (V, H, H), 1, 0, 0, True),
        ((V, V, H), (V, H, H), 1, 1, 0, False),
        ((V, V, H), (V, U, H), 1, 0, 1, True),
        ((V, V, V), (V, U, U), 1, 0, 2, False),
        ((H, U), (U, H), 0, 0, 0, False),
        ((V, V), (V,), 1, 0, 1, True),
    ],
)
def test_sets(
    first: tuple[str, ...], second: tuple[str, ...], everywhere: int, contradicted: int, undecided: int, same: bool
) -> None:
    found = compared([report(*first), report(*second)])
    assert (len(found.everywhere), len(found.contradicted), len(found.undecided)) == (
        everywhere,
        contradicted,
        undecided,
    )
    assert found.same is same


def test_what_is_printed_of_a_cell() -> None:
    reports = [report(V, V), report(V, H)]
    (line,) = lines(compared(reports).contradicted, reports)
    assert line.endswith("8 B: VIOLATED 2.00 (1.00 … 3.00, 10 launches), HOLDS 2.00 (1.00 … 3.00, 10 launches)")
