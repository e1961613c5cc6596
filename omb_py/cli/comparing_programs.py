"""Runs ``omb-py compare --run``: programs of the user's own, started in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.cli.comparing import CompareOptions, show_report
from omb_py.cli.output import check_files, notes
from omb_py.errors import UsageError
from omb_py.orchestrate.programs.request import ProgramTexts
from omb_py.orchestrate.programs.session import compare_programs


def run_programs(words: Sequence[str], texts: ProgramTexts, options: CompareOptions) -> int:
    """Compare two programs, or one under two environments; the exit code."""
    check_files(options.output)
    options.check_measured()
    if not texts.runs:
        raise UsageError("--read, --metric and --expect-library are of programs: say which with --run 'NEW: COMMAND'")
    if words:
        raise UsageError(f"unexpected word {words[0]!r} beside --run: a command with blanks needs quotes")

    design = texts.design(options.rules, options.launches, options.folder, notes(options.quiet))
    design = replace(design, seed=options.seed, quiet=options.quiet, budget_s=options.budget_s)
    return show_report(compare_programs(design, options.resume), options)
