"""The machines that are made up: what is set up for each, and how its outcome is counted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.lab.machines import __main__ as injected
from tests.lab.machines import control_group, look, runs
from tests.lab.machines.machines import CACHES, MACHINES, NOBODY, cache

LAST = "3 failed, 12 passed, 1 skipped in 2.00s"


@pytest.fixture(autouse=True)
def no_namespace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(injected, "apart", lambda: ("unshare",))
    monkeypatch.setattr(injected, "BOOK", tmp_path)


def test_each_machine_has_a_fact_that_shows_it() -> None:
    assert set(look.EXPECTED) == set(MACHINES) and len(MACHINES) == 17


def test_a_machine_that_is_not_made_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "facts", lambda: {"cores": (64, 2)})
    assert look.wrong_with("cores-64") == "cores-64 is not as it is called: cores is (64, 2), not (64, 64)"
    monkeypatch.setattr(look, "facts", lambda: {"cores": (64, 64)})
    assert look.wrong_with("cores-64") == ""


def test_a_machine_is_set_up_before_its_tests_begin() -> None:
    words = injected.command(MACHINES["not-root"], ["pytest"], None, None)
    assert words[:3] == ["unshare", "bash", "-c"] and words[4:] == [
        *("not-root", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "pytest"),
    ]
    assert "mount -t tmpfs none /dev/shm" in words[3] and words[3].endswith('cd "$ROOT" && exec "$@"')
    preloaded = injected.command(MACHINES["clock"], ["pytest"], Path("/x.so"), None)
    assert preloaded[-3:] == ["env", "LD_PRELOAD=/x.so", "pytest"]
    little = injected.command(MACHINES["memory"], ["pytest"], None, Path("/sys/fs/cgroup/memory/a"))
    assert "echo $$ > /sys/fs/cgroup/memory/a/cgroup.procs" in little[3] and "MemAvailable: 2097152 kB" in little[3]


def test_a_cache_is_told_as_the_kernel_does() -> None:
    assert "echo 480M > /tmp/caches/index1/size" in cache(480).setup and CACHES in cache(480).setup
    assert "index" not in cache(0).setup and cache(0).environment == {"OMB_PY_CACHE_BYTES": ""}


def test_variables_are_set_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert "HOME" not in injected.environment(MACHINES["no-home"])
    assert injected.environment(MACHINES["cores-64"])["INJECTED_CORES"] == "64"
    assert injected.environment(MACHINES["odd-paths"])["PYTHONPATH"] == "/tmp/one folder/zwölf 日本/omb-py"


def test_a_group_that_cannot_be_made_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(control_group, "OLD", tmp_path / "none")
    monkeypatch.setattr(control_group, "NEW", tmp_path / "neither")
    with control_group.group(1 << 30) as folder:
        assert folder is None


def test_failed_tests_and_runs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "pytest": f"FAILED tests/a.py::test_b - x\n{LAST}\n",
        "tests.lab.machines.runs": '{"runs": 5, "wrong": ["doctor: exit code 3"]}\n',
        "tests.lab.machines.look": "umask is not as it is called\n",
    }

    def done(words: list[str], **options: object) -> SimpleNamespace:
        return SimpleNamespace(stdout=next(text for name, text in said.items() if name in words), stderr="")

    monkeypatch.setattr(injected.subprocess, "run", done)
    outcome = injected.on(MACHINES["umask"], ["tests/a.py"], 0, 0)
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.runs) == (12, 3, 1, 5)
    assert outcome.wrong == ("umask is not as it is called", "tests/a.py::test_b", "doctor: exit code 3")
    assert "| umask 077 | 1 | 15 | 3 | 5 | 2 |" in injected.table([outcome])
    assert (injected.BOOK / "umask-0.log").read_text().startswith("FAILED")


@pytest.mark.parametrize(
    ("code", "err", "small", "says"),
    [
        (0, "", False, ""),
        (3, "no room in /dev/shm", True, ""),
        (3, "no room in /dev/shm", False, "exit code 3"),
        (3, "the library crashed", True, "exit code 3"),
        (0, "Traceback", True, "a traceback"),
    ],
)
def test_a_run_is_judged(code: int, err: str, small: bool, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = SimpleNamespace(returncode=code, stdout="", stderr=err)
    monkeypatch.setattr(runs.subprocess, "run", lambda words, **options: done)
    assert says in runs.wrong_with(("doctor",), Path("x"), small)
    assert bool(says) == bool(runs.wrong_with(("doctor",), Path("x"), small))
