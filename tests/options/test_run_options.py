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


@pytest.mark.parametrize(
    ("word", "near"), [("windw", "window"), ("validation", "validate"), ("backend", "backends"), ("m", "sizes")]
)
def test_an_unknown_option_is_named_with_the_nearest(word: str, near: str) -> None:
    """The nearest, or the one that has this flag on the command line."""
    with pytest.raises(TypeError, match=rf"run has no option '{word}': did you mean {near}\?"):
        omb_py.run("bw", **{word: 4})  # type: ignore[arg-type]
