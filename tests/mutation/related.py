"""Which tests could notice a mutant: those of its module, then those that go through all of omb-py."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.architecture.graph import ROOT, imports_of, module_of

THROUGH_ALL = (
    "tests/backends/test_conformance.py",
    "tests/golden/test_golden.py",
    "tests/cli",
    "tests/orchestrate/running",
    "tests/orchestrate/planning",
)
"""Tests that run whole measurements and commands."""


def mirrored(path: Path, root: Path = ROOT) -> Path:
    """The test file that has the place of a source file: tests/results/store/test_keys.py of results/store/keys.py."""
    parts = [part for part in path.relative_to(root).parts if part != "omb_py"]
    name = "registry" if parts[-1] == "__init__.py" else Path(parts[-1]).stem
    return root.joinpath("tests", *parts[:-1], f"test_{name.strip('_')}.py")


@cache
def _importers(root: Path) -> dict[Path, frozenset[str]]:
    """Test file -> the modules of omb_py that it imports."""
    files = [path for path in sorted((root / "tests").rglob("test_*.py")) if "__pycache__" not in path.parts]
    return {path: frozenset(imports_of(ast.parse(path.read_bytes()))) for path in files}


def near(path: Path, root: Path = ROOT) -> list[str]:
    """Test files of a module: its own first, then those that import it, nearest folder first.

    Where there are none, the tests of its folder, or of the next one above that has some.
    """
    module = module_of(path, root)
    own = mirrored(path, root)
    names = (module, f"{module}.")
    importers = [
        test
        for test, imports in _importers(root).items()
        if any(i == names[0] or i.startswith(names[1]) for i in imports)
    ]
    importers.sort(key=lambda test: (-_shared(test, own), str(test)))
    chosen = [own] * own.exists() + [test for test in importers if test != own]
    folder = own.parent
    while not chosen:
        chosen = sorted(folder.rglob("test_*.py")) if folder.is_dir() else []
        folder = folder.parent
    return [test.relative_to(root).as_posix() for test in chosen]


def _shared(test: Path, own: Path) -> int:
    """How many folders two paths have in common."""
    return sum(a == b for a, b in zip(test.parts[:-1], own.parts[:-1], strict=False))


def far(path: Path, root: Path = ROOT) -> list[str]:
    """The tests of the module's folder, and those that go through all of omb-py."""
    folder = mirrored(path, root).parent
    while not folder.is_dir():
        folder = folder.parent
    beside = folder.relative_to(root).as_posix()
    return [beside, *(place for place in THROUGH_ALL if not f"{place}/".startswith(f"{beside}/"))]
