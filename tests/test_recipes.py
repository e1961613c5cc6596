"""The recipes name the project's version, Python and dependencies, and their commands are ones that omb-py has."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from omb_py.distribution import DISTRIBUTION
from tests.support.machines.mpi import environment

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


def commands() -> list[str]:
    action = yaml.safe_load(text("github-action.yml"))["jobs"]["slower"]["steps"]
    lines = [line for step in action for line in step.get("run", "").splitlines()]
    lines += yaml.safe_load(text("gitlab-ci.yml"))["communication"]["script"]
    return [line.strip() for line in lines if "omb-py " in line]


def test_both_templates_compare() -> None:
    assert len(commands()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("slower", [False, True])
@pytest.mark.parametrize("line", commands())
def test_a_template_fails_where_something_is_slower(line: str, slower: bool, tmp_path: Path) -> None:
    """As it is written, but on simulated ranks, and with this environment as both sides."""
    words = shlex.split(line)
    assert words[0] == "new/bin/omb-py"
    for side in ("base", "new"):
        (tmp_path / side / "bin").mkdir(parents=True)
        (tmp_path / side / "bin" / "python").symlink_to(sys.executable)
    words = [word for word in words[1:] if not re.fullmatch(r"--env|BASE=base|NEW=new", word)]
    for side, alpha in (("BASE", "1us"), ("NEW", "1.5us" if slower else "1.0001us")):
        words += ["--option", f"{side}:mock=launch=0.01,alpha={alpha}"]
    words += ["--backend", "mock"]
    child = subprocess.run(
        [sys.executable, "-m", "omb_py", *words],
        cwd=tmp_path,
        env=environment(PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert child.returncode == int(slower), child.stdout + child.stderr
    assert (tmp_path / "verdicts.xml").read_text().startswith("<?xml")
