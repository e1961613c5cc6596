"""Words that only the authors understand stand in no text that a user reads (CONTRIBUTING.md, Glossary)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRIVATE = {
    r"what the hosts? steals?|hosts? steals?": "OS noise",
    r"cr(?:y|ies) wolf": "false alarm rate",
    r"badness": "log cost",
    r"launches(?: of each side)? in turn": "interleaved launches",
    r"flagged before": "UNCLEAR",
    r"round \S+ of at most": "round 2 of up to 3",
    r"(?:gone|goes|going|go) on with a(?:n|nother)? |gone on with": "resume",
    r"cut off, and": "interrupted",
    r"stands? there twice": "is listed twice",
    r"says nothing about the next": "is only one launch; at least two are needed",
    r"the last to finish is not chance": "finished last in 72 % of calls (50 % expected)",
    r"these launches can show": "a change of 40 % is found 4 times in 5",
    r"UNCLEAR, needs": "UNCLEAR (about 225)",
    r"us of messages of": "lower bound 3.11 µs (message = 0.468 µs + 0.047 ns/B)",
    r"expected a text, got none": "missing; it is required",
    r"cleared by the repeat": "suspected, not confirmed",
    r"by chance up to": "expected by chance, at most",
    r"is-worth-it": "allreduce-not-slower-than-reduce-bcast",
    r"re-judges only": "to see this verdict again",
    r"a quarter of the bytes": "one byte in four",
    r"a negative verdict": "a validation failed, or something is slower",
}
"""Private words as a pattern -> what to write."""
PATTERN = re.compile("|".join(f"(?P<w{n}>{words})" for n, words in enumerate(PRIVATE)), re.I)


def documents() -> Iterator[Path]:
    """What users read. Decisions and the changelog keep the words of their day."""
    yield ROOT / "README.md"
    yield from (ROOT / "docs").glob("*.md")
    yield from (ROOT / "docs" / "workloads").glob("*.md")
    yield from (ROOT / "suites" / "shipped").glob("*.toml")
    yield from (ROOT / "tests" / "golden" / "data" / "help").rglob("*.txt")
    yield from (ROOT / "tests" / "golden" / "data" / "errors").glob("*.txt")


def sources() -> Iterator[Path]:
    for folder in ("omb_py", "backends", "suites", "results", "dashboards"):
        yield from (ROOT / folder).rglob("*.py")


def texts(source: str) -> Iterator[str]:
    """Texts of a module without its docstrings; the fixed parts of an f-string in one, with … for each value."""
    tree = ast.parse(source)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))  # a docstring
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node) if part is not node}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def found(text: str) -> list[str]:
    return [
        f"{match[0]!r}: write {list(PRIVATE.values())[int(str(match.lastgroup)[1:])]!r}"
        for match in PATTERN.finditer(" ".join(text.split()))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "what the host steals",
        "round 2 of at most 3",
        "10 launches of each side in turn",
        "8 stands there\n    twice",
        "cut off, and gone on with",
    ],
)
def test_a_private_word_is_found(text: str) -> None:
    assert found(text)


def test_texts_are_messages_and_not_docstrings() -> None:
    source = '"""Cries wolf."""\ndef f(n):\n    """Badness."""\n    return f"round {n} of at most {n}" + "plain"\n'
    assert sorted(texts(source)) == ["plain", "round … of at most …"]
    assert [found(text) for text in texts(source) if found(text)]


@pytest.mark.slow
def test_documents_and_help_have_no_private_words() -> None:
    paths = list(documents())
    assert len(paths) > 80
    wrong = [f"{path.relative_to(ROOT)}: {word}" for path in paths for word in found(path.read_text())]
    assert wrong == []


@pytest.mark.slow
def test_messages_have_no_private_words() -> None:
    paths = list(sources())
    assert len(paths) > 300
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in paths
        for text in texts(path.read_text())
        for word in found(text)
    ]
    assert wrong == []


def test_help_explains_side_and_launch_where_it_uses_them() -> None:
    """`compare --help` says what a side is before a reader has to know it."""
    text = " ".join((ROOT / "tests" / "golden" / "data" / "help" / "compare.txt").read_text().split())
    assert "BASE" in text and "NEW" in text and text.index("BASE") < text.index("side")
