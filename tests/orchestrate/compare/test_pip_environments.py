"""Environments of ``--pip``: made once, only the named package is their own, and pip's failure is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.compare.pip_environments import (
    _make,
    cache_folder,
    check_requirement,
    environment_for,
    pip_reason,
)
from omb_py.orchestrate.compare.side_environments import parse_sides, where_of
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from tests.support.machines.mpi import run_command

PIP = [sys.executable, "-m", "pip"]
UNPACK = """
import pathlib, sys, sysconfig, zipfile
home = str(pathlib.Path(sys.argv[sys.argv.index("--python") + 1]).parents[1])
target = sysconfig.get_path("purelib", "venv", vars={"base": home, "platbase": home})
for word in sys.argv:
    if word.endswith(".whl"):
        zipfile.ZipFile(word).extractall(target)
"""
QUICK_PIP = [sys.executable, "-S", "-c", UNPACK]
"""Does with a wheel what pip does, in a tenth of the time, where a test is about the folder and not about pip."""


def wheel(folder: Path, version: str, name: str = "omb_stub") -> Path:
    """A wheel with one module that tells its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def asked(python: Path, code: str) -> str:
    child = run_command([python, "-c", code], check=True, env=os.environ)
    return child.stdout.strip()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "cache" / "omb-py" / "environments"


@pytest.mark.slow
def test_only_the_package_is_its_own(cache, tmp_path) -> None:
    notes: list[str] = []
    makers = {"1.0": None, "2.0": QUICK_PIP}
    sides = [environment_for([str(wheel(tmp_path, made))], notes.append, pip=pip) for made, pip in makers.items()]
    code = "import json, numpy, omb_stub, sys; print(json.dumps([omb_stub.VERSION, numpy.__file__, sys.prefix]))"
    answers = [json.loads(asked(side.folder / "bin" / "python", code)) for side in sides]
    import numpy

    assert [answer[0] for answer in answers] == ["1.0", "2.0"]
    assert {answer[1] for answer in answers} == {numpy.__file__}
    assert [answer[2] for answer in answers] == [str(side.folder) for side in sides]
    assert all(side.folder.parent == cache for side in sides) and len(notes) == 2
    assert sum(path.stat().st_size for path in sides[0].folder.rglob("*") if path.is_file()) < 2_000_000


def test_is_made_once(cache, tmp_path) -> None:
    requirement = str(wheel(tmp_path, "1.0"))
    first = environment_for([requirement], pip=QUICK_PIP)
    notes: list[str] = []
    again = environment_for([requirement], notes.append, pip=["/none/pip"])
    assert again == first and notes == []


@pytest.mark.slow
def test_a_wheel_that_was_built_anew_is_another_requirement(cache, tmp_path) -> None:
    path = wheel(tmp_path, "1.0")
    first = environment_for([str(path)], pip=QUICK_PIP)
    os.utime(path, ns=(1, 1))
    assert environment_for([str(path)], pip=QUICK_PIP).folder != first.folder


@pytest.mark.slow
def test_what_an_interruption_left_is_made_anew(cache, tmp_path, monkeypatch) -> None:
    requirement = str(wheel(tmp_path, "1.0"))
    folder = environment_for([requirement], pip=QUICK_PIP).folder
    (folder / "omb-py.json").unlink()
    (folder / "half").write_text("made")
    assert environment_for([requirement], pip=QUICK_PIP).folder == folder
    assert not (folder / "half").exists() and (folder / "omb-py.json").exists()


@pytest.mark.slow
def test_the_failure_of_pip_is_one_line_and_leaves_nothing(cache, tmp_path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        environment_for(["omb-no-such-package==1.0"])
    text = str(caught.value)
    assert text.startswith("--pip omb-no-such-package==1.0: pip: Could not find a version")
    assert "\n" not in text and not [path for path in cache.iterdir() if path.is_dir()]


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["'--no-deps' in sys.argv", "'--no-deps' not in sys.argv"])
def test_a_pip_that_fails_half_way_leaves_nothing(cache, tmp_path, fails) -> None:
    """Once with the package unpacked and once with what it needs missing; the next try makes all anew."""
    requirement = str(wheel(tmp_path, "1.0"))
    half = [sys.executable, "-S", "-c", f"{UNPACK}\nif {fails}: sys.exit('ERROR: No space left on device')"]
    with pytest.raises(EnvironmentProblem, match=r"pip: No space left on device$"):
        environment_for([requirement], pip=half)
    assert not [path for path in cache.iterdir() if path.is_dir()]
    assert next(environment_for([requirement], pip=QUICK_PIP).folder.rglob("omb_stub.py")).exists()


def test_a_killed_pip_is_named(cache, tmp_path) -> None:
    killed = [sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)"]
    with pytest.raises(EnvironmentProblem, match=r"pip: it was killed by SIGKILL$"):
        environment_for([str(wheel(tmp_path, "1.0"))], pip=killed)


def test_a_wheel_that_went_away_is_one_line(cache, tmp_path) -> None:
    path = wheel(tmp_path, "1.0")
    requirement = check_requirement(str(path), "--pip NEW=")
    path.unlink()
    with pytest.raises(EnvironmentProblem, match=f"--pip {requirement}: no such file any more"):
        environment_for([requirement], pip=QUICK_PIP)


def test_without_pip(cache, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EnvironmentProblem, match="ensurepip"):
        environment_for(["x==1"])


def test_a_cache_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match="XDG_CACHE_HOME"):
        environment_for(["x==1"], root=tmp_path / "file")


def test_the_users_cache_folder() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/omb-py/environments")
    assert cache_folder({"HOME": "/h"}) == Path("/h/.cache/omb-py/environments")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "it failed without a word"),
        ("Killed", "Killed"),
        ("WARNING: a\nERROR: b\nERROR: c\n", "b"),
        ("ERROR: no x (from versions: none)\n", "no x (from versions: none): is the name right, and can pip reach"),
        (f"ERROR: {'1.0, ' * 200}9.9)", f"{'1.0, ' * 30} … "),
    ],
)
def test_reason(output, reason) -> None:
    assert pip_reason(output).startswith(reason) and len(pip_reason(output)) < 320


class TestRequirements:
    @pytest.mark.parametrize(
        "text", ["mpich==4.3.2", "mpi4py", "torch>=2.1,<3", "impi-rt ~= 2021.16", "x[extra]==1", "a @ https://x/y.whl"]
    )
    def test_right(self, text) -> None:
        assert check_requirement(text, "--pip NEW=") == text

    @pytest.mark.parametrize("text", ["--index-url=x", "mpich 4", "-r", "", "==4", "none.whl", "./no/such"])
    def test_wrong(self, text) -> None:
        with pytest.raises(UsageError, match=r"^--pip NEW="):
            check_requirement(text, "--pip NEW=")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ("--pip mpich==4", "--pip takes SIDE=…, as NEW=mpich==5.0.2"),
            ("--pip OLD=mpich==4", "valid: BASE, NEW"),
            ("--env NEW=. --pip NEW=mpich==4", "exclude each other"),
            ("--pip NEW=mpich==4 --pip BASE=mpich==4", "both sides are mpich==4"),
            ("--pip NEW=mpich==4 --backend mock", "mock simulates in this process"),
        ],
    )
    def test_of_sides(self, words, message, capsys, monkeypatch, tmp_path) -> None:
        monkeypatch.setattr(
            "omb_py.cli.comparing.where_of",
            lambda side, spec, note: RankEnvironment(facts={"config": {"pip": spec.pip}}),
        )
        before, _, backend = words.partition(" --backend")
        line = f"compare {before} latency{' --backend' if backend else ''}{backend}"
        assert main([*line.split(), "--store", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_side_runs_in_its_environment(cache, tmp_path) -> None:
    sides = parse_sides(pips=[f"NEW={wheel(tmp_path, '3.0')}"])
    where = where_of("NEW", sides["NEW"])
    assert where.facts["config"]["pip"] == sides["NEW"].pip and sides["NEW"].describe().endswith(".whl")
    child = run_command(
        [where.python, "-c", "import omb_py, omb_stub; print(omb_stub.VERSION)"], check=True, env=where.environment()
    )
    assert child.stdout.strip() == "3.0"


def test_which_mpi_library_an_environment_loads(cache, tmp_path, monkeypatch) -> None:
    shared = tmp_path / "shared"
    (shared / "lib").mkdir(parents=True)
    for name in ("libmpi.so", "libmpi.so.12", "libmpi_abi.so.1"):
        (shared / "lib" / name).write_text("")
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    monkeypatch.setattr(sys, "prefix", str(shared))
    own = environment_for([str(wheel(tmp_path, "1.0"))], pip=QUICK_PIP)
    assert own.variables == {"MPI4PY_LIBMPI": str(shared / "lib" / "libmpi.so.12")}
    (own.folder / "lib" / "libmpi.so.40").write_text("")
    assert environment_for(own.requirements).variables == {"MPI4PY_LIBMPI": None}


def test_an_interrupted_pip_leaves_nothing(tmp_path) -> None:
    folder = tmp_path / "e"
    with pytest.raises(FileNotFoundError):
        _make(folder, ["x==1"], ["/none/pip"])
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.mpi
def test_two_versions_of_a_library(tmp_path, monkeypatch) -> None:
    """Real MPICH of two versions; skipped where they cannot be fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    versions = ("4.3.2", "5.0.2")
    fetched = [
        subprocess.run(
            [*PIP, "download", "-q", "--no-deps", "-d", str(tmp_path), f"mpich=={v}"], capture_output=True, check=False
        ).returncode
        for v in versions
    ]
    if any(fetched):
        pytest.skip("no package registry here")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    line = (
        f"--pip BASE=mpich=={versions[0]} --pip NEW=mpich=={versions[1]} latency -m 8:8 -i 50 --launches 2 --rounds 1"
    )
    code = main(["compare", *line.split(), "--store", str(tmp_path / "s"), "--output", str(tmp_path / "r.json")])
    assert code in (0, 1)
    sides = json.loads((tmp_path / "r.json").read_text())["sides"]
    assert [sides[side]["libraries"] for side in ("BASE", "NEW")] == [[f"MPICH {v}"] for v in versions]
