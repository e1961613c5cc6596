"""What a repeated proof takes from a tuning, and when verdicts contradict each other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.results.compare.judge import Rules
from omb_py.results.tune.rules import Setting
from tests.lab.real_ranks.tune_repeat import Verdict, contradicted, measured_words, proved_again, tuned_setting


def verdict(word: str) -> Verdict:
    return Verdict(word, 0.8, 0.7, 0.9)


def test_only_decided_verdicts_contradict() -> None:
    assert contradicted([verdict("FASTER"), verdict("UNCLEAR"), verdict("SAME")])
    assert not contradicted([verdict("FASTER"), verdict("UNCLEAR"), verdict("FASTER")])


def test_a_repeat_measures_the_proved_sizes_with_the_options_of_the_tuning() -> None:
    words = "allreduce -n 2 -m 1K:1M -i 20 --knob a=b,c --seed 5".split()
    assert measured_words(words, [1024, 4096]) == "allreduce -n 2 -i 20 -m 1024,4096".split()
    assert measured_words(words, [8])[-2:] == ["-m", "8:8"]


def test_a_repeat_uses_the_variables_of_the_written_file(tmp_path: Path) -> None:
    report = {"rules": [{"setting": {"name": "ring", "variables": [["A", "b c"]]}}]}
    assert tuned_setting(tmp_path, report) == Setting("ring", (("A", "b c"),))
    (tmp_path / "tuned.env").write_text("# who\nexport FILE='/a b/rules=1'\nexport ON=1\n")
    assert tuned_setting(tmp_path, report) == Setting("files", (("FILE", "/a b/rules=1"), ("ON", "1")))


def test_a_repeat_is_a_proof_in_launches_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def compared(sides: dict[str, Any], rules: Rules, launches: int) -> Any:
        asked.append((rules, launches, sides["NEW"].where.variables, sides["BASE"].requests[0].seed))
        return SimpleNamespace(matched=SimpleNamespace(cells=[]), judged=[])

    monkeypatch.setattr("tests.lab.real_ranks.tune_repeat.compare", compared)
    words = "allreduce -n 2 -m 8:8 --backend mock".split()
    proved_again(words, Setting("ring", (("A", "b"),)), tmp_path, 1001)
    ((rules, launches, variables, seed),) = asked
    assert rules.bounded and rules.rounds == 3 and launches == 24
    assert variables == {"A": "b"} and seed == 1001
