"""Mutants: a source file with one thing changed at one place.

A mutant is a small mistake that somebody could make: ``<`` for ``<=``, ``+`` for ``-``, a constant off by one, a
negated condition, a missing ``return``. Texts, annotations, decorators and what type checkers read are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COMPARISONS = {
    ast.Lt: ("<", "<=", "boundary"),
    ast.LtE: ("<=", "<", "boundary"),
    ast.Gt: (">", ">=", "boundary"),
    ast.GtE: (">=", ">", "boundary"),
    ast.Eq: ("==", "!=", "comparison"),
    ast.NotEq: ("!=", "==", "comparison"),
    ast.Is: ("is", "is not", "comparison"),
    ast.IsNot: ("is not", "is", "comparison"),
    ast.In: ("in", "not in", "comparison"),
    ast.NotIn: ("not in", "in", "comparison"),
}
"""Operator -> how it is written, what it becomes, and the kind of mutant."""
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
BOOLEAN = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. Offsets count bytes of the file."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    source = path.read_bytes()
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


class _Finder(ast.NodeVisitor):
    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    # what is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None), *node.body):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.generic_visit(node)

    # what is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        left: ast.expr = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            before, after, kind = COMPARISONS[type(op)]
            self._operator(left, right, before, after, kind, node.lineno)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            self._operator(node.left, node.right, *ARITHMETIC[type(node.op)], "arithmetic", node.lineno)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator(left, right, *BOOLEAN[type(node.op)], "boolean", node.lineno)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self._span(node)[0]
        if isinstance(node.op, ast.Not):
            self._add(node.lineno, "boolean", start, start + len("not "), "")
        elif isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            self._add(node.lineno, "arithmetic", start, start + 1, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        match node.value:
            case bool():
                self._add(node.lineno, "boolean", start, end, str(not node.value))
            case int():
                self._add(node.lineno, "constant", start, end, str(node.value + 1))
            case float():
                self._add(node.lineno, "constant", start, end, repr(node.value * 2 or 1.0))

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            start, end = self._span(node.value)
            self._add(node.lineno, "return", start, end, "None")
        self.generic_visit(node)

    # places

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def _operator(self, left: ast.expr, right: ast.expr, before: str, after: str, kind: str, line: int) -> None:
        """The operator stands between its operands, perhaps with brackets, comments and line ends around it."""
        begin, end = self._span(left)[1], self._span(right)[0]
        between = b"\n".join(_blanked(part) for part in self.source[begin:end].split(b"\n"))
        at = between.find(before.encode())
        assert at >= 0, (self.path, line, before, between)
        self._add(line, kind, begin + at, begin + at + len(before.encode()), after)

    def _add(self, line: int, kind: str, start: int, end: int, after: str) -> None:
        before = self.source[start:end].decode()
        self.found.append(Mutant(self.path, line, kind, start, end, before, after))


def _blanked(line: bytes) -> bytes:
    """The line with its comment as blanks; between two operands no text can stand."""
    code, mark, comment = line.partition(b"#")
    return code + b" " * len(mark + comment)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


@cache
def _mutants_below(folder: Path) -> tuple[Mutant, ...]:
    files = (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)
    return tuple(mutant for path in files for mutant in mutants(path))


def all_mutants(root: Path, folders: tuple[str, ...]) -> Iterator[Mutant]:
    """The mutants of all Python files in folders of a checkout."""
    for folder in folders:
        yield from _mutants_below(root / folder)
