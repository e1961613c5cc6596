"""Limits of clock rates, read from a tree like /sys; a comparison under two of them has no verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.errors import NoVerdict
from omb_py.orchestrate.programs import session
from omb_py.orchestrate.programs.clock_limits import clock_limits, why_other_limits
from omb_py.orchestrate.programs.session import compare_programs
from tests.orchestrate.programs.conftest import Make


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def limit(system: Path, ghz: float, governor: str = "performance", policies: int = 2) -> None:
    for number in range(policies):
        policy = system / f"devices/system/cpu/cpufreq/policy{number}"
        write(policy / "scaling_max_freq", str(int(ghz * 1e6)))
        write(policy / "scaling_governor", governor)


def test_limits_are_said_in_words(tmp_path: Path) -> None:
    limit(tmp_path, 3.5)
    limit(tmp_path, 2.1, "powersave", policies=1)
    write(tmp_path / "devices/system/cpu/intel_pstate/no_turbo", "1")
    assert clock_limits(tmp_path, tmp_path / "none") == {
        "processors": "governor performance, at most 3.5 GHz; governor powersave, at most 2.1 GHz",
        "boost": "off",
    }


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "devices/system/cpu/cpufreq/policy0/scaling_max_freq", "unknown")
    assert clock_limits(tmp_path, tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("second", "why"),
    [({"boost": "on", "GPU 0": "1980 MHz"}, ""), ({}, ""), ({"boost": "off"}, "clock limits of boost: on, then off")],
)
def test_only_what_both_say_can_differ(second: dict[str, str], why: str) -> None:
    assert why_other_limits({"boost": "on"}, second) == why


@pytest.mark.slow
def test_another_limit_in_the_middle_is_no_verdict(
    design: Make, osu: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = 0

    def limits() -> dict[str, str]:
        nonlocal launches
        launches += 1
        limit(tmp_path, 3.5 if launches < 6 else 2.1)
        return clock_limits(tmp_path, tmp_path / "none")

    monkeypatch.setattr(session, "clock_limits", limits)
    with pytest.raises(NoVerdict, match=r"ran under other clock limits of processors: .*3\.5 GHz, then .*2\.1 GHz"):
        compare_programs(design(osu(1.0), osu(1.0, name="new")))
    assert launches == 6
