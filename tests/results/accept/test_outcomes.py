"""How acceptances ended, read from logs that may be cut off or damaged."""

from __future__ import annotations

import json
from pathlib import Path

from omb_py.results.accept.outcomes import FOLDER, AcceptOutcome, earlier_acceptances, ended_acceptances


def ended(store: Path, run: str, *lines: object) -> None:
    (store / FOLDER).mkdir(exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (store / FOLDER / f"{run}.jsonl").write_text(text)


END = {"suite": "s", "bounds": "b", "hosts": ["n1", "n2"], "verdict": "FAIL", "headline": "1 fail", "failed": ["x"]}


def test_the_last_end_of_each_log_in_the_order_of_time(tmp_path: Path) -> None:
    ended(
        tmp_path, "r2", {"begun": {}}, {**END, "done": "2026-01-01"}, {**END, "done": "2026-01-03", "verdict": "PASS"}
    )
    ended(tmp_path, "r1", {**END, "done": "2026-01-02"}, '{"done": "2026-')
    first, last = ended_acceptances(tmp_path)
    assert first == AcceptOutcome("s", "b", ("n1", "n2"), "FAIL", "1 fail", ("x",), "r1", "2026-01-02")
    assert (last.run_id, last.verdict, last.done) == ("r2", "PASS", "2026-01-03")
    assert earlier_acceptances(tmp_path, "s", ["n2", "n1"], "r2") == [first]
    assert (
        earlier_acceptances(tmp_path, "s", ["n1"], "r2") == [] == earlier_acceptances(tmp_path, "t", ["n1", "n2"], "")
    )
    ended(tmp_path, "r3", {**END, "hosts": [], "verdict": "ERROR", "done": "2026-01-04"})
    assert earlier_acceptances(tmp_path, "s", [], "r4") == [], "of two that no rank answered nobody knows the hosts"


def test_a_log_without_an_end_or_with_other_values_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert ended_acceptances(tmp_path) == []
    ended(tmp_path, "r1", {"begun": {}}, "[1, 2", "3")
    ended(tmp_path, "r2", {"done": 5, "verdict": None, "hosts": 7})
    (outcome,) = ended_acceptances(tmp_path)
    assert (outcome.suite, outcome.hosts, outcome.failed, outcome.done) == ("", (), (), "5")
