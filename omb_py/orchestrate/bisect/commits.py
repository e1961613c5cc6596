"""The commits of a bisection. git itself says which one halves what is left."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from omb_py.errors import EnvironmentProblem, UsageError


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by its full name."""

    name: str
    subject: str

    @property
    def short(self) -> str:
        return self.name[:10]

    def __str__(self) -> str:
        return f"{self.short} ({self.subject})"


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits after `good`, up to and with `bad`: one of them made the program slower."""

    repository: Path
    good: Commit
    bad: Commit

    def halving(self, fast: Collection[Commit], slow: Commit) -> list[str]:
        """The names of the commits that are still possible, the one first that halves them best.

        Args:
            fast: commits that are as fast as `good`, `good` among them.
            slow: the earliest commit that is as slow as `bad`.
        """
        names = [commit.name for commit in fast]
        listed = _git(self.repository, "rev-list", "--bisect-all", slow.name, "--not", *names)
        return [line.split(maxsplit=1)[0] for line in listed.splitlines()]


def find_range(repository: Path, good: str, bad: str) -> CommitRange:
    """Resolve both ends of a history.

    Raises:
        UsageError: a revision is unknown, or `good` is no ancestor of `bad`.
        EnvironmentProblem: git is not here.
    """
    ends = [find_commit(repository, text, option) for text, option in ((good, "--good"), (bad, "--bad"))]
    if ends[0] == ends[1]:
        raise UsageError(f"--good {good} and --bad {bad} are one commit, {ends[0]}: name an earlier one that is faster")
    _, status = _ask(repository, "merge-base", "--is-ancestor", ends[0].name, ends[1].name)
    if status:
        raise UsageError(f"--good {good} is no ancestor of --bad {bad}: name a commit of its history")
    return CommitRange(repository, *ends)


def find_commit(repository: Path, revision: str, option: str = "revision") -> Commit:
    """The commit that a revision names. Raises UsageError where there is none."""
    text, status = _ask(repository, "log", "-1", "--format=%H %s", "--end-of-options", f"{revision}^{{commit}}")
    if status:
        if _ask(repository, "rev-parse", "--git-dir")[1]:
            raise UsageError(f"--repository {repository}: it is no git repository: name a folder of one")
        raise UsageError(f"{option} {revision}: no such commit in {repository}: git log lists them")
    name, _, subject = text.strip().partition(" ")
    return Commit(name, subject)


def make_tree(repository: Path, commit: Commit, folder: Path) -> None:
    """Check a commit out into a work tree of its own. Raises EnvironmentProblem."""
    _git(repository, "worktree", "prune")
    _git(repository, "worktree", "add", "--quiet", "--force", "--detach", str(folder.absolute()), commit.name)


def _git(repository: Path, *words: str) -> str:
    text, status = _ask(repository, *words)
    if status:
        raise EnvironmentProblem(f"git {words[0]} in {repository} failed: {text.strip() or f'exit code {status}'}")
    return text


def _ask(repository: Path, *words: str) -> tuple[str, int]:
    """What git prints, its errors where it fails, and its exit code."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        raise EnvironmentProblem("there is no git in PATH: install it") from None
    return (done.stderr if done.returncode else done.stdout), done.returncode
