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
    ("name", "default", "takers"),
    [
        ("window", "the benchmark's, mostly 64", "with window of messages in flight"),
        ("vary_window", "off", "mbw_mr"),
        ("dtypes", "the benchmark's, mostly char", "with element type"),
        ("timing", "isolated", "collective"),
        ("seed", "drawn, and stored", ""),
    ],
)
def test_a_row_says_who_takes_an_option(name: str, default: str, takers: str) -> None:
    option = option_of(name)
    assert (options_page.default_of(option), options_page.taken_by(option)) == (default, takers)


def test_help_says_nothing_of_one_benchmark() -> None:
    assert options_page.help_of(option_of("ranks")) == "Number of ranks."
    assert "fence" in options_page.help_of(option_of("sync"))


def test_a_command_names_what_it_shares_with_benchmarks() -> None:
    text = options_page.tool_tables()
    explain = text.partition("### omb-py explain")[2].partition("###")[0]
    assert "too: `--ranks`, `--window-size`, `--win-options`, `--sync-option`, `--hosts`, `--launcher`." in explain
    assert "| `-m`, `--message-size SIZE` | One message size" in explain
    assert "### omb-py results prune" in text and "--inject" not in text


def test_a_part_is_replaced_between_its_markers() -> None:
    text = "a\n<!-- rows: made by python -m x -->\nold\n<!-- end of rows -->\nb"
    assert replaced(text, "rows", "x", "new") == text.replace("old", "new")
    with pytest.raises(ValueError, match="not one part 'lines'"):
        replaced(text, "lines", "x", "new")
