"""Errors that a user can cause, and the exit codes of the command line.

::

    OmbError
    ├── UsageError         2   bad input: one line with the nearest valid choice
    ├── EnvironmentProblem 3   the environment cannot do it: what to install or set
    │   ├── NotStored      3   the store cannot be written: where what was finished is kept
    │   └── LaunchFailed   3   a launch died, hung or never joined: which rank and host
    │       └── NotBegun   3   the launcher failed before any rank began; another try may work
    ├── CannotDecide       4   no measurement could decide: what is needed first
    ├── NoVerdict          5   what was to be measured was not measured: what was not, and why
    └── Interrupted        130
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

OK = 0
NEGATIVE = 1
USAGE = 2
ENVIRONMENT = 3
INCONCLUSIVE = 4
NO_VERDICT = 5
INTERRUPTED = 130


class OmbError(Exception):
    """Base of every error that is shown to a user as one line, without a traceback."""

    exit_code = ENVIRONMENT
    resumes = ""
    """Id of the run that the same command line with ``--resume`` continues; empty where there is none."""

    def of_run(self, run_id: str) -> Self:
        """This error, where ``--resume`` continues the run that it ended."""
        self.resumes = run_id
        return self

    @property
    def problem(self) -> str:
        """The message without what to do about it."""
        return str(self).partition(". What to do: ")[0]


class UsageError(OmbError):
    """The input is wrong; the message says the rule or the nearest valid choice."""

    exit_code = USAGE


class EnvironmentProblem(OmbError):
    """This machine or job cannot do what was asked; the message says why and what to do."""

    exit_code = ENVIRONMENT


class NotStored(EnvironmentProblem):
    """The store cannot be written, for instance on a full disk: no rank, side or candidate is at fault."""


class LaunchFailed(EnvironmentProblem):
    """A launch ended before its cells were done; the message names rank, host and step."""


class NotBegun(LaunchFailed):
    """The launcher failed before any rank began, for a passing reason: the launch can be tried again."""


class CannotDecide(OmbError):
    """No measurement that is asked for could decide; the message says what is needed first."""

    exit_code = INCONCLUSIVE


class NoVerdict(OmbError):
    """What was to be measured was not measured, so nothing may be called the same; the message says what was not."""

    exit_code = NO_VERDICT


class Interrupted(OmbError):
    """The user pressed Ctrl-C."""

    exit_code = INTERRUPTED


def nearest(word: str, choices: Iterable[str], alike: float = 0.5, otherwise: str = "") -> str:
    """Return the end of an error line: the nearest valid choice; if none is near `otherwise`, or all choices.

    `alike` is the least similarity of a near choice, 0 to 1, by :class:`difflib.SequenceMatcher`. One that begins with
    another letter has to be very much alike.

    >>> nearest("alreduce", ["allreduce", "bcast"]), nearest("strict", ["metric", "env"])
    ('did you mean allreduce?', 'valid: env, metric')
    """
    valid = sorted(set(choices))
    import difflib  # only for errors

    for choice in difflib.get_close_matches(word, valid, n=3, cutoff=alike):
        typed, meant = word.lstrip("-._").lower(), choice.lstrip("-._").lower()
        if typed[:1] == meant[:1] or difflib.SequenceMatcher(None, typed, meant).ratio() >= 0.75:
            return f"did you mean {choice}?"
    return otherwise or "valid: " + ", ".join(valid)
