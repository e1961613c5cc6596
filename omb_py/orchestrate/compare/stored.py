"""Compare stored launches, and declare the rules of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.orchestrate.compare.checks import check_common
from omb_py.results.compare.judge import Rules
from omb_py.results.compare.match import alpha_of, is_bounded, rounds_of
from omb_py.results.compare.report import Report, report_of
from omb_py.results.compare.select_launches import check_apart, read_comparison, read_side
from omb_py.results.statistics.sides.combined_rounds import MOST_ROUNDS
from omb_py.results.store.paths import OnSkip


def declared_rules(delta: float, tail_delta: float, rounds: int) -> Rules:
    """Declare the rules of a comparison before anything is judged. Raises UsageError on too many rounds.

    Args:
        delta: smallest change of a median that matters, as a share.
        tail_delta: smallest change of a tail that matters, as a share.
        rounds: most rounds of measuring.
    """
    if rounds > MOST_ROUNDS:
        raise UsageError(
            f"--rounds {rounds}: at most {MOST_ROUNDS}, since every round is one more chance of a false alarm"
        )
    return Rules(delta=delta, tail_delta=tail_delta, rounds=rounds)


def compare_stored(names: Sequence[str], store: Path, rules: Rules, on_skip: OnSkip | None = None) -> Report:
    """Compare stored launches.

    Args:
        names: BASE and NEW, or the run of a comparison that measured both.
        store: folder of the launches, unless a name is the folder of another store.
        rules: rules with one round; a run of a comparison has the rounds that it made.
        on_skip: as of :func:`omb_py.results.store.read.load`.

    Raises:
        UsageError: there are no such launches, there are no names or more than two, or nothing can be compared.
    """
    if len(names) == 1:
        base, new = read_comparison(names[0], store, on_skip)
        rows = [*base.rows, *new.rows]
        rules = replace(
            rules,
            rounds=rounds_of(rows),
            bounded=any(map(is_bounded, rows)),
            alpha=alpha_of(rows, rules.alpha),
        )
    elif len(names) == 2:
        base, new = (read_side(name, store, on_skip=on_skip) for name in names)
        check_apart(base, new)
    else:
        raise UsageError(
            f"compare takes two sides, or one run of compare, or a benchmark to measure, not {len(names)} words: "
            "omb-py compare BASE NEW (see omb-py results list)"
        )
    report = report_of(base, new, rules)
    check_common(report)
    if len(names) == 1:
        report.run_id = base.rows[0]["run_id"]
    return report
