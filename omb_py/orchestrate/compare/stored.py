"""Compare stored launches, and declare the rules of every comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.orchestrate.launching.machine_state import stored_facts
from omb_py.results.compare.cell_names import name
from omb_py.results.compare.interleaved import MOST_ROUNDS
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import PROGRAM, SOURCE, declared_rules_of
from omb_py.results.compare.report import CompareReport, fields_text, report_of
from omb_py.results.compare.select_launches import check_apart, is_folder_of_logs, read_comparison, read_side
from omb_py.results.repro_command import measuring
from omb_py.results.statistics.launch_time import OURS
from omb_py.results.store.paths import OnSkip
from omb_py.results.store.row import Row


def given_rules(delta: float | None, tail_delta: float | None) -> dict[str, float]:
    """The fields of the rules that were given."""
    return {name: value for name, value in (("delta", delta), ("tail_delta", tail_delta)) if value is not None}


def declared_rules(
    delta: float | None, tail_delta: float | None, rounds: int, trust_sides: bool = False
) -> CompareRules:
    """Declare the rules of a comparison before anything is judged. Raises UsageError on too many rounds.

    Args:
        delta: smallest change of a median that matters, as a share; None: the usual one.
        tail_delta: smallest change of a tail that matters, as a share; None: the usual one.
        rounds: most rounds of measuring.
        trust_sides: as of :class:`CompareRules`.
    """
    if rounds > MOST_ROUNDS:
        raise UsageError(
            f"--rounds {rounds}: at most {MOST_ROUNDS}, since every round is one more chance of a false alarm"
        )
    usual, given = CompareRules(), given_rules(delta, tail_delta)
    return CompareRules(
        delta=given.get("delta", usual.delta),
        tail_delta=given.get("tail_delta", usual.tail_delta),
        rounds=rounds,
        trust_sides=trust_sides,
    )


def compare_stored(
    names: Sequence[str],
    store: Path,
    rules: CompareRules,
    on_skip: OnSkip | None = None,
    asked: Collection[str] = (),
) -> CompareReport:
    """Compare stored launches.

    Args:
        names: BASE and NEW, or the run of a comparison that measured both.
        store: folder of the launches, unless a name is the folder of another store.
        rules: rules with one round; a run of a comparison is judged by those that it declared.
        on_skip: as of :func:`omb_py.results.store.read.load`.
        asked: fields of `rules` that hold for a run of a comparison too.

    Raises:
        UsageError: there are no such launches, there are no names or more than two, or nothing can be compared.
    """
    if len(names) == 1 and is_folder_of_logs(names[0]):
        raise UsageError(f"{names[0]} is a folder of logs, which is one side: name the other too, as NEW")
    if len(names) == 1:
        base, new = read_comparison(names[0], store, on_skip)
        rules = declared_rules_of([*base.rows, *new.rows], rules, asked)
    elif len(names) == 2:
        base, new = (read_side(name, store, on_skip=on_skip) for name in names)
        check_apart(base, new, store)
    else:
        raise UsageError(
            f"compare takes two sides, or one run of compare, or a benchmark to measure, not {len(names)} words: "
            "omb-py compare BASE NEW (see omb-py results list)"
        )
    report = report_of(base, new, rules)
    check_common(report)
    ranks = max(int(row.get("ranks") or 1) for row in (*base.rows, *new.rows))
    report.machine = stored_facts((*base.provenances, *new.provenances), ranks)
    if len(names) == 1:
        report.run_id = base.rows[0]["run_id"]
    return report


_LAUNCHES = 10


def check_common(report: CompareReport) -> None:
    """Raises UsageError where no verdict is possible: no cell in common, or a side of a single launch."""
    matched = report.matched
    if not matched.cells:
        raise UsageError(_nothing_in_common(report))
    for side in (report.base, report.new):
        if side.count == 1:
            reason = f"{side.word} is only one launch; compare needs at least two a side"
            if (tool := _tool(side.rows)) is not None:
                raise UsageError(
                    f"{reason}: import the output of more starts of {tool}, each of which is a launch: "
                    f"omb-py results import FILE… --tag K=V, and compare tag=K=V"
                )
            raise UsageError(
                f"{reason}: {_command(side.rows)}, and compare the runs; or omb-py compare --env BASE=… --env NEW=… "
                "measures both, interleaved"
            )


def _nothing_in_common(report: CompareReport) -> str:
    sides = f"{report.base.word} and {report.new.word}"
    if report.matched.incomparable:
        pair = report.matched.incomparable[0]
        tool = _tool([pair.base])
        again = f"measure {report.new.word} again with {_command([pair.base])}"
        if tool is not None:
            again = f"import a file of {tool} for {report.new.word} too: omb-py results import FILE…"
        if pair.fields == (PROGRAM,):
            what = "another program of steps or placement"
            if tool is not None:
                what = f"another version of {tool}, or with other options"
            return f"{sides} are not comparable: {name(pair.base)} was measured by {what}: {again}"
        differences = fields_text(pair.base, pair.new, pair.fields)
        return f"{sides} are not comparable: {name(pair.base)} was measured with {differences}: {again}"
    benchmarks = [", ".join(sorted({str(r["benchmark"]) for r in s.rows})) for s in (report.base, report.new)]
    sizes = [{r["size_bytes"] for r in side.rows} - {None} for side in (report.base, report.new)]
    if benchmarks[0] == benchmarks[1]:
        spans = [f"{min(s)} to {max(s)} B" if s else "none" for s in sizes]
        what = f"{benchmarks[0]} of {spans[0]} against {spans[1]}"
    else:
        what = f"{benchmarks[0]} against {benchmarks[1]}"
    again = f"measure {report.new.word} again with {_command(report.base.rows)}"
    if (tool := _tool(report.base.rows)) is not None:
        again = f"import a file of {tool} that has what {report.base.word} has: omb-py results import FILE…"
    return f"{sides} have no cell in common: {what}: {again}"


def _tool(rows: Sequence[Row]) -> str | None:
    """The tool whose output was imported; None for rows that were measured here."""
    source = str(rows[0].get(SOURCE) or OURS)
    return None if source == OURS else source


def _command(rows: Sequence[Row]) -> str:
    # without the binding: it may be what is compared
    return measuring(rows, _LAUNCHES, binding=False)
