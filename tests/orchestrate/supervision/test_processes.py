"""Limits of this process, and the pipe by which a signal wakes the supervisor."""

from __future__ import annotations

import os
import resource
import signal

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.supervision.processes import Signals, allow_files

ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "needed", "raised"),
    [
        (1024, 4096, 500, None),
        (1024, 4096, 1024, None),
        (1024, 4096, 1025, (1025, 4096)),
        (1024, 4096, 4096, (4096, 4096)),
        (1024, ENDLESS, 9000, (9000, ENDLESS)),
        (ENDLESS, ENDLESS, 9000, None),
    ],
)
def test_the_limit_of_open_files_is_raised_and_never_lowered(
    soft: int, hard: int, needed: int, raised: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.append(both))
    allow_files(needed)
    assert limits == ([] if raised is None else [raised])


def test_a_limit_that_cannot_be_raised_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    with pytest.raises(EnvironmentProblem, match="needs 4097 open files, but the limit is 4096: raise it"):
        allow_files(4097)


def test_as_many_files_as_possible_suffice_where_agents_carry_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.append(both))
    allow_files(65536, 600)
    assert limits == [(4096, 4096)]
    with pytest.raises(EnvironmentProblem, match="needs 5000 open files"):
        allow_files(65536, 5000)


def test_the_pipe_of_signals_is_closed_once() -> None:
    signals = Signals()
    ends = [signals._read_end, signals._write_end]
    with signals.caught():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.pending == 1 and os.read(signals.fileno(), 64) == b"!"
    signals.close()
    for end in ends:
        with pytest.raises(OSError):
            os.fstat(end)
    signals.close()
