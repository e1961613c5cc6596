"""The size of the source: ``python -m tests.architecture.figures [ROOT…]`` prints a table with a column a checkout."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.graph import ROOT, source_files

COUNTED = ("Request", "Cell", "Capabilities", "Benchmark")
"""Classes that every new capability would enlarge."""


def lines_of(paths: Iterator[Path]) -> list[str]:
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def matching(lines: list[str], pattern: str) -> int:
    return sum(re.match(pattern, line) is not None for line in lines)


def field_count(node: ast.ClassDef) -> int:
    """Annotated fields of a class: those of a dataclass, a NamedTuple, a TypedDict or a Protocol."""
    return sum(isinstance(entry, ast.AnnAssign) and "ClassVar" not in ast.unparse(entry) for entry in node.body)


def parameter_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)


def figures(root: Path) -> dict[str, str]:
    """Each figure of a checkout by its name, as the text of a cell."""
    source = lines_of(source_files(root))
    functions: dict[str, tuple[int, int]] = {}
    classes: dict[str, int] = {}
    for path in source_files(root):
        where = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                functions[f"{where}:{node.name}"] = (length, parameter_count(node))
            elif isinstance(node, ast.ClassDef):
                classes[f"{where}:{node.name}"] = field_count(node)
    longest = max(functions, key=lambda name: functions[name][0])
    declared = classes | {name: parameters for name, (_, parameters) in functions.items()}
    largest = max(declared, key=lambda name: declared[name])
    return {
        "lines of source": f"{len(source):,}",
        "lines of tests": f"{len(lines_of((root / 'tests').rglob('*.py'))):,}",
        "words of docs/": f"{sum(len(line.split()) for line in lines_of((root / 'docs').rglob('*.md'))):,}",
        "files of source": f"{len(list(source_files(root))):,}",
        "lines with `Any`, without imports": str(matching(source, r"^(?!\s*(from|import) ).*\bAny\b")),
        "lines with `Mapping[str, Any]`, `dict[str, Any]`": str(matching(source, r".*\b(Mapping|dict)\[str, Any\]")),
        **{
            f"fields of `{name}`": str(max(count for key, count in classes.items() if key.endswith(f":{name}")))
            for name in COUNTED
        },
        "parameters of `api.run`": str(functions["omb_py/api.py:run"][1]),
        "longest function, lines": f"{functions[longest][0]} (`{longest}`)",
        "largest declaration, fields or parameters": f"{declared[largest]} (`{largest}`)",
    }


if __name__ == "__main__":
    columns = [figures(Path(root)) for root in sys.argv[1:] or [ROOT]]
    for name in columns[-1]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |")
