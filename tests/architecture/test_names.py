"""Names of the source: one class for each public name, and functions that say what they do."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.architecture.graph import ROOT, source_files

SAYS_NOTHING = frozenset(
    "words known part place places whose alike telling travelling found one made told said".split()
)
"""Names that do not say what a function does or a class stands for."""


def definitions() -> list[tuple[Path, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (path.relative_to(ROOT), node)
        for path in source_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def test_a_public_class_name_stands_for_one_thing() -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            files[node.name].append(str(path))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_every_function_and_class_has_a_name_that_says_something() -> None:
    vague = [f"{path}: {node.name}" for path, node in definitions() if node.name.strip("_").lower() in SAYS_NOTHING]
    assert vague == [], "take a verb for what a function does, a noun for what a class stands for"
