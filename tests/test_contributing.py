"""The worked examples of CONTRIBUTING.md run as they are written, and the documents keep to its glossary."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.machines.mpi import run_command
from tests.support.patience import PATIENCE_S
from tests.support.tiers import few_quick

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FENCE = re.compile(r"^```(python|diff|sh|text)\n(.*?)^```$", re.M | re.S)
FOLDERS = ("omb_py", "backends", "suites", "results", "dashboards")


class Example(NamedTuple):
    """A section with commands."""

    title: str
    blocks: list[tuple[str, str]]
    """(language, content) in their order."""

    def of(self, language: str) -> list[str]:
        return [content for kind, content in self.blocks if kind == language]


def examples() -> Iterator[Example]:
    for section in re.split(r"^##+ ", TEXT, flags=re.M)[1:]:
        blocks = FENCE.findall(section)
        if any(language == "sh" for language, _ in blocks):
            yield Example(section.partition("\n")[0], blocks)


EXAMPLES = list(examples())


def patched(text: str, hunk: str) -> str:
    """The text with one hunk applied: the lines that stay or go stand in it exactly once."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"not once in the file:\n{before}"
    return text.replace(before, after)


def apply(root: Path, language: str, content: str) -> None:
    """Write a new file, or change files that exist."""
    if language == "python":
        head, _, text = content.partition("\n")
        path = root / head.removeprefix("# ")
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return
    for part in re.split(r"^--- ", content, flags=re.M)[1:]:
        name, _, hunks = part.partition("\n")
        path = root / name
        text = path.read_text()
        for hunk in re.split(r"^@@\n", hunks, flags=re.M):
            text = patched(text, hunk)
        path.write_text(text)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with all examples applied, in the order of the page."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, root / folder, symlinks=True)
    shutil.copy2(ROOT / "pyproject.toml", root)
    for example in EXAMPLES:
        for language, content in example.blocks:
            if language in ("python", "diff"):
                apply(root, language, content)
    return root


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader types the commands."""
    return tmp_path_factory.mktemp("work")


def output_of(script: str, checkout: Path, work: Path) -> str:
    """What a block of commands prints."""
    python = f"{sys.executable} -m omb_py"
    run = subprocess.run(
        ["bash", "-c", re.sub("^omb-py", python, script, flags=re.M)],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("example", few_quick(EXAMPLES, 2), ids=lambda example: example.title)
def test_an_example_prints_what_the_page_shows(example: Example, checkout: Path, work: Path) -> None:
    (script,), (shown,) = example.of("sh"), example.of("text")
    output = output_of(script, checkout, work)
    printed = [" ".join(line.split()) for line in output.splitlines()]
    missing = [line for line in shown.splitlines() if not any(" ".join(line.split()) in text for text in printed)]
    assert not missing, output


def test_the_five_kinds_have_an_example() -> None:
    titles = [example.title for example in EXAMPLES]
    assert titles[-5:] == ["A benchmark", "A backend", "A view", "An importer", "An option"]


@pytest.mark.slow
def test_an_added_option_reaches_the_typed_options_of_run(checkout: Path, work: Path) -> None:
    """What is generated is made anew; then the tests of the public names hold."""
    shutil.copytree(ROOT / "tests", checkout / "tests", dirs_exist_ok=True)
    quick = "-q -p pytest_timeout -m 'not slow and not mpi'"
    for command in ("tests.options.run_options", f"pytest {quick} tests/test_public_api.py tests/options"):
        alone = {"PYTHONPATH": str(checkout), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        run = run_command([sys.executable, "-m", *shlex.split(command)], cwd=checkout, **alone)
        assert run.returncode == 0, run.stdout + run.stderr
    assert "answer: int | None" in (checkout / "omb_py" / "run_options.py").read_text()


@pytest.mark.slow
def test_the_code_obeys_the_linter(checkout: Path) -> None:
    for command in ("check", "format --diff"):
        run = run_command([sys.executable, "-m", "ruff", *command.split(), "--no-cache", "."], cwd=checkout)
        assert run.returncode == 0, run.stdout + run.stderr


ROWS = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", TEXT, re.M)]
GLOSSARY = ROWS[ROWS.index(["word", "meaning", "not"]) + 2 :]
AVOIDED = {
    "badness": r"badness",
    "beside": r"`beside`|beside =",
    "cries wolf": r"cr(?:y|ies) wolf",
    "database": r"databases?",
    "launches in turn": r"(?:launch(?:es)?|sides?)\b[^.,|]{0,30}\bin turn",
    "look": r"(?:an?|one|each|every|the|first|later|few|three|per) looks?",
    "transport": r"transports?",
    "what the host steals": r"what the hosts? steals?|thefts?",
}
"""Word of the column "not" that has no other meaning in the documents -> what it looks like there."""
EXCEPTIONS = {("docs/one-sided.md", "transport"): "a word of UCX"}
"""(file, text) that may stay -> why."""


def documents() -> Iterator[Path]:
    """What users read: README, documents but for history, and every help page."""
    yield ROOT / "README.md"
    yield from (ROOT / "docs").glob("*.md")
    yield from (ROOT / "tests" / "golden" / "data" / "help").rglob("*.txt")


def test_each_word_of_the_glossary_stands_once_and_in_order() -> None:
    words = [word for word, _, _ in GLOSSARY]
    assert len(words) > 30 and words == sorted(set(words), key=str.lower)


def test_documents_and_help_keep_to_the_glossary() -> None:
    avoided = {word.strip() for _, _, words in GLOSSARY for word in words.split(",")}
    assert set(AVOIDED) <= avoided
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(AVOIDED.values())})(?!\w)", re.I)
    uses = {
        (str(path.relative_to(ROOT)), " ".join(match[0].split()))
        for path in documents()
        for match in pattern.finditer(path.read_text())
    }
    assert uses - set(EXCEPTIONS) == set(), "use the word of the glossary in CONTRIBUTING.md"
    assert set(EXCEPTIONS) <= uses, "an exception that nothing needs any more"
