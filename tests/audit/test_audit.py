"""Dependencies: no declared minimum has a known weakness, and no answer is taken for a good one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit import __main__ as audit
from tests.audit.floors import FIXED, declared, pinned, weak


def test_no_version_that_is_declared_or_pinned_has_a_weakness_that_is_listed() -> None:
    assert not weak(declared()) and not weak(pinned())
    assert {"pyarrow", "protobuf", "waitress"} <= {name for name, _ in declared()} & set(FIXED)


def test_a_lower_bound_below_a_fix_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["pyarrow>=14", "numpy"]\n'
        '[project.optional-dependencies]\nweb = ["dash>=2.15,<4", "Waitress"]\ndev = ["torch==1.0"]\n'
    )
    assert weak(declared(tmp_path)) == [
        "pyarrow 14: CVE-2023-47248: code in a file that is read, fixed in 14.0.1",
        "waitress 0: CVE-2024-49768: a request that should be refused, fixed in 3.0.1",
    ]


def answers(monkeypatch: pytest.MonkeyPatch, gone: bool, database: list[dict[str, object]]) -> None:
    report = {"install": [{"metadata": {"name": "click", "version": "8.5.1"}, "is_yanked": gone}]}

    def output(*words: str) -> str:
        return json.dumps(report if words[0] == "pip" else {"dependencies": database})

    monkeypatch.setattr(audit, "output", output)


KNOWN: dict[str, object] = {"name": "click", "version": "8.5.1", "vulns": []}


@pytest.mark.parametrize(
    ("gone", "database", "code", "says"),
    [
        (False, [KNOWN], 0, "weaknesses that a database knows, of 1 pinned releases: none"),
        (True, [KNOWN], 1, "withdrawn, of 1 pinned releases: click 8.5.1: withdrawn by its authors"),
        (False, [{**KNOWN, "vulns": [{"id": "CVE-1"}]}], 1, "of 1 pinned releases: click 8.5.1: CVE-1"),
        (False, [{"name": "click", "skip_reason": "not found"}], 3, "nothing is known"),
        (False, [], 3, "nothing is known"),
    ],
)
def test_the_exit_code_says_what_is_known(
    gone: bool,
    database: list[dict[str, object]],
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers(monkeypatch, gone, database)
    assert audit.main() == code
    assert says in capsys.readouterr().out


def test_where_nothing_answers_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "output", lambda *words: "")
    assert audit.main() == 3
