"""The typed options of ``omb_py.run`` are those of the option table."""

from __future__ import annotations

import pytest

import omb_py
from omb_py.options.request import Request
from omb_py.run_options import RunOptions
from tests.options import run_options


def test_the_file_is_made_from_the_table() -> None:
    assert run_options.FILE.read_text(encoding="utf-8") == run_options.source(), (
        "make it anew: python -m tests.options.run_options"
    )


def test_a_request_takes_every_option() -> None:
    for name in set(RunOptions.__annotations__) - {"nccl", "mock"}:
        Request("barrier", **{name: None})


def test_an_unknown_option_is_named_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="run has no option 'windw': did you mean window"):
        omb_py.run("bw", windw=4)  # type: ignore[call-arg]
