"""The user's own MPI library: ``--mpi PATH`` or ``OMB_PY_MPI``, as environment variables of mpi4py and the loader.

mpi4py's wheel has one build for each binary interface (ABI): MPICH's, whose library is ``libmpi.so.12``, and Open
MPI's, ``libmpi.so.40``. Debian's MPICH calls its file ``libmpich.so.12``; a link with the other name serves it. An
mpi4py that was built for MPI's standard ABI asks for ``libmpi_abi.so.1``.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omb_py.errors import EnvironmentProblem, UsageError

VARIABLE: Final = "OMB_PY_MPI"
MPI_VARIABLES: Final = ("MPI4PY_LIBMPI", "LD_LIBRARY_PATH")
"""What :func:`own_mpi_variables` sets."""


@dataclass(frozen=True, slots=True)
class _Abi:
    """A binary interface of MPI."""

    name: str
    soname: str
    """The library that mpi4py's build for it asks for."""
    sign: bytes
    """A symbol that only libraries of this ABI have."""


_Finder = Callable[[], list[str]]
"""Finds the folders of mpi4py, where it is asked."""

_ABIS: Final = (
    _Abi("mpich", "libmpi.so.12", b"MPIR_Err_create_code\0"),
    _Abi("openmpi", "libmpi.so.40", b"ompi_mpi_comm_world\0"),
)
_STANDARD: Final = _Abi("mpiabi", "libmpi_abi.so.1", b"MPI_Abi_get_version\0")
"""MPI-5.0. A library's own interface has this function, too: what decides is the file's name."""
_BUILD: Final = "MPICC=…/bin/mpicc pip install --no-binary mpi4py mpi4py"
_BUILD_STANDARD: Final = f"MPI4PY_BUILD_MPIABI=1 {_BUILD.replace('mpicc', 'mpicc_abi', 1)}"
_TELL_MPI4PY: Final = "import mpi4py; print(*mpi4py.__path__, sep='\\n')"
_NAME: Final = r"libmpi(ch)?\.so(\.\d+)*"
_LIBRARY_FOLDERS: Final = ("lib", "lib64", "lib/release", f"lib/{os.uname().machine}-linux-gnu", ".")


def own_mpi_variables(environ: Mapping[str, str], python: str = "") -> dict[str, str]:
    """The environment variables by which Python loads the library that ``OMB_PY_MPI`` names; none where it is unset.

    Args:
        environ: the variables of the process that loads the library.
        python: its Python, which may have another mpi4py; empty: this process.

    Raises:
        UsageError: there is no MPI library at this path, or one of several is not chosen.
        EnvironmentProblem: the library has an ABI that mpi4py's wheel has no build for.
    """
    path = environ.get(VARIABLE, "")
    if not path:
        return {}
    library, abi = _find_library(Path(path).expanduser(), lambda: _find_mpi4py(environ, python))
    # mpi4py opens this file to learn its ABI, and its build finds it loaded; told the ABI, mpi4py would not open it
    variables = {"MPI4PY_LIBMPI": str(library)}
    # a build for one interface alone leaves the search to the loader
    has_name = (library.parent / abi.soname).exists()
    if abi is _STANDARD or not has_name:
        # by its own path where that goes: Intel MPI looks for its tuning beside the path by which it was loaded
        folder = str(library.parent) if has_name and not _is_shared(library.parent) else _link(library, abi.soname)
        before = environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        variables["LD_LIBRARY_PATH"] = os.pathsep.join([folder, *(one for one in before if one not in ("", folder))])
    return variables


def use_own_mpi(is_rank: bool, path: str = "") -> None:
    """Let this process and its children load the user's MPI library.

    The loader reads its variables at the start of a process alone, so a rank begins its program anew.

    Args:
        is_rank: whether a launcher has started this process, which then loads the library itself.
        path: as in ``--mpi``; empty: what ``OMB_PY_MPI`` says.

    Raises:
        UsageError, EnvironmentProblem: as :func:`own_mpi_variables`.
    """
    if path:
        os.environ[VARIABLE] = os.path.abspath(os.path.expanduser(path))
    searched = os.environ.get("LD_LIBRARY_PATH")
    os.environ.update(own_mpi_variables(os.environ))
    if is_rank and os.environ.get("LD_LIBRARY_PATH") != searched:
        os.execv(sys.executable, sys.orig_argv)


def _find_library(path: Path, find_mpi4py: _Finder) -> tuple[Path, _Abi]:
    """The library at a path that is one, a prefix, or an mpiexec. Raises as :func:`own_mpi_variables`."""
    if not path.exists():
        raise UsageError(f"--mpi {path}: there is nothing here: name a prefix, a libmpi or an mpiexec")
    if path.is_file() and path.name.startswith("libmpi"):
        candidates = {path.resolve(): _abi_of(path, find_mpi4py)}
    else:
        files = _libraries(path if path.is_dir() else path.parent.parent)
        candidates = {file: _abi_of(file, find_mpi4py) for file in files}
    # a libmpi.so beside it may be a text for linkers
    candidates = {file: abi for file, abi in candidates.items() if abi is not None} or candidates
    if path.is_file() and len(candidates) > 1:  # of two libraries in one prefix, such as /usr, that of this mpiexec
        wanted = _abi_of_launcher(path)
        candidates = {file: abi for file, abi in candidates.items() if abi is not None and abi.name == wanted}
    if len(candidates) > 1:
        raise UsageError(f"--mpi {path}: there are several MPI libraries: name {' or '.join(map(str, candidates))}")
    for file, abi in candidates.items():
        if abi is None:
            raise _unusable(file)
        return file, abi
    raise UsageError(f"--mpi {path}: no MPI library belongs to it: name the library itself, libmpi.so…")


def _libraries(prefix: Path) -> list[Path]:
    files = (file for folder in _LIBRARY_FOLDERS for file in sorted((prefix / folder).glob("libmpi*.so*")))
    return list(dict.fromkeys(file.resolve() for file in files if re.fullmatch(_NAME, file.name) and file.is_file()))


def _abi_of(file: Path, find_mpi4py: _Finder) -> _Abi | None:
    try:
        if file.name.startswith("libmpi_abi"):
            return _STANDARD if _takes_standard(find_mpi4py()) else None
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return next((abi for abi in _ABIS if content.find(abi.sign) >= 0), None)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None


def _abi_of_launcher(path: Path) -> str:
    from omb_py.launchers.mpiexec import identify  # asks the program, in a child

    vendor = identify(str(path)).vendor
    return "openmpi" if vendor == "Open MPI" else "mpich" if vendor else ""


def _find_mpi4py(environ: Mapping[str, str], python: str) -> list[str]:
    """The folders of the mpi4py that a process with this Python and these variables imports."""
    if not python:
        package = find_spec("mpi4py")
        return list(package.submodule_search_locations or ()) if package else []
    import subprocess  # ranks load this module

    child = subprocess.run([python, "-c", _TELL_MPI4PY], env=dict(environ), capture_output=True, text=True, check=False)
    return child.stdout.splitlines()


def _takes_standard(folders: Iterable[str]) -> bool:
    """Whether the mpi4py in these folders was built for the standard ABI."""
    modules = (module for folder in folders for module in Path(folder).glob("MPI.*.so"))
    return any(_STANDARD.soname.encode() in module.read_bytes() for module in modules)


def _unusable(file: Path) -> EnvironmentProblem:
    build = _BUILD_STANDARD if file.name.startswith("libmpi_abi") else _BUILD
    return EnvironmentProblem(
        f"--mpi {file}: mpi4py's wheel has no build for it (it has them for libmpi.so.12 and libmpi.so.40). "
        f"What to do: build mpi4py with its compiler: {build}"
    )


def _is_shared(folder: Path) -> bool:
    """Whether this folder, such as /usr/lib, holds libraries of Python too, which must not be exchanged."""
    return any(any(folder.glob(name)) for name in ("libc.so.*", "libstdc++.so.*", "libpython3*"))


def _link(library: Path, soname: str) -> str:
    """A folder of this user in which the library has the name that mpi4py asks for. Raises EnvironmentProblem."""
    from hashlib import sha256

    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "omb-py-mpi" / sha256(str(library).encode()).hexdigest()[:16]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise PermissionError("it is not this user's alone")
        link = folder / soname
        if not link.is_symlink() or link.readlink() != library:
            draft = folder / f".{soname}.{os.getpid()}"
            draft.symlink_to(library)
            draft.replace(link)
    except OSError as error:
        raise EnvironmentProblem(
            f"--mpi {library}: cannot make a link to it in {folder}: {error.strerror or error}: set XDG_CACHE_HOME to "
            "a folder that ranks can read"
        ) from None
    return str(folder)
