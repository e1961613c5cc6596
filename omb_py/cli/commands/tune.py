"""``omb-py tune``: the points of its grid, each with its candidates, and the command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import click

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.cli.commands.benchmark import request_of_line
from omb_py.cli.help import CONTEXT, GluedOption, Page, ParsedType, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import resume_option, table_option
from omb_py.cli.output import check_files, measuring_report_options, write_report
from omb_py.engine.program.dtypes import OPS
from omb_py.errors import ENVIRONMENT, INCONCLUSIVE, NEGATIVE, OK, EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import parse_duration, parse_fraction, parse_whole
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_RANKS, DEFAULT_STORE, Request
from omb_py.options.table import one_of
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.tune.candidates import candidates, distinct, parse_candidate, parse_knob
from omb_py.orchestrate.tune.knobs import library_of
from omb_py.orchestrate.tune.proof import STEP
from omb_py.orchestrate.tune.session import PointCandidates, TuneRequest, tune
from omb_py.orchestrate.tune.workload import requests_of, step_of
from omb_py.results.store.redact import redact_words
from omb_py.results.tune.elimination import SearchDesign
from omb_py.results.tune.report import document_of
from omb_py.results.tune.rules import LibrarySetting
from omb_py.suites import find, names

_UNSTORED = "a tuning stores its launches: leave --no-store out"


@dataclass(frozen=True, slots=True)
class TuneGrid:
    """What the words of the command line name."""

    words: Sequence[str]
    """The collective and its options; with a workload the options alone."""
    ranks: Sequence[int]
    ops: Sequence[str] = ()
    """Reductions; empty: that of the collective."""
    in_place: Sequence[bool] = ()
    """Kinds of buffers; empty: as the collective's options say."""
    workload: str = ""
    store: Path | None = None
    seed: int | None = None
    quiet: bool = False

    def points(self) -> tuple[list[CheckedRequest], CheckedRequest | None]:
        """The requests of all points, and that of a workload's step. Raises UsageError, EnvironmentProblem."""
        if not self.workload:
            return [point for ranks in self.ranks for point in self._request_collective(ranks)], None
        if self.words and not self.words[0].startswith("-"):
            raise UsageError(f"a workload names its collectives: leave {self.words[0]!r} or --workload out")
        if len(self.ranks) > 1 or self.ops or self.in_place:
            raise UsageError("a workload is tuned as it is called: one number of -n, and neither --op nor --in-place")
        request = request_of_line([STEP, *self.words, "-n", str(self.ranks[0])], unstored=_UNSTORED)
        step = step_of(self._set_store(request), self.workload)
        return list(requests_of(step)), step

    def _request_collective(self, ranks: int) -> Iterator[CheckedRequest]:
        if not self.words or self.words[0].startswith("-"):
            raise UsageError("which collective? It comes first: omb-py tune allreduce -n 4")
        short = self.words[0].lower().removeprefix("osu_")
        collectives = [name for name in names() if find(name).family in ("collective", "non-blocking", "persistent")]
        if short in names() and short not in collectives:
            raise UsageError(f"{short} is no collective: tune one, as allreduce")
        if short not in collectives:
            raise UsageError(f"no collective {self.words[0]!r}: {nearest(short, collectives)}")
        request = request_of_line([*self.words, "-n", str(ranks)], unstored=_UNSTORED)
        for op, in_place in product(self.ops or (request.options.op,), self.in_place or (request.options.in_place,)):
            yield resolve(parse(self._set_store(request).changed(op=op, in_place=in_place)))

    def _set_store(self, request: Request) -> Request:
        store = self.store or request.store or DEFAULT_STORE
        return request.changed(store=store, seed=self.seed, quiet=self.quiet)


def parts_of(
    points: Sequence[CheckedRequest], given: Sequence[LibrarySetting], knobs: Mapping[str, Sequence[str]]
) -> tuple[tuple[PointCandidates, ...], LibraryKnobs | None]:
    """The points with their candidates, and what can be set in the library.

    Args:
        given: candidates of the command line; those need no known library: its files are then left out.

    Raises:
        UsageError: there is no such knob or value, or two candidates are alike.
        EnvironmentProblem: the library has nothing to set.
    """
    try:
        library = library_of(points[0].request.backends[0])
    except EnvironmentProblem as problem:
        if given and not knobs:
            return tuple(PointCandidates(point, distinct(given)) for point in points), None
        raise EnvironmentProblem(f"{problem}, or name settings with --candidate NAME=VARIABLE=VALUE") from None
    if given and not knobs:
        return tuple(PointCandidates(point, distinct(given)) for point in points), library
    of_each = {name: candidates(library, name, knobs) for name in {point.benchmark.name for point in points}}
    return tuple(
        PointCandidates(point, distinct([*given, *of_each[point.benchmark.name]])) for point in points
    ), library


_CODES = exit_codes(
    {
        OK: "settings that are faster were proved, or nothing is faster than the default",
        NEGATIVE: "the proof says SLOWER: no file is written",
        ENVIRONMENT: "the library has no such knobs, or cannot be measured as it is",
        INCONCLUSIVE: "with --strict: the budget was too small to decide",
    }
)
_EXAMPLES = (
    "omb-py tune allreduce -n 4                    every algorithm that the library has",
    "omb-py tune bcast -n 2,4,8 -m 8:1M --budget 20m --folder tuned",
    "omb-py tune allreduce -n 4 --knob coll_tuned_allreduce_algorithm=ring,segmented_ring",
    "omb-py tune allreduce -n 2,4 --op sum,max --in-place=both",
    "omb-py tune --workload ddp:model=resnet50 -n 4",
    "omb-py tune allreduce -n 4 --resume",
)


def command() -> click.Command:
    return Page(
        "tune",
        params=[
            click.Argument(["words"], nargs=-1, metavar="[COLLECTIVE] [OPTIONS]"),
            *_candidate_options(),
            *_make_judging_options(),
            tool_option(
                "Output", "--folder DIR", "Where the files are written that the proof allows.", Path, default="tuned"
            ),
            *measuring_report_options(),
            table_option("store"),
            resume_option(
                "Resume a tuning that was interrupted or ran out of budget, with the same options: its id, the "
                "beginning of it, or nothing for the newest. Alone it takes the words that began it. "
                "(default: a new tuning)"
            ),
            debug_option(),
        ],
        callback=run_tune,
        context_settings={"ignore_unknown_options": True, **CONTEXT},
        help="Which setting of this library is fastest here, for which sizes? Launches of all candidates are "
        "interleaved; those that cannot win are dropped; boundaries in size are found by bisection. What seems faster "
        "than the default is proved in fresh launches, and only then written.\n\n"
        "Options of the collective are those of its own command (docs/tune.md).",
        examples=_EXAMPLES,
        codes=_CODES,
    )


def _candidate_options() -> list[click.Parameter]:
    heading = "Candidates"
    option = partial(tool_option, heading)
    return [
        option(
            "-n --ranks N[,N…]",
            f"Number of ranks, or several: each has rules of its own. (default: {DEFAULT_RANKS})",
            _ranks,
            default=str(DEFAULT_RANKS),
        ),
        option(
            "--op ops OP[,OP…]",
            "Reductions: each is tuned, and a rule is the fastest for all of them. (default: sum)",
            _operations,
            default=(),
        ),
        GluedOption(
            ["-l", "--in-place", "in_place"],
            _IN_PLACE,
            _BOTH.__eq__,
            heading=heading,
            metavar=_BOTH,
            type=ParsedType(_parse_in_place),
            default=(),
            help=f"Use MPI_IN_PLACE; {_BOTH}: tune with it and without, and a rule is the fastest for both. "
            "(default: without)",
        ),
        option(
            "--workload NAME[:KEY=VALUE,…]",
            "Tune the collectives that a step of this workload calls, instead of one collective, and compare the "
            "step itself. omb-py workloads lists them. (default: none)",
            str,
            default="",
        ),
        option(
            "--candidate candidates NAME=VAR=VALUE[,VAR=VALUE…]",
            "A setting to try, by environment variables, in place of the library's algorithms. Repeat it. "
            "(default: none)",
            parse_candidate,
            multiple=True,
        ),
        option(
            "--knob knobs NAME=VALUE[,VALUE…]",
            "Values of a knob to try, with each algorithm; those of an algorithm replace all of them. "
            "omb-py knobs COLLECTIVE lists them. Repeat it. (default: every algorithm)",
            parse_knob,
            multiple=True,
        ),
    ]


def _make_judging_options() -> list[click.Parameter]:
    option = partial(tool_option, "How verdicts are made")
    return [
        option(
            "--budget TIME",
            "Begin no launch after so long, as 20m; what is open then is MARGINAL. (default: no limit)",
            parse_duration,
        ),
        option(
            "--delta P",
            "A setting must be faster than the default by so much. (default: 3%)",
            parse_fraction,
            default=0.03,
        ),
        option("--strict", "Exit code 4 where the budget was too small to decide. (default: off)"),
        option(
            "--no-guidelines",
            "Leave out the guidelines of what is tuned: those that the library violates as it is are measured "
            "again with the files. (default: checked)",
        ),
        option("--seed N", "Of the order of launches and sizes. (default: drawn, and stored)", whole("seed", 0)),
    ]


_IN_PLACE, _BOTH = "on", "both"


def _operations(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(part.strip().lower().removeprefix("mpi_") for part in text.split(",")))
    for word in words:
        one_of("operation", word, OPS)
    return words


def _parse_in_place(text: str) -> tuple[bool, ...]:
    one_of("kind of buffers", text, (_IN_PLACE, _BOTH))
    return (False, True) if text == _BOTH else (True,)


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(parse_whole(part, 1) for part in str(text).split(",")))


def run_tune(
    words: Sequence[str],
    ranks: tuple[int, ...],
    ops: tuple[str, ...],
    in_place: tuple[bool, ...],
    workload: str,
    candidates: Sequence[LibrarySetting],
    knobs: Sequence[tuple[str, tuple[str, ...]]],
    budget: float | None,
    delta: float,
    strict: bool,
    no_guidelines: bool,
    folder: Path,
    form: str,
    output: Sequence[Path],
    resume: str | None,
    store: Path | None,
    seed: int | None,
    quiet: bool,
) -> int:
    check_files(output)
    points, step = TuneGrid(words, ranks, ops, in_place, workload, store, seed, quiet).points()
    parts, library = parts_of(points, candidates, dict(knobs))
    design, line = SearchDesign(margin=delta), f"omb-py {_line()}"
    request = TuneRequest(parts, design, folder, library, budget, resume, line, not no_guidelines, step)
    return write_report(document_of(tune(request), strict), form, output)


def _line() -> str:
    return " ".join(shlex.quote(text) for text in redact_words(sys.argv[1:]))
