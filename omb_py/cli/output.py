"""The reports that commands print, and the files that they write; files are checked before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omb_py.cli.help import tool_option
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.options.readers import word
from omb_py.printing.whole_file import write_whole

if TYPE_CHECKING:
    from omb_py.results.document import Document

FORMS = ("table", "json", "markdown", "junit")
HTML = ".html"
ENDINGS = {".json": "json", ".md": "markdown", ".xml": "junit", HTML: "html"}
"""Ending of a file's name -> form of the report in it."""


def form_option(forms: Sequence[str], default: str | None, default_words: str | None = None) -> click.Option:
    """``--format``, one of `forms`; `default_words` are what the help page calls the default."""
    return tool_option(
        "Output",
        "--format form FORM",
        f"{', '.join(forms)}. (default: {default_words or default})",
        word("format", forms),
        default=default,
    )


def report_options(
    forms: Sequence[str] = FORMS, files: str = "the report to a file too: .html, .json, .md or .xml (JUnit)"
) -> list[click.Parameter]:
    """``--format`` and ``-o/--output`` of a command that prints a report."""
    return [
        form_option(forms, forms[0]),
        tool_option(
            "Output", "-o --output FILE", f"Write {files}. Repeat it. (default: none)", output_path, multiple=True
        ),
    ]


def measuring_report_options() -> list[click.Parameter]:
    """:func:`report_options` and ``--quiet`` of a command that measures."""
    return [*report_options(), tool_option("Output", "--quiet", "No progress and no notes on stderr.")]


def notes(quiet: bool) -> Callable[[str], None]:
    """What says a sentence on stderr; with `quiet` it says nothing."""

    def note(text: str) -> None:
        if not quiet:
            click.echo(f"omb-py: {text}", err=True)

    return note


def write_report(
    document: Document, form: str = FORMS[0], files: Sequence[Path] = (), html: Callable[[], str] | None = None
) -> int:
    """Print a report and write its files.

    Args:
        document: :class:`omb_py.results.document.Document`.
        form: one of :data:`FORMS`, for stdout.
        html: makes the page of a file that ends in ``.html``, for a report with figures.

    Returns:
        The exit code.
    """
    from omb_py.printing.writers import WRITERS  # loads rich, which --help does not need

    click.echo(WRITERS[form](document), nl=False)

    def text_of(ending: str) -> str:
        return html() if html is not None and ending == HTML else WRITERS[ENDINGS[ending]](document)

    write_files(files, text_of)
    return document.exit_code


def check_files(paths: Sequence[Path], endings: Collection[str] = ENDINGS, option: str = "--output") -> None:
    """Check files that an option names before hours of measuring.

    Args:
        endings: those that say a form, as ``.json``.
        option: the option, for the error.

    Raises:
        UsageError: a file's ending says no form.
        EnvironmentProblem: a file could not be written.
    """
    for path in paths:
        if path.suffix not in endings:
            raise UsageError(f"{option} {path}: the ending says the form: {nearest(path.suffix, endings)}")
        folder = path.parent
        why = "it is a folder" if path.is_dir() else _unwritable(folder)
        if why:
            raise EnvironmentProblem(f"{option} {path} cannot be written: {why}")


def _unwritable(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}: make it first"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"folder {folder} may not be written"


def output_path(word: str) -> Path:
    """The file that ``--output`` names. Raises UsageError where it names none."""
    if not word:
        raise UsageError("--output needs the name of a file")
    return Path(word)


def write_file(output: Path, text: str) -> None:
    """Write a text whole or not at all (:func:`write_whole`). Raises EnvironmentProblem."""
    write_whole(output, text.encode("utf-8", errors="replace"))


def write_files(paths: Sequence[Path], text_of: Callable[[str], str]) -> None:
    """Write each file that can be written.

    Args:
        text_of: the text of a form, by the ending that says it.

    Raises:
        EnvironmentProblem: some could not be written; each is named.
    """
    problems = []
    for path in paths:
        try:
            write_file(path, text_of(path.suffix))
        except EnvironmentProblem as problem:
            problems.append(str(problem))
    if problems:
        raise EnvironmentProblem("; ".join(problems))
