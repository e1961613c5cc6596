from __future__ import annotations

import mmap
import os
import secrets
from pathlib import Path

import pytest

from omb_py.orchestrate.supervision.shared_memory import remove, segments

SHM = Path("/dev/shm")


@pytest.mark.parametrize(("name", "ours"), [("mpich_shm_", True), ("sm_segment.", True), ("somebody_else_", False)])
def test_only_a_librarys_segments_are_found_and_removed(name: str, ours: bool) -> None:
    path = SHM / f"{name}{secrets.token_hex(8)}"
    path.write_bytes(bytes(4096))
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
            found = segments(os.getpid())
            assert (str(path) in found) is ours
            remove(found & {str(path)})
            assert path.exists() is not ours
            assert str(path) not in segments(os.getpid()), "what is removed already is not ours to remove"
    finally:
        path.unlink(missing_ok=True)


def test_a_process_that_is_gone_has_none() -> None:
    assert segments(0) == set()
    remove(["/dev/shm/mpich_shm_never_was"])
