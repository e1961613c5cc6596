from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.mpi_library import MPILibrary, mpi_library
from omb_py.launchers.mpiexec import find_mpiexec, matches, parse_mpiexec_version
from omb_py.launchers.mpiexec_family import INTEL, MPICH, OPEN_MPI, Mpiexec

HYDRA = "HYDRA build details:\n    Version:                                 5.0.2\n    Release Date: x\n"
SAYS = {
    MPICH: HYDRA,
    OPEN_MPI: "mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
    INTEL: "Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 20251030 (id: 46c9e2d)\nCopyright\n",
}


def program(file: Path, text: str, status: int = 0) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (SAYS[MPICH], (MPICH, "5.0.2")),
        (SAYS[OPEN_MPI], (OPEN_MPI, "5.0.11")),
        ("mpirun (Open MPI) 4.1.4", (OPEN_MPI, "4.1.4")),
        (SAYS[INTEL], (INTEL, "2021.16")),
        ("mpiexec 1.0 of somebody", ("", "")),
    ],
)
def test_a_launcher_says_whose_it_is(text: str, owner: tuple[str, str]) -> None:
    assert parse_mpiexec_version(text) == owner


@pytest.mark.parametrize("layout", ["lib/libmpi.so.12", "lib/python3.11/site-packages/mpich/lib/libmpi.so.12"])
def test_mpiexec_is_found_beside_its_library(tmp_path: Path, layout: str) -> None:
    prefix = (tmp_path / layout).parent.parent
    right = program(prefix / "bin/mpiexec", SAYS[MPICH])
    program(tmp_path / "path/mpiexec", SAYS[OPEN_MPI])
    library = MPILibrary(MPICH, "5.0.2", path=str(tmp_path / layout))
    found = find_mpiexec(library, {"PATH": str(tmp_path / "path")}, str(tmp_path / "python"))
    assert found == Mpiexec(str(right), MPICH, "5.0.2")


def test_python_comes_first_and_path_last(tmp_path: Path) -> None:
    program(tmp_path / "venv/bin/mpiexec", SAYS[OPEN_MPI])
    program(tmp_path / "path/mpiexec", SAYS[OPEN_MPI])
    library = MPILibrary(OPEN_MPI, "5.0.11")
    environ = {"PATH": str(tmp_path / "path")}
    assert find_mpiexec(library, environ, str(tmp_path / "venv/bin/python")).path == str(tmp_path / "venv/bin/mpiexec")
    assert find_mpiexec(library, environ, "/nowhere/python").path == str(tmp_path / "path/mpiexec")


def test_a_launcher_of_another_mpi_is_named_with_both(tmp_path: Path) -> None:
    program(tmp_path / "mpiexec", SAYS[MPICH])
    library = MPILibrary(OPEN_MPI, "5.0.11", path="/opt/openmpi/lib/libmpi.so.40")
    with pytest.raises(EnvironmentProblem) as caught:
        find_mpiexec(library, {"PATH": str(tmp_path)}, "/nowhere/python")
    for word in ("Open MPI 5.0.11 (/opt/openmpi/lib/libmpi.so.40)", f"{tmp_path}/mpiexec is of MPICH 5.0.2", "PATH"):
        assert word in str(caught.value)


def test_no_launcher_at_all(tmp_path: Path) -> None:
    library = MPILibrary(MPICH, "5.0.2")
    with pytest.raises(EnvironmentProblem, match=r"no mpiexec found for MPICH 5\.0\.2"):
        find_mpiexec(library, {"PATH": str(tmp_path)}, "/nowhere/python")


def test_no_library_gives_its_own_reason() -> None:
    with pytest.raises(EnvironmentProblem, match=r"^why\. What to do: this$"):
        find_mpiexec(MPILibrary(reason="why", fix="this"), {})


@pytest.mark.parametrize(
    ("library", "launcher", "fits"),
    [
        ((MPICH, "5.0.2"), (MPICH, "4.1"), True),
        ((OPEN_MPI, "5.0.11"), (OPEN_MPI, "5.0.3"), True),
        ((OPEN_MPI, "5.0.11"), (OPEN_MPI, "4.1.4"), False),
        ((INTEL, "2021.16"), (MPICH, "5.0.2"), False),
        (("MVAPICH", "4.0"), (MPICH, "4.2"), True),
        ((MPICH, "5.0.2"), ("", ""), False),
    ],
)
def test_which_launcher_fits_which_library(library: tuple[str, str], launcher: tuple[str, str], fits: bool) -> None:
    assert matches(MPILibrary(*library), Mpiexec("mpiexec", *launcher)) is fits


# what the child process may say


def test_this_pythons_own_library_is_known() -> None:
    library = mpi_library()
    assert library.available, library.reason
    assert library.vendor in (MPICH, OPEN_MPI, INTEL)
    assert library.version.split(".")[0] in library.text
    assert os.path.exists(library.path)
    assert find_mpiexec(library, {"PATH": "/nonexistent"}).vendor == library.vendor, "no environment is activated"


@pytest.mark.parametrize(
    ("line", "reason", "fix"),
    [
        (
            'omb-py:{"error": "ModuleNotFoundError: No module named mpi4py"}',
            "mpi4py cannot be imported",
            "pip install mpi4py",
        ),
        (
            'omb-py:{"mpi4py": "4.1", "error": "RuntimeError: cannot load MPI library\\nlibmpi.so: no such file"}',
            "mpi4py finds no MPI library: cannot load MPI library",
            pip_install("mpich"),
        ),
        ("nonsense", "loading the MPI library ended Python: exit status 3", "python -m mpi4py"),
    ],
)
def test_a_missing_library_gives_reason_and_fix(tmp_path: Path, line: str, reason: str, fix: str) -> None:
    library = mpi_library(str(program(tmp_path / "python", line, status=3)))
    assert not library.available
    assert library.reason.startswith(reason)
    assert fix in library.fix


def test_a_python_that_cannot_be_asked(tmp_path: Path) -> None:
    gone = mpi_library(str(tmp_path / "python"))
    assert "cannot start" in gone.reason and gone.fix == "make its environment again"
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 5\n")
    slow.chmod(0o755)
    assert "more than 0.1 s" in mpi_library(str(slow), timeout=0.1).reason


def test_mpi4py_without_any_mpi_library(tmp_path: Path) -> None:
    """The real words of mpi4py: a copy of it that lies near no library."""
    import importlib.util
    import shutil

    found = importlib.util.find_spec("mpi4py")
    assert found is not None and found.origin is not None
    shutil.copytree(Path(found.origin).parent, tmp_path / "mpi4py")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    library = mpi_library(str(python))
    if library.available:  # a library in the system's own folders
        assert not library.path.startswith(sys.prefix)
    else:
        assert library.reason.startswith("mpi4py finds no MPI library: ")
        assert library.mpi4py
