"""Command lines that nobody means; the lab tries thousands: python -m tests.lab.hostile.command_lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.lab.hostile.command_lines import broken_promise, command_line


@pytest.mark.parametrize("seed", [2, 3])
def test_every_command_line_ends_in_one_of_the_codes(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rng = random.Random(seed)
    lines = [command_line(rng) for _ in range(15)]
    assert [(broken, words) for words in lines if (broken := broken_promise(words)[0])] == []


@pytest.mark.parametrize(
    "words",
    [
        ["guidelines", "bcast", "--backend", "nope"],
        ["a" * 300],
        ["results", "list", "a" * 300],
        ["suite", "show", "a" * 300],
    ],
)
def test_what_was_a_bug_is_bad_input(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert broken_promise(words) == ("", 2)
