"""Runs ``omb-py compare`` and ``omb-py aa``: which sides are compared, and what is printed of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import click

from omb_py.cli.commands.benchmark import request_of_line
from omb_py.cli.commands.suites import expanded_suite, run_command
from omb_py.cli.output import check_files, write_report
from omb_py.cli.stored_cells import skipped
from omb_py.errors import OK, EnvironmentProblem, UsageError, nearest
from omb_py.options.request import DEFAULT_STORE
from omb_py.options.table import TABLE
from omb_py.orchestrate.compare.session import SideRun, against_itself, compare
from omb_py.orchestrate.compare.side_environments import parse_sides, where_of
from omb_py.orchestrate.compare.stored import compare_stored, declared_rules
from omb_py.orchestrate.planning.plan import CheckedRequest, check
from omb_py.orchestrate.running.suite_run import say_skipped
from omb_py.results.compare.false_alarm_rate import keep, site_rate
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import document_of, exit_code, headline
from omb_py.suites import names
from omb_py.suites.shipped import shipped

_TURNED = "the benchmark comes before its options: omb-py compare … allreduce {}"


def run_compare(
    words: Sequence[str],
    envs: Sequence[str],
    pips: Sequence[str],
    modules: Sequence[str],
    sets: Sequence[str],
    options: Sequence[str],
    **given: Any,
) -> int:
    """Compare two sides that are measured now, or two that are stored; the exit code."""
    sides = parse_sides(envs, modules, sets, options, pips)
    check_files(given["output"])
    differ = any(spec.words() for spec in sides.values())
    if given["resume"] and not words:
        raise UsageError("--resume needs the options of the comparison: repeat its command line and add --resume")
    measures = differ or (words and (_is_benchmark(words[0]) or _is_suite(words[0])))
    return _shown(_measured(words, sides, given) if measures else _stored(words, given), given)


def _measured(words: Sequence[str], specs: Any, given: dict[str, Any]) -> Any:
    if not words:
        raise UsageError(
            "which benchmark is to be measured? as omb-py compare --env BASE=v1 --env NEW=v2 allreduce -n 2"
        )
    if specs["BASE"] == specs["NEW"]:
        message = (
            f"both sides are {specs['BASE'].words()}" if specs["BASE"].words() else "nothing differs between the sides"
        )
        raise UsageError(
            f"{message}: give --pip, --env, --module, --set or --option for one of them; {words[0]} against itself is "
            f"omb-py aa {words[0]}"
        )
    sides = {}

    def note(text: str) -> None:
        if not given["quiet"]:
            click.echo(f"omb-py: {text}", err=True)

    for side in SIDES:
        try:
            requests = _requests([*words, *specs[side].options], given)
        except UsageError as error:
            raise UsageError(f"{side}: {error}" if specs[side].options else str(error)) from None
        sides[side] = SideRun(side, requests, where_of(side, specs[side], note=note), specs[side].words())
    return compare(sides, _rules(given), given["launches"], resume=given["resume"])


def _stored(words: Sequence[str], given: dict[str, Any]) -> Any:
    if given["resume"]:
        raise UsageError("--resume needs sides that are measured, and these are stored: leave it out")
    unknown = next((w for w in words if w.startswith("-")), None)
    if unknown is not None:
        flag = unknown.partition("=")[0]
        if any(flag in option.flags.split() for option in TABLE):
            raise UsageError(_TURNED.format(f"{unknown} …"))
        own = [name for param in click.get_current_context().command.params for name in param.opts]
        raise UsageError(f"no such option {unknown}: {nearest(unknown, [n for n in own if n.startswith('--')])}")
    # Further rounds need fresh launches, and stored sides get none.
    # both sides may come to the same file
    return compare_stored(words, given["store"] or DEFAULT_STORE, _rules(given, rounds=1), on_skip=cache(skipped))


def run_aa(words: Sequence[str], reports: int, **given: Any) -> int:
    """Compare a library with itself, `reports` times; the highest exit code."""
    check_files(given["output"])
    if not words:
        raise UsageError("which benchmark? as omb-py aa allreduce -n 2")
    code = OK
    for number in range(reports):
        seed = None if given["seed"] is None else given["seed"] + number
        report = against_itself(_requests(words, {**given, "seed": seed}), _rules(given), given["launches"])
        report_code = exit_code(report, given["strict"])
        if reports > 1 and given["form"] == "table" and report_code == OK and number < reports - 1:
            keep(report, given["store"] or DEFAULT_STORE)  # the last and those with an alarm are shown whole
            click.echo(f"report {number + 1} of {reports}: {headline(report)}")
        else:
            _shown(report, given)
        code = max(code, report_code)
    return code


def _is_benchmark(name: str) -> bool:
    return name.lower().removeprefix("osu_") in names()


def _rules(given: dict[str, Any], rounds: int | None = None) -> Any:
    return declared_rules(given["delta"], given["tail_delta"], given["rounds"] if rounds is None else rounds)


def _is_suite(word: str) -> bool:
    """Is this a shipped suite or a suite's file? A path with another ending is a store."""
    return word in shipped() or word.endswith(".toml")


def _unknown(word: str) -> str:
    return f"unknown benchmark {word!r}: {nearest(word, [*names(), *shipped()])}"


def _requests(words: Sequence[str], given: dict[str, Any]) -> tuple[CheckedRequest, ...]:
    """The requests of a benchmark's command line, or of a suite's, with store, seed and quiet of the comparison."""
    if words[0].startswith("-"):
        raise UsageError(_TURNED.format(" ".join(words[:2])))
    if not (_is_benchmark(words[0]) or _is_suite(words[0])):
        raise UsageError(_unknown(words[0]))
    checked = _of_suite(words) if _is_suite(words[0]) else (_of_benchmark(words),)
    store = given["store"] or checked[0].request.store
    return tuple(each.changed(store=store, seed=given["seed"], quiet=given["quiet"]) for each in checked)


_STORED = "a comparison stores its launches, so that it can be looked at again: leave --no-store out"


def _of_suite(words: Sequence[str]) -> tuple[CheckedRequest, ...]:
    with run_command().make_context("run", list(words), parent=click.get_current_context()) as ctx:
        values = dict(ctx.params)
        if values["no_store"]:
            raise UsageError(_STORED)
        if values["dry_run"]:
            raise UsageError("--dry-run shows what omb-py run would do: leave it out")
        if values["resume"] or values["run"]:
            raise UsageError(f"unexpected word {values['run'] or '--resume'}: give --resume before the suite")
        _, expanded = expanded_suite(values["suite"], values["ranks"])
    say_skipped(expanded.skips)
    if not expanded.checked:
        raise EnvironmentProblem("nothing of this suite can be measured here")
    return tuple(expanded.checked)


def _of_benchmark(words: Sequence[str]) -> CheckedRequest:
    return check(request_of_line(words, unstored=_STORED))


def _shown(report: Any, given: dict[str, Any]) -> int:
    store = given["store"] or DEFAULT_STORE
    if report.seed is not None:  # measured now: stored comparisons have no seed
        keep(report, store)
    report.site = site_rate(store).sentence()
    return write_report(document_of(report, given["strict"]), given["form"], given["output"])
