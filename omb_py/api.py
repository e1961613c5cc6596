"""The Python API: ``omb_py.run("allreduce", ranks=2).frame``.

Every function raises :class:`omb_py.UsageError` for bad input, :class:`omb_py.EnvironmentProblem` where this machine
or job cannot do what was asked (:class:`omb_py.LaunchFailed` where ranks died or hung), and
:class:`omb_py.Interrupted` on Ctrl-C. What was measured before is kept in the store. All are :class:`omb_py.OmbError`.

The functions import what they need when they are called, because ranks that a launcher started import this module too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from omb_py.api_results import (
    Acceptance,
    CellVerdict,
    Comparison,
    CriterionVerdict,
    GuidelineCheck,
    GuidelineVerdict,
    LinkCheck,
    LinkVerdict,
    ReportPage,
    RunResult,
    Side,
)
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import NEGATIVE, OK, UsageError
from omb_py.launchers.own_mpi import VARIABLE, use_own_mpi
from omb_py.options.request import DEFAULT_STORE, DEFAULT_TIMEOUT_S, SILENT, Request, tags_of
from omb_py.results.dialects.registry import USUAL

if TYPE_CHECKING:
    from omb_py.results.accept.report import AcceptReport
    from omb_py.results.checks.pair_sweeps import PairSweep
    from omb_py.results.compare.judge import CompareRules, JudgedCell
    from omb_py.results.compare.match import Side as CompareSide
    from omb_py.results.compare.report import CompareReport
    from omb_py.run_options import RunOptions

_NO_TAGS: Mapping[str, str] = MappingProxyType({})


def run(
    benchmark: str,
    *,
    store: str | Path | None = DEFAULT_STORE,
    tags: Mapping[str, str] = _NO_TAGS,
    **options: Unpack[RunOptions],
) -> RunResult:
    """Run a benchmark and return its rows.

    Outside a launcher, omb-py starts the ranks. Inside one (``mpirun -n 4 python my.py``), every process calls this
    function and the ranks join.

    Args:
        benchmark: name, with or without ``osu_``.
        store: folder of the Parquet files; None keeps none.
        tags: stored with every row.
        **options: those of the command line, as :class:`omb_py.run_options.RunOptions` lists them with their types.

    Returns:
        The rows, the id of the run, and the exit code.

    Raises:
        UsageError: an option is wrong.
        EnvironmentProblem: this machine or job cannot run the benchmark.
    """
    from omb_py.options.table import nearest_option
    from omb_py.orchestrate.running.run import execute_run
    from omb_py.results.store.read import load
    from omb_py.results.store.schema import arrow_schema
    from omb_py.run_options import RunOptions
    from omb_py.suites import find

    if VARIABLE in os.environ:
        use_own_mpi(joined_environment(os.environ) is not None)
    if unknown := next((name for name in options if name not in RunOptions.__annotations__), ""):
        raise TypeError(f"run has no option {unknown!r}: {nearest_option(unknown)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch if store is None else store)
        request = _request(find(benchmark).name, folder, tags, printed=SILENT, scratch=store is None, **options)
        outcome = execute_run(request)
        frame = load(folder, run_id=outcome.run_id) if outcome.root else arrow_schema().empty_table().to_pandas()
    return RunResult(frame, outcome.run_id, outcome.code, outcome.root)


def _texts(given: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Several texts, of which one may stand alone."""
    return (str(given),) if isinstance(given, (str, Path)) else tuple(map(str, given))


def _request(
    benchmark: str,
    store: str | Path | None,
    tags: Mapping[str, str],
    settings: Mapping[str, str] = _NO_TAGS,
    printed: str = USUAL.name,
    **options: Any,
) -> Request:
    """The request of a function's parameters."""
    folder = None if store is None else Path(store)
    return Request(benchmark, store=folder, tags=tags, settings=dict(settings), format=printed, **options)


def compare(
    base: str | Side,
    new: str | Side | None = None,
    *,
    store: str | Path = DEFAULT_STORE,
    launches: int = 10,
    rounds: int = 3,
    budget: float | None = None,
    delta: float | None = None,
    tail_delta: float | None = None,
    seed: int | None = None,
    strict: bool = False,
    trust_sides: bool = False,
) -> Comparison:
    """Compare two sets of stored launches, or measure two sides interleaved and compare them.

    Args:
        base: stored launches, as a run's id, ``last``, ``tag=K=V``, ``COLUMN=VALUE`` or a folder, of a store or of
            logs; or a :class:`Side` to measure.
        new: the other side, of the same kind; None if `base` is the run of a comparison that measured.
        store: folder of the stored launches, and of the measured ones.
        launches: launches of each measured side in each round.
        rounds: 1 to 3; cells that are UNCLEAR are measured again. Stored sides have the rounds that were made.
        budget: seconds for all launches of measured sides, which then choose them; None: `launches` a round.
        delta: smallest change of a median that matters, as a share; None: 0.03, or that of the stored comparison.
        tail_delta: smallest change of a tail that matters, as a share; None: 0.10, or that of the stored comparison.
        seed: seed of the order of cells; None: it is drawn, and stored.
        strict: `exit_code` is 4 if a cell is UNCLEAR, LIKELY or NOT COMPARABLE.
        trust_sides: stored sides that were not interleaved are judged as if they had been, and nothing is LIKELY.

    Raises:
        UsageError: an option is wrong, there are no such launches, or the sides have no cell in common.
        EnvironmentProblem: a side cannot be measured.
    """
    from omb_py.orchestrate.compare.stored import compare_stored, declared_rules, given_rules
    from omb_py.results.compare.report import exit_code, headline

    if isinstance(base, str) and not isinstance(new, Side):
        names = [base] if new is None else [base, new]
        rules = declared_rules(delta, tail_delta, 1, trust_sides)
        report = compare_stored(names, Path(store), rules, asked=given_rules(delta, tail_delta))
    elif isinstance(base, Side) and isinstance(new, Side):
        report = _measure_sides(
            base, new, declared_rules(delta, tail_delta, rounds), launches, Path(store), seed, budget
        )
    else:
        raise UsageError("compare takes two stored sides, or two Sides to measure: one of each cannot be compared")
    return Comparison(_cells(report), headline(report), exit_code(report, strict), report.run_id)


def _measure_sides(
    base: Side, new: Side, rules: CompareRules, launches: int, store: Path, seed: int | None, budget_s: float | None
) -> CompareReport:
    from omb_py.orchestrate.compare.session import SideRun, compare
    from omb_py.orchestrate.compare.side_environments import spec_of, where_of
    from omb_py.orchestrate.planning.parsing import parse
    from omb_py.orchestrate.planning.resolution import resolve
    from omb_py.results.compare.false_alarm_rate import keep
    from omb_py.results.compare.match import SIDES

    if base == new:
        raise UsageError("nothing differs between the sides: give one of them another request, venv, pip or variables")
    sides = {}
    for name, side in zip(SIDES, (base, new), strict=True):
        spec = spec_of(name, side.venv, side.modules, side.variables, side.pip)
        request = side.request.changed(store=store, seed=seed)
        sides[name] = SideRun(name, (resolve(parse(request)),), where_of(name, spec), spec.describe())
    report = compare(sides, rules, launches, budget_s=budget_s)
    keep(report, store)
    return report


def compare_commands(
    base: str,
    new: str,
    *,
    base_variables: Mapping[str, str] = _NO_TAGS,
    new_variables: Mapping[str, str] = _NO_TAGS,
    read: str = "",
    metrics: str | Sequence[str] = (),
    expect_libraries: str | Sequence[str] = (),
    store: str | Path = DEFAULT_STORE,
    launches: int = 10,
    rounds: int = 3,
    budget: float | None = None,
    delta: float = 0.03,
    tail_delta: float = 0.10,
    timeout: float = 600.0,
    seed: int | None = None,
    strict: bool = False,
) -> Comparison:
    """Start two programs in turn and compare what they print, as ``omb-py compare --run`` does.

    Args:
        base: command of BASE, as ``mpirun -n 2 old/osu_latency``; ``{out}`` in it is a file that it writes.
        new: command of NEW.
        base_variables: environment variables of BASE.
        new_variables: environment variables of NEW.
        read: whose output it is, as ``nccl-tests``; empty: told from the output.
        metrics: numbers in the output, each as ``NAME UNIT lower|higher REGEX``.
        expect_libraries: libraries that a side must load, each as ``NEW:libmpi.so=/opt/new/lib``.
        store: folder of the launches.
        launches: launches of each side in each round.
        rounds: 1 to 3; cells that are UNCLEAR are measured again.
        budget: seconds for all launches, which then choose them; None: `launches` a round.
        delta: smallest change of a median that matters, as a share.
        tail_delta: smallest change of a tail that matters, as a share.
        timeout: seconds after which a launch is killed.
        seed: seed of the order of sides; None: it is drawn, and stored.
        strict: `exit_code` is 4 if a cell is UNCLEAR or NOT COMPARABLE.

    Returns:
        The verdicts. Its `exit_code` is 5 where some of it was not measured.

    Raises:
        UsageError: a text is wrong, a program cannot be started, or its output is not known.
        NoVerdict: a program did not measure what was asked.
        LaunchFailed: a program died, or took too long.
    """
    from omb_py.orchestrate.compare.side_environments import SideSpec
    from omb_py.orchestrate.compare.stored import declared_rules
    from omb_py.orchestrate.programs.request import ProgramTexts
    from omb_py.orchestrate.programs.session import compare_programs
    from omb_py.results.compare.false_alarm_rate import keep
    from omb_py.results.compare.report import exit_code, headline

    sides: dict[CompareSide, SideSpec] = {
        "BASE": SideSpec(variables=dict(base_variables)),
        "NEW": SideSpec(variables=dict(new_variables)),
    }
    runs = f"BASE: {base}", f"NEW: {new}"
    texts = ProgramTexts(runs, read, _texts(metrics), _texts(expect_libraries), timeout, sides)
    design = texts.design(declared_rules(delta, tail_delta, rounds), launches, Path(store))
    report = compare_programs(replace(design, seed=seed, quiet=True, budget_s=budget))
    keep(report, Path(store))
    return Comparison(_cells(report), headline(report), exit_code(report, strict), report.run_id)


def _cells(report: CompareReport) -> tuple[CellVerdict, ...]:
    from omb_py.results.compare.report import overall

    def verdict(judged: JudgedCell, name: str) -> CellVerdict:
        answer = judged.answers.get("median")
        if answer is None:
            return CellVerdict(name, overall(judged))
        numbers = (answer.base_us, answer.new_us, answer.ratio, answer.low, answer.high)
        return CellVerdict(name, overall(judged), *numbers, answer.launches)

    named = report.named
    compared = [verdict(judged, named(cell.base)) for cell, judged in report.verdicts]
    return (*compared, *(CellVerdict(named(pair.base), "NOT COMPARABLE") for pair in report.matched.incomparable))


def accept(
    suite: str | Path,
    *,
    ranks: int | None = None,
    hosts: str | Sequence[str] = (),
    launcher: str | None = None,
    launcher_args: str | Sequence[str] = (),
    backends: str | Sequence[str] = (),
    bindings: str | Sequence[str] = (),
    device: str | None = None,
    contract: str | Path | None = None,
    baseline: str | None = None,
    correctness: bool = True,
    strict: bool = False,
    store: str | Path = DEFAULT_STORE,
    tags: Mapping[str, str] = _NO_TAGS,
    seed: int | None = None,
    timeout: float | None = None,
    quiet: bool = False,
    mock: str = "",
    resume: str | None = None,
    logs: str | Path | Sequence[str | Path] = (),
) -> Acceptance:
    """Measure a suite that has criteria, and judge them (docs/accept.md).

    Args:
        suite: name of a suite that comes with omb-py, or a TOML file.
        ranks: world size; None: what the suite says.
        contract: TOML file with what was promised; None: nothing.
        baseline: launches to compare with, as a run's id, ``last``, ``tag=K=V``, ``COLUMN=VALUE`` or a store's folder;
            None: the suite's.
        correctness: True: check every byte before anything is timed.
        strict: `exit_code` is 4 if a criterion is MARGINAL after the last launch.
        store: folder of the launches.
        resume: id of the run to resume, the beginning of one, or ``last``.
        logs: logs of OMB, or folders of them, that fill the table instead of launches.

    The other parameters are the fields of :class:`omb_py.Request`; entries of the suite override them.

    Raises:
        UsageError: the suite is wrong or has no criteria, or there is no such baseline, run or log.
        EnvironmentProblem: nothing of the suite can be measured here.
    """
    from omb_py.cli.commands.accept import checked_suite
    from omb_py.cli.suite_options import CommandLine
    from omb_py.options.table import read_value
    from omb_py.orchestrate.accept.from_logs import accept_logs
    from omb_py.orchestrate.accept.session import AcceptRequest
    from omb_py.orchestrate.accept.session import accept as judge_suite

    options = {
        "hosts": read_value("hosts", hosts),
        "launcher": launcher,
        "launcher-args": read_value("launcher_args", launcher_args),
        "backend": read_value("backends", backends),
        "binding": read_value("bindings", bindings),
        "device": device,
        "tag": tuple(f"{key}={value}" for key, value in tags_of(tags).items()),
        "seed": seed,
        "timeout": timeout,
        "mock": mock,
    }
    given = {name: value for name, value in options.items() if value not in (None, (), "")}
    promised = Path(contract) if contract else None
    asked = AcceptRequest(CommandLine(), given, ranks, promised, baseline, correctness, quiet, resume=resume)
    if logs:
        report = accept_logs(checked_suite(str(suite)), asked, _texts(logs), Path(store))
    else:
        report = judge_suite(checked_suite(str(suite)), asked, Path(store))
    return _acceptance(report, strict)


def _acceptance(report: AcceptReport, strict: bool) -> Acceptance:
    from omb_py.results.accept.report import exit_code, headline, sentence

    verdicts = tuple(
        CriterionVerdict(
            verdict.case.name,
            verdict.word,
            sentence(verdict),
            verdict.measured,
            verdict.low,
            verdict.high,
            verdict.limit,
            tuple(value for _, value in verdict.values),
        )
        for verdict in report.verdicts
    )
    checked = {check.name: check.word for check in report.checked}
    return Acceptance(report.word, verdicts, checked, headline(report), exit_code(report, strict), report.run_id)


def guidelines(
    which: str | Sequence[str] = (),
    *,
    backend: str = "mpi",
    binding: str | None = None,
    device: str = "cpu",
    ranks: int | None = None,
    hosts: str | Sequence[str] = (),
    launcher: str = "auto",
    launcher_args: str | Sequence[str] = (),
    sizes: str | int | Sequence[int] | None = None,
    iterations: str = "auto",
    warmup: int | None = None,
    launches: int | None = None,
    validate: bool = False,
    delta: float = 0.10,
    alpha: float = 0.01,
    rounds: int = 3,
    within: float | None = None,
    store: str | Path | None = DEFAULT_STORE,
    tags: Mapping[str, str] = _NO_TAGS,
    seed: int | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    quiet: bool = False,
    mock: str = "",
) -> GuidelineCheck:
    """Check whether collectives are slower than the same operation made of other calls of the library.

    Args:
        which: groups (``patterns``, ``monotony``, ``split``), collectives, or numbers as ``gl5``; empty: all.
        sizes: message sizes; None: 8 B to 512 KiB.
        launches: launches of the first round; the launch is the sample. None: 10, or as many as can show of all cells
            that they hold.
        delta: share by which a collective may be slower than its mock-up.
        alpha: probability of any false violation in a report.
        rounds: most rounds of measuring; later rounds measure what is undecided.
        within: seconds after which no launch begins; None: no limit.

    The other parameters are those of :func:`run`.

    Raises:
        UsageError: a word is unknown, or there are too few launches.
        EnvironmentProblem: the backend can do none of the guidelines.
    """
    from omb_py.orchestrate.checks.guidelines import DEFAULT_SIZES, check_guidelines
    from omb_py.results.checks.guideline_report import exit_code, headline
    from omb_py.results.checks.guidelines import GuidelineRules

    request = _request(
        "allreduce",
        store,
        tags,
        backends=(backend,),
        bindings=(binding,) if binding else (),
        device=device,
        ranks=ranks,
        hosts=hosts,
        launcher=launcher,
        launcher_args=launcher_args,
        sizes=sizes or DEFAULT_SIZES,
        iterations=iterations,
        warmup=warmup,
        validate=validate,
        seed=seed,
        timeout=timeout,
        quiet=quiet,
        mock=mock,
    )
    rules = GuidelineRules(alpha, delta, rounds)
    report = check_guidelines(request, [word.lower() for word in _texts(which)], rules, launches, within)
    verdicts = tuple(
        GuidelineVerdict(j.pair.name, j.pair.size_bytes, j.verdict, j.left_us, j.right_us, j.ratio, j.low, j.high)
        for j in report.judged
    )
    return GuidelineCheck(verdicts, dict(report.skipped), headline(report), exit_code(report), report.run_id)


def links(
    *,
    backend: str = "mpi",
    binding: str | None = None,
    device: str = "cpu",
    share_device: bool = False,
    ranks: int | None = None,
    hosts: str | Sequence[str] = (),
    per_node: int = 1,
    launcher: str = "auto",
    launcher_args: str | Sequence[str] = (),
    thread_level: str | None = None,
    small: int = 8,
    large: int = 1 << 20,
    iterations: int = 100,
    windows: int = 10,
    window: int = 8,
    passes: int = 5,
    launches: int = 5,
    rounds: str = "parallel",
    store: str | Path | None = DEFAULT_STORE,
    tags: Mapping[str, str] = _NO_TAGS,
    seed: int | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    quiet: bool = False,
    mock: str = "",
    logs: str | Path | Sequence[str | Path] = (),
    names: str = "{a}-{b}",
) -> LinkCheck:
    """Measure every pair of nodes, and measure again what is slower than the others (docs/links.md).

    Args:
        logs: logs of pairs, or folders of them, to judge instead; of the others `small`, `large` and `names` count.
        names: where a log's name says its two nodes, if its lines do not.
        per_node: ranks on each node.
        small: bytes of the message whose latency is measured.
        large: bytes of the messages whose bandwidth is measured.
        iterations: latency iterations of each pair and pass.
        windows: bandwidth windows of each pair, pass and direction.
        window: messages in flight.
        passes: number of measurements of every pair.
        launches: number of launches among which the passes are divided.
        rounds: ``parallel``: disjoint pairs at once; ``serial``: one after the other.

    The other parameters are those of :func:`run`.

    Raises:
        UsageError: there are too few ranks, or numbers contradict each other.
        EnvironmentProblem: hosts did not answer, or a rank was lost.
    """
    from omb_py.orchestrate.checks.links import SweepDesign, from_logs, placed, sweep
    from omb_py.results.checks.pair_logs import parse_names

    design = SweepDesign(small, large, iterations, windows, window, passes, launches, rounds)
    if logs:
        return _link_check(from_logs(_texts(logs), parse_names(names), design))
    request = _request(
        "latency",
        store,
        tags,
        backends=(backend,),
        bindings=(binding,) if binding else (),
        device=device,
        share_device=share_device,
        ranks=ranks,
        hosts=hosts,
        launcher=launcher,
        launcher_args=launcher_args,
        thread_level=thread_level,
        seed=seed,
        timeout=timeout,
        quiet=quiet,
        mock=mock,
    )
    return _link_check(sweep(placed(request, per_node, os.environ), design))


def _link_check(result: PairSweep) -> LinkCheck:
    verdicts = tuple(
        LinkVerdict(suspect.kind, result.name(suspect), suspect.metric, result.state(suspect), suspect.slower)
        for suspect in result.suspects
    )
    return LinkCheck(verdicts, result.names, NEGATIVE if result.confirmed else OK, result.run_id)


def report(
    store: str | Path = DEFAULT_STORE,
    filters: str | Sequence[str] = (),
    *,
    output: str | Path = "report.html",
    against: str | Path | None = None,
) -> ReportPage:
    """Write one self-contained HTML file that shows a store, or the rows that match the filters.

    Args:
        store: folder of the Parquet files.
        filters: ``COLUMN=VALUE``; the same column twice means any of the values.
        output: the file, which is written whole or not at all.
        against: a second store, which is compared with the first.

    Raises:
        UsageError: there is no such store, or a filter's column or value is wrong.
        EnvironmentProblem: the file cannot be written, or Plotly is not installed.
    """
    from omb_py.cli.output import write_file
    from omb_py.dashboards.base.reading import parse
    from omb_py.dashboards.report.build import report as build
    from omb_py.dashboards.report.html_page import page

    content = build(Path(store), parse(_texts(filters)), None if against is None else Path(against))
    write_file(Path(output), page(content))
    return ReportPage(Path(output), content.summary, content.problem, dict(content.skipped))
