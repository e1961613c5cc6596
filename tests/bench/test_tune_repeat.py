"""What a repeated proof takes from a tuning, and when verdicts contradict each other."""

from __future__ import annotations

from pathlib import Path

from tests.bench.tune_repeat import Verdict, contradicted, measured_words, tuned_words


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
    report = {"rules": [{"setting": {"variables": [["A", "b c"]]}}]}
    assert tuned_words(tmp_path, report) == ["--set", "NEW:A=b c"]
    (tmp_path / "tuned.env").write_text("# who\nexport FILE='/a b/rules'\nexport ON=1\n")
    assert tuned_words(tmp_path, report) == ["--set", "NEW:FILE=/a b/rules", "--set", "NEW:ON=1"]
