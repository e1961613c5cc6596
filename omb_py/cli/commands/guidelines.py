"""``omb-py guidelines``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from omb_py.backends.registry import in_process
from omb_py.cli.commands.benchmark import request_of
from omb_py.cli.help import Page, exit_codes, tool_option
from omb_py.cli.option_params import measuring_options
from omb_py.cli.output import check_files, report_options, write_report
from omb_py.errors import NEGATIVE
from omb_py.grammar.values import parse_duration, parse_fraction
from omb_py.options.readers import whole
from omb_py.orchestrate.checks.guidelines import DEFAULT_LAUNCHES, DEFAULT_SIZES, GROUPS, check_guidelines
from omb_py.results.checks.guideline_report import document_of
from omb_py.results.checks.guidelines import GuidelineRules
from omb_py.suites.guidelines.patterns import PATTERNS

_SHARED = tuple(
    (
        "backends bindings sizes ranks hosts launcher launcher_args device iterations warmup time_limit "
        "validate timeout seed quiet store no_store tags mock inject debug"
    ).split()
)
_EXAMPLES = (
    "omb-py guidelines -n 4",
    "omb-py guidelines allreduce gl9 -n 4 -m 8:1M:8 --launches 20",
    "omb-py guidelines patterns --backend gloo -c --output guidelines.xml",
    "omb-py explain gl5_allreduce",
)


def command() -> click.Command:
    option = partial(tool_option, "How verdicts are made")
    own: list[click.Parameter] = [
        click.Argument(["words"], nargs=-1, metavar="[WHICH]..."),
        option(
            "--launches N",
            f"Start the ranks N times; the launch is the sample. (default: {DEFAULT_LAUNCHES}, or as many as can "
            "show of that many cells that all hold: 16 of 195)",
            whole("launches", 1),
        ),
        option(
            "--delta P",
            "By how much a collective may be slower than its mock-up. (default: 10%)",
            parse_fraction,
            default=0.10,
        ),
        option("--alpha P", "Chance of any false violation in a report. (default: 1%)", parse_fraction, default=0.01),
        option(
            "--rounds N",
            "What is not known to hold after the first launches is measured again, in fresh launches, as many "
            "first, then twice as many, which alone decide: at most N rounds. 1: the first launches decide. "
            "(default: 3)",
            whole("rounds", 1),
            default=3,
        ),
        option(
            "--within TIME",
            "Begin no launch after so long; what is undecided then is UNCLEAR. (default: no limit)",
            parse_duration,
        ),
        *report_options(),
    ]
    shared = [_fitting(param) for param in measuring_options(PATTERNS[0].benchmark) if param.name in _SHARED]
    return Page(
        "guidelines",
        params=[*own, *shared],
        callback=run_guidelines,
        help="Is a collective of the library slower than what other calls of the same library make of it? Allreduce "
        "against reduce and bcast, a message against a larger one and against its parts: no reference is needed.\n\n"
        f"WHICH: {', '.join(GROUPS)}; a collective, as allreduce; a number, as gl5. (default: all)\n\n"
        "Both sides are timed interleaved in every launch (docs/guidelines.md).",
        examples=_EXAMPLES,
        codes=exit_codes({NEGATIVE: "a guideline is violated, or -c found wrong bytes"}),
    )


def _fitting(param: click.Parameter) -> click.Parameter:
    assert isinstance(param, click.Option)
    if param.name == "sizes":
        param.help = (param.help or "").partition("(default:")[0] + f"(default: {DEFAULT_SIZES})"
    if param.name == "ranks":
        param.help = "Number of ranks. (default: 2)"
    return param


def run_guidelines(
    words: Sequence[str],
    delta: float,
    alpha: float,
    rounds: int,
    within: float | None,
    form: str,
    output: Sequence[Path],
    launches: int | None,
    **given: object,
) -> int:
    check_files(output)
    request = request_of(PATTERNS[0].benchmark, given)
    request = request.changed(sizes=request.sizes or DEFAULT_SIZES)
    rules = GuidelineRules(alpha, delta, rounds)
    report = check_guidelines(request, [text.lower() for text in words], rules, launches, within)
    document = replace(document_of(report), simulated=in_process(request.backends))
    return write_report(document, form, output)
