"""``omb-py knobs``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import backend_option, table_option
from omb_py.cli.output import check_files, report_options, write_report
from omb_py.errors import UsageError
from omb_py.orchestrate.tune.knobs import collectives, library_of, listing, performance_variables

_FORMS = ("table", "json", "markdown")
_FILES = (".json", ".md")
_EXAMPLES = (
    "omb-py knobs allreduce",
    "omb-py knobs allreduce --all --format json",
    "omb-py knobs coll_tuned_allreduce_algorithm",
    "omb-py knobs --pvars",
    "omb-py knobs --backend nccl",
)


def command() -> click.Command:
    heading = "What is listed"
    return Page(
        "knobs",
        params=[
            click.Argument(
                ["name"], metavar="[COLLECTIVE|KNOB]", required=False, default="", shell_complete=_collectives
            ),
            backend_option(heading),
            tool_option(heading, "--all every", "Also knobs that do not decide an algorithm. (default: off)"),
            tool_option(heading, "--pvars", "What the library counts, for --pvar of a benchmark. (default: off)"),
            table_option("own_mpi", heading),
            *report_options(_FORMS, "the list to a file too: .json or .md"),
            debug_option(),
        ],
        callback=run_knobs,
        help="What can be set in this communication library, its value here, and the environment variable that sets "
        "it.\n\nMPI libraries are asked by MPI_T in a child process; of NCCL and Gloo there is a declared list "
        "(docs/knobs.md).",
        examples=_EXAMPLES,
    )


def _collectives(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in collectives() if name.startswith(incomplete)]


def run_knobs(name: str, backend: str, every: bool, pvars: bool, form: str, output: Sequence[Path]) -> int:
    check_files(output, _FILES)
    if pvars and (name or every):
        raise UsageError("--pvars lists all that a library counts: leave out the collective and --all")
    library = library_of(backend)
    document = performance_variables(library) if pvars else listing(library, name, every)
    return write_report(document, form, output)
