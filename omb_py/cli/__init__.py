"""The command line: ``omb-py``. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import errno
import gc
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from omb_py import class_code
from omb_py.cli.early_signals import as_interrupts
from omb_py.cli.stdout import (
    CONTROL,
    PRINTED,
    REDRAWN,
    discard_output,
    failure,
    guarded,
    open_what_is_closed,
    survive_a_closed_pipe,
    write_out_controls,
)
from omb_py.distribution import version_line
from omb_py.errors import ENVIRONMENT, INTERRUPTED, OK, USAGE, OmbError, UsageError
from omb_py.orchestrate.running.rank_modules import keep_own_modules, use_kept_modules
from omb_py.orchestrate.running.rank_start import FEWER_COLLECTIONS
from omb_py.process_end import TYPED, code_for_caller

__all__ = ["main"]

_LONGEST_WORD = 1000
"""A longer word of an error is cut in its middle: a path is shorter."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line with `args` (default: those of the process) and return the exit code.

    A user's error is one line on stderr; ``--debug`` adds the traceback.
    """
    words = list(args) if args is not None else typed_words(sys.argv)
    if begun := shlex.split(os.environ.pop(TYPED, "")):
        sys.argv = ["omb-py", *begun]  # what is stored and printed is what the user wrote
    open_what_is_closed()  # before a file is opened, which would take its number
    if args is None:
        gc.set_threshold(FEWER_COLLECTIONS)
        use_kept_modules()
        class_code.install("command")
    survive_a_closed_pipe()
    if words in (["--version"], ["-v"]) and not _rank():
        print(version_line())
        return _flush(OK)
    for stream in (sys.stdout, sys.stderr):  # never die of a character that the terminal cannot show
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    plain = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = guarded(sys.stdout, PRINTED), guarded(sys.stderr, REDRAWN)
    try:
        code = _run(words, begun)
    except BrokenPipeError:
        code = OK
    finally:
        sys.stdout, sys.stderr = plain
    if args is None:
        class_code.save()
        keep_own_modules()
    return _flush(code_for_caller(code) if args is None else code)


def typed_words(argv: Sequence[str]) -> list[str]:
    """The words of the command line; the name of OMB's program is the first of them.

    >>> typed_words(["osu/osu_latency", "-m", "8"])
    ['osu_latency', '-m', '8']
    """
    name = os.path.basename(argv[0])
    return [name, *argv[1:]] if name.startswith("osu_") else list(argv[1:])


_PAGES = frozenset({"-h", "--help", "--help-all", "-v", "--version"})
"""Words that show a page and measure nothing."""


def _run(words: list[str], begun: list[str]) -> int:
    """Run some words; `begun` are those that the user wrote, where they are others."""
    options = words[: words.index("--")] if "--" in words else words
    debug = "--debug" in options
    try:
        if not _PAGES.isdisjoint(options) and _rank() > 0:
            return _leave(OK)  # every rank of a launcher shows the same page: once is enough
        with as_interrupts(os.environ), warnings.catch_warnings():
            warnings.showwarning = _warn
            if "OMB_PY_MPI" in os.environ:
                from omb_py.engine.rank.launcher_variables import joined_environment
                from omb_py.launchers.own_mpi import use_own_mpi

                use_own_mpi(joined_environment(os.environ) is not None)
            from omb_py.cli.app import invoke

            if any(word.startswith("--resume") for word in options):
                from omb_py.cli.resuming import whole_line

                words = whole_line(words, sys.stderr.write if _rank() == 0 else len)
            return invoke(words)
    except BrokenPipeError:
        raise
    except UsageError as error:
        # Every rank of a launcher reads the same words: once is enough.
        return _leave(error.exit_code) if _rank() > 0 else _fail(str(error), error.exit_code, debug)
    except OmbError as error:
        code = _fail(str(error), error.exit_code, debug)
        if error.resumes and _rank() == 0:
            from omb_py.results.repro_command import resuming

            sys.stderr.write(
                f"omb-py: to go on: {write_out_controls(resuming(begun or words, error.resumes), CONTROL)}\n"
            )
        return code
    except KeyboardInterrupt:
        return _report_interrupt(debug)
    except MemoryError:
        text = "not enough memory: take fewer iterations (-i), a smaller -m or fewer ranks (-n)"
        return _fail(text, ENVIRONMENT, debug)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return _fail_by_bug(error, debug)
        return _fail(f"{error.filename}: no file or folder can have so long a name", USAGE, debug)
    except Exception as error:  # a bug ends in one line too
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 raises another error for one in a class body
            return _report_interrupt(debug)
        return _fail_by_bug(error, debug)


def _report_interrupt(debug: bool) -> int:
    # every rank of a launcher gets the signal: one line is enough
    return INTERRUPTED if _rank() > 0 else _fail("interrupted", INTERRUPTED, debug)


def _fail_by_bug(error: Exception, debug: bool) -> int:
    from omb_py.plug_ins import described, loaded_packages

    if debug:
        return _fail(f"{type(error).__name__}: {error}", ENVIRONMENT, debug)
    bug = "this is a bug in omb-py" + (f", or in a plug-in here ({here})" if (here := loaded_packages()) else "")
    return _fail(f"{described(error, bug)}; use --debug for the traceback", ENVIRONMENT, debug)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of omb-py, such as a damaged file of the store, as a line without the place in the source."""
    own = category.__module__.partition(".")[0] == "omb_py"
    text = f"omb-py: {message}\n" if own else warnings.formatwarning(message, category, filename, lineno, line)
    sys.stderr.write(text)


def _leave(code: int) -> int:
    """End without a message, after rank 0 has printed it."""
    from omb_py.engine.rank.lifetime import let_rank_0_speak

    let_rank_0_speak()
    return code


def _rank() -> int:
    from omb_py.engine.rank.launcher_variables import joined_environment

    joined = joined_environment(os.environ)
    return joined.rank if joined is not None else 0


def _fail(text: str, code: int, debug: bool) -> int:
    if debug:
        import traceback  # only --debug needs it

        traceback.print_exc()
    line = " ".join(f"{word[:60]}…{word[-20:]}" if len(word) > _LONGEST_WORD else word for word in text.split())
    sys.stderr.write(
        f"omb-py: error: {write_out_controls(line, CONTROL)}\n"
    )  # one write, so that lines of two processes do not mix
    return code


def _flush(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output(sys.stdout.fileno())
    if why := failure():
        return _fail(f"the output is not complete, it could not be written: {why}", ENVIRONMENT, False)
    return code
