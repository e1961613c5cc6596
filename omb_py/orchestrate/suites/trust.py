"""What a suite's file may say only if the user trusts it: what starts programs, and files outside its folder.

Owner and mode of a file say nothing about who wrote it: a file from elsewhere is the user's own once it is saved. So a
file is trusted by the hash of its content, after the user has seen what it names (docs/security.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.grammar.traffic import SPREAD
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.orchestrate.suites.toml_values import TomlSetting

STARTS: Mapping[str, str] = {
    "launcher": "starts the ranks",
    "launcher-args": "starts any program that it names",
    "hosts": "starts ranks on other hosts",
    "background-job": "starts another job",
}
"""Key -> what it does: it starts something."""
_PLAIN = frozenset("-n -m -i -x -T -W --ranks --message-size --iterations --warmup --type --window-size".split())
_PLAIN |= {"--backend", "--binding", "--mock"}
"""Options of a background job that an entry of the suite could be as well."""


def _is_plain_job(text: str) -> bool:
    options = [word.partition("=")[0] if word[:2] == "--" else word[:2] for word in text.split() if word[0] == "-"]
    return re.fullmatch(r"[\w\s.,:^=+-]*", text) is not None and _PLAIN.issuperset(options)


def _read_after_colon(text: str) -> list[str]:
    name = text.partition(":")[2].strip()
    return [] if re.fullmatch(r"[\d:x,+>\s]*", name) else [name]


FILES: Mapping[str, Callable[[str], list[str]]] = {
    "baseline": lambda text: [text] if "/" in text or Path(text).is_dir() else [],
    "ddt": _read_after_colon,
    "nhbr": _read_after_colon,
    "traffic": lambda text: [] if text.strip().startswith(SPREAD) else [text.strip()],
    "validation": _read_after_colon,
    "workload": lambda text: re.findall(r"@([^,]+)", text),
}
"""Key -> the files or folders that its text names."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A line of a file that needs trust."""

    at: TomlSetting
    text: str
    what: str

    @property
    def starts(self) -> bool:
        """Whether it starts something; else it names a file outside the suite's folder."""
        return self.at.key in STARTS

    def __str__(self) -> str:
        return f"line {self.at.line}: {self.at.key} = {self.text!r} {self.what}"


def demands(suite: Suite) -> list[Demand]:
    """List the lines of a suite that need trust, in the order of the file; none of a suite that comes with omb-py."""
    if not suite.content:
        return []
    tables = [suite.defaults, *(entry.options for entry in suite.entries)]
    tables += [suite.accept.settings] if suite.accept else []
    return [demand for settings in tables for setting in settings for demand in _list_demands(setting)]


def _list_demands(setting: TomlSetting) -> Iterator[Demand]:
    folder = Path(setting.file).parent
    for value in setting.values:
        text = str(value)
        if setting.key == "background-job" and _is_plain_job(text):
            continue
        if setting.key in STARTS:
            yield Demand(setting, text, STARTS[setting.key])
        elif setting.key in FILES and isinstance(value, str):
            for name in FILES[setting.key](text):
                if not _is_inside(name, folder):
                    yield Demand(setting, text, "is no file in the folder of the suite")


def _is_inside(name: str, folder: Path) -> bool:
    """Whether a name leads to a plain file or folder, or to nothing yet, in the folder, links followed."""
    try:
        path = Path(name).resolve()
        return path.is_relative_to(folder.resolve()) and (path.is_file() or path.is_dir() or not path.exists())
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, a ring of links
        return False


class TrustedFile(Protocol):
    """A file that may be trusted, by the hash of its content."""

    @property
    def file(self) -> str:
        """Its path."""

    @property
    def content(self) -> str:
        """The hash of its content."""


def require_trust(suite: Suite, starting: bool = True) -> None:
    """Ask on a terminal whether a suite may do what it demands, unless that was answered before.

    Args:
        starting: False: nothing will be started, so only files outside the suite's folder are asked for.

    Raises:
        UsageError: it is not trusted, and there is nobody to ask.
    """
    ask_trust(
        suite, [demand for demand in demands(suite) if starting or not demand.starts], "omb-py suite check --trust"
    )


def ask_trust(suite: TrustedFile, needed: Sequence[Demand], command: str) -> None:
    """Ask as :func:`require_trust` does; `command` trusts the file where there is nobody to ask. Raises UsageError."""
    if not needed or suite.content in _read_trusted_hashes():
        return
    listed = "; ".join(map(str, needed))
    if _is_someone_there():
        sys.stderr.write("".join(f"{demand}\n" for demand in needed))
        sys.stderr.write(f"Only a file that you trust may do this. Trust {suite.file!r} as it is now? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            remember(suite)
            return
    raise UsageError(
        f"{suite.file}: {listed}: only a file that you trust may do this: read it, then {command} {suite.file}"
    )


def remember(suite: TrustedFile) -> None:
    """Trust a file with this content from now on.

    Raises:
        EnvironmentProblem: the list of trusted files cannot be written.
    """
    path = _find_trusted_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as file:
            file.write(f"{suite.content}  {suite.file!r}\n")
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot write the list of trusted files {str(path)!r}: {error.strerror}: set XDG_STATE_HOME to a folder "
            "of yours"
        ) from None


def _find_trusted_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path(os.environ.get("HOME") or "~").expanduser() / ".local/state")
    return Path(base) / "omb-py" / "trusted-suites"


def _read_trusted_hashes() -> set[str]:
    """Hashes of the trusted files; none where somebody else may have written them."""
    with contextlib.suppress(OSError), open(_find_trusted_file(), encoding="utf-8", errors="replace") as file:
        mode = os.fstat(file.fileno())
        if mode.st_uid == os.geteuid() and not mode.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return {line.partition(" ")[0] for line in file}
    return set()


def _is_someone_there() -> bool:
    """Whether a question can be answered: ranks of a launcher ask nothing."""
    return joined_environment(os.environ) is None and all(
        stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stderr)
    )
