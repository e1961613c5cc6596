"""mpiexec: the one that belongs to the MPI library which mpi4py loads."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omb_py.errors import EnvironmentProblem
from omb_py.launchers import RANK_VARIABLE, intel_mpi, mpich, open_mpi
from omb_py.launchers.core_binding import bound_by_user
from omb_py.launchers.launcher import (
    HOST_OPTIONS,
    LOCAL_NAMES,
    Environment,
    LaunchCommand,
    Launcher,
    RankRequest,
    host_and_slots,
    placement,
)
from omb_py.launchers.mpiexec_family import Mpiexec, MpiexecFamily
from omb_py.remembered import keep, recall

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine
    from omb_py.launchers.mpi_library import MPILibrary

FAMILIES: Final[tuple[MpiexecFamily, ...]] = (intel_mpi.LAUNCHER, mpich.LAUNCHER, open_mpi.LAUNCHER)


class MpiexecOfLibrary(Launcher):
    """The mpiexec of the library, with the options of its family."""

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        """Raises EnvironmentProblem: there is no library, or no mpiexec of it, or it refuses to start."""
        from omb_py.launchers.registry import MANAGED, job_around

        # Every mpiexec asks Slurm for its nodes. The nodes of a PBS or Flux job it need not know.
        if not ranks.hosts and not bound_by_user(ranks.extra, HOST_OPTIONS) and "SLURM_JOB_ID" not in machine.environ:
            job = job_around(machine.environ)
            ranks = replace(ranks, hosts=job.hosts) if job is not None and len(job.nodes) > 1 else ranks
        library = machine.library
        mpiexec = find_mpiexec(library, machine.environ, machine.python)
        family = family_of(mpiexec.vendor)
        if problem := family.problem(machine):
            raise EnvironmentProblem(problem)
        if ranks.hosts:
            local = all(host_and_slots(host)[0] in LOCAL_NAMES for host in ranks.hosts)
        else:
            local = not bound_by_user(ranks.extra, HOST_OPTIONS) and not any(n in machine.environ for n in MANAGED)
        placed = placement(ranks, machine, local)
        options, more = family.options(mpiexec, ranks, machine, placed, local)
        named = family.variables[0]
        return LaunchCommand(
            f"mpiexec ({mpiexec.vendor} {mpiexec.version})",
            (mpiexec.path, "-n", str(ranks.count), *options, *ranks.extra, *ranks.program),
            machine.rank_environ({**more, RANK_VARIABLE: f"{named.rank[0]} {named.size[0]}"}),
            local,
            placed.oversubscribed,
            placed.notes,
            library,
            family.local_rank_variable,
        )


def family_of(vendor: str) -> MpiexecFamily:
    """The family of a library; MPICH's for those that are derived from it."""
    return next((family for family in FAMILIES if family.vendor == vendor), mpich.LAUNCHER)


def parse_mpiexec_version(text: str) -> tuple[str, str]:
    """(vendor, version) from what ``mpiexec --version`` prints; empty where unknown."""
    for family in FAMILIES:
        if match := re.search(family.version, text, re.DOTALL):
            return family.vendor, match[1]
    return "", ""


def identify(path: str) -> Mpiexec:
    """The vendor and version of a launcher; the vendor is empty when the file does not say."""
    question = f"mpiexec {os.path.realpath(path)}"
    if (answer := recall(question)) is not None:
        return Mpiexec(path, **answer)
    import subprocess  # ranks load this module

    try:
        child = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return Mpiexec(path, "", "")
    vendor, version = parse_mpiexec_version(child.stdout + child.stderr)
    if vendor:
        keep(question, {"vendor": vendor, "version": version}, [os.path.realpath(path)])
    return Mpiexec(path, vendor, version)


def list_candidates(library: MPILibrary, python: str, environ: Environment) -> Iterator[str]:
    """Files that may be the library's mpiexec: in the library's own prefix, beside Python, then in PATH."""
    folders = [parent / "bin" for parent in Path(library.path or "/").parents if parent != parent.parent]
    folders.append(Path(python).parent)
    folders += [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    yielded = set()
    for folder in folders:
        for name in family_of(library.vendor).programs:
            file = folder / name
            if os.access(file, os.X_OK) and file.is_file():
                real = os.path.realpath(file)
                if real not in yielded:
                    yielded.add(real)
                    yield str(file)


def matches(library: MPILibrary, mpiexec: Mpiexec) -> bool:
    """True when ranks that this mpiexec starts will find each other through this library."""
    family = family_of(library.vendor)
    return mpiexec.vendor == family.vendor and family.fits(library.version, mpiexec.version)


def find_mpiexec(library: MPILibrary, environ: Environment, python: str = sys.executable) -> Mpiexec:
    """The mpiexec that belongs to the library that mpi4py loads.

    Raises:
        EnvironmentProblem: there is no MPI library, no mpiexec, or only one of another MPI.
    """
    if not library.available:
        raise EnvironmentProblem(f"{library.reason}. What to do: {library.fix}")
    rejected = []
    for path in list_candidates(library, python, environ):
        mpiexec = identify(path)
        if matches(library, mpiexec):
            return mpiexec
        rejected.append(mpiexec)
    name = f"{library.vendor} {library.version} ({library.path})"
    if not rejected:
        raise EnvironmentProblem(
            f"no mpiexec found for {name}, which mpi4py loads. What to do: install its launcher, "
            "put its bin folder in PATH, or use --launcher srun"
        )
    wrong = ", ".join(f"{o.path} is of {f'{o.vendor} {o.version}' if o.vendor else 'an unknown MPI'}" for o in rejected)
    raise EnvironmentProblem(
        f"the launcher does not belong to the MPI library: mpi4py loads {name}, but {wrong}. "
        f"What to do: put the mpiexec of {library.vendor} in PATH, or install the MPI library of that mpiexec"
    )


LAUNCHER: Final = MpiexecOfLibrary("mpiexec", "mpiexec of the MPI library that mpi4py loads")
