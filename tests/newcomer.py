"""Do what a newcomer does, in an empty home: clone, type the README's commands in their order, and say what it took.

    python3 tests/newcomer.py                  # clone, `make run`, the README's other commands
    python3 tests/newcomer.py --all            # and `make test`, where the README has it

It needs git, make and Python alone. It prints what each command took, and ends with 1 when one of them fails, prints
nothing, or when the first table is not OMB's text. Times and sizes are printed, not judged.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("PATH", "LANG", "TERM", "SSL_CERT_FILE", "CONSTRAINTS")
"""Variables that a newcomer has as well."""
PIP_FILE = Path.home() / ".config" / "pip" / "pip.conf"
"""Says where packages come from, as the variables of pip do: both hold in the empty home too."""
TABLE = re.compile(r"^# OSU MPI Allreduce Latency Test.*\n(?:#.*\n)+\s*\d+\s+\d+\.\d+", re.M)
"""The first table: OMB's title, and a row."""
LIMIT_S = 1800


@dataclass(frozen=True, slots=True)
class Step:
    """A command that was typed, and what came of it."""

    command: str
    seconds: float
    status: int
    output: str

    @property
    def problem(self) -> str:
        """What is wrong with it; empty when nothing is."""
        if self.status:
            return f"exit code {self.status}"
        if not self.output.strip():
            return "it printed nothing"
        if self.command == "make run" and not TABLE.search(self.output):
            return "it printed no table"
        return ""


def commands(readme: str) -> list[str]:
    """The commands in the shell blocks of a README, without their remarks.

    >>> commands("```sh\\nmake run   # a first number\\n```")
    ['make run']
    """
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.S)
    return [words for block in blocks for line in block.splitlines() if (words := line.partition("#")[0].strip())]


def typed(command: str, folder: Path, environ: Mapping[str, str]) -> Step:
    """Run a command as a shell does, with nothing to read."""
    began = time.monotonic()
    child = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    return Step(command, time.monotonic() - began, child.returncode, child.stdout)


def megabytes(folder: Path) -> float:
    """Size of the files below a folder."""
    files = (Path(base) / name for base, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in files) / 1e6


def report(steps: Sequence[Step], folder: Path) -> str:
    """What each command took, and what lies on the disk afterwards."""
    lines = [f"{step.seconds:7.1f} s  {step.command}{f'  <- {step.problem}' * bool(step.problem)}" for step in steps]
    sizes = [f"{megabytes(folder / name):7.1f} MB {name}" for name in (".git", ".venv", "omb-results")]
    return "\n".join((*lines, *sizes))


def main(words: Sequence[str]) -> int:
    """Exit code 0 when every command did what the README says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="type `make test` as well")
    everything = parser.parse_args(words).all
    with tempfile.TemporaryDirectory(prefix="omb-newcomer-") as base:
        home, folder = Path(base) / "home", Path(base) / "omb-py"
        home.mkdir()
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        if PIP_FILE.is_file():
            pip.setdefault("PIP_CONFIG_FILE", str(PIP_FILE))
        environ = {name: os.environ[name] for name in KEPT if name in os.environ} | pip | {"HOME": str(home)}
        steps = [typed(f"git clone {ROOT} {folder} 2>&1", Path(base), environ)]
        if not steps[0].status:
            for command in commands((folder / "README.md").read_text(encoding="utf-8")):
                if command != "make test" or everything:
                    steps.append(typed(command, folder, environ))
                    if steps[-1].problem:
                        print(steps[-1].output)
        print(report(steps, folder))
    return int(any(step.problem for step in steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
