"""``omb-py accept``: a suite with criteria, and its verdicts in every form."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli.app import usage_line
from omb_py.cli.batch_option import submitting
from omb_py.cli.commands.benchmark import request_of_line
from omb_py.cli.commands.suites import suite_argument, suite_options, word_after_resume
from omb_py.cli.help import Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import resume_option, table_option
from omb_py.cli.output import check_files, report_options, write_report
from omb_py.cli.suite_options import LINE_ONLY, RANKS, CommandLine, given
from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK, UsageError
from omb_py.options.request import DEFAULT_STORE, NEWEST
from omb_py.orchestrate.suites.expand import expand, load_suite
from omb_py.orchestrate.suites.node_layout import ANY_NODES
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.results.store.redact import redact_words

if TYPE_CHECKING:
    from omb_py.results.accept.report import AcceptReport

_NOT_HERE = frozenset({"launches", "validation", "graph", "json", "full", "tail-lat"})
"""Options whose place is taken by the suite's criteria or by the form of the report."""
_WITH_LOGS = frozenset({"from", "contract", "strict", "format", "output", "quiet", "store", "debug"})
"""Options that say something where nothing is measured."""
_CODES = exit_codes(
    {
        OK: "every criterion is met; without --strict some may be MARGINAL",
        NEGATIVE: "a criterion is missed, or a byte was wrong",
        ENVIRONMENT: "something could not be measured: a criterion without a measurement, ranks that died, a missing "
        "node",
        INCONCLUSIVE: "nothing was decided; with --strict: a criterion is MARGINAL after the last launch",
    }
)
_EXAMPLES = (
    "omb-py accept acceptance -n 4 --output acceptance.html --output acceptance.xml",
    "omb-py accept nightly --baseline tag=baseline=spring",
    "omb-py accept ./contract.toml --hosts n1,n2,n3,n4 -n 8 --strict",
    "omb-py accept acceptance -n 4 --resume",
)


def command() -> click.Command:
    option = partial(tool_option, "How it is judged")
    page = Page(
        "accept",
        params=[
            suite_argument(),
            word_after_resume(),
            option(
                "--baseline SIDE",
                "For criteria with a baseline, launches of several nights: tag=K=V; COLUMN=VALUE; or the folder of a "
                "store. (default: the suite's)",
                str,
            ),
            option(
                "--contract FILE",
                "What was promised for the rows of the suite, and what the nodes have (TOML). (default: nothing)",
                Path,
            ),
            option(
                "--from logs FILE",
                "Measure nothing: fill the table from logs of OMB, or a folder of them; repeat it. (default: measure)",
                str,
                multiple=True,
            ),
            option(
                "--no-correctness no_correctness",
                "Do not check every byte before anything is timed; the report says so. (default: off)",
            ),
            option("--strict", "Exit code 4 where a criterion is MARGINAL after the last launch. (default: off)"),
            *(param for param in suite_options(of_the_line=False) if _is_offered(param)),
            *report_options(),
            tool_option("Output", "--quiet", "No progress and no notes on stderr. (default: off)"),
            table_option("store"),
            resume_option(),
            debug_option(),
        ],
        callback=run_accept,
        help="Is this machine as good as promised? Measures a suite that has criteria (docs/accept.md): every byte is "
        "checked first, then launches are made until each criterion is PASS or FAIL, or MARGINAL after the suite's "
        "maximum. All launches count. What cannot be measured is an ERROR, never a PASS.",
        examples=_EXAMPLES,
        codes=_CODES,
    )
    return submitting(page, _check)


def _check(values: dict[str, Any]) -> None:
    """Raise OmbError on what is wrong in any place, before a job waits for its nodes."""
    check_files(values["output"])
    suite = checked_suite(values["suite"])
    if values["contract"]:
        from omb_py.orchestrate.accept.contract_file import read_contract
        from omb_py.orchestrate.accept.session import check_criteria  # loads scipy, which --help does not need

        read_contract(values["contract"], suite, check_criteria(suite)[1])


def checked_suite(word: str) -> Suite:
    """Load a suite with criteria. Raises UsageError where it has none, or they or the background job are wrong."""
    from omb_py.orchestrate.accept.session import check_criteria  # loads scipy, which --help does not need

    suite = load_suite(word)
    expand(suite, CommandLine(), contents=ANY_NODES)  # a wrong line is named before a criterion that is missing
    how, _ = check_criteria(suite)
    check_job(suite, how.background_job)
    return suite


def check_job(suite: Suite, words: Sequence[str]) -> None:
    """Check the command line of an interference test's background job. Raises UsageError."""
    if not words:
        return
    try:
        request_of_line(words)
    except (click.UsageError, UsageError) as error:
        message = usage_line(error, words) if isinstance(error, click.UsageError) else str(error)
        raise UsageError(f"{suite.file}: [accept] key 'background-job': {message}") from None


def _is_offered(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and not any(opt.removeprefix("--") in _NOT_HERE for opt in param.opts)


def run_accept(
    suite: str,
    ranks: int | None,
    baseline: str | None,
    contract: Path | None,
    logs: tuple[str, ...],
    no_correctness: bool,
    strict: bool,
    form: str,
    output: Sequence[Path],
    quiet: bool,
    store: Path | None,
    run: str | None,
    resume: str | None,
    **values: object,
) -> int:
    from omb_py.orchestrate.accept.from_logs import accept_logs
    from omb_py.orchestrate.accept.session import AcceptRequest, accept

    check_files(output)
    if run is not None and resume != NEWEST:
        raise UsageError(f"unexpected word {run!r}: write accept SUITE [OPTIONS], and --resume={run} to resume a run")
    options = given(click.get_current_context())
    own = {"baseline", "contract", "from", "no-correctness", "strict", "output", "resume", RANKS} | LINE_ONLY
    request = AcceptRequest(
        CommandLine(),
        {name: value for name, value in options.items() if name not in own},
        ranks,
        contract,
        baseline,
        correctness=not no_correctness,
        quiet=quiet,
        command=f"omb-py {' '.join(map(shlex.quote, redact_words(sys.argv[1:])))}",
        resume=run or resume,
    )
    if logs:
        useless = [f"--{name}" for name in options if name not in _WITH_LOGS]
        if useless:
            raise UsageError(f"--from measures nothing, so {useless[0]} says nothing: leave it out")
        verdicts = accept_logs(checked_suite(suite), request, logs, store or DEFAULT_STORE)
        return show(verdicts, form, output, strict)
    verdicts = accept(checked_suite(suite), request, store or DEFAULT_STORE)
    return show(verdicts, form, output, strict)


def show(verdicts: AcceptReport, form: str = "table", output: Sequence[Path] = (), strict: bool = False) -> int:
    """Print and write the verdicts; the exit code.

    Args:
        verdicts: :class:`omb_py.results.accept.report.AcceptReport`.
        form: one of :data:`omb_py.cli.output.FORMS`, for stdout.
        output: files, each of a form by its ending.
        strict: the exit code is 4 where a criterion is MARGINAL.
    """
    from omb_py.results.accept.report import document_of

    def page() -> str:
        from omb_py.dashboards.report.acceptance import acceptance_page  # only an .html file needs the figures

        return acceptance_page(verdicts)

    return write_report(document_of(verdicts, strict), form, output, page)
