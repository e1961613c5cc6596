"""The variables of a side whose ranks are simulated in this process."""

from __future__ import annotations

import os

import pytest

from omb_py.orchestrate.compare.session import simulated_in
from omb_py.orchestrate.launching.launch_command import RankEnvironment


def test_they_are_set_and_removed_for_the_launch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMB_TEST_KEPT", "1")
    monkeypatch.setenv("OMB_TEST_GONE", "1")
    before = dict(os.environ)
    with simulated_in(
        RankEnvironment(variables={"OMB_TEST_KEPT": "2", "OMB_TEST_NEW": "3", "OMB_TEST_GONE": None}), "mock"
    ):
        seen = [os.environ.get(f"OMB_TEST_{name}") for name in ("KEPT", "NEW", "GONE")]
    assert seen == ["2", "3", None] and dict(os.environ) == before


def test_ranks_of_their_own_get_them_otherwise() -> None:
    before = dict(os.environ)
    with simulated_in(RankEnvironment(variables={"OMB_TEST_NEW": "3"}), "mpi"):
        assert dict(os.environ) == before
