"""Match criteria with the planned cells before anything is measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from omb_py.backends.registry import capabilities_of
from omb_py.engine.program.benchmark import Cell
from omb_py.errors import CannotDecide, UsageError, nearest
from omb_py.options.request import Request
from omb_py.options.table import TABLE
from omb_py.orchestrate.accept.progress_log import Begun
from omb_py.orchestrate.planning.availability import guideline_problem
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.planning.rules import check_ranks
from omb_py.orchestrate.running.resume import cell_key
from omb_py.orchestrate.running.suite_run import differences
from omb_py.results.accept.criteria import OPTIONS, PLACED, Case, Criterion
from omb_py.results.accept.judge import start_of
from omb_py.results.analysis.cost_model import LARGE, SMALL
from omb_py.results.compare.report import fields_text
from omb_py.results.compare.tags import ACCEPT_PHASE, PERFORMANCE
from omb_py.results.repro_command import storing
from omb_py.results.skip import Skip
from omb_py.results.statistics.nights import nights_of
from omb_py.results.store.filters import parse_filter
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of
from omb_py.results.units import counted, size_text
from omb_py.suites import find
from omb_py.suites.guidelines.patterns import GUIDELINES, Guideline

_TELLING = ("ranks", "backend", "binding", "dtype", "op", OPTIONS)
MOST_NAMED = 4
"""Most nodes that a verdict names."""
_OWN_FACTS = ("entry", "ranks", "backend", "binding", "type", "op", "message-size")
"""Options that have a fact of their own, so that the text of options leaves them out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell of the plan and the columns of its rows."""

    plan: LaunchPlan
    cell: Cell
    key: str
    """Name of the cell, the same in every turn."""
    facts: Mapping[str, object]


def planned(plans: Iterable[LaunchPlan]) -> list[Planned]:
    return [Planned(plan, cell, key_of(plan, cell), _facts(plan, cell)) for plan in plans for cell in plan.cells]


def key_of(plan: LaunchPlan, cell: Cell) -> str:
    """Return the name of a cell in verdicts, which is the same in every turn."""
    return cell_key(replace(plan, turn=0), cell)


def _facts(plan: LaunchPlan, cell: Cell) -> dict[str, object]:
    """Return the columns that :func:`omb_py.orchestrate.running.rows.make_row` will write."""
    benchmark = find(cell.benchmark)
    options = differences(plan.requests[cell.sweep], whole=True)
    part = plan.requests[cell.sweep].part
    named = {"entry": part.name} if part and part.name else {}
    placed = {PLACED: f"{counted(plan.ranks, 'rank')} on {_list_hosts(plan.hosts)}"} if plan.hosts else {}
    return {
        **named,
        **placed,
        "benchmark": cell.benchmark,
        "size_bytes": cell.size,
        "ranks": plan.ranks,
        "backend": cell.backend,
        "binding": cell.binding,
        "device": plan.needs.device,
        "dtype": benchmark.sent_dtype(cell.dtype),
        "op": cell.options.op if "op" in benchmark.options else None,
        OPTIONS: ", ".join(f"{key} {value}" for key, value in options.items() if key not in _OWN_FACTS),
    }


def _list_hosts(hosts: Sequence[str]) -> str:
    return ", ".join(hosts) if len(hosts) <= MOST_NAMED else counted(len(hosts), "node")


def cases_of(criteria: Sequence[Criterion], cells: Sequence[Planned], skips: Sequence[Skip]) -> list[Case]:
    """Make a case for each criterion at each cell that it covers.

    A criterion whose benchmark cannot be measured here has one case without a cell, which becomes an ERROR.

    Raises:
        UsageError: no entry of the suite measures what a criterion needs.
    """
    cases: list[Case] = []
    for criterion in criteria:
        covered = [planned for planned in cells if criterion.covers(planned.facts)]
        if not covered and any(is_about(criterion, skip) for skip in skips):
            cases.append(Case(criterion, {"benchmark": criterion.benchmark}, missing_cell(criterion)))
            continue
        _check(criterion, covered, cells, {skip.what.split(" ")[0] for skip in skips})
        for cell in covered:
            alike = [other for other in covered if other.facts["size_bytes"] == cell.facts["size_bytes"]]
            apart = tuple(name for name in _TELLING if len({other.facts[name] for other in alike}) > 1)
            cases.append(Case(criterion, cell.facts, cell.key, apart))
    return cases


def why_missing(criterion: Criterion, skips: Iterable[Skip]) -> str:
    """Why nothing measures what a criterion judges: the reasons of what was skipped."""
    return "; ".join(dict.fromkeys(skip.reason for skip in skips if is_about(criterion, skip)))


def is_about(criterion: Criterion, skip: Skip) -> bool:
    """Say whether what was skipped is what a criterion judges."""
    benchmark, _, options = skip.what.partition(" ")
    entry = re.search(r"\(entry: ([^,)]+)", options)
    of_entry = entry is None or criterion.where.get("entry", entry[1]) == entry[1]
    return of_entry and benchmark in (criterion.benchmark, criterion.measured)


def missing_cell(criterion: Criterion) -> str:
    """Return what stands in for a cell's name if its benchmark cannot be measured here."""
    return f"none of {criterion.id}"


def needed(cases: Iterable[Case]) -> set[str]:
    return {case.cell for case in cases}


def _check(criterion: Criterion, covered: Sequence[Planned], cells: Sequence[Planned], skipped: set[str]) -> None:
    name = criterion.measured
    of_benchmark = [planned for planned in cells if planned.cell.benchmark == name]
    where = f"{criterion.at}: [criterion {criterion.id}]"
    if not of_benchmark:
        known = ", ".join(dict.fromkeys(planned.cell.benchmark for planned in cells))
        raise UsageError(
            f"{where} no entry of the suite measures {criterion.benchmark}: it has {known}: add it to an [[entry]]"
        )
    wanted = set(criterion.sizes) - {planned.cell.size for planned in covered}
    if not covered and not wanted:
        raise UsageError(
            f"{where} no entry measures {name}{_describe_options(criterion)}: leave it out, or add it to an [[entry]]"
        )
    if wanted:
        sizes = sorted({planned.cell.size for planned in of_benchmark})
        shown = ", ".join(map(size_text, sizes[:12])) + (" …" if len(sizes) > 12 else "")
        raise UsageError(
            f"{where} key 'message-size': no entry measures {name} of {', '.join(map(size_text, sorted(wanted)))}"
            f"{_describe_options(criterion)}: its sizes are {shown}"
        )
    if criterion.source == "lower bound" and "latency" not in skipped:
        latency = {planned.cell.size for planned in cells if planned.cell.benchmark == "latency"}
        if not any(size <= SMALL for size in latency) or not any(size >= LARGE for size in latency):
            raise UsageError(
                f"{where} key 'efficiency': a lower bound needs latency at up to {SMALL} B and from {size_text(LARGE)} "
                'on: add an [[entry]] with benchmarks = ["latency"]'
            )


def _describe_options(criterion: Criterion) -> str:
    options = ", ".join(f"{key} {value}" for key, value in criterion.where.items())
    return f" with {options}" if options else ""


def mock_up(benchmark: str, word: str) -> Guideline:
    """Find the guideline of a benchmark by its mock-up (``reduce + bcast``), its number (``gl5``) or its whole name.

    Raises:
        UsageError: the benchmark has no guideline, or none of that name; the message has the nearest.
    """
    candidates = [g for g in GUIDELINES.values() if g.left == benchmark]
    if not candidates:
        known = ", ".join(dict.fromkeys(g.left for g in GUIDELINES.values()))
        raise UsageError(f"there is no mock-up of {benchmark}: there are some of {known}")
    plain = " + ".join(part.strip().removeprefix("osu_") for part in word.split("+"))
    by_word = {name: g for g in candidates for name in (g.name, g.name.partition("_")[0], words_of(g))}
    if plain not in by_word:
        raise UsageError(f"no mock-up of {benchmark} is called {word!r}: {nearest(plain, by_word)}")
    return by_word[plain]


def words_of(guideline: Guideline) -> str:
    """Return the right side of a guideline: ``reduce + bcast``."""
    return guideline.text.partition(" ≤ ")[2]


def with_mock_ups(
    checked: Sequence[CheckedRequest], criteria: Iterable[Criterion]
) -> tuple[list[CheckedRequest], list[Skip]]:
    """Add the requests of the mock-ups that criteria compare with; those that are impossible here are skipped.

    A mock-up is measured wherever the suite measures the criterion's benchmark: on the same ranks and backends, with
    the criterion's sizes or else those of the benchmark.
    """
    mock_ups: dict[str, Request] = {}
    skips: dict[Skip, None] = {}
    for criterion in criteria:
        if not criterion.program:
            continue
        guideline = GUIDELINES[criterion.program]
        for request in (measured.request for measured in checked):
            if request.benchmark != criterion.benchmark or request.ranks != criterion.where.get("ranks", request.ranks):
                continue
            offers = capabilities_of(request.backends)
            why = [guideline_problem(guideline, offers[b]) for b in request.backends]
            try:
                check_ranks(guideline.benchmark, request.ranks or 0)
            except UsageError as error:
                why.append(str(error))
            if reason := next(filter(None, why), ""):
                skips[Skip(criterion.program, reason)] = None
                continue
            sizes = ",".join(map(str, criterion.sizes)) or request.sizes
            mock = replace(_fit_request(request, criterion.program), sizes=sizes)
            mock_ups.setdefault(repr(replace(mock, part=None)), mock)
    return [*checked, *(resolve(parse(mock)) for mock in mock_ups.values())], list(skips)


def _fit_request(request: Request, program: str) -> Request:
    """Turn a request into one for a guideline's program, without the options that it does not take."""
    benchmark = GUIDELINES[program].benchmark
    usual = Request(program)
    left_out = {o.name: usual.get(o.name) for o in TABLE if o.lacks and not o.takes(benchmark)}
    return request.changed(**{**left_out, "benchmark": program, "cache": None, "process_sync": None})


_MORE = ("min_us", "p999_us", "algbw_gbps", "busbw_gbps", "metrics", "dtype", "op")
_FACTS = ("ranks", "backend", "binding", "dtype", "op")


def baseline_rows(word: str, store: Path, own_run: str | None, begun: Begun | None) -> list[Row]:
    """Read the rows of a side of ``read_side``, without correctness checks and interference tests.

    Args:
        own_run: the run that is resumed; its rows are left out, because they are what is judged.
        begun: what that run began with: `word` still means the runs that it meant then.

    Raises:
        UsageError: the word names no stored launches.
    """
    from omb_py.results.compare.select_launches import read_side

    meant = begun.baseline_runs if begun and begun.baseline == word else ()
    return [
        row
        for row in read_side(word, store, _MORE).rows
        if dict(row["tags"] or {}).get(ACCEPT_PHASE, PERFORMANCE) == PERFORMANCE
        and row["run_id"] != own_run
        and (not meant or row["run_id"] in meant)
    ]


def check_baseline(cases: Sequence[Case], rows: Sequence[Row], word: str, suite: str, store: Path) -> None:
    """Check that a baseline can decide any case.

    Args:
        word: names the baseline.
        suite: names the suite on a command line.
        store: where its launches are, unless it is a folder itself.

    Raises:
        UsageError: it has no launch of any, or only one.
        CannotDecide: it is one night.
    """
    asking = [case for case in cases if case.criterion.source == "baseline" and "ranks" in case.facts]
    if not asking:
        return
    launches = [
        {row["launch_id"] for row in rows if _is(case, row) and not _list_differences(case, row)} for case in asking
    ]
    if not any(launches):
        nearest = _describe_nearest(asking, rows)
        raise UsageError(f"the baseline {word} has none of the cells that are to be compared with it: {nearest}")
    if max(map(len, launches)) == 1:
        raise UsageError(
            f"the baseline {word} is only one launch of each cell; at least two are needed: measure it with "
            "--launches 5"
        )
    nights = [nights_of((str(row["run_id"]), start_of(row)) for row in rows if _is(case, row)) for case in asking]
    if all(max(numbers.values(), default=0) == 0 for numbers in nights):
        asked = parse_filter(word) if word.startswith(("tag=", "tags.")) else None
        tag = f"{asked.tag}={asked.value}" if asked else "K=V"
        night = storing(f"omb-py run {suite} --launches 8 --tag {tag}", word if Path(word).is_dir() else store)
        raise CannotDecide(
            f"nothing can be decided, and nothing was measured: the baseline {word} is one night, so how much nights "
            f"differ is unknown. What to do: on 4 more nights, {night}"
        )


def _is(case: Case, row: Row) -> bool:
    return row["benchmark"] == case.facts["benchmark"] and int(row["size_bytes"] or 0) == case.size


def _list_differences(case: Case, row: Row) -> list[str]:
    return [name for name in _FACTS if value_of(row, name) != case.facts[name]]


def _describe_nearest(asking: Sequence[Case], rows: Sequence[Row]) -> str:
    """Say how the most similar stored cell differs, or else what is stored."""
    pairs = [(case, row) for case in asking for row in rows if _is(case, row)]
    if not pairs:
        known = ", ".join(dict.fromkeys(str(row["benchmark"]) for row in rows)) or "nothing"
        lacking = "of other sizes" if _share_benchmark(asking, rows) else f"not {asking[0].criterion.measured}"
        return f"it has {known}, {lacking}"
    case, row = min(pairs, key=lambda pair: len(_list_differences(*pair)))
    return f"{row['benchmark']}: {fields_text(row, case.facts, _list_differences(case, row))}"


def _share_benchmark(asking: Sequence[Case], rows: Sequence[Row]) -> bool:
    return bool({case.facts["benchmark"] for case in asking} & {row["benchmark"] for row in rows})
