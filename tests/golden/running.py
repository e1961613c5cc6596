"""The command line, run in this process in a folder of its own, with everything that varies taken out of what it says.

Only ``omb_py.cli.main`` is imported: what is inside may be moved and renamed.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.cli import main
from tests.golden.normal import Normal, page

KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "OMB_PY_TEST_MARK")
"""Variables of the caller that a command sees; launchers, stores and settings of others are hidden."""
MEMORY = "/dev/shm"
"""Every file of a store is synced, which takes long on a disk that others use."""
SET = {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
SET["OMB_PY_PROGRESS"] = "never"  # a line comes every 20 s, which a busy machine may need


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str


class Place:
    """An empty folder to work in, and the commands run there."""

    def __init__(self, root: Path, keep_dates: bool = False) -> None:
        self.root = root
        self.normal = Normal(root, keep_dates)

    def write(self, name: str, text: str) -> None:
        """A file in the folder."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, line: str | Sequence[str]) -> Ran:
        """Run ``omb-py LINE`` and give back what it said, as it was."""
        words = shlex.split(line) if isinstance(line, str) else list(line)
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True) for _ in range(2)]
        before, sys.argv = sys.argv, ["omb-py", *words]
        try:
            with (
                warnings.catch_warnings(),
                contextlib.redirect_stdout(streams[0]),
                contextlib.redirect_stderr(streams[1]),
            ):
                warnings.simplefilter("error")
                code = main(words)
        finally:
            sys.argv = before
        out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
        return Ran(code, out, err)

    def said(self, line: str) -> str:
        """The normalised stdout of a command that must be fine."""
        ran = self.run(line)
        assert ran.code == 0, (line, ran)
        return self.normal(ran.out)

    def shown(self, *lines: str) -> str:
        """The commands and all that they say, as in a terminal, with the exit codes that are not 0."""
        parts = []
        for line in lines:
            ran = self.run(line)
            text = f"$ omb-py {self.normal(line)}\n{self.normal(ran.out)}"
            if text[-1] != "\n":
                text += "\n(no newline at the end)\n"
            text += "".join(f"stderr: {one}\n" for one in self.normal(ran.err).splitlines())
            parts.append(text + (f"exit code {ran.code}\n" if ran.code else ""))
        return "\n".join(parts)

    def page(self, name: str) -> str:
        """A written page of HTML, normalised."""
        return f"== {name}\n{self.normal(page((self.root / name).read_text(encoding='utf-8')))}\n"

    def file(self, name: str) -> str:
        """A written file, normalised."""
        return f"== {name}\n{self.normal((self.root / name).read_text(encoding='utf-8'))}\n"


@contextlib.contextmanager
def place(keep_dates: bool = False) -> Iterator[Place]:
    """An empty folder as the working folder, and an environment in which little is set."""
    here, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="golden-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as name:
        root = Path(name).resolve()
        (root / "work").mkdir()
        (root / "home").mkdir()
        for key in [key for key in os.environ if key not in KEPT and not key.startswith("PYTEST_")]:
            del os.environ[key]
        os.environ.update(SET, HOME=str(root / "home"), TMPDIR=str(root))
        os.chdir(root / "work")
        time.tzset()
        try:
            yield Place(root / "work", keep_dates)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
            time.tzset()
