"""``omb-py compare`` and ``omb-py aa``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from omb_py.cli.commands.benchmark import request_of_line
from omb_py.cli.commands.suites import expanded_suite, resume_option, run_command
from omb_py.cli.help import CONTEXT, EXIT_CODES, Grouped, Page, debug_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import check_files, report_options, write_report
from omb_py.cli.param_types import Parsed, whole
from omb_py.errors import INCONCLUSIVE, OK, EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import parse_fraction
from omb_py.options.request import DEFAULT_STORE
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

_CODES = (
    *EXIT_CODES[:1],
    ("1", "something is SLOWER"),
    *EXIT_CODES[2:4],
    (str(INCONCLUSIVE), "with --strict: something is UNCLEAR or NOT COMPARABLE"),
    EXIT_CODES[-1],
)
_LAUNCHES, _ROUNDS = 10, 3
_SPREAD = {"ignore_unknown_options": True, **CONTEXT}
"""The options of the benchmark stand among those of compare, which leaves them to the benchmark's own command."""
_EXAMPLES = (
    "omb-py compare RUN1 RUN2                      what is stored",
    "omb-py compare library_version=5.0.2 library_version=5.0.3",
    "omb-py compare tag=when=before tag=when=after --output verdicts.xml",
    "omb-py compare --env BASE=v1 --env NEW=v2 allreduce -n 2 -m 8:1024:8 --launches 6",
    "omb-py compare --pip BASE=mpich==4.3.2 --pip NEW=mpich==5.0.2 allreduce -n 2",
    "omb-py compare --set NEW:UCX_TLS=tcp latency",
    "omb-py compare --option NEW:binding=mpi4py latency -m 8:8",
    "omb-py compare --env NEW=v2 quick             every cell of a suite, or of a suite's file",
)


def command() -> click.Command:
    """``omb-py compare``."""
    heading = "The sides that are measured"
    return Page(
        "compare",
        params=[
            click.Argument(
                ["words"], nargs=-1, type=Parsed("word", str), metavar="BASE NEW | BENCHMARK|SUITE [OPTIONS]"
            ),
            _several(heading, "--env", "SIDE=PATH", "Virtual environment of a side, as BASE=/opt/v1.", "this one"),
            _several(
                heading,
                "--pip",
                "SIDE=PACKAGE",
                "Package of a side, as BASE=mpich==4.3.2; it gets a small environment, made once.",
                "this environment's",
            ),
            _several(heading, "--module", "SIDE=NAME", "Module that a side loads, as NEW=openmpi/5.0.7.", "none"),
            _several(heading, "--set", "SIDE:K=V", "Variable that a side sets, as NEW:UCX_TLS=tcp.", "none"),
            _several(
                heading, "--option", "SIDE:O=V", "Option of the benchmark for one side, as NEW:binding=mpi4py.", "none"
            ),
            *_design(),
            *_output(),
            table_option("store"),
            resume_option(
                "Resume a comparison that was interrupted, with the same options: its id, the beginning of "
                "it, or nothing for the newest. Stored launches are not made again. (default: a new comparison)"
            ),
            debug_option(),
        ],
        callback=run_compare,
        context_settings=_SPREAD,
        help="Is NEW slower than BASE? Two sets of launches that are stored: a run's id, tag=K=V, library_version=V or "
        "any COLUMN=VALUE, or the folder of another store; one run of compare is both. Or a benchmark or a suite with "
        "options, measured on both sides, interleaved; cells that may have changed are measured again.\n\n"
        "The launch is the sample: verdicts are made on the launches' medians and tails (docs/compare.md).",
        options_metavar="[OPTIONS]",
        sections=(("Examples", [(line, "") for line in _EXAMPLES]), ("Exit codes", _CODES)),
    )


def aa_command() -> click.Command:
    """``omb-py aa``."""
    return Page(
        "aa",
        params=[
            click.Argument(["words"], nargs=-1, type=Parsed("word", str), metavar="BENCHMARK|SUITE [OPTIONS]"),
            Grouped(
                ["--reports"],
                heading="How often",
                metavar="N",
                type=whole("reports", 1),
                default=1,
                help="Comparisons with itself, on launches of their own. (default: 1)",
            ),
            *_design(),
            *_output(),
            table_option("store"),
            debug_option(),
        ],
        callback=run_aa,
        context_settings=_SPREAD,
        help="A against A: compares a library with itself, through all that compare does. Every verdict but SAME and "
        "UNCLEAR is a false alarm. The rate is stored, and printed under every later comparison.",
        options_metavar="[OPTIONS]",
        sections=(
            ("Examples", [("omb-py aa allreduce -n 4 -m 8:64K:8 --reports 6", "")]),
            ("Exit codes", (*EXIT_CODES[:1], ("1", "there was a false SLOWER"), *EXIT_CODES[2:])),
        ),
    )


def _several(heading: str, flag: str, metavar: str, text: str, default: str) -> click.Option:
    return Grouped(
        [flag, flag.removeprefix("--") + "s"],
        heading=heading,
        metavar=metavar,
        multiple=True,
        type=Parsed("text", str),
        help=f"{text} Repeat it. (default: {default})",
    )


def _design() -> list[click.Parameter]:
    heading = "How verdicts are made"
    return [
        Grouped(
            ["--launches"],
            heading=heading,
            metavar="N",
            type=whole("launches", 1),
            default=_LAUNCHES,
            help=f"Launches of each side in each round. (default: {_LAUNCHES})",
        ),
        Grouped(
            ["--rounds"],
            older=["--looks"],
            heading=heading,
            metavar="N",
            type=whole("rounds", 1),
            default=_ROUNDS,
            help="Rounds, 1 to 3: cells that are unclear but may have changed are measured again, and the launches of "
            f"all rounds decide. (default: {_ROUNDS}; of stored sides 1)",
        ),
        Grouped(
            ["--delta"],
            heading=heading,
            metavar="P",
            type=Parsed("fraction", parse_fraction),
            default=0.03,
            help="Smallest change of a median that matters, as 3%. (default: 3%)",
        ),
        Grouped(
            ["--tail-delta"],
            heading=heading,
            metavar="P",
            type=Parsed("fraction", parse_fraction),
            default=0.10,
            help="Smallest change of a tail that matters. (default: 10%)",
        ),
        Grouped(
            ["--seed"],
            heading=heading,
            metavar="N",
            type=whole("seed", 0),
            help="Of the order of cells, and of BASE and NEW. (default: drawn, and stored)",
        ),
        Grouped(
            ["--strict"],
            heading=heading,
            is_flag=True,
            help="Exit code 4 where something is UNCLEAR or NOT COMPARABLE.",
        ),
    ]


def _output() -> list[click.Parameter]:
    quiet = Grouped(["--quiet"], heading="Output", is_flag=True, help="No progress and no notes on stderr.")
    return [*report_options(), quiet]


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
        own = [name for param in click.get_current_context().command.params for name in param.opts]
        raise UsageError(f"no such option {unknown}: {nearest(unknown, [n for n in own if n.startswith('--')])}")
    # Further rounds need fresh launches, and stored sides get none.
    return compare_stored(words, given["store"] or DEFAULT_STORE, _rules(given, rounds=1))


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
        raise UsageError(f"the benchmark comes before its options: omb-py compare … allreduce {' '.join(words[:2])}")
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
