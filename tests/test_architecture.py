"""Rules of the architecture that import-linter cannot hold (docs/decisions/0038-one-folder-for-each-backend.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.backends import registry

ROOT = Path(__file__).parents[1]
OUTSIDE = ("omb_py", "suites", "results", "dashboards")
BACKENDS = {path.parent.name for path in (ROOT / "backends").glob("*/__init__.py")}
EXCEPTIONS = {
    "omb_py/api.py": "typed parameters for users: the default backend, and the options that ours own",
    "omb_py/orchestrate/tune/candidates.py": "Open MPI's component coll/ucc",
    "results/dialects/ucx.py": "the column `backend` of another tool's rows",
    "omb_py/launchers/srun.py": "srun's own option --mpi",
    "omb_py/launchers/torchrun.py": "the extra that installs PyTorch",
    "suites/training/deepspeed_engine.py": "process groups of PyTorch, by PyTorch's names for them",
    "suites/training/frameworks.py": "process groups of PyTorch, by PyTorch's names for them",
    "suites/workloads/traces/timeline.py": "names of kernels and calls in a Kineto trace",
    "suites/training/loop.py": "process groups of PyTorch, by PyTorch's names for them",
    "suites/training/settings.py": "process groups of PyTorch, by PyTorch's names for them",
    "omb_py/orchestrate/launching/rehearsal.py": "where no nodes can be made, a rehearsal is a simulation",
    "results/dialects/omb/text.py": "the column `backend` of stored rows chooses between the titles of OMB's programs",
    "results/dialects/imb/reader.py": "the column `backend` of another tool's rows",
    "results/dialects/imb/text.py": "the column `backend` of stored rows says whether IMB can have measured them",
    "results/dialects/nccl/command_line.py": "command lines of nccl-tests are those of this backend",
    "results/dialects/nccl/rows.py": "the column `backend` of another tool's rows",
    "results/dialects/ombpy.py": "the column `backend` of another tool's rows",
    "results/dialects/omb/table.py": "the column `backend` of another tool's rows",
    "results/dialects/omb/titles.py": "backends of libraries that OMB names in its titles",
}
"""File -> why it names a backend."""


def named(source: str) -> set[str]:
    """The backends that a module names: as a text of its own, or as a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("omb_py.backends"):
            names.update(node.module.split("."), (alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            names.update(part for alias in node.names for part in alias.name.split(".") if "backends" in alias.name)
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
    return names & BACKENDS


def files() -> Iterator[Path]:
    for folder in OUTSIDE:
        yield from (ROOT / folder).rglob("*.py")


@pytest.mark.slow
def test_nothing_outside_the_backends_names_one() -> None:
    naming = {str(path.relative_to(ROOT)): names for path in files() if (names := named(path.read_text()))}
    assert {path: names for path, names in naming.items() if path not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) == set(naming), "an exception that nothing needs any more"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('if backend == "nccl": pass', {"nccl"}),
        ("from omb_py.backends.gloo import capabilities", {"gloo"}),
        ("from omb_py.backends import mpi", {"mpi"}),
        ("import omb_py.backends.mock.session", {"mock"}),
        ('run(mock="alpha=2us")', {"mock"}),
        ('"""Text that speaks of mpi."""', set()),
        ("from mpi4py import MPI", set()),
    ],
)
def test_a_name_is_seen(source: str, names: set[str]) -> None:
    assert named(source) == names


def test_every_folder_is_a_backend() -> None:
    assert set(registry.ours()) == BACKENDS


@pytest.mark.slow
def test_no_test_stands_within_a_function_where_pytest_does_not_look() -> None:
    functions = [
        (path, node)
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    lost = {
        f"{path.relative_to(ROOT)}:{inner.lineno}"
        for path, outer in functions
        for inner in ast.walk(outer)
        if inner is not outer and isinstance(inner, ast.FunctionDef) and inner.name.startswith("test_")
    }
    assert lost == set()
