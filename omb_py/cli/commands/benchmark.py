"""The commands that measure: one for each benchmark."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click

from omb_py.backends.registry import default
from omb_py.cli.help import RAW, GluedOption, Page, help_all_option, tool_option
from omb_py.cli.option_params import measuring_options, store_is_given
from omb_py.cli.registry import commands
from omb_py.distribution import version_line
from omb_py.engine.devices.placement import PLACES, is_managed
from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import EnvironmentProblem, OmbError, UsageError
from omb_py.options.conduct import PROGRAM_MARK
from omb_py.options.placed import MANAGED
from omb_py.options.request import Request, is_given
from omb_py.options.table import options_of, request_from, takes
from omb_py.orchestrate.planning.availability import device_problem, gpu_here
from omb_py.orchestrate.planning.resolution import resolve_alone
from omb_py.process_end import called_as_omb
from omb_py.results.dialects.omb.titles import TITLES, origin
from omb_py.results.dialects.registry import USUAL
from omb_py.suites import find

_BETWEEN_TWO = ("pt2pt", "one-sided")
"""Families whose two sides may have buffers of two kinds, as OMB's words SOURCE DESTINATION say."""


class MeasuringPage(Page):
    """A command that makes one request and measures it; other commands measure the same request in their own way."""

    def __init__(self, name: str, asks: Callable[..., tuple[Benchmark, dict[str, Any]]], **more: Any) -> None:
        """`asks` turns click's parsed values into the benchmark and the values of its options."""
        super().__init__(name, **more)
        self.asks = asks


def command(benchmark: Benchmark) -> MeasuringPage:
    """The click command of a benchmark."""
    params = [*measuring_options(benchmark), _version_option(benchmark), help_all_option()]
    as_omb = called_as_omb()
    if as_omb or benchmark.family in _BETWEEN_TWO:
        params.append(click.Argument(["places"], nargs=-1, required=False, metavar="[SRC DST]"))
    of_steps = benchmark.family == "workload"
    where = "the step is a workload; omb-py workloads lists them" if of_steps else origin(benchmark.name)
    return MeasuringPage(
        benchmark.name,
        lambda **values: (benchmark, values),
        params=params,
        callback=lambda **values: run_measuring(benchmark, values, as_omb),
        help=f"{benchmark.summary[:1].upper()}{benchmark.summary[1:]} ({where}).\n\nPrints {_metric(benchmark)}.",
        short_help=benchmark.summary,
        examples=_examples(benchmark),
    )


def _metric(benchmark: Benchmark) -> str:
    unit = "microseconds" if benchmark.metric.unit == "us" else benchmark.metric.unit
    return f"{unit}: {benchmark.metric.formula}"


def _examples(b: Benchmark) -> list[str]:
    ranks = next((n for n in (4, 2, 3, 8) if b.ranks.admits(n)), 2)
    lines = [f"omb-py {b.name} -n {ranks}", f"mpirun -n {ranks} omb-py {b.name}"]
    if b.sizes is not None:
        lines.append(f"omb-py {b.name} -n {ranks} -m 8:64K:8 -i 1000 -z50,99")
    if takes(b, "validation"):
        lines.append(f"omb-py {b.name} -n {ranks} -c --tag purpose=acceptance")
    lines.append(f"omb-py {b.name} -n {ranks} --binding native,mpi4py --launches 5")
    return lines


def _version_option(benchmark: Benchmark) -> click.Option:
    """``-v``, which prints the title, as in OMB; without one that of omb-py, which ``omb-py --version`` prints."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(TITLES[benchmark.name].line() if benchmark.name in TITLES else f"# {version_line()}")
            ctx.exit()

    return tool_option(
        "Other options",
        "-v --version",
        "Show the title and the version, and exit.",
        is_eager=True,
        expose_value=False,
        callback=show,
        hidden=True,
    )


def without_effect(benchmark: Benchmark, values: Mapping[str, object]) -> dict[str, str]:
    """The options given that have no effect on a benchmark, by name, each with a sentence that says why.

    Scripts for OMB give all benchmarks the same options, so these are no errors.
    """
    notes = {}
    for option in options_of(benchmark):
        if not is_given(values.get(option.name)):
            continue
        if option.ignored:
            notes[option.name] = f"{option.spelled} has no effect: {option.ignored}"
        elif option.waived and not option.takes(benchmark):
            notes[option.name] = f"{option.spelled} has no effect: {benchmark.name} has no {option.lacks}"
    if values.get("vary_window") and values.get("percentiles") and values.get("format") in (None, USUAL.name):
        notes["percentiles"] = (
            "-z/--tail-lat has no effect: as in OMB, the tables of -V/--vary-window have no place for percentiles; "
            "--format table has"
        )
    return notes


def request_of(benchmark: Benchmark, values: Mapping[str, Any]) -> Request:
    """A request from click's parsed values, of which None, False and () mean: not given. Raises UsageError.

    What has no effect on the benchmark is left out, with a note on stderr.
    """
    notes = without_effect(benchmark, values)
    values = {name: value for name, value in values.items() if name not in notes}
    if not values.get("quiet") and not rank_0_speaks():
        for note in notes.values():
            click.echo(f"omb-py: {note}", err=True)
    device, placement = _where(values.get("device"), values.get("places", ()))
    if values.get("no_store") and store_is_given():
        raise UsageError("--store and --no-store exclude each other")
    if PROGRAM_MARK in os.environ and not store_is_given():
        values["no_store"] = True  # the comparison that started this stores what is printed
    return request_from(benchmark, {**values, "device": device}, placement=placement)


def measuring_tool(name: str) -> MeasuringPage | None:
    """The page of a command of this name that measures and is no benchmark, as train; None where there is none."""
    tool = commands().get(name.lower())
    page = tool.make() if tool else None
    return page if isinstance(page, MeasuringPage) else None


def request_of_line(words: Sequence[str], unstored: str = "") -> Request:
    """The request of a command line that measures and stands in another's, as ``allreduce -n 2`` or ``train mlp``.

    Args:
        unstored: error text where they have ``--no-store``; empty: they may have it.

    Raises:
        UsageError: the words are wrong, or have ``--no-store`` where they must not.
        click.UsageError: an option is unknown or lacks its value.
    """
    page = measuring_tool(words[0]) or command(find(words[0]))
    parent = click.get_current_context(silent=True)  # none where Python calls, and no command line
    with page.make_context(str(page.name), list(words[1:]), parent=parent) as ctx:
        if unstored and ctx.params["no_store"]:
            raise UsageError(unstored)
        if ctx.params.get("timeline"):
            raise UsageError("--timeline draws one step, and here many are measured: leave it out")
        return request_of(*page.asks(**ctx.params))


def _where(device: str | None, places: tuple[str, ...]) -> tuple[str | None, str]:
    """Device and placement of a request, from ``-d`` and OMB's positional ``SOURCE DESTINATION``.

    Without ``-d`` places other than ``H H`` are on the GPU that is here. Raises UsageError, EnvironmentProblem.
    """
    for place in places:
        if place.upper() not in PLACES:
            raise UsageError(_unknown_word(place))
    places = tuple(place.upper() for place in places)
    if len(places) not in (0, 2):
        raise UsageError(f"buffer places come in twos, sender and receiver, as H D: got {' '.join(places)}")
    if device == MANAGED:
        if places and not all(map(is_managed, places)):
            raise UsageError(f"-d {MANAGED} and buffers {' '.join(places)} exclude each other: leave one of them out")
        places = places or ("M", "M")
    if set(places) <= {"H"}:
        return None if places else device, ""
    text = " ".join(places)
    if device in (None, MANAGED):
        device = next((kind for kind in GPU_KINDS if gpu_here(kind)), None)
        if device is None:
            reason, _ = device_problem(next(iter(GPU_KINDS)), default())
            raise EnvironmentProblem(f"buffers {text} need a GPU: {reason}: use H H")
    return device, "" if set(places) == {"D"} else text


def _keep_words(typed: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """The words that are among `taken`; a note names the others."""
    ignored = [text for text in typed if text.upper() not in taken]
    if ignored and not rank_0_speaks():
        click.echo(f"omb-py: ignored, as in OMB: {' '.join(map(repr, ignored))}", err=True)
    return tuple(text for text in typed if text.upper() in taken)


def _unknown_word(text: str) -> str:
    """The error for a word that is no buffer place, with what its writer meant."""
    context = click.get_current_context(silent=True)
    typed = list(context.meta.get(RAW, ())) if context else []
    before = typed[: typed.index(text)] if text in typed else []
    options = [param for param in context.command.params if isinstance(param, click.Option)] if context else []
    glued = next((o for o in options if isinstance(o, GluedOption) and before[-1:] and before[-1] in o.opts), None)
    if text == "help":
        return f"unknown word 'help': omb-py {context.info_name if context else 'BENCHMARK'} --help"
    if glued is not None:
        equals = "=" * before[-1].startswith("--")
        return f"unknown word {text!r}: no blank stands before the value of {before[-1]}: {before[-1]}{equals}{text}"
    if before[-1:] and before[-1].startswith("-") and before[-2:-1] and any(before[-2] in o.opts for o in options):
        return f"unknown word {text!r}: the value of {before[-2]} is one word: {before[-2]} '{before[-1]} {text}'"
    return f"unknown word {text!r}: a buffer place is one of {', '.join(PLACES)}, twice"


def rank_0_speaks() -> bool:
    """Whether this is another rank than 0 of a launcher: it prints no error, because rank 0 prints the same one."""
    joined = joined_environment(os.environ)
    return joined is not None and joined.rank > 0


def run_measuring(benchmark: Benchmark, values: dict[str, Any], as_omb: bool = False) -> int:
    """Measure what click's parsed values say; the exit code.

    Args:
        benchmark: what is measured.
        values: of each option and of the words behind them.
        as_omb: a word that is no buffer place is passed over with a note, as OMB does.

    Raises:
        OmbError: as :func:`.execute`.
    """
    try:
        if as_omb:
            taken = PLACES if benchmark.family in _BETWEEN_TWO else ()
            values = {**values, "places": _keep_words(values.get("places", ()), taken)}
        request = request_of(benchmark, values)
        checked = resolve_alone(request)
    except OmbError as error:
        if rank_0_speaks():
            return error.exit_code
        raise
    from omb_py.orchestrate.running.run import execute  # loads numpy: not for --help and refused options

    return execute(checked)
