"""Builds of commits: each in a work tree of its own, made once and kept."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import EnvironmentProblem, LaunchFailed
from omb_py.orchestrate.bisect.commits import Commit, make_tree
from omb_py.orchestrate.programs.execution import run_program

BUILD = "{build}"
"""Stands in a command for the folder of a commit's work tree."""
_LONGEST_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Builds:
    """The builds of one command in one folder."""

    repository: Path
    command: str
    folder: Path
    note: Callable[[str], None]

    def of(self, commit: Commit) -> Path:
        """The folder in which a commit is built, now or earlier.

        Raises:
            LaunchFailed: the command failed; the text names the file with its output.
            EnvironmentProblem: the folder cannot be written, or git fails.
        """
        key = hashlib.sha256(self.command.encode()).hexdigest()[:6]
        tree = self.folder.absolute() / f"{commit.name[:12]}-{key}"
        done, log = tree.with_name(f"{tree.name}.done"), tree.with_name(f"{tree.name}.log")
        if done.exists() and tree.is_dir():
            return tree
        self.note(f"building {commit}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not tree.is_dir():
                make_tree(self.repository, commit, tree)
            words = ["/bin/sh", "-c", filled(self.command, tree)]
            ended = run_program(words, os.environ, _LONGEST_S, folder=tree)
            log.write_bytes(ended.output + ended.errors)
            if ended.status or ended.stopped:
                why = ended.stopped or f"it ended with {ended.ending}"
                last = f": {ended.last_line}" if ended.last_line else ""
                raise LaunchFailed(f"{commit} cannot be built: {why}{last}; its output: {log}")
            done.touch()
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {error.filename or self.folder}: {error.strerror}") from None
        return tree


def filled(command: str, tree: Path) -> str:
    """A command with the folder of a build in place of :data:`BUILD`."""
    return command.replace(BUILD, shlex.quote(str(tree)))
