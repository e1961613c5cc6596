"""``omb-py run SUITE`` and ``omb-py suite show|check|list``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import click
from click.shell_completion import CompletionItem

from omb_py.cli.batch_option import submitting
from omb_py.cli.commands.benchmark import rank_0_speaks
from omb_py.cli.help import CONTEXT, Grouped, Page, Verbs, debug_option, tool_option
from omb_py.cli.option_params import measuring_option, resume_option
from omb_py.cli.suite_options import LINE_ONLY, RANKS, RUN_WIDE, CommandLine, given
from omb_py.errors import OK, OmbError, UsageError
from omb_py.options.request import DEFAULT_RANKS, NEWEST
from omb_py.options.table import options_of
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.running.resume import remaining
from omb_py.orchestrate.suites.expand import Expanded, expand, find_suite, load_suite
from omb_py.orchestrate.suites.node_layout import ANY_NODES
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.orchestrate.suites.trust import demands, remember, require_trust
from omb_py.suites import find, names
from omb_py.suites.shipped import shipped

_MANY = {"criterion": "criteria"}
_DEFAULT = re.compile(r"\(default: (.*)\)$", re.S)
_STRONGER = (
    "What a line of the suite's entry says counts first, then the options given here, then the suite's [defaults], "
    "then the default of the benchmark. Options of which no default is given here follow this rule."
)
_SHARE = 0.75
"""An option that fewer of the benchmarks take is explained on their pages; pages of suites only name it."""


def _complete_suite(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    shipped_names = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
    return shipped_names or [CompletionItem(incomplete, type="file")]


def suite_argument() -> click.Argument:
    """A shipped suite, or a file; completion offers both."""
    return click.Argument(["suite"], metavar="SUITE|FILE", shell_complete=_complete_suite)


def suite_options(of_the_line: bool) -> list[click.Parameter]:
    """Every option of every benchmark, once; hidden only where no benchmark takes it.

    Args:
        of_the_line: with the options that say nothing about what is measured, as ``--format``.
    """
    options: dict[str, Grouped] = {}
    takers: Counter[str] = Counter()
    benchmarks = [find(name) for name in names()]
    for benchmark in benchmarks:
        for option in options_of(benchmark):
            long = option.long
            if long in LINE_ONLY and not of_the_line:
                continue
            hidden = option.hidden or not option.takes(benchmark)
            takers[long] += not hidden
            if long not in options or (options[long].hidden and not hidden):
                options[long] = _add_suite_default(measuring_option(option, benchmark), long)
    for long, param in options.items():
        param.brief = takers[long] < _SHARE * len(benchmarks)
    letters: set[str] = set()
    for param in options.values():  # -t means another thing to each of three benchmarks: here it belongs to the first
        param.opts = [opt for opt in param.opts if opt.startswith("--") or opt not in letters]
        letters.update(param.opts)
    return list(options.values())


def _add_suite_default(option: Grouped, long: str) -> Grouped:
    """The option, with its default in a suite where that is not what the head of the page says of all."""
    if long in LINE_ONLY:
        return option
    usual = r"(default: the suite's, else \1)" if long in RUN_WIDE else ""
    option.help = _DEFAULT.sub(usual, option.help or "").rstrip()
    if long == RANKS:
        number = f"{DEFAULT_RANKS}, or what the launcher around it started"
        option.help = f"Number of ranks where an entry of the suite says none. (default: the suite's, else {number})"
    return option


def run_command() -> click.Command:
    page = Page(
        "run",
        params=[
            suite_argument(),
            word_after_resume(),
            *suite_options(of_the_line=True),
            resume_option(),
            tool_option(
                "Output", "--dry-run", "Print the launches, their cells and the expected time, and measure nothing."
            ),
        ],
        callback=run_suite_command,
        help="Measure a suite: one that comes with omb-py (omb-py suite list), or a file in TOML (docs/suites.md). "
        "Benchmarks with equal needs share a start of the ranks; all rows are stored under one run.\n\n"
        f"{_STRONGER}\n\n"
        "What cannot be measured here is skipped, and named with its reason at the end. After a validation that fails "
        "the rest goes on.",
        examples=_EXAMPLES,
    )
    return submitting(page, _check)


def _check(values: dict[str, Any]) -> None:
    """Raise OmbError on what is wrong in any place, before a job waits for its nodes."""
    load_suite(values["suite"])


_EXAMPLES = (
    "omb-py run quick",
    "omb-py run osu -n 4 --tag cluster=alps",
    "mpirun -n 4 omb-py run quick",
    "omb-py run ./mine.toml --format json --no-store",
    "omb-py run osu -n 4 --resume",
)


def word_after_resume() -> click.Argument:
    """The run of ``--resume RUN``: an optional value is glued to its option, but people write a blank."""
    return click.Argument(["run"], required=False, metavar="")


def run_suite_command(
    suite: str, run: str | None, resume: str | None, ranks: int | None, dry_run: bool, **values: object
) -> int:
    from omb_py.orchestrate.running.suite_run import run_suite, run_to_resume  # loads NumPy, unlike --help

    if run is not None and resume != NEWEST:
        raise UsageError(f"unexpected word {run!r}: write run SUITE [OPTIONS], and --resume={run} to resume a run")
    try:
        read, expanded = expanded_suite(suite, ranks, starting=not dry_run)
    except OmbError as error:
        if rank_0_speaks():
            return error.exit_code
        raise
    if dry_run and rank_0_speaks():
        return OK
    if dry_run:
        from omb_py.orchestrate.info.suite_show import describe_suite, expected_text  # loads scipy

        launches = plan_launches(expanded.checked)
        known = run_to_resume(expanded.requests, run or resume)
        left = launches if known is None else remaining(launches, known)
        click.echo(describe_suite(read, left, expanded.skips))
        click.echo(expected_text(left, expanded.requests[0].store if expanded.requests else None))
        return OK
    return run_suite(expanded, run or resume)


def expanded_suite(word: str, ranks: int | None, starting: bool = True) -> tuple[Suite, Expanded]:
    """Load a suite; with it its requests under the options of the current command line, and what is skipped here.

    Args:
        starting: whether it will be measured, which it must be trusted for.
    """
    from omb_py.orchestrate.running.suite_run import ranks_here

    options = given(click.get_current_context())
    suite = load_suite(word, starting)
    for name in (RANKS, "resume", "dry-run"):
        options.pop(name, None)
    return suite, expand(suite, CommandLine(), options, ranks_here(ranks))


def group() -> click.Command:
    verbs = (
        Page("list", params=[debug_option()], callback=run_list, help="The suites that come with omb-py."),
        Page(
            "show",
            params=[suite_argument(), *suite_options(of_the_line=False), debug_option()],
            callback=run_show,
            help=f"What a suite says, and which launches are planned for it here.\n\n{_STRONGER}",
            examples=("omb-py suite show quick", "omb-py suite show osu -n 4"),
        ),
        Page(
            "check",
            params=[
                suite_argument(),
                tool_option(
                    "Security",
                    "--trust",
                    "Let the file, as it is now, start what it lists and read outside its folder. (default: ask)",
                ),
                debug_option(),
            ],
            callback=run_check,
            help="Read a suite, say whether every line of it is right, and list what only a trusted file may start or "
            "read; measure nothing.",
            examples=("omb-py suite check ./mine.toml", "omb-py suite check --trust ./mine.toml"),
        ),
    )
    return Verbs(
        "suite",
        commands=verbs,
        context_settings=dict(CONTEXT),
        params=[debug_option()],
        no_args_is_help=False,
        help="List, show and check suites; omb-py run measures them.",
    )


def run_list() -> int:
    suites = [load_suite(name) for name in shipped()]
    width = max(len(suite.name) for suite in suites)
    for suite in suites:
        click.echo(f"{suite.name:<{width}}  {suite.description}")
    return OK


def run_show(suite: str, ranks: int | None, **values: object) -> int:
    from omb_py.orchestrate.info.suite_show import describe_suite  # loads scipy, which measuring does not need

    read, expanded = expanded_suite(suite, ranks, starting=False)
    click.echo(describe_suite(read, plan_launches(expanded.checked), expanded.skips))
    return OK


def run_check(suite: str, trust: bool) -> int:
    """Print that the suite is right, and what it needs trust for. Raises UsageError where it is not."""
    # accept.py imports this module, and criteria load scipy, which measuring does not need.
    from omb_py.cli.commands.accept import check_job
    from omb_py.orchestrate.accept.criteria_file import read_accepting
    from omb_py.orchestrate.accept.session import check_suite

    read = find_suite(suite)
    if not trust:
        require_trust(read, starting=False)
    check_job(read, read_accepting(read).background_job)
    expanded = expand(read, CommandLine(), contents=ANY_NODES)
    requests = expanded.requests
    criteria = check_suite(read, expanded)
    measured = len({request.benchmark for request in requests})
    counts = ((measured, "benchmark"), (len(requests), "sweep"), *(((criteria, "criterion"),) if criteria else ()))
    parts = (f"{count} {word if count == 1 else _MANY.get(word, f'{word}s')}" for count, word in counts)
    click.echo(f"{read.file}: fine: suite {read.name}, {', '.join(parts)}")
    needed = demands(read)
    for demand in needed:
        click.echo(f"{read.file}: only for a trusted file: {demand}")
    if trust and needed:
        remember(read)
        click.echo(f"{read.file}: trusted as it is now")
    return OK
