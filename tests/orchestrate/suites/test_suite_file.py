"""A suite's file becomes a suite; what is wrong in it is named with file, line, key and what is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.orchestrate.suites.suite_file import parse_suite, read_suite

GOOD = """\
name = "mine"
description = "a test"

[defaults]
iterations = "omb"
ranks = 4

[[entry]]
benchmarks = [
  "osu_Latency",
  "bw",
]
ranks = 2
window-size = [32, 64]

[[entry]]
benchmarks = ["allreduce"]
ranks = [2, "max"]
"""


def refusal(text: str) -> str:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        parse_suite(text, "f.toml")
    return str(caught.value)


def test_what_a_file_says() -> None:
    suite = parse_suite(GOOD, "f.toml")
    assert (suite.name, suite.description, suite.ranks) == ("mine", "a test", (4,))
    assert [(s.key, s.value, s.line) for s in suite.defaults] == [("iterations", "omb", 5)]
    first, second = suite.entries
    assert [(n.name, n.at.line) for n in first.benchmarks] == [("latency", 10), ("bw", 11)]
    assert (first.number, first.line, first.ranks) == (1, 8, (2,))
    assert [(s.key, s.value, s.line, s.place) for s in first.options] == [("window-size", [32, 64], 14, "[entry 1]")]
    assert second.ranks == (2, "max") and second.options == ()


def test_the_hash_is_of_what_is_said() -> None:
    """Comments and the description do not matter to a resumed run; everything else does."""
    digest = parse_suite(GOOD, "f.toml").digest
    same = GOOD.replace("a test", "another").replace("[defaults]", "# hello\n[defaults]")
    assert parse_suite(same, "elsewhere.toml").digest == digest
    for old, new in (("omb", "auto"), ("64]", "65]"), ("bw", "bibw"), ("mine", "yours"), ("ranks = 2", "ranks = 3")):
        assert parse_suite(GOOD.replace(old, new), "f.toml").digest != digest


HEAD = 'name = "m"\ndescription = "d"\n'


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read suite .*no such file"):
        read_suite(tmp_path / "none.toml")
    with pytest.raises(UsageError, match=r"cannot read suite .*directory"):
        read_suite(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "m"\ndescription = "\xe9"\n')
    with pytest.raises(UsageError, match=r"latin.toml:2: .*not UTF-8"):
        read_suite(tmp_path / "latin.toml")


def test_a_mark_of_the_byte_order_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_suite(tmp_path / "marked.toml").digest == parse_suite(GOOD, "f.toml").digest


@given(st.text(max_size=60) | st.text(alphabet="[]{}=\"'#,.\n ab1", max_size=60))
def test_any_text_is_a_suite_or_one_line(text: str) -> None:
    for whole in (text, GOOD + text, text + GOOD):
        try:
            parse_suite(whole, "f.toml")
        except UsageError as error:
            assert str(error).startswith("f.toml:") and "\n" not in str(error)


def test_a_number_that_python_does_not_convert_is_named_by_its_line() -> None:
    with pytest.raises(UsageError, match=r"^big\.toml:2: a number has thousands of digits$"):
        parse_suite(f'name = "x"\nranks = {"9" * 5000}\n', "big.toml")
