"""The commands of both sides: how they are written, and the words with which a launch of them is started."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import UsageError, nearest
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.results.compare.match import SIDES, Side

OUT = "{out}"
"""Stands in a command for a file that the program writes: it is read in place of what the program prints."""
_SIDED = re.compile(r"\s*([A-Za-z]{2,8})\s*:\s+(.*)", re.DOTALL)
_SHELL = re.compile(r"[|&;<>()$`*?~#\n]|^\s*\w+=")
"""What only a shell understands."""
_RANKS = re.compile(
    r"\b(?:mpirun|mpiexec(?:\.hydra)?|prterun|srun|torchrun)\b.*?\s"
    r"(?:-n|-np|--np|--ntasks|--nproc[-_]per[-_]node)[\s=]+(\d{1,7})\b"
)
_NODES = re.compile(r"\bsrun\b.*?\s(?:-N|--nodes)[\s=]*(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class SideProgram:
    """One side: a command, and the environment in which it is started."""

    side: Side
    command: str
    where: RankEnvironment
    setting: str = ""
    """What is set on this side, for people."""

    def __str__(self) -> str:
        return f"{self.side} ({self.command})"

    @property
    def described(self) -> str:
        """The command, and what is set for this side."""
        return f"{self.command} with {self.setting}" if self.setting else self.command

    @property
    def asked_ranks(self) -> int | None:
        """The ranks that the command asks its launcher for; None where no launcher that we can read is asked."""
        match = _RANKS.search(self.command)
        return int(match[1]) if match else None

    @property
    def asked_nodes(self) -> int | None:
        """The nodes that the command asks Slurm for; None where it asks for none."""
        match = _NODES.search(self.command)
        return int(match[1]) if match else None

    def argv(self, out: Path | None = None) -> list[str]:
        """The words to start; a shell gets what only a shell understands."""
        text = self.command if out is None else self.command.replace(OUT, shlex.quote(str(out)))
        return ["/bin/sh", "-c", text] if _SHELL.search(text) else shlex.split(text)

    def check(self, ours: Mapping[str, str] = os.environ) -> None:
        """Raises UsageError where there is no such program; what a shell starts shows only when it runs."""
        if _SHELL.search(self.command):
            return
        name = self.argv()[0]
        path = self.where.environment(ours).get("PATH", os.defpath)
        if shutil.which(name, path=path) is None:
            folder = Path(name).parent
            entries = folder.iterdir() if "/" in name and folder.is_dir() else ()
            beside = [entry.name for entry in entries if entry.is_file() and os.access(entry, os.X_OK)]
            near = nearest(Path(name).name, beside) if beside else "give its path"
            if "/" in name and Path(name).is_file():
                near = f"it is not executable: chmod +x {shlex.quote(name)}"
            raise UsageError(f"{self.side}: no program {name!r} that can be started: {near}")


def parse_commands(texts: Sequence[str]) -> dict[Side, str]:
    """Read the values of ``--run``: one for each side, or a single one for both.

    Raises:
        UsageError: a side is missing, given twice or neither BASE nor NEW, or a command is no list of words.
    """
    commands: dict[Side, str] = {}
    for text in texts:
        match = _SIDED.fullmatch(text)
        word = match[1].upper() if match else ""
        side = next((side for side in SIDES if side == word), None)
        if match is not None and side is None:
            raise UsageError(f"--run {match[1]}: …: a side is BASE or NEW: {nearest(word, SIDES)}")
        command = (match[2] if match else text).strip()
        for each in (side,) if side else SIDES:
            if each in commands:
                both = "a command without a side is that of both"
                raise UsageError(f"--run {each} is given twice, {commands[each]!r} and {command!r}: {both}")
            commands[each] = _check_command(command)
    for side, other in zip(SIDES, reversed(SIDES), strict=True):
        if side not in commands:
            raise UsageError(f"--run {other} needs its other side: --run '{side}: COMMAND'")
    return commands


def _check_command(command: str) -> str:
    try:
        if shlex.split(command):
            return command
    except ValueError as error:
        raise UsageError(f"--run {command!r}: {str(error).lower()}") from None
    raise UsageError("--run needs a command, as --run 'NEW: mpirun -n 2 ./osu_latency'")
