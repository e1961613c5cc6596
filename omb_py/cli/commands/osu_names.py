"""``omb-py osu-names``: the programs of OMB by name, each of them omb-py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option
from omb_py.distribution import pip_install
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import OK, EnvironmentProblem, UsageError
from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites import find

_FOLDERS = {"pt2pt": "mpi/pt2pt", "one-sided": "mpi/one-sided", "startup": "mpi/startup"}
"""Folder of OMB for a family of benchmarks; all others are in ``mpi/collective``."""
_OF_NCCL = dict.fromkeys(("allgather", "allreduce", "alltoall", "bcast", "reduce", "reduce_scatter"), "collective")
_OF_NCCL |= dict.fromkeys(("latency", "bw", "bibw"), "pt2pt")
"""OMB's programs for NCCL and RCCL, and their folder in ``xccl``."""


def command() -> click.Command:
    """The command ``osu-names``."""
    return Page(
        "osu-names",
        params=[click.Argument(["folder"], metavar="DIR"), debug_option()],
        callback=run,
        help="Make DIR a folder of OMB's programs: osu_latency, osu_allreduce and all others, each a link to omb-py. "
        "They lie in DIR, for PATH, and below DIR/mpi and DIR/xccl as OMB installs them. A script for OMB then needs "
        "no change but that of its PATH.\n\n"
        "A program that is called by such a name ends with 1 where OMB does, and passes over words that OMB ignores.",
        examples=["omb-py osu-names ~/osu", "PATH=~/osu:$PATH mpirun -n 2 osu_latency -m 8:1K"],
    )


def run(folder: str) -> int:
    """Link all names. Raises UsageError, EnvironmentProblem."""
    target = _program()
    root = Path(folder).expanduser()
    programs = {f"osu_{name}": _folder(find(name)) for name in TITLES}
    programs |= {f"osu_xccl_{name}": Path("xccl") / family for name, family in _OF_NCCL.items()}
    links = [place / name for name, folder in programs.items() for place in (root, root / folder)]
    taken = next((link for link in links if link.exists() and not link.is_symlink()), None)
    if taken is not None:
        raise UsageError(f"{taken} is a file of its own, such as OMB's program: name an empty folder")
    try:
        for link in links:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {error.filename or root}: {error.strerror}") from error
    click.echo(f"{len(programs)} programs are in {root}. For a script of OMB's: export PATH={root.absolute()}:$PATH")
    return OK


def _program() -> Path:
    """The program ``omb-py`` of this Python. Raises EnvironmentProblem."""
    program = Path(sys.executable).parent / "omb-py"
    if not os.access(program, os.X_OK):
        raise EnvironmentProblem(f"{program} is missing: {pip_install('mpich')}")
    return program


def _folder(benchmark: Benchmark) -> Path:
    folder = Path(_FOLDERS.get(benchmark.family, "mpi/collective"))
    if benchmark.family == "pt2pt" and benchmark.name.endswith("_persistent"):
        return folder / "persistent"
    return Path("mpi/congestion") if "_fan_" in benchmark.name else folder
