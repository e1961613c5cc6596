"""The package as pip knows it: its name, and what to type for a part of it that is missing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

DISTRIBUTION: Final = "omb-bench"
"""The name on PyPI. ``omb-py``, the name of the command, belongs to another project there."""
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def checkout() -> str | None:
    """The folder of the checkout that omb-py runs from; None where it is installed."""
    return _ROOT if os.path.isfile(os.path.join(_ROOT, "pyproject.toml")) else None


def pip_install(extra: str) -> str:
    """The command that adds an extra: to the checkout where omb-py runs from one, else from PyPI."""
    if checkout() is None:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    try:
        here = os.path.samefile(os.curdir, _ROOT)
    except OSError:  # the working folder was removed
        here = False
    import shlex  # ranks load this module

    return f"pip install -e {shlex.quote(f'{os.curdir if here else _ROOT}[{extra}]')}"


def commit() -> str:
    """The commit of a checkout, or of an installation from a repository; empty where nobody knows it."""
    from pathlib import Path

    return _read_checkout(Path(_ROOT) / ".git") or _read_installation()


def _read_checkout(git: Path) -> str:
    """The commit that HEAD names, read as git lays its files out, without starting git."""
    try:
        if git.is_file():  # a worktree: it names its own folder, which names the common one
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        shared = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
        for folder in (git, shared):
            if (folder / name).is_file():
                return (folder / name).read_text().strip()
        packed = (line.split() for line in (shared / "packed-refs").read_text().splitlines())
        return next((words[0] for words in packed if words[1:] == [name]), "")
    except OSError:
        return ""


def _read_installation() -> str:
    import json  # as what follows: slow to import, and not needed in a checkout
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    return str(origin.get("vcs_info", {}).get("commit_id", ""))


def version_line() -> str:
    """What ``--version`` prints: ``omb-py 0.1.0 (commit 382d6ea1f)``."""
    from omb_py import __version__

    known = commit()[:9]
    return f"omb-py {__version__}{f' (commit {known})' * bool(known)}"
