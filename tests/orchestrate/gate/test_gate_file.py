"""The file of a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.errors import UsageError
from omb_py.orchestrate.gate.gate_file import read_gate

ONE = '[[command]]\nname = "a"\nbase = "old/app"\nnew = "new/app"\n'


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    return str(path)


def test_what_a_file_does_not_say_is_usual(tmp_path: Path) -> None:
    gate = read_gate(written(tmp_path, ONE))
    assert (gate.name, gate.launches, gate.rules.rounds, gate.budget_s, gate.strict) == ("gate", 10, 3, None, False)
    assert gate.commands[0].texts.runs == ["BASE: old/app", "NEW: new/app"]


def test_all_of_a_file(tmp_path: Path) -> None:
    text = (
        'name = "mpich"\nlaunches = 12\nrounds = 2\ndelta = "5%"\ntail-delta = 0.2\ntime-budget = "30m"\n'
        'strict = true\n[[command]]\nname = "a"\nrun = "app {out}"\nset = ["NEW:A=1"]\nread = "osu"\n'
        'expect-library = "NEW:libmpi.so=/tmp"\ntimeout = "5m"\n' + ONE.replace('"a"', '"b"')
    )
    gate = read_gate(written(tmp_path, text))
    assert (gate.name, gate.launches, gate.budget_s, gate.strict) == ("mpich", 12, 1800.0, True)
    assert (gate.rules.delta, gate.rules.tail_delta, gate.rules.rounds) == (0.05, 0.2, 2)
    texts = gate.commands[0].texts
    assert (texts.runs, texts.tool, texts.timeout_s) == (["app {out}"], "osu", 300.0)
    assert (texts.sides["NEW"].variables, texts.expected) == ({"A": "1"}, ["NEW:libmpi.so=/tmp"])


def test_the_commands_share_the_chance_of_a_false_alarm(tmp_path: Path) -> None:
    many = "".join(ONE.replace('"a"', f'"a{number}"') for number in range(20))
    gate = read_gate(written(tmp_path, f"rounds = 1\n{many}"))
    assert gate.rules.alpha == pytest.approx(0.01 / 20)
    assert gate.launches == 10
    with pytest.raises(UsageError, match=r"gate.toml:1: key 'launches': 5 launches cannot show a change.*: 6 can"):
        read_gate(written(tmp_path, f"launches = 5\nrounds = 1\n{many}"))


def test_every_line_that_starts_a_program_is_one_to_trust(tmp_path: Path) -> None:
    gate = read_gate(written(tmp_path, ONE + '[[command]]\nname = "b"\nrun = "app"\nset = "NEW:A=1"\n'))
    assert [str(demand) for demand in gate.demands] == [
        "line 3: base = 'old/app' starts a program",
        "line 4: new = 'new/app' starts a program",
        "line 7: run = 'app' starts a program",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected at least one table [[command]]"),
        ("name = 'a", "not TOML"),
        (ONE + "bsae = 'x'\n", ":5: [command 1] key 'bsae': there is no such key: did you mean base?"),
        ("lunches = 3\n" + ONE, ":1: key 'lunches': there is no such key: did you mean launches?"),
        ("rounds = 4\n" + ONE, ":1: key 'rounds': expected a whole number from 1 to 3"),
        ('time-budget = "soon"\n' + ONE, ":1: key 'time-budget': 'soon' is not a duration"),
        ('[[command]]\nname = "a"\n', ":1: [command 1]: expected the keys 'name'"),
        (ONE + ONE, ":5: [command 2]: there is a command 'a' above"),
        (ONE + 'set = "OLD:A=1"\n', "--set takes SIDE:…"),
        (ONE + "metric = 3\n", ":5: [command 1] key 'metric': expected a text or a list of texts"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_gate(written(tmp_path, text))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*: no such file"):
        read_gate(str(tmp_path / "none.toml"))
