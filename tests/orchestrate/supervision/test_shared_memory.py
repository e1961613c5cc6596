from __future__ import annotations

import mmap
import os
import secrets
import socket
from pathlib import Path

import pytest

from omb_py.engine.rank.link import start_ticks
from omb_py.errors import UsageError
from omb_py.orchestrate.supervision import processes, shared_memory
from omb_py.orchestrate.supervision.shared_memory import remove, segments
from omb_py.orchestrate.supervision.supervisor import Supervisor
from tests.orchestrate.supervision.peers import Peer, supervising

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


@pytest.mark.parametrize("left", [False, True])
def test_segments_go_only_with_the_last_process(left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that cannot be killed has mapped stays: it may be writing there."""
    segment = tmp_path / "segment"
    segment.write_bytes(b"x")
    monkeypatch.setattr(shared_memory, "segments", lambda pid: {str(segment)})
    # this process stands for the rank, and must not be killed
    monkeypatch.setattr(processes, "gone", lambda known, within: False)
    monkeypatch.setattr(processes, "end", lambda token, known, within: list(known) if left else [])
    supervisor = Supervisor({}, 1, 60.0)
    with supervising(supervisor) as result:
        rank, pid = Peer(supervisor), os.getpid()
        rank.hello(supervisor.token, 0, socket.gethostname(), pid=pid, start=start_ticks(pid))
        rank.send(type="joined", rank=0, size=1)
        rank.send(type="error", code=2, text="a rule")
        assert rank.read() == {"type": "exit", "code": 2}
        rank.close()
    assert isinstance(result[0], UsageError)
    assert segment.exists() == left
