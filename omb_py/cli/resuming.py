"""``--resume`` without the other words: the run knows the command line that began it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.cli.registry import commands
from omb_py.errors import UsageError
from omb_py.options.request import DEFAULT_STORE, NEWEST

if TYPE_CHECKING:
    from omb_py.results.store.provenance import Provenance


def takes_resume(name: str) -> bool:
    """Whether a command has the option ``--resume``."""
    command = commands().get(name)
    return command is not None and any("--resume" in param.opts for param in command.make().params)


def whole_line(words: Sequence[str], say: Callable[[str], object] = sys.stderr.write) -> list[str]:
    """The words of the command line that goes on, where only ``--resume``, ``--store`` and ``--quiet`` follow its name.

    Args:
        words: the words after ``omb-py``.
        say: shows a line with what is run in their place.

    Returns:
        The same words where there are others, which say themselves what goes on.

    Raises:
        UsageError: the store has no such run of this command without its end, or not all of its words.
    """
    asked = _read_alone(words)
    if asked is None or not takes_resume(words[0]):
        return list(words)
    which, folder, quiet = asked
    store = Path(folder or os.environ.get("OMB_PY_STORE") or DEFAULT_STORE)
    run_id, begun = _find_begun(words[0], which, store)
    from omb_py.results.repro_command import resuming
    from omb_py.results.store.redact import REDACTED

    named = any(word.partition("=")[0] in ("--store", "--no-store") for word in begun)
    more = [*([] if named or not folder else ["--store", folder]), *(["--quiet"] if quiet else [])]
    line = resuming([words[0], *more, *begun], run_id)
    if any(REDACTED in word for word in begun):
        raise UsageError(f"--resume={run_id}: a secret of its command line is not stored: fill it in: {line}")
    if not quiet:
        say(f"omb-py: goes on: {line}\n")
    return shlex.split(line)[1:]


def _read_alone(words: Sequence[str]) -> tuple[str, str, bool] | None:
    """(run, store, quiet) of a command line that has nothing else; the store is empty where none is given."""
    rest, which, store, quiet = list(words[1:]), "", "", False
    while rest:
        word = rest.pop(0)
        name, glued, value = word.partition("=")
        if name == "--resume" and not which:
            following = rest.pop(0) if not glued and rest and not rest[0].startswith("-") else NEWEST
            which = value or following
        elif name == "--store" and (glued or rest):
            store = value if glued else rest.pop(0)
        elif word == "--quiet":
            quiet = True
        else:
            return None
    return (which, store, quiet) if which else None


def words_of(run_id: str, store: Path, look: Callable[[str], Provenance]) -> list[str]:
    """The words after ``omb-py`` that began a run; none where ``--resume`` cannot continue it."""
    from omb_py.orchestrate.running.resume import continues

    match look(f"{run_id}-0"):
        case {"run": {"tool": {"command_line": [_, str() as command, *rest]}}} if takes_resume(command):
            return [command, *map(str, rest)] if continues(store, command, run_id) else []
    return []


def _find_begun(command: str, which: str, store: Path) -> tuple[str, list[str]]:
    """The id and the words of the newest run of a command that has not reached its end. Raises UsageError."""
    from omb_py.results.store.paths import pass_over
    from omb_py.results.store.provenance import provenance_of
    from omb_py.results.store.recovery import recover
    from omb_py.results.store.runs import runs

    if store.is_dir():
        recover(store)
        look = provenance_of(store)
        for run in reversed(runs(store, on_skip=pass_over)):
            fits = which == NEWEST or run.run_id.startswith(which)
            if not fits or run.state in (None, "running"):
                continue
            begun = words_of(run.run_id, store, look)
            if begun[:1] == [command]:
                return run.run_id, begun[1:]
    named = "" if which == NEWEST else f"={which}"
    raise UsageError(
        f"--resume{named}: no interrupted {command} in {str(store)!r} with its command line: see omb-py results list, "
        "or repeat the command line and add --resume"
    )
