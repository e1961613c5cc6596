"""What of a comparison of programs was not measured, so that it may not be called the same. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omb_py.results.compare.interleaved import can_show
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import SIDES, Matched, MatchedCell
from omb_py.results.compare.tags import COMPARE_PAIR
from omb_py.results.statistics.launch_time import OURS
from omb_py.results.store.row import Row
from omb_py.results.units import counted

NO_VERDICT_WORD = "NO VERDICT"
_MOST_NAMED = 4


def of_programs(rows: Sequence[Row]) -> bool:
    """Whether the rows are those of programs that a comparison has started itself."""
    return any(row.get("source") != OURS and COMPARE_PAIR in dict(row.get("tags") or {}) for row in rows[:1])


def unmeasured(
    base: Sequence[Row], new: Sequence[Row], matched: Matched, rules: CompareRules, named: Callable[[Row], str]
) -> list[str]:
    """Sentences on what was not measured on both sides; none of a comparison of omb-py's own benchmarks.

    Args:
        base: the rows of BASE.
        new: the rows of NEW.
        matched: their cells.
        rules: the declared rules.
        named: names a cell.
    """
    if not (of_programs(base) or of_programs(new)):
        return []
    reasons = []
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        if lost := [named(row) for row in matched.only[other]]:
            more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
            reasons.append(f"{side} lacks {', '.join(lost[:_MOST_NAMED])}{more}")
    reasons += [f"{named(pair.base)}: the sides measured it in different ways" for pair in matched.incomparable]
    reasons += _list_too_few(matched.cells, rules, named)
    wrong = [row for row in (*base, *new) if row.get("validated") is False]
    if wrong:
        reasons.append(f"{counted(len(wrong), 'row')} did not validate, as {named(wrong[0])}")
    if not matched.cells and not reasons:
        reasons.append("no cell was measured on both sides")
    return reasons


def _list_too_few(cells: Sequence[MatchedCell], rules: CompareRules, named: Callable[[Row], str]) -> list[str]:
    """Cells with fewer pairs of launches than others had, or than can show a change."""
    pairs = [min(len(cell.rounds[0].base), len(cell.rounds[0].new)) if cell.rounds else 0 for cell in cells]
    most = max(pairs, default=0)
    fewest = next((n for n in range(2, 100) if can_show(n, rules.alpha, rules.rounds)), most)
    needed = max(fewest, most)
    if len(set(pairs)) == 1 and most < needed:
        return [f"{counted(most, 'launch')} a side, and a change needs {needed}: --launches {needed}"]
    return [
        f"{named(cell.base)}: {counted(count, 'launch')} a side, and a change needs {needed}"
        for cell, count in zip(cells, pairs, strict=True)
        if count < needed
    ]
