"""Figures of the source: ``python -m tests.architecture.figures [ROOT…]``, of this checkout or a column for each."""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tokenize
from pathlib import Path

from tests.architecture.graph import ROOT, TOP, imports_of, module_of, rooms, source_files

CAPABILITIES = {
    "comparing": ("omb_py/orchestrate/compare", "results/compare", "results/statistics/sides"),
    "accepting": ("omb_py/orchestrate/accept", "results/accept"),
    "guidelines and links": ("omb_py/orchestrate/checks", "results/checks", "suites/guidelines"),
    "tuning": ("omb_py/orchestrate/tune", "results/tune"),
    "workloads and training": ("omb_py/orchestrate/workloads", "suites/workloads", "suites/training"),
    "statistics and analysis": ("results/statistics", "results/analysis"),
    "store, dialects, printing": ("results", "omb_py/printing"),
    "report and explorer": ("dashboards",),
    "planning, launching, running": ("omb_py/orchestrate",),
    "measuring": ("omb_py/engine", "omb_py/options", "omb_py/grammar", "omb_py/testing"),
    "backends": ("backends",),
    "benchmarks": ("suites",),
    "command line and Python API": ("omb_py",),
}
"""What omb-py can do, and the folders that hold it. A folder belongs to the first that names it or one above it."""


def capability_of(name: str) -> str:
    """The capability of a room. Raises StopIteration for a room that no capability holds."""
    places = ((what, folder) for what, folders in CAPABILITIES.items() for folder in folders)
    return next(what for what, folder in places if name == folder or name.startswith(f"{folder}/"))


def local_imports(root: Path) -> int:
    """Import statements inside functions that import modules of omb_py."""
    count = 0
    for path in source_files(root):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {
            id(node): node
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "omb_py"
        }
        count += len(inner)
    return count


def inside(root: Path, layer: str) -> tuple[int, int]:
    """Rooms and arrows that a reader of one layer sees: its subfolders and single files, and imports among them."""
    arrows: set[tuple[str, str]] = set()
    spots: set[str] = set()
    prefix = ("omb_py." if not layer.startswith("omb_py") else "") + layer.replace("/", ".")

    def spot(module: str) -> str:
        return module.removeprefix(f"{prefix}.").split(".")[0]

    known = {module_of(path, root) for path in source_files(root)}
    for path in (root / layer).rglob("*.py"):
        module = module_of(path, root)
        if module == prefix or "__pycache__" in path.parts:
            continue
        spots.add(spot(module))
        for target in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            target = target if target in known else target.rpartition(".")[0]
            if target.startswith(f"{prefix}.") and spot(target) != spot(module):
                arrows.add((spot(module), spot(target)))
    return len(spots), len(arrows)


def vague_names(root: Path) -> int:
    """Uses of local names that carry nothing."""
    words = re.compile(r"\b(found|one|made|told|said)\b")
    count = 0
    for path in source_files(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and words.fullmatch(node.id)
            count += bool(stored or (isinstance(node, ast.arg) and words.fullmatch(node.arg)))
    return count


def documentation_lines(root: Path) -> int:
    """Lines of docstrings, those of attributes and constants too."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in source_files(root)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def code_tokens(root: Path) -> int:
    """Names, numbers, texts and operators of the code without docstrings: a size that no layout of lines changes."""
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING)
    count = 0
    for path in source_files(root):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        with path.open("rb") as file:
            count += sum(
                token.type in kinds and token.start[0] not in documented and token.string not in ",()"
                for token in tokenize.tokenize(file.readline)
            )
    return count


def figures(root: Path) -> dict[str, str]:
    """What is measured, by name, as texts for a table."""
    house = rooms(root)
    files = list(source_files(root))
    lengths = [path.read_text(encoding="utf-8").count("\n") for path in files]
    largest = max(house.values(), key=lambda room: len(room.files))
    texts = [path.read_text(encoding="utf-8") for path in files]
    comments = sum(len(re.findall(r"^\s*# ", text, re.M)) for text in texts)
    return {
        "files": str(len(files)),
        "lines": f"{sum(lengths):,}",
        "of them documentation": f"{documentation_lines(root):,}",
        "tokens of code, without commas and parentheses": f"{code_tokens(root):,}",
        "median, largest file": f"{statistics.median(lengths):.0f}, {max(lengths)}",
        "rooms (folders)": str(len(house)),
        "largest folder": f"{len(largest.files)} files ({largest.name})",
        **{
            f"rooms and arrows inside {layer}": "{}, {}".format(*inside(root, layer))
            for layer in ("omb_py/orchestrate", "omb_py/engine", "omb_py/cli", "results", "dashboards", "suites")
        },
        "imports inside functions": str(local_imports(root)),
        "`# fmt: skip`": str(sum(text.count("# fmt: skip") for text in texts)),
        "names `found`, `one`, `made`, `told`, `said`": str(vague_names(root)),
        "comment lines": f"{comments} ({100 * comments / sum(lengths):.1f} %)",
        **{
            f"lines of {top}/": f"{sum(r.lines for r in house.values() if r.name.split('/')[0] == top):,}"
            for top in TOP
        },
        **{
            f"lines of {what}": f"{sum(r.lines for r in house.values() if capability_of(r.name) == what):,}"
            for what in CAPABILITIES
            if "omb_py/orchestrate/compare" in house  # before the rooms capabilities stood side by side
        },
    }


if __name__ == "__main__":
    columns = [figures(Path(root)) for root in sys.argv[1:] or [ROOT]]
    for name in columns[-1]:
        print(f"| {name} | {' | '.join(column.get(name, '') for column in columns)} |")
