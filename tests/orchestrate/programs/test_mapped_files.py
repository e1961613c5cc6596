"""What processes have mapped."""

from __future__ import annotations

import os

from omb_py.orchestrate.programs.mapped_files import MappedFile, descendants, mapped_by


def test_this_process_runs_code_from_files_with_build_ids() -> None:
    files = mapped_by([os.getpid()])
    libc = next(file for file in files if file.name.startswith("libc.") or file.name.startswith("libc-"))
    assert libc.build_id
    assert str(libc) == f"{libc.path} (build {libc.build_id[:8]})"


def test_a_process_that_has_ended_has_nothing() -> None:
    assert mapped_by([2**22 + 1]) == set()
    assert descendants(2**22 + 1) == {2**22 + 1}


def test_a_file_without_a_build_is_its_path() -> None:
    assert str(MappedFile("/opt/lib/libx.so")) == "/opt/lib/libx.so"
