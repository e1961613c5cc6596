"""Fill the table of a suite from logs of other tools, without a launch (docs/accept.md)."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from omb_py.engine.devices.registry import HOST
from omb_py.errors import UsageError
from omb_py.orchestrate.accept.contract_file import Contract, read_contract
from omb_py.orchestrate.accept.criterion_cells import cases_of, missing_cell, planned, why_missing, with_mock_ups
from omb_py.orchestrate.accept.session import AcceptRequest, check_criteria
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.running.collector import now
from omb_py.orchestrate.suites.expand import expand
from omb_py.orchestrate.suites.node_layout import ANY_NODES, NodeLayout
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.results.accept.criteria import PLACED, Case
from omb_py.results.accept.judge import Evidence, close, correlation_of, judge
from omb_py.results.accept.report import AcceptReport
from omb_py.results.dialects.log_files import logs_below, read_log, without_files
from omb_py.results.dialects.reading import Problem
from omb_py.results.dialects.storing import ImportOptions, complete_row, store_bytes
from omb_py.results.skip import Skip
from omb_py.results.store.keys import digest
from omb_py.results.store.row import Row
from omb_py.results.units import counted, size_text


@dataclass(slots=True)
class _Logs:
    """What logs say, row by row."""

    evidence: Evidence = field(default_factory=Evidence)
    incidents: list[Skip] = field(default_factory=list)
    sources: dict[str, dict[str, None]] = field(default_factory=dict)
    """Name of a cell -> the files with its row."""
    runs: dict[str, None] = field(default_factory=dict)
    tools: dict[str, None] = field(default_factory=dict)
    files: list[tuple[str, str]] = field(default_factory=list)
    contents: Counter[str] = field(default_factory=Counter)
    """SHA-256 of a file -> how many have it: short texts are often equal."""
    launches: set[str] = field(default_factory=set)
    passed_over: int = 0
    """Rows that are in no row of the table."""


def accept_logs(suite: Suite, request: AcceptRequest, sources: Sequence[str], store: Path) -> AcceptReport:
    """Judge a suite's criteria by logs; every table in them is a launch.

    Args:
        suite: a suite with criteria.
        request: its contract and its command.
        sources: files, or folders with files and folders of files; a folder's name says as much as that of a file.
        store: folder into which the logs are imported.

    Raises:
        UsageError: the suite or the contract is wrong, a file cannot be read, or nothing in it is.
        EnvironmentProblem: the store cannot be written.
    """
    began, started = time.monotonic(), now()
    how, criteria = check_criteria(suite)
    contract = read_contract(request.contract, suite, criteria) if request.contract else Contract()
    contents = replace(contract.contents, nearest=(), distant=())
    values = {"hosts": ANY_NODES.stand_in, "store": store}
    expanded = expand(suite, request.words, values, contents=contents)
    promised = contract.promises or {}
    criteria = [
        criterion
        for criterion in contract.bounded(criteria)
        if criterion.id in promised or criterion.where.get("entry") not in expanded.without_device
    ]
    checked, skips = with_mock_ups(expanded.checked, criteria)
    expanded.skips += skips
    cases = cases_of(criteria, planned(plan_launches(checked)), expanded.skips)
    contract.check_sizes(cases)
    layouts = {entry.name: entry.layout for entry in suite.entries if entry.name and entry.layout}
    logs = _Logs()
    for name in _files(sources):
        try:
            _read(name, cases, layouts, store, logs)
        except UsageError as error:
            if name in sources:
                raise UsageError(f"{name}: {error}") from None
            logs.incidents.append(Skip(name, str(error)))
    if not logs.launches and not logs.passed_over:
        raise UsageError(f"no table in {', '.join(sources)}: give logs of OMB")
    for case in cases:
        if case.cell == missing_cell(case.criterion):
            logs.evidence.missing[case.cell] = why_missing(case.criterion, expanded.skips)
        else:
            logs.evidence.missing.setdefault(case.cell, "no log has it")
    shown = [_describe_case(case, logs) for case in cases]
    for cell in logs.sources:
        del logs.evidence.missing[cell]
    correlation = correlation_of(shown, logs.evidence)
    verdicts = [judge(case, logs.evidence, how.rule, len(shown), None, correlation) for case in shown]
    run = next(iter(logs.runs)) if len(logs.runs) == 1 else counted(len(logs.runs), "import")
    out = AcceptReport(suite.name, suite.description, suite.digest, how.rule, run, str(store), started)
    out.verdicts = [close(verdict, how.rule) for verdict in verdicts]
    out.correlation, out.contract = correlation, contract.sentence()
    out.deviations.append("filled from logs: omb-py measured nothing and checked no byte")
    if logs.passed_over:
        out.deviations.append(f"{counted(logs.passed_over, 'line')} of the logs are in no row of the table")
    out.incidents = [*logs.incidents, *dict.fromkeys(expanded.skips)]
    out.libraries, out.files, out.launches = list(logs.tools), logs.files, len(logs.launches)
    out.command, out.seconds = request.command, time.monotonic() - began
    out.bounds = digest([asdict(how.rule), *(c.bound_facts() for c in criteria)])[:12]
    return out


def _files(sources: Sequence[str]) -> list[str]:
    """The files, and those of folders and of the folders in them."""
    files: list[str] = []
    for source in sources:
        if not os.path.isdir(source):
            files.append(source)
            continue
        own = logs_below(source)
        if not own:
            raise UsageError(without_files(source))
        files += own
    return files


def _read(name: str, cases: Sequence[Case], layouts: Mapping[str, NodeLayout], store: Path, logs: _Logs) -> None:
    """Give the rows of a file to the cases that they are. Raises UsageError."""
    data, modified = read_log(name)
    options = ImportOptions()
    content = hashlib.sha256(data).hexdigest()
    imported = store_bytes(data, Path(name).name, modified, store, options, logs.contents[content])
    logs.contents[content] += 1
    logs.files.append((name, content))
    logs.runs[imported.run_id] = None
    logs.incidents += [Skip(name, str(problem)) for problem in (*imported.problems, *imported.notes)]
    for table in imported.tables:
        logs.tools[" ".join(filter(None, (table.source, table.version)))] = None
        for imported_row in table.rows:
            row = complete_row(imported_row, table, imported.run_id, table.launch, now(), options)
            fits = _find_fitting(row, cases, layouts, name)
            if len(fits) > 1:
                names = [case.criterion.id for case in fits]
                what = f"{row['benchmark']} of {size_text(row['size_bytes'] or 0)} may be {' or '.join(names)}"
                fix = f"call the file or its folder so, as {names[0]}.log"
                logs.incidents.append(Skip(name, str(Problem(table.line, f"{what}: {fix}"))))
            elif fits:
                (case,) = fits
                turn = len(logs.evidence.alone.get(case.cell, ()))
                logs.evidence.add(case.cell, turn, row)
                logs.sources.setdefault(case.cell, {})[Path(name).name] = None
                logs.launches.add(row["launch_id"])
            else:
                logs.passed_over += 1


def _find_fitting(row: Row, cases: Sequence[Case], layouts: Mapping[str, NodeLayout], name: str) -> list[Case]:
    """The cases that a row may be: by what it says, and where that leaves several by the names of file and folder."""
    fits = [case for case in cases if "ranks" in case.facts and _may_be(row, case, layouts)]
    tokens = set(re.split(r"[^a-z0-9]+", "/".join(Path(name).parts[-2:]).lower()))
    points = {case.cell + case.criterion.id: len(tokens & set(_layout_words(case, layouts))) for case in fits}
    most = max(points.values(), default=0)
    return [case for case in fits if points[case.cell + case.criterion.id] == most]


def _may_be(row: Row, case: Case, layouts: Mapping[str, NodeLayout]) -> bool:
    """Whether nothing that a row says contradicts a case."""
    if row["benchmark"] != case.facts["benchmark"] or int(row["size_bytes"] or 0) != case.size:
        return False
    if (row.get("device") or HOST) != case.facts["device"]:
        return False
    layout, ranks = layouts.get(str(case.facts.get("entry"))), row.get("ranks")
    if layout is None or ranks is None:
        return True
    if layout.parity:
        return ranks % 2 == (layout.parity == "odd")
    return layout.nodes == "all" or ranks == case.facts["ranks"]


def _layout_words(case: Case, layouts: Mapping[str, NodeLayout]) -> Iterable[str]:
    """The words by which a file says where its ranks lay."""
    layout = layouts.get(str(case.facts.get("entry")))
    return (str(layout.nodes), str(layout.per_node), layout.parity) if layout else ()


def _describe_case(case: Case, logs: _Logs) -> Case:
    """Say from which files a row is, instead of where ranks would lie here."""
    names = list(logs.sources.get(case.cell, ()))
    where = ", ".join(names) if len(names) <= 2 else counted(len(names), "log")
    facts = {name: value for name, value in case.facts.items() if name not in (PLACED, "ranks")}
    ranks = [row["ranks"] for rows in logs.evidence.alone.get(case.cell, {}).values() for row in rows]
    return replace(
        case, facts={**facts, "ranks": next(iter(ranks), None), **({PLACED: f"from {where}"} if names else {})}
    )
