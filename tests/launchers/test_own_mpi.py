"""The user's own MPI library: found by a prefix, a library or an mpiexec, and loaded by name."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers import own_mpi
from omb_py.launchers.own_mpi import VARIABLE, own_mpi_variables
from tests.support.machines.mpi import AS_ROOT, run_command

MPICH = b"\0MPIR_Err_create_code\0"
OPEN_MPI = b"\0ompi_mpi_comm_world\0"
DEBIAN = {"MPICH": "/usr/bin/mpiexec.mpich", "Open MPI": "/usr/bin/mpiexec.openmpi"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def library(file: Path, sign: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x7fELF" + sign)
    return file


def mpiexec(file: Path, says: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{says}'\n")
    file.chmod(0o755)
    return file


def variables(path: Path, **environ: str) -> dict[str, str]:
    return own_mpi_variables({VARIABLE: str(path), **environ})


def test_without_a_name_nothing_is_changed() -> None:
    assert own_mpi_variables({}) == {} == own_mpi_variables({VARIABLE: ""})


@pytest.mark.parametrize(
    ("folder", "name", "sign"),
    [("lib", "12", MPICH), ("lib64", "40", OPEN_MPI), ("lib/release", "12", MPICH), (".", "40", OPEN_MPI)],
)
def test_a_prefix(tmp_path: Path, folder: str, name: str, sign: bytes) -> None:
    file = library(tmp_path / "mpi" / folder / f"libmpi.so.{name}", sign)
    (file.parent / "libmpi.so").write_text("INPUT(libmpi.so.12)")  # a text for linkers
    assert variables(tmp_path / "mpi", LD_LIBRARY_PATH="/a:") == {"MPI4PY_LIBMPI": str(file.resolve())}


def test_a_library_by_another_name_gets_a_link(tmp_path: Path, cache: Path) -> None:
    """Debian calls MPICH's library libmpich.so.12; the loader asks for libmpi.so.12."""
    file = library(tmp_path / "libmpich.so.12.2.2", MPICH)
    link, before = variables(file, LD_LIBRARY_PATH="/a:")["LD_LIBRARY_PATH"].split(":")
    assert before == "/a" and Path(link).is_relative_to(cache)
    assert [name.name for name in Path(link).iterdir()] == ["libmpi.so.12"]
    assert (Path(link) / "libmpi.so.12").resolve() == file
    assert variables(file) == variables(file)  # the second time the link is there


def test_of_two_libraries_in_one_prefix_the_mpiexec_decides(tmp_path: Path) -> None:
    ours = library(tmp_path / "lib/libmpich.so.12", MPICH)
    theirs = library(tmp_path / "lib/libmpi.so.40", OPEN_MPI)
    with pytest.raises(UsageError, match=r"there are several MPI libraries: name .*libmpi.so.40 or .*libmpich.so.12"):
        variables(tmp_path)
    hydra = mpiexec(tmp_path / "bin/mpiexec.mpich", "HYDRA build details:\n    Version:   4.0.2\n")
    prte = mpiexec(tmp_path / "bin/mpiexec.openmpi", "mpiexec (Open MPI) 4.1.4")
    assert variables(hydra)["MPI4PY_LIBMPI"] == str(ours)
    assert variables(prte)["MPI4PY_LIBMPI"] == str(theirs)


@pytest.mark.parametrize(
    ("name", "says"),
    [("nothing", "there is nothing here"), ("empty", "no MPI library belongs to it"), ("bin/cc", "no MPI library")],
)
def test_what_is_no_mpi(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    mpiexec(tmp_path / "bin/cc", "cc")
    with pytest.raises(UsageError, match=says):
        variables(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("libmpi.so.12", "its compiler: MPICC=…/bin/mpicc pip install --no-binary"),
        ("libmpi_abi.so.1", "its compiler: MPI4PY_BUILD_MPIABI=1 MPICC=…/bin/mpicc_abi pip install --no-binary"),
    ],
)
def test_a_library_that_the_wheel_of_mpi4py_cannot_load(
    tmp_path: Path, name: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "site", b"libmpi.so.12\0", monkeypatch)
    file = library(tmp_path / name, MPICH if "abi" in name else b"other")
    with pytest.raises(EnvironmentProblem, match=f"no build for it .* {build}"):
        variables(file)


def test_an_mpi4py_that_was_built_for_the_standard_abi_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "site", b"\0libmpi_abi.so.1\0", monkeypatch)
    for name in ("libmpi_abi.so.1", "libmpi_abi.so.1.0"):
        file = library(tmp_path / "lib" / name, MPICH)
        set_for = variables(file)
        assert set_for["MPI4PY_LIBMPI"] == str(file)
        found_first = set_for["LD_LIBRARY_PATH"].split(os.pathsep)[0]
        assert found_first == str(file.parent), "Intel MPI looks for its tuning beside it"
    library(tmp_path / "lib" / "libstdc++.so.6", b"")
    folder = Path(variables(file)["LD_LIBRARY_PATH"].split(os.pathsep)[0])
    assert folder != file.parent, "no other library is exchanged"
    assert (folder / "libmpi_abi.so.1").samefile(file)


def test_the_mpi4py_of_the_other_python_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A side of a comparison imports its own mpi4py, by its PYTHONPATH."""
    installed(tmp_path / "wheel", b"libmpi.so.12\0", monkeypatch)
    installed(tmp_path / "site", b"\0libmpi_abi.so.1\0", monkeypatch)
    monkeypatch.setattr(own_mpi, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path / "wheel")]))
    file = library(tmp_path / "libmpi_abi.so.1", MPICH)
    environ = {VARIABLE: str(file), "PYTHONPATH": str(tmp_path / "site")}
    with pytest.raises(EnvironmentProblem, match="no build for it"):
        own_mpi_variables(environ)
    assert own_mpi_variables(environ, sys.executable)["MPI4PY_LIBMPI"] == str(file)


def installed(site: Path, needs: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An mpi4py whose module asks for a library."""
    (site / "mpi4py").mkdir(parents=True)
    (site / "mpi4py" / "__init__.py").touch()
    (site / "mpi4py" / "MPI.cpython-311-x86_64-linux-gnu.so").write_bytes(needs)
    monkeypatch.setattr(own_mpi, "find_spec", lambda name: PathFinder.find_spec(name, [str(site)]))


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("vendor", DEBIAN)
@pytest.mark.parametrize("under", ["omb-py", "mpiexec"])
def test_debians_libraries_measure(vendor: str, under: str, tmp_path: Path) -> None:
    """The environment's own library is another one; ours and their launcher start the ranks."""
    launcher = shutil.which(DEBIAN[vendor])
    if launcher is None:
        pytest.skip(f"Debian's {vendor} is not installed here")
    words = [sys.executable, "-m", "omb_py", "latency", "--mpi", launcher, "-m", "8:8", "-i", "20", "--format", "csv"]
    if under == "mpiexec":
        words = [launcher, *(["--oversubscribe"] * (vendor == "Open MPI")), "-n", "2", *words]
    environ = {**os.environ, **AS_ROOT}
    ended = run_command(words, cwd=tmp_path, env=environ)
    assert ended.returncode == 0, ended.stderr
    assert f",{vendor},4." in ended.stdout
