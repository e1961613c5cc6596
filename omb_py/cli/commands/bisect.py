"""``omb-py bisect``: which commit made a program slower?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from omb_py.cli.commands.compare import LAUNCHES, PROGRAMS, ROUNDS, reading_options
from omb_py.cli.help import Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import ParsedType, table_option, whole
from omb_py.cli.output import check_files, measuring_report_options, notes, write_report
from omb_py.errors import INCONCLUSIVE, NEGATIVE, NO_VERDICT
from omb_py.options.request import DEFAULT_STORE

_HISTORY = "The history"
_CODES = exit_codes(
    {
        NEGATIVE: "",
        INCONCLUSIVE: "several commits remain possible",
        NO_VERDICT: "NO VERDICT: --bad is not slower than --good, or one of them did not measure",
    }
)


def command() -> click.Command:
    def text(heading: str, flags: str, about: str, default: str | None = None, required: bool = False) -> click.Option:
        return tool_option(heading, flags, about, ParsedType("text", str), default=default, required=required)

    return Page(
        "bisect",
        params=[
            text(_HISTORY, "--good REVISION", "A commit that is fast.", required=True),
            text(_HISTORY, "--bad REVISION", "A later commit that is slow.", required=True),
            text(_HISTORY, "--repository FOLDER", "The git repository.", default="."),
            text(
                _HISTORY,
                "--build COMMAND",
                "Builds a commit: a shell runs it in a work tree of its own, which {build} names.",
                required=True,
            ),
            text(_HISTORY, "--builds FOLDER", "Where builds are made, and kept for the next time.", "omb-bisect"),
            text(
                PROGRAMS,
                "--run COMMAND",
                "Starts what was built, as 'mpirun -n 2 {build}/osu_latency'; read as the output of compare --run.",
                required=True,
            ),
            tool_option(
                PROGRAMS,
                "--set sets K=V",
                "Variable that is set, as LD_LIBRARY_PATH={build}/lib. Repeat it. (default: none)",
                ParsedType("text", str),
                multiple=True,
            ),
            *reading_options(),
            tool_option(
                "How verdicts are made", "--launches N", "Launches of each side in each of up to 3 rounds.",
                whole("launches", 1), default=LAUNCHES,
            ),
            tool_option(
                "How verdicts are made", "--seed N", "Of the order of sides. (default: drawn, and stored)",
                whole("seed", 0),
            ),
            *measuring_report_options(),
            table_option("store"),
            debug_option(),
        ],
        callback=_bisect,
        help="Which commit made a program slower? Builds commits that halve what is left of a history, and compares "
        "each with the good one, in turn, until its verdict is SLOWER or SAME. A commit that cannot be built or "
        "decided is passed over.",
        examples=(
            "omb-py bisect --good v4.2 --bad main --build 'make -j8' --run 'mpirun -n 2 {build}/osu_latency'",
        ),
        codes=_CODES,
    )  # fmt: skip


def _bisect(
    good: str,
    bad: str,
    repository: str,
    build: str,
    builds: str,
    run: str,
    sets: Sequence[str],
    tool: str,
    metrics: Sequence[str],
    timeout_s: float,
    launches: int,
    seed: int | None,
    form: str,
    output: Sequence[Path],
    quiet: bool,
    store: Path | None,
) -> int:
    from omb_py.orchestrate.bisect.builds import Builds  # these load scipy, which --help does not need
    from omb_py.orchestrate.bisect.commits import find_range
    from omb_py.orchestrate.bisect.report import bisect_document
    from omb_py.orchestrate.bisect.search import BisectDesign, BuiltProgram, bisect
    from omb_py.results.compare.judge import CompareRules

    check_files(output)
    place = Path(repository)
    design = BisectDesign(
        find_range(place, good, bad),
        Builds(place, build, Path(builds), notes(quiet)),
        BuiltProgram(run, sets, tool, metrics, timeout_s),
        launches,
        store or DEFAULT_STORE,
        CompareRules(rounds=ROUNDS),
        seed,
    )
    return write_report(bisect_document(bisect(design)), form, output)
