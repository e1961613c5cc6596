"""What all tests share: Hypothesis without a clock, and no process left behind by a test that starts some."""

from __future__ import annotations

import os
import random
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from omb_py.engine.measuring.cache_rotation import CACHE_BYTES

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # so that tests.support is found also where pytest is not run as python -m pytest
    sys.path.insert(0, ROOT)

from tests.support.machines.leftovers import MARK, end, processes_marked  # noqa: E402

# A loaded machine is not a failure, and a test that failed yesterday must fail today.
settings.register_profile(
    "omb-py", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("omb-py")

os.environ[MARK] = uuid.uuid4().hex
# its lines depend on how long something takes
os.environ.setdefault("OMB_PY_PROGRESS", "never")
# the machine's own cache may be so large that --cache rotate needs more memory than a test's ranks have
os.environ.setdefault(CACHE_BYTES, str(8 << 20))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in the background of a shell: what ignores Ctrl-C passes that on to all its children
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # started by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than the cores that this process may use, since many tests wait for a process or a browser."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(autouse=True)
def the_same_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a test that give no seed draw the same ones each time: what holds by luck must not hold today only."""
    seeds = random.Random(request.node.nodeid)
    monkeypatch.setattr("omb_py.orchestrate.running.run.drawn_seed", lambda: seeds.randrange(1 << 31))


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a test's own process the machine is quiet: what it prints depends on no other program."""
    monkeypatch.setattr("omb_py.orchestrate.running.run.busy_now", lambda started: "")


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only a machine that loses its power can tell what was synced; tests of the order of syncs count the calls.

    Benches measure what a user waits for, so they do sync.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "bench" not in request.config.getoption("markexpr"):
            patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that starts real processes, none of them may be there."""
    yield
    if request.node.get_closest_marker("mpi") or request.node.get_closest_marker("faults"):
        left = processes_marked(os.environ[MARK], patience_s=60.0)
        end(left)
        assert not left, f"processes left behind: {left}"
