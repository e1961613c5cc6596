"""The import graph of a checkout, read from its source: rooms (packages), their files, and who imports whom.

A room is a folder with Python files. Imports under ``if TYPE_CHECKING:`` do not count: they exist for readers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("omb_py", "backends", "suites", "results", "dashboards")
"""The folders of the source, in the order in which a reader meets them."""


@dataclass
class Room:
    """One folder of the source."""

    name: str
    """Its path from the root, with slashes: ``results/store``."""
    about: str
    """The first line of the package's docstring."""
    files: list[Path] = field(default_factory=list)
    lines: int = 0
    imports: set[str] = field(default_factory=set)
    """Names of the rooms that its files import."""

    @property
    def floor(self) -> str:
        """The layer it belongs to, as import-linter's contract names them."""
        parts = self.name.split("/")
        return "/".join(parts[:2]) if parts[0] == "omb_py" and len(parts) > 1 else parts[0]


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """All Python files of the source, without tests."""
    for top in TOP:
        yield from sorted(path for path in (root / top).rglob("*.py") if "__pycache__" not in path.parts)


def module_of(path: Path, root: Path = ROOT) -> str:
    """``omb_py.results.store.keys`` of ``results/store/keys.py``."""
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts if parts[0] == "omb_py" else ("omb_py", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST, *, local: bool = True) -> Iterator[str]:
    """Modules of omb_py that a file imports, as ``package.name`` for each name of a from-import.

    Args:
        tree: the parsed file.
        local: also what stands inside functions.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "omb_py":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "omb_py")
        elif local or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imports_of(node, local=local)


@cache
def rooms(root: Path = ROOT) -> dict[str, Room]:
    """Every room by name, in the order of :data:`TOP` and then by name."""
    found: dict[str, Room] = {}
    home: dict[str, str] = {}
    trees: dict[Path, ast.Module] = {}
    for path in source_files(root):
        name = path.parent.relative_to(root).as_posix()
        room = found.setdefault(name, Room(name, ""))
        text = path.read_text(encoding="utf-8")
        trees[path] = ast.parse(text)
        room.files.append(path)
        room.lines += text.count("\n")
        home[module_of(path, root)] = name
        if path.name == "__init__.py":
            room.about = (ast.get_docstring(trees[path]) or "").partition("\n")[0]
    for path, tree in trees.items():
        mine = path.parent.relative_to(root).as_posix()
        for target in imports_of(tree):
            room = home.get(target) or home.get(target.rpartition(".")[0])
            if room is not None and room != mine:
                found[mine].imports.add(room)
    return found
