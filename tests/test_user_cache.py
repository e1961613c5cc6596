"""The user's cache: what is not surely this user's own is never read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from omb_py import user_cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "omb-py"


def test_what_was_saved_is_loaded(folder: Path) -> None:
    assert user_cache.load("a") is None
    user_cache.save("a", b"1")
    user_cache.save("a", b"2")
    assert user_cache.load("a") == b"2" and user_cache.load("b") is None
    assert folder.stat().st_mode & 0o777 == 0o700 and os.listdir(folder) == ["a"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755, 0o750])
def test_a_folder_that_others_may_enter_is_not_used(folder: Path, mode: int) -> None:
    user_cache.save("a", b"1")
    folder.chmod(mode)
    assert user_cache.load("a") is None
    user_cache.save("b", b"1")
    assert os.listdir(folder) == ["a"]


def test_a_folder_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user_cache.save("a", b"1")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert user_cache.load("a") is None


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    user_cache.save("a", b"1")
    (folder / "b").symlink_to(folder / "a")
    assert user_cache.load("b") is None
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert user_cache.load("a") is None


def test_a_name_leads_nowhere_else(folder: Path, tmp_path: Path) -> None:
    user_cache.save("a", b"1")
    (tmp_path / "b").write_bytes(user_cache._sum("../b", b"1") + b"1")
    (tmp_path / "b").chmod(0o600)
    assert user_cache.load("../b") is None


def test_a_file_that_others_may_write_is_not_read(folder: Path) -> None:
    user_cache.save("a", b"1")
    (folder / "a").chmod(0o622)
    assert user_cache.load("a") is None


def test_a_damaged_file_or_one_under_another_name_is_not_read(folder: Path) -> None:
    user_cache.save("a", b"content")
    (folder / "b").write_bytes((folder / "a").read_bytes())
    whole = (folder / "a").read_bytes()
    (folder / "a").write_bytes(whole[:-1])
    assert user_cache.load("a") is None and user_cache.load("b") is None


def test_a_large_file_is_on_the_disk_before_it_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over all of it takes milliseconds of each start: it is of the beginning and the length."""
    named: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda file: named.append([n for n in os.listdir(folder) if n[0] != "."]))
    large = bytes(user_cache._SUMMED + 1)
    user_cache.save("small", large[:-1])
    assert named == []
    user_cache.save("large", large)
    assert named == [["small"]] and user_cache.load("large") == large
    for damaged in (b"\1" + large[1:], large[:-1]):
        (folder / "large").write_bytes(user_cache._sum("large", large) + damaged)
        assert user_cache.load("large") is None


def test_a_relative_variable_means_the_home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    user_cache.save("a", b"1")
    assert (tmp_path / "home/.cache/omb-py/a").is_file()


def test_without_a_place_nothing_is_kept_and_nothing_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    user_cache.save("a", b"1")
    assert user_cache.load("a") is None


def test_writers_at_the_same_time_leave_a_whole_file(folder: Path) -> None:
    contents = [bytes([n]) * 100_000 for n in range(8)]
    writers = [threading.Thread(target=user_cache.save, args=("a", content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert user_cache.load("a") in contents and os.listdir(folder) == ["a"]


@pytest.mark.parametrize(("bound", "most"), [("_MOST_FILES", 3), ("_MOST_BYTES", 18)])
def test_a_full_folder_is_emptied(folder: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(user_cache, bound, most)
    for n in range(3):
        user_cache.save(str(n), b"1")
    assert sorted(os.listdir(folder)) == ["0", "1", "2"]
    user_cache.save("3", b"123456")
    assert os.listdir(folder) == ["3"]
