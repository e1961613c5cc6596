"""The tables of docs/cli.md agree with the commands and the option table."""

from __future__ import annotations

import pytest

from omb_py.options.table import option_of
from tests.architecture import options_page
from tests.architecture.marked import replaced


def test_the_page_is_that_of_the_commands() -> None:
    text = options_page.PAGE.read_text(encoding="utf-8")
    assert options_page.page(text) == text, "make it anew: python -m tests.architecture.options_page"


@pytest.mark.parametrize(
    ("name", "default"), [("window", "mostly 64"), ("precision", "1%"), ("seed", "drawn, and stored")]
)
def test_a_row_says_the_default(name: str, default: str) -> None:
    assert options_page.default_of(option_of(name)) == default


def test_help_says_nothing_of_one_benchmark() -> None:
    assert options_page.help_of(option_of("ranks")) == "Number of ranks."
    assert "fence" in options_page.help_of(option_of("sync"))


@pytest.mark.slow
def test_a_command_names_the_options_that_no_benchmark_has() -> None:
    (explain,) = [line for line in options_page.tool_list().splitlines() if "omb-py explain" in line]
    assert "`--gpus N`" in explain and "--window-size" not in explain
    assert "`omb-py results prune`" in options_page.tool_list() and "--inject" not in options_page.tool_list()


def test_a_part_is_replaced_between_its_markers() -> None:
    text = "a\n<!-- rows: made by python -m x -->\nold\n<!-- end of rows -->\nb"
    assert replaced(text, "rows", "x", "new") == text.replace("old", "new")
    with pytest.raises(ValueError, match="not one part 'lines'"):
        replaced(text, "lines", "x", "new")
