"""The Makefile refuses a Python that is too old, and makes an environment of one anew."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.machines.mpi import run_command

ROOT = Path(__file__).parent.parent
OLD = '#!/bin/sh\n[ "$1" = --version ] && { echo Python 3.10.12; exit; }\nexit 1\n'
NEW = """#!/bin/sh
[ "$1" = --version ] && { echo Python 3.12.1; exit; }
[ "$2" = venv ] && { mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; }
exit 0
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def interpreter(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return run_command(["make", *words], cwd=folder, env=os.environ)


@pytest.mark.parametrize("goal", ["run", "test"])
def test_an_old_python_is_refused_before_anything_is_made(goal: str, tmp_path: Path) -> None:
    interpreter(tmp_path / "old", OLD)
    ended = make(tmp_path, goal, "PYTHON=./old")
    assert ended.returncode == 2
    assert "omb-py needs Python 3.11 or newer, and ./old is Python 3.10.12." in ended.stderr
    assert f"make {goal} PYTHON=python3.12" in ended.stderr
    assert not (tmp_path / ".venv").exists()


def test_an_environment_of_an_old_python_is_made_anew(tmp_path: Path) -> None:
    interpreter(tmp_path / ".venv" / "bin" / "python", OLD)
    interpreter(tmp_path / "new", NEW)
    ended = make(tmp_path, "python", "PYTHON=./new")
    assert ended.returncode == 0, ended.stderr
    assert "it is made anew" in ended.stdout and "Making .venv with Python 3.12.1." in ended.stdout
    assert (tmp_path / ".venv" / "bin" / "python").read_text() == NEW


def test_a_good_environment_is_kept_whatever_python_is_named(tmp_path: Path) -> None:
    interpreter(tmp_path / ".venv" / "bin" / "python", NEW)
    interpreter(tmp_path / "old", OLD)
    ended = make(tmp_path, "python", "PYTHON=./old")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / ".venv" / "bin" / "python").exists()


HELPERS = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]


def test_no_helper_marks_tests_of_ranks() -> None:
    """Tests on real ranks are looked for in the files of tests that name the mark."""
    assert [path for path in HELPERS if re.search(r"mark\.mpi|each_library", path.read_text())] == []


def test_slow_tests_are_looked_for_also_by_the_helpers_that_mark_them() -> None:
    marking = {
        function.name
        for path in HELPERS
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and "mark.slow" in ast.unparse(function)
    }
    (pattern,) = re.findall(r"MARKED,(\S*slow\S*)\)", (ROOT / "Makefile").read_text())
    assert {"mark\\.slow", *marking} == {*pattern.split("|")}
