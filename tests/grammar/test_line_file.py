from pathlib import Path

import pytest

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries


def test_comments_and_empty_lines_are_left_out_but_counted(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("# head\n\n 0, 1  # an edge\n   \n2,3")
    assert list(entries(path, "file", "lines")) == [(3, "0, 1"), (5, "2,3")]


def test_a_file_that_is_no_text_or_not_there_is_named_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(UsageError, match=r"^graph file .*f: No such file or directory: write lines A, B$"):
        list(entries(path, "graph file", "lines A, B"))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"^graph file .*f: not a text file: write lines A, B$"):
        list(entries(path, "graph file", "lines A, B"))
