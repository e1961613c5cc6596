"""``--output``: looked at before anything is measured; written after it, each file on its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omb_py.cli.output import check_files, output_path, write_file, write_files
from omb_py.errors import EnvironmentProblem, UsageError

ENDINGS = (".json", ".html")


def test_what_can_be_written_is_fine(tmp_path: Path) -> None:
    check_files([tmp_path / "a.json", tmp_path / "b.html", Path("c.json")], ENDINGS)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_is_said_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.json").mkdir()
    with pytest.raises(UsageError, match=r"the ending says the form: valid: \.html, \.json"):
        check_files([tmp_path / "a"], ENDINGS)
    with pytest.raises(EnvironmentProblem, match=r"there is no folder .*gone: make it first"):
        check_files([tmp_path / "gone" / "a.json"], ENDINGS)
    with pytest.raises(EnvironmentProblem, match="it is a folder"):
        check_files([tmp_path / "d.json"], ENDINGS)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(EnvironmentProblem, match="may not be written"):
        check_files([tmp_path / "a.json"], ENDINGS)


def test_a_file_that_fails_does_not_keep_the_next_from_being_written(tmp_path: Path) -> None:
    files = [tmp_path / "gone" / "a.json", tmp_path / "b.json", tmp_path / "c.html"]

    def text(ending: str) -> str:
        if ending == ".html":
            raise EnvironmentProblem("no page")
        return "µ"

    with pytest.raises(EnvironmentProblem, match=r"cannot write .*a\.json: No such file or directory; no page"):
        write_files(files, text)
    assert files[1].read_text(encoding="utf-8") == "µ"
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"], "no part of a file is left"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")

    def full(self: Path, content: bytes) -> None:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        write_file(file, "new")
    assert file.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_half_of_a_surrogate_pair_is_no_reason_to_lose_a_report(tmp_path: Path) -> None:
    write_file(tmp_path / "a.json", "caf\udce9")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "caf?"


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "real.csv", tmp_path / "link.csv"
    target.touch(0o600)
    link.symlink_to(target.name)
    write_file(link, "text")
    assert link.is_symlink() and target.read_text() == "text" and target.stat().st_mode & 0o777 == 0o600


def test_a_pipe_gets_the_text(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "text")
    assert os.read(reader, 10) == b"text" and pipe.is_fifo() and len(list(tmp_path.iterdir())) == 1
    os.close(reader)


def test_no_file_can_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(EnvironmentProblem, match=r"^cannot write .*a\.png/x\.csv: Not a directory$"):
        write_file(tmp_path / "a.png" / "x.csv", "")
    with pytest.raises(EnvironmentProblem, match=r"^cannot write .*: File name too long$"):
        write_file(tmp_path / ("x" * 300), "")
    with pytest.raises(UsageError, match=r"^--output needs the name of a file$"):
        output_path("")
