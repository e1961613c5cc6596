"""``omb-py bisect``: which commit made a program slower?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from omb_py.cli.commands.compare import LAUNCHES, PROGRAMS, ROUNDS, reading_options
from omb_py.cli.help import Page, debug_option, exit_codes, tool_option
from omb_py.cli.option_params import table_option
from omb_py.cli.output import check_files, measuring_report_options, notes, write_report
from omb_py.errors import INCONCLUSIVE, NEGATIVE, NO_VERDICT
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_STORE

_CODES = exit_codes(
    {
        NEGATIVE: "",
        INCONCLUSIVE: "several commits remain possible",
        NO_VERDICT: "NO VERDICT: --bad is not slower than --good, or one of them did not measure",
    }
)


def command() -> click.Command:
    of_history, judged = partial(tool_option, "The history"), partial(tool_option, "How verdicts are made")
    return Page(
        "bisect",
        params=[
            of_history("--good REVISION", "A commit that is fast.", str, required=True),
            of_history("--bad REVISION", "A later commit that is slow.", str, required=True),
            of_history("--repository FOLDER", "The git repository.", str, default="."),
            of_history(
                "--build COMMAND",
                "Builds a commit: a shell runs it in a work tree of its own, which {build} names.",
                str,
                required=True,
            ),
            of_history(
                "--builds FOLDER", "Where builds are made, and kept for the next time.", str, default="omb-bisect"
            ),
            tool_option(
                PROGRAMS,
                "--run COMMAND",
                "Starts what was built, as 'mpirun -n 2 {build}/osu_latency'; read as the output of compare --run.",
                str,
                required=True,
            ),
            tool_option(
                PROGRAMS,
                "--set sets K=V",
                "Variable that is set, as LD_LIBRARY_PATH={build}/lib. Repeat it. (default: none)",
                str,
                multiple=True,
            ),
            *reading_options(),
            judged(
                "--launches N",
                "Launches of each side in each of up to 3 rounds.",
                whole("launches", 1),
                default=LAUNCHES,
            ),
            judged("--seed N", "Of the order of sides. (default: drawn, and stored)", whole("seed", 0)),
            *measuring_report_options(),
            table_option("store"),
            debug_option(),
        ],
        callback=_bisect,
        help="Which commit made a program slower? Builds commits that halve what is left of a history, and compares "
        "each with the good one, in turn, until its verdict is SLOWER or SAME. A commit that cannot be built or "
        "decided is passed over.",
        examples=("omb-py bisect --good v4.2 --bad main --build 'make -j8' --run 'mpirun -n 2 {build}/osu_latency'",),
        codes=_CODES,
    )


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
