"""``omb-py tune``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from omb_py.backends.knobs import LibraryKnobs
from omb_py.cli.commands.benchmark import request_of_line
from omb_py.cli.commands.suites import resume_option
from omb_py.cli.help import CONTEXT, EXIT_CODES, Page, debug_option, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import check_files, report_options, write_report
from omb_py.cli.param_types import Parsed, whole
from omb_py.errors import INCONCLUSIVE, EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import parse_duration, parse_fraction, parse_whole
from omb_py.options.request import DEFAULT_RANKS, DEFAULT_STORE
from omb_py.orchestrate.planning.plan import CheckedRequest, check
from omb_py.orchestrate.tune.candidates import candidates as candidates_of
from omb_py.orchestrate.tune.candidates import parse_knob
from omb_py.orchestrate.tune.given import distinct, parse_candidate
from omb_py.orchestrate.tune.selection import library_of
from omb_py.orchestrate.tune.session import TuneRequest, tune
from omb_py.results.store.redact import redact_words
from omb_py.results.tune.design import Design
from omb_py.results.tune.report import document_of
from omb_py.results.tune.rules import Setting
from omb_py.suites import find, names

_CODES = (
    ("0", "settings that are faster were proved, or nothing is faster than the default"),
    ("1", "the proof says SLOWER: no file is written"),
    EXIT_CODES[2],
    ("3", "the library has no such knobs, or cannot be measured as it is"),
    (str(INCONCLUSIVE), "with --strict: the budget was too small to decide"),
    EXIT_CODES[-1],
)
_EXAMPLES = (
    "omb-py tune allreduce -n 4                    every algorithm that the library has",
    "omb-py tune bcast -n 2,4,8 -m 8:1M --budget 20m --folder tuned",
    "omb-py tune allreduce -n 4 --knob coll_tuned_allreduce_algorithm=ring,segmented_ring",
    "omb-py tune allreduce -n 4 --resume",
)


def command() -> click.Command:
    """``omb-py tune``."""
    candidates, judging = "Candidates", "How verdicts are made"
    return Page(
        "tune",
        params=[
            click.Argument(["words"], nargs=-1, type=Parsed("word", str), metavar="COLLECTIVE [OPTIONS]"),
            tool_option(
                candidates,
                "-n --ranks N[,N…]",
                f"Number of ranks, or several: each has rules of its own. (default: {DEFAULT_RANKS})",
                Parsed("ranks", _ranks),
                default=str(DEFAULT_RANKS),
            ),
            tool_option(
                candidates,
                "--candidate candidates NAME=VAR=VALUE[,VAR=VALUE…]",
                "A setting to try, by environment variables, in place of the library's algorithms. Repeat it. "
                "(default: none)",
                Parsed("candidate", parse_candidate),
                multiple=True,
            ),
            tool_option(
                candidates,
                "--knob knobs NAME=VALUE[,VALUE…]",
                "Values of a knob to try, with each algorithm; those of an algorithm replace all of them. "
                "omb-py knobs COLLECTIVE lists them. Repeat it. (default: every algorithm)",
                Parsed("knob", parse_knob),
                multiple=True,
            ),
            tool_option(
                judging,
                "--budget TIME",
                "Begin no launch after so long, as 20m; what is open then is MARGINAL. (default: no limit)",
                Parsed("time", parse_duration),
            ),
            tool_option(
                judging,
                "--delta P",
                "A setting must be faster than the default by so much. (default: 3%)",
                Parsed("fraction", parse_fraction),
                default=0.03,
            ),
            tool_option(judging, "--strict", "Exit code 4 where the budget was too small to decide. (default: off)"),
            tool_option(
                judging,
                "--seed N",
                "Of the order of launches and sizes. (default: drawn, and stored)",
                whole("seed", 0),
            ),
            tool_option(
                "Output",
                "--folder DIR",
                "Where the files are written that the proof allows. (default: tuned)",
                Parsed("folder", Path),
                default="tuned",
            ),
            *report_options(),
            tool_option("Output", "--quiet", "No progress and no notes on stderr."),
            table_option("store"),
            resume_option(
                "Resume a tuning that was interrupted or ran out of budget, with the same options: its id, the "
                "beginning of it, or nothing for the newest. (default: a new tuning)"
            ),
            debug_option(),
        ],
        callback=run_tune,
        context_settings={"ignore_unknown_options": True, **CONTEXT},
        help="Which setting of this library is fastest here, for which sizes? Launches of all candidates are "
        "interleaved; those that cannot win are dropped; boundaries in size are found by bisection. What seems faster "
        "than the default is proved in fresh launches, and only then written.\n\n"
        "Options of the collective are those of its own command (docs/tune.md).",
        options_metavar="[OPTIONS]",
        sections=(("Examples", [(line, "") for line in _EXAMPLES]), ("Exit codes", _CODES)),
    )


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(parse_whole(part, 1) for part in str(text).split(",")))


def run_tune(
    words: Sequence[str],
    ranks: tuple[int, ...],
    candidates: Sequence[Setting],
    knobs: Sequence[tuple[str, tuple[str, ...]]],
    budget: float | None,
    delta: float,
    strict: bool,
    folder: Path,
    form: str,
    output: Sequence[Path],
    resume: str | None,
    **given: Any,
) -> int:
    """Tune a collective; the exit code."""
    check_files(output)
    checked = [_checked(words, number, given) for number in ranks]
    settings, library = _settings(checked[0], candidates, dict(knobs))
    request = TuneRequest(
        tuple(checked), settings, Design(margin=delta), folder, library, budget, resume, f"omb-py {_line()}"
    )
    return write_report(document_of(tune(request), strict), form, output)


def _settings(
    checked: CheckedRequest, given: Sequence[Setting], knobs: dict[str, tuple[str, ...]]
) -> tuple[tuple[Setting, ...], LibraryKnobs | None]:
    """The candidates, and what can be set in the library.

    Those of the command line need no known library: its files are then left out. Raises UsageError, EnvironmentProblem.
    """
    try:
        library = library_of(checked.request.backends[0])
    except EnvironmentProblem as problem:
        if given and not knobs:
            return distinct(given), None
        raise EnvironmentProblem(f"{problem}: or name settings to try: --candidate NAME=VARIABLE=VALUE") from None
    if given and not knobs:
        return distinct(given), library
    return distinct([*given, *candidates_of(library, checked.benchmark.name, knobs)]), library


def _checked(words: Sequence[str], ranks: int, given: dict[str, Any]) -> CheckedRequest:
    if not words or words[0].startswith("-"):
        raise UsageError("which collective? It comes first: omb-py tune allreduce -n 4")
    short = words[0].lower().removeprefix("osu_")
    collectives = [name for name in names() if find(name).family in ("collective", "non-blocking", "persistent")]
    if short not in collectives:
        raise UsageError(f"no collective {words[0]!r}: {nearest(short, collectives)}")
    request = request_of_line([*words, "-n", str(ranks)], unstored="a tuning stores its launches: leave --no-store out")
    store = given["store"] or request.store or DEFAULT_STORE
    return check(request).changed(store=store, seed=given["seed"], quiet=given["quiet"])


def _line() -> str:
    return " ".join(shlex.quote(text) for text in redact_words(sys.argv[1:]))
