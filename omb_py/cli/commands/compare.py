"""``omb-py compare`` and ``omb-py aa``: their options and help. :mod:`omb_py.cli.comparing` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from omb_py.cli.help import CONTEXT, Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import resume_option, table_option
from omb_py.cli.output import measuring_report_options
from omb_py.errors import INCONCLUSIVE, NEGATIVE, NO_VERDICT
from omb_py.grammar.values import parse_duration, parse_fraction
from omb_py.options.readers import whole

_CODES = exit_codes(
    {
        NEGATIVE: "something is SLOWER",
        INCONCLUSIVE: "with --strict: something is UNCLEAR, LIKELY or NOT COMPARABLE",
        NO_VERDICT: "NO VERDICT: a program of --run did not measure what was asked",
    }
)
LAUNCHES, ROUNDS = 10, 3
VERDICTS = "How verdicts are made"
PROGRAMS = "Programs of your own"
_SPREAD = {"ignore_unknown_options": True, **CONTEXT}
"""The options of the benchmark stand among those of compare, which leaves them to the benchmark's own command."""
_EXAMPLES = (
    "omb-py compare --run 'BASE: mpirun -n 2 old/osu_latency' --run 'NEW: mpirun -n 2 new/osu_latency'",
    "omb-py compare --run 'mpirun -n 2 ./osu_latency' --set NEW:UCX_TLS=tcp",
    "omb-py compare --run 'BASE: old/app' --run 'NEW: new/app' --metric 'step ms lower step took ([0-9.]+)'",
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
    heading = "The sides that are measured"
    return Page(
        "compare",
        params=[
            click.Argument(["words"], nargs=-1, metavar="BASE NEW | BENCHMARK|SUITE [OPTIONS]"),
            _make_repeatable(
                heading, "--env", "SIDE=PATH", "Virtual environment of a side, as BASE=/opt/v1.", "this one"
            ),
            _make_repeatable(
                heading,
                "--pip",
                "SIDE=PACKAGE",
                "Package of a side, as BASE=mpich==4.3.2; it gets a small environment, made once.",
                "this environment's",
            ),
            _make_repeatable(
                heading, "--module", "SIDE=NAME", "Module that a side loads, as NEW=openmpi/5.0.7.", "none"
            ),
            _make_repeatable(heading, "--set", "SIDE:K=V", "Variable that a side sets, as NEW:UCX_TLS=tcp.", "none"),
            _make_repeatable(
                heading, "--option", "SIDE:O=V", "Option of the benchmark for one side, as NEW:binding=mpi4py.", "none"
            ),
            *_programs(),
            *_design(earlier="; of a stored comparison its own"),
            tool_option(
                VERDICTS,
                "--trust-sides",
                "Of stored sides that were not interleaved: nothing else differs between their days, so a change "
                "counts as SLOWER or FASTER, not as LIKELY.",
            ),
            *measuring_report_options(),
            table_option("store"),
            resume_option(
                "Resume a comparison that was interrupted, with the same options: its id, the beginning of "
                "it, or nothing for the newest. Alone it takes the words that began it. "
                "Stored launches are not made again. (default: a new comparison)"
            ),
            debug_option(),
        ],
        callback=_compare,
        context_settings=_SPREAD,
        help="Is NEW slower than BASE? Two sets of launches that are stored: a run's id, tag=K=V, library_version=V or "
        "any COLUMN=VALUE, or a folder, of another store or of logs; one run of compare is both. Or a benchmark or a "
        "suite with options, measured on both sides, interleaved; cells that are UNCLEAR are measured again. Or any "
        "two programs (--run), as yours from two folders: they are started in turn, and what they print is judged.\n\n"
        "The launch is the sample: verdicts are made on the launches' medians and tails (docs/compare.md).",
        examples=_EXAMPLES,
        codes=_CODES,
    )


def aa_command() -> click.Command:
    return Page(
        "aa",
        params=[
            click.Argument(["words"], nargs=-1, metavar="BENCHMARK|SUITE [OPTIONS]"),
            tool_option(
                "How often",
                "--reports N",
                "Comparisons with itself, on launches of their own.",
                whole("reports", 1),
                default=1,
            ),
            *_design(),
            *measuring_report_options(),
            table_option("store"),
            resume_option(
                "Resume the report that was interrupted, as of compare; it is the first of --reports. "
                "(default: a new one)"
            ),
            debug_option(),
        ],
        callback=_aa,
        context_settings=_SPREAD,
        help="A against A: compares a library with itself, through all that compare does. Every verdict but SAME and "
        "UNCLEAR is a false alarm. The rate is stored, and printed under every later comparison.",
        examples=("omb-py aa allreduce -n 4 -m 8:64K:8 --reports 6",),
        codes=exit_codes({NEGATIVE: "there was a false SLOWER"}),
    )


def _make_repeatable(heading: str, flag: str, metavar: str, text: str, default: str) -> click.Option:
    flags = f"{flag} {flag.removeprefix('--')}s {metavar}"
    return tool_option(heading, flags, f"{text} Repeat it. (default: {default})", str, multiple=True)


def _programs() -> list[click.Parameter]:
    return [
        _make_repeatable(
            PROGRAMS,
            "--run",
            "COMMAND",
            "A command to start, as 'NEW: mpirun -n 2 ./osu_latency'; without a side it is that of both. It prints "
            "text of OMB, IMB, nccl-tests, UCX, perftest or Horovod, JSON of pytest-benchmark, pyperf or hyperfine, or "
            "what --metric names; {out} in it is a file that it writes.",
            "a benchmark or stored launches",
        ),
        tool_option(
            PROGRAMS,
            "--expect-library expected SIDE:LIB=PATH",
            "A library that a side must load from there, as NEW:libmpi.so=/opt/new/lib, else NO VERDICT. Repeat it. "
            "(default: none)",
            str,
            multiple=True,
        ),
        *reading_options(),
    ]


def reading_options() -> list[click.Parameter]:
    """How the output of a program is read, and how long it may take."""
    return [
        tool_option(
            PROGRAMS,
            "--read tool TOOL",
            "Whose output it is, as nccl-tests. (default: told from the output)",
            str,
            default="",
        ),
        _make_repeatable(
            PROGRAMS,
            "--metric",
            "TEXT",
            "A number in the output of any program: 'NAME UNIT lower|higher REGEX' says which is better, with the "
            "number in parentheses; json:PATH in place of REGEX, as json:results[0].mean.",
            "none",
        ),
        tool_option(
            PROGRAMS,
            "--run-timeout timeout_s TIME",
            "After this time a launch is killed with all its processes, as 90s or 5m. (default: 10m)",
            parse_duration,
            default=600.0,
        ),
    ]


def _design(earlier: str = "") -> list[click.Parameter]:
    """Options of the verdicts; `earlier` says which default a comparison that is looked at again has."""
    option = partial(tool_option, VERDICTS)
    return [
        option("--launches N", "Launches of each side in each round.", whole("launches", 1), default=LAUNCHES),
        option(
            "--rounds N",
            "Rounds, 1 to 3: cells that are UNCLEAR are measured again, and the launches of "
            f"all rounds decide. (default: {ROUNDS}; of stored sides 1)",
            whole("rounds", 1),
            default=ROUNDS,
        ),
        option(
            "--budget budget_s TIME",
            "Time for all launches, as 10m, in place of --launches: three pairs that are not judged show how launches "
            "differ here, and how many a change takes. (default: none)",
            parse_duration,
        ),
        option("--delta P", f"Smallest change of a median that matters, as 3%. (default: 3%{earlier})", parse_fraction),
        option("--tail-delta P", f"Smallest change of a tail that matters. (default: 10%{earlier})", parse_fraction),
        option(
            "--seed N", "Of the order of cells, and of BASE and NEW. (default: drawn, and stored)", whole("seed", 0)
        ),
        option("--strict", "Exit code 4 where something is UNCLEAR, LIKELY or NOT COMPARABLE."),
    ]


def _compare(
    words: Sequence[str],
    envs: Sequence[str],
    pips: Sequence[str],
    modules: Sequence[str],
    sets: Sequence[str],
    options: Sequence[str],
    runs: Sequence[str],
    tool: str,
    metrics: Sequence[str],
    expected: Sequence[str],
    timeout_s: float,
    **shared: Any,
) -> int:
    from omb_py.cli.comparing import CompareOptions, run_compare  # loads scipy, which --help does not need
    from omb_py.orchestrate.compare.side_environments import parse_sides

    specs, common = parse_sides(envs, modules, sets, options, pips), CompareOptions(**shared)
    if runs or tool or metrics or expected:
        from omb_py.cli.comparing_programs import run_programs
        from omb_py.orchestrate.programs.request import ProgramTexts

        return run_programs(words, ProgramTexts(runs, tool, metrics, expected, timeout_s, specs), common)
    return run_compare(words, specs, common)


def _aa(words: Sequence[str], reports: int, **shared: Any) -> int:
    from omb_py.cli.comparing import CompareOptions, run_aa

    return run_aa(words, reports, CompareOptions(**shared))
