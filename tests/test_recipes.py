"""The recipes name the project's version, Python and dependencies, and their commands are ones that omb-py has."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from omb_py.cli import main
from omb_py.distribution import DISTRIBUTION
from omb_py.orchestrate.gate.gate_file import read_gate

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "docs" / "recipes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BOUNDS = dict(text.split(">=") for text in PROJECT["dependencies"])
PYTHON = PROJECT["requires-python"].removeprefix(">=")
COVERED = {"SciPy-bundle": ("numpy", "pandas", "scipy"), "Arrow": ("pyarrow",), "numba": ("llvmlite",)}
"""Bundles of EasyBuild -> the packages in them."""


def text(name: str) -> str:
    return (RECIPES / name).read_text(encoding="utf-8")


def calls(source: str, function: str) -> list[ast.Call]:
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [node for node in nodes if isinstance(node.func, ast.Name) and node.func.id == function]


def test_every_recipe_is_in_the_table() -> None:
    table = set(re.findall(r"^\| \[[\w.-]+\]\(([\w.-]+)\)", text("README.md"), re.M))
    assert table == {path.name for path in RECIPES.iterdir()} - {"README.md"}


def test_spack_has_every_dependency_with_its_bound() -> None:
    wanted = [ast.literal_eval(call.args[0]) for call in calls(text("package.py"), "depends_on")]
    assert f"python@{PYTHON}:" in wanted
    specs = {
        name: bound for spec in wanted if (m := re.match(r"py-([\w-]+)@([\d.]+)", spec)) for name, bound in [m.groups()]
    }
    assert {name: specs.get(name) for name in BOUNDS} == BOUNDS
    for extra, variant in (("dashboard", "+dashboard"), ("gloo", "+gloo")):
        named = {re.split(r"[=<>~]", requirement)[0] for requirement in PROJECT["optional-dependencies"][extra]}
        under = [
            c
            for c in calls(text("package.py"), "depends_on")
            if any(ast.unparse(k.value) == repr(variant) for k in c.keywords)
        ]
        assert {ast.literal_eval(call.args[0]).split("@")[0].removeprefix("py-") for call in under} == named
    assert [ast.literal_eval(call.args[0]) for call in calls(text("package.py"), "version")] == [PROJECT["version"]]


def test_easybuild_has_every_dependency() -> None:
    values: dict[str, Any] = {"name": "", "version": ""}
    exec(compile(text("omb-bench.eb"), "omb-bench.eb", "exec"), values)  # what EasyBuild does with it
    assert (values["name"], values["version"]) == (DISTRIBUTION, PROJECT["version"])
    there = {name for name, *_ in [*values["dependencies"], *values["exts_list"]]}
    there |= {package for bundle in there for package in COVERED.get(bundle, ())}
    assert set(BOUNDS) - there == set()
    python = dict(values["dependencies"])["Python"]
    assert tuple(map(int, python.split(".")[:2])) >= tuple(map(int, PYTHON.split(".")))


def test_conda_has_every_dependency_with_its_bound() -> None:
    recipe = yaml.safe_load(text("recipe.yaml"))
    assert recipe["context"]["version"] == PROJECT["version"]
    run = dict(line.split(" >=") for line in recipe["requirements"]["run"])
    assert run == {"python": PYTHON, **BOUNDS}
    (point,) = recipe["build"]["python"]["entry_points"]
    assert point.split(" = ") == list(next(iter(PROJECT["scripts"].items())))


@pytest.mark.parametrize("name", ["Containerfile", "omb-bench.def"])
def test_a_container_installs_extras_that_there_are(name: str) -> None:
    extras = re.search(r"\[([\w,]+)\]'", text(name))
    assert extras and set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert f"python:{'3.12'}" in text(name)


def test_the_module_file_has_the_version() -> None:
    assert text("omb-bench.lua").count(PROJECT["version"]) >= 3


def commands() -> dict[str, str]:
    action = yaml.safe_load(text("github-action.yml"))["jobs"]["slower"]["steps"]
    lines = {
        "github-action.yml": [line for step in action for line in step.get("run", "").splitlines()],
        "gitlab-ci.yml": yaml.safe_load(text("gitlab-ci.yml"))["slower"]["script"],
        "Jenkinsfile": re.findall(r"sh '([^']*)'", text("Jenkinsfile")),
    }
    return {name: next(line.strip() for line in lines[name] if "omb-py gate" in line) for name in lines}


def test_every_build_server_finds_the_comment_and_the_verdicts() -> None:
    assert "<!-- omb-py gate: mpi -->" in text("github-action.yml")
    assert read_gate(str(RECIPES / "gate.toml")).name == "mpi"
    for name, line in commands().items():
        assert "--output verdicts.xml" in line and text(name).count("verdicts.xml") > 1


@pytest.mark.parametrize("name", ["gate.toml", "gate-rccl.toml"])
def test_a_gate_asks_for_the_libraries_that_it_compares(name: str) -> None:
    for command in read_gate(str(RECIPES / name)).commands:
        assert [expected.partition(":")[0] for expected in command.texts.expected] == ["BASE", "NEW"]


OSU = """#!/bin/sh
exec PYTHON -I -S -c '
import random, sys
bandwidth = any("osu_bw" in word for word in sys.argv)
print("# OSU MPI", "Bandwidth" if bandwidth else "Latency", "Test v7.5")
print("# Datatype: MPI_CHAR.")
print("# Size      Bandwidth (MB/s)" if bandwidth else "# Size          Avg Latency(us)")
factor = 1 / FACTOR if bandwidth else FACTOR
started = open("started", "a")
started.write("x")
print("1024      %.2f" % (500 * factor * random.Random(started.tell()).gauss(1, 0.002)))
' "$@"
"""


def test_all_templates_type_the_same_gate() -> None:
    """So what one of them does all do."""
    typed = {name: shlex.split(line)[1:] for name, line in commands().items()}
    usual = typed.pop("github-action.yml")
    usual.remove("comment.md")
    usual.remove("--output")
    assert typed == {"gitlab-ci.yml": usual, "Jenkinsfile": [*usual[:-2], "--advisory", *usual[-2:]]}
    assert all(Path(shlex.split(line)[0]).name == "omb-py" for line in commands().values())


@pytest.mark.slow
@pytest.mark.parametrize("slower", [False, True])
def test_a_template_fails_where_something_is_slower(
    slower: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is written, with its gate, but with programs that print what OMB prints and load no library of MPI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lines = [line for line in text("gate.toml").splitlines() if not line.startswith("expect-library")]
    Path("gate.toml").write_text("\n".join(lines))
    for side in ("base", "new"):
        for folder in ("bin", "osu"):
            (tmp_path / side / folder).mkdir(parents=True)
        program = tmp_path / side / "bin" / "mpirun"
        factor = "1.2" if slower and side == "new" else "1.0"
        program.write_text(OSU.replace("PYTHON", sys.executable).replace("FACTOR", factor))
        program.chmod(0o755)
    code = main([*shlex.split(commands()["github-action.yml"])[1:], "--seed", "1", "--quiet"])
    assert code == int(slower), capsys.readouterr()
    assert ("<failure" in Path("verdicts.xml").read_text()) is slower
