"""Runs ``omb-py compare`` and ``omb-py aa``: which sides are compared, and what is printed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import click

from omb_py.cli.commands.benchmark import measuring_tool, request_of_line
from omb_py.cli.commands.suites import expanded_suite, run_command
from omb_py.cli.output import check_files, notes, write_report
from omb_py.cli.stored_cells import skipped
from omb_py.errors import OK, EnvironmentProblem, UsageError, nearest
from omb_py.options.request import DEFAULT_STORE
from omb_py.options.table import TABLE
from omb_py.orchestrate.compare.session import NEEDS_STORE, SideRun, against_itself, compare
from omb_py.orchestrate.compare.side_environments import SideSpec, where_of
from omb_py.orchestrate.compare.stored import compare_stored, declared_rules, given_rules
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.running.run import print_skipped
from omb_py.results.compare.false_alarm_rate import keep, site_rate
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import Side
from omb_py.results.compare.report import CompareReport, document_of, exit_code, headline
from omb_py.results.dialects.registry import translate_line
from omb_py.suites import names
from omb_py.suites.shipped import shipped

_TURNED = "the benchmark comes before its options: omb-py compare … allreduce {}"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options that ``compare`` and ``aa`` share."""

    launches: int
    rounds: int
    delta: float | None
    """None: the usual one, or that of a stored comparison; so is the next."""
    tail_delta: float | None
    seed: int | None
    strict: bool
    form: str
    output: Sequence[Path]
    quiet: bool
    store: Path | None
    budget_s: float | None = None
    resume: str | None = None
    trust_sides: bool = False

    @property
    def folder(self) -> Path:
        """The store of reports."""
        return self.store or DEFAULT_STORE

    @property
    def rules(self) -> CompareRules:
        """The rules of the comparison. Raises UsageError."""
        return declared_rules(self.delta, self.tail_delta, self.rounds, self.trust_sides)

    def check_measured(self) -> None:
        """Raises UsageError where an option is only for sides that are stored."""
        if self.trust_sides:
            raise UsageError("--trust-sides is for sides that are stored, and these are measured in turn: leave it out")


def run_compare(words: Sequence[str], specs: Mapping[Side, SideSpec], options: CompareOptions) -> int:
    """Compare two sides that are measured now, or two that are stored; the exit code."""
    check_files(options.output)
    words = _translate(words)
    if options.resume and not words:
        raise UsageError("--resume needs the options of the comparison: repeat its command line and add --resume")
    differ = any(spec.describe() for spec in specs.values())
    if differ or (words and (_is_benchmark(words[0]) or _is_suite(words[0]))):
        return show_report(_compare_measured(words, specs, options), options)
    return show_report(_compare_stored(words, options), options)


def _compare_measured(words: Sequence[str], specs: Mapping[Side, SideSpec], options: CompareOptions) -> CompareReport:
    options.check_measured()
    if not words:
        raise UsageError(
            "which benchmark is to be measured? as omb-py compare --env BASE=v1 --env NEW=v2 allreduce -n 2"
        )
    if specs["BASE"] == specs["NEW"]:
        if specs["BASE"].env:
            where_of("BASE", specs["BASE"])  # one that is missing is the first thing to say
        both = specs["BASE"].describe()
        message = f"both sides are {both}" if both else "nothing differs between the sides"
        raise UsageError(
            f"{message}: give --pip, --env, --module, --set or --option for one of them; {words[0]} against itself is "
            f"omb-py aa {words[0]}"
        )

    note = notes(options.quiet)
    sides: dict[Side, SideRun] = {}
    for side, spec in specs.items():
        try:
            requests = _requests([*words, *spec.options], options)
        except UsageError as error:
            raise UsageError(f"{side}: {error}" if spec.options else str(error)) from None
        sides[side] = SideRun(side, requests, where_of(side, spec, note=note), spec.describe())
    return compare(sides, options.rules, options.launches, resume=options.resume, budget_s=options.budget_s)


def _compare_stored(words: Sequence[str], options: CompareOptions) -> CompareReport:
    if options.resume:
        raise UsageError("--resume needs sides that are measured, and these are stored: leave it out")
    if options.budget_s is not None:
        raise UsageError("--budget is for sides that are measured, and these are stored: leave it out")
    unknown = next((word for word in words if word.startswith("-")), None)
    if unknown is not None:
        flag = unknown.partition("=")[0]
        if any(flag in option.flags.split() for option in TABLE):
            raise UsageError(_TURNED.format(f"{unknown} …"))
        own = [name for param in click.get_current_context().command.params for name in param.opts]
        raise UsageError(f"no such option {unknown}: {nearest(unknown, [n for n in own if n.startswith('--')])}")
    # further rounds need fresh launches, and stored sides get none; both sides may come to the same file
    rules = replace(options, rounds=1).rules
    asked = given_rules(options.delta, options.tail_delta)
    return compare_stored(words, options.folder, rules, on_skip=cache(skipped), asked=asked)


def run_aa(words: Sequence[str], reports: int, options: CompareOptions) -> int:
    """Compare a library with itself, `reports` times; the highest exit code."""
    check_files(options.output)
    if not words:
        raise UsageError("which benchmark? as omb-py aa allreduce -n 2")
    words, code = _translate(words), OK
    for number in range(reports):
        own = replace(options, seed=None if options.seed is None else options.seed + number)
        resume = options.resume if number == 0 else None
        report = against_itself(_requests(words, own), own.rules, own.launches, resume, own.budget_s)
        report_code = exit_code(report, own.strict)
        if reports > 1 and own.form == "table" and report_code == OK and number < reports - 1:
            keep(report, own.folder)  # the last and those with an alarm are shown whole
            click.echo(f"report {number + 1} of {reports}: {headline(report)}")
        else:
            show_report(report, own)
        code = max(code, report_code)
    return code


def _translate(words: Sequence[str]) -> Sequence[str]:
    """The words, in ours where they begin with another tool's name of a benchmark; a folder is a side. Raises
    UsageError."""
    if not words or _is_benchmark(words[0]) or _is_suite(words[0]) or Path(words[0]).is_dir():
        return words
    return translate_line(words) or words


def _is_benchmark(name: str) -> bool:
    return name.lower().removeprefix("osu_") in names() or measuring_tool(name) is not None


def _is_suite(word: str) -> bool:
    """Is this a shipped suite or a suite's file? A path with another ending is a store."""
    return word in shipped() or word.endswith(".toml")


def _requests(words: Sequence[str], options: CompareOptions) -> tuple[CheckedRequest, ...]:
    """The requests of a benchmark's command line, or of a suite's, with store, seed and quiet of the comparison."""
    if words[0].startswith("-"):
        raise UsageError(_TURNED.format(" ".join(words[:2])))
    if not (_is_benchmark(words[0]) or _is_suite(words[0])):
        raise UsageError(f"unknown benchmark {words[0]!r}: {nearest(words[0], [*names(), *shipped()])}")
    checked = _request_suite(words) if _is_suite(words[0]) else (_request_benchmark(words),)
    store = options.store or checked[0].request.store
    return tuple(each.changed(store=store, seed=options.seed, quiet=options.quiet) for each in checked)


def _request_suite(words: Sequence[str]) -> tuple[CheckedRequest, ...]:
    with run_command().make_context("run", list(words), parent=click.get_current_context()) as ctx:
        values = dict(ctx.params)
        if values["no_store"]:
            raise UsageError(NEEDS_STORE)
        if values["dry_run"]:
            raise UsageError("--dry-run shows what omb-py run would do: leave it out")
        if values["resume"] or values["run"]:
            raise UsageError(f"unexpected word {values['run'] or '--resume'}: give --resume before the suite")
        _, expanded = expanded_suite(values["suite"], values["ranks"])
    print_skipped(expanded.skips)
    if not expanded.checked:
        raise EnvironmentProblem("nothing of this suite can be measured here")
    return tuple(expanded.checked)


def _request_benchmark(words: Sequence[str]) -> CheckedRequest:
    return resolve(parse(request_of_line(words, unstored=NEEDS_STORE)))


def show_report(report: CompareReport, options: CompareOptions) -> int:
    """Print the report of a comparison, write its files and keep it; the exit code."""
    if report.seed is not None:  # measured now: stored comparisons have no seed
        keep(report, options.folder)
    report.site = site_rate(options.folder).sentence()
    return write_report(document_of(report, options.strict), options.form, options.output)
