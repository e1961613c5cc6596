from __future__ import annotations

import json
import mmap
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.engine.rank.start_times import start_ticks
from omb_py.errors import UsageError
from omb_py.orchestrate.supervision import leftovers, processes
from omb_py.orchestrate.supervision.leftovers import remove, segments
from omb_py.orchestrate.supervision.supervisor import Supervisor
from tests.orchestrate.supervision.peers import Clock, Peer, supervising
from tests.support.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def shm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of this test: a launch of another one that fails removes from the common one what nobody has open."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        monkeypatch.setattr(leftovers, "_FOLDER", f"{folder}/")
        yield Path(folder)


@pytest.mark.parametrize(("name", "ours"), [("mpich_shm_", True), ("sm_segment.", True), ("somebody_else_", False)])
def test_only_a_librarys_segments_are_found_and_removed(name: str, ours: bool, shm: Path) -> None:
    path = shm / f"{name}{secrets.token_hex(8)}"
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


@pytest.fixture
def segment(shm: Path) -> Iterator[Path]:
    path = shm / f"mpich_shm_{secrets.token_hex(8)}"
    path.write_bytes(bytes(4096))
    yield path
    path.unlink(missing_ok=True)


def test_a_segment_that_nobody_uses_is_orphaned(segment: Path, shm: Path) -> None:
    began = leftovers._select_own(set(map(str, shm.iterdir())) - {str(segment)})
    other = shm / f"somebody_else_{secrets.token_hex(8)}"
    other.write_bytes(b"")
    try:
        assert str(segment) in leftovers.orphaned(began)
        assert str(other) not in leftovers.orphaned(leftovers.Files())
        assert str(segment) not in leftovers.orphaned(leftovers.present()), "made before this launch"
        with segment.open("r+b") as file:
            assert str(segment) not in leftovers.orphaned(began), "open"
            with mmap.mmap(file.fileno(), 4096):
                file.close()
                assert str(segment) not in leftovers.orphaned(began), "mapped"
        assert str(segment) in leftovers.orphaned(began)
    finally:
        other.unlink()


KILLED = """
import os, sys
from omb_py.orchestrate.supervision.leftovers import LeftoverRecord
record = LeftoverRecord()
record.launcher({launcher})
record.add(set(sys.argv[1:]))
os._exit(0)
"""


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def killed(launcher: str, *paths: object) -> int:
    """The number of a process that noted what it would leave, and died."""
    words = [sys.executable, "-c", KILLED.format(launcher=launcher), *map(str, paths)]
    with subprocess.Popen(words) as process:
        process.wait()
    return process.pid


def test_the_next_launch_removes_what_a_killed_parent_left(own_folder: Path, segment: Path, shm: Path) -> None:
    precious = own_folder / "precious"
    precious.touch()
    pid = killed("os.getpid()", segment, precious, f"{shm}/mpich_shm_/../../etc/passwd")
    session = own_folder / f"ompi.{pid}"
    session.mkdir()
    (session / "contact.txt").touch()
    leftovers.clean()
    assert not segment.exists() and not session.exists()
    assert [path.name for path in own_folder.iterdir()] == ["precious"]


FOREIGN = """
import os, pathlib, sys
from omb_py.orchestrate.supervision.leftovers import LeftoverRecord
LeftoverRecord.of_foreign_job()
for path in sys.argv[2:]:
    pathlib.Path(path).touch()
sys.argv[1] == "killed" and os._exit(0)
"""


@pytest.mark.parametrize("end", ["killed", "ends"])
def test_a_rank_inside_a_foreign_launcher_says_it_before_its_library_starts(
    own_folder: Path, end: str, shm: Path
) -> None:
    """Its launcher, a shell here, is gone as well; a rank that ends by itself leaves no record."""
    made = shm / f"mpich_shm_{secrets.token_hex(8)}"
    line = [sys.executable, "-c", FOREIGN, end, str(made)]
    try:
        subprocess.run(["sh", "-c", '"$@"; exit 0', "sh", *line], check=True)
        assert len(list(own_folder.iterdir())) == (end == "killed")
        leftovers.clean()
        assert made.exists() == (end == "ends") and not list(own_folder.iterdir())
    finally:
        made.unlink(missing_ok=True)


def test_the_folder_of_a_process_that_lives_stays(own_folder: Path) -> None:
    """Another mpiexec may have got the number of the one that was killed."""
    session = own_folder / f"ompi.{os.getpid()}"
    session.mkdir()
    leftovers._remove_recorded([], [os.getpid(), 1], leftovers.Files())
    assert session.exists()


@pytest.fixture
def topology(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that MPICH's mpiexec made for its ranks."""
    monkeypatch.setattr(leftovers, "_TOPOLOGIES", own_folder)
    monkeypatch.setattr(leftovers, "_PROXY", f"proxy_{secrets.token_hex(4)}")  # others may run mpiexec meanwhile
    path = own_folder / "hydra_hwloc_xmlfile_AbCdEf"
    path.touch()
    return path


def test_files_of_a_killed_mpiexec_are_removed(own_folder: Path, topology: Path, shm: Path) -> None:
    """Torture left a topology file, a session folder and UCX's segment where mpiexec or its proxy was killed."""
    session, ucx = own_folder / "ompi.4194305", shm / f"ucx_shm_posix_{secrets.token_hex(8)}"
    session.mkdir()
    (session / "contact.txt").touch()
    record = leftovers.LeftoverRecord()
    record._before = leftovers.Files()
    record._launcher = 4194305, 1  # over the largest number of a process: it is gone
    ucx.write_bytes(b"x")
    try:
        record.remove()
        assert not ucx.exists() and not session.exists() and not topology.exists()
    finally:
        ucx.unlink(missing_ok=True)


def test_the_next_launch_removes_the_topology_of_a_killed_parent(own_folder: Path, topology: Path) -> None:
    killed("os.getpid()")
    leftovers.clean()
    assert list(own_folder.iterdir()) == []


def test_a_clock_that_steps_back_leaves_nothing(
    own_folder: Path, segment: Path, topology: Path, shm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files were once compared with the time at which the launch began."""
    earlier = topology.rename(own_folder / "hydra_hwloc_xmlfile_Earlier"), segment
    with monkeypatch.context() as later:
        now = time.time()
        later.setattr(time, "time", lambda: now + 3600)
        record = leftovers.LeftoverRecord()
        record._launcher = 4194305, 1  # over the largest number of a process: it is gone
    made = own_folder / "hydra_hwloc_xmlfile_Of_this", shm / f"mpich_shm_{secrets.token_hex(8)}"
    try:
        for path in made:
            path.touch()
        record.remove()
        assert [path.exists() for path in (*earlier, *made)] == [True, True, False, False]
    finally:
        made[1].unlink(missing_ok=True)


def test_a_topology_of_another_launch_stays(own_folder: Path, topology: Path) -> None:
    launcher, nothing = start_ticks(), leftovers.Files()
    assert launcher is not None
    assert leftovers.topologies(leftovers.present(), launcher) == set(), "made before this launch"
    proxy = own_folder / leftovers._PROXY
    shutil.copy(shutil.which("sleep") or "/bin/sleep", proxy)
    with subprocess.Popen([proxy, "600"]) as process:
        try:
            until = time.monotonic() + PATIENCE_S
            while (text := Path(f"/proc/{process.pid}/comm").read_text()) != f"{proxy.name}\n":
                assert time.monotonic() < until, text
            assert leftovers.topologies(nothing, launcher) == set(), "a younger proxy lives, and it may be its"
            after = start_ticks(process.pid)
            assert after is not None
            assert leftovers.topologies(nothing, after + 1) == {str(topology)}, "an older proxy has made its own before"
        finally:
            process.kill()
    assert leftovers.topologies(nothing, launcher) == {str(topology)}


def test_what_lives_is_left_alone(own_folder: Path, segment: Path) -> None:
    killed(str(os.getpid()), segment)  # the launcher outlived its parent
    leftovers.clean()
    assert segment.exists()
    (kept,) = own_folder.iterdir()  # for the launch that begins when the launcher has ended
    record = leftovers.LeftoverRecord()
    record.launcher(os.getpid())
    record.add({str(segment)})
    leftovers.clean()
    assert segment.exists() and len(list(own_folder.iterdir())) == 2, "of a launch that is under way"
    record.close()
    assert list(own_folder.iterdir()) == [kept]
    with segment.open():
        killed("os.getpid()", segment)
        leftovers.clean()
        assert segment.exists(), "in use"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"segments": 1, "launcher": 2}', '{"segments": [], "launcher": ["x"]}']
)
def test_a_record_that_is_cut_off_costs_nothing(own_folder: Path, text: str) -> None:
    killed("os.getpid()")
    (folder,) = own_folder.iterdir()
    assert json.loads((folder / "leftovers.json").read_text())["segments"] == []
    (folder / "leftovers.json").write_text(text)
    leftovers.clean()
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("left", [False, True])
def test_segments_go_only_with_the_last_process(left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that cannot be killed has mapped stays: it may be writing there."""
    segment = tmp_path / "segment"
    segment.write_bytes(b"x")
    monkeypatch.setattr(leftovers, "segments", lambda pid: {str(segment)})
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


def finished_rank(supervisor: Supervisor) -> Peer:
    """The only rank of a launch, elsewhere, which has done all its cells and may exit."""
    rank = Peer(supervisor)
    rank.hello(supervisor.token, 0)
    rank.send(type="joined", rank=0, size=1, host="elsewhere", pid=0)
    rank.send(type="done")
    assert rank.read()["type"] == "exit"
    return rank


@pytest.mark.slow
@pytest.mark.faults
def test_a_launcher_that_had_to_be_killed_at_the_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells were done, so the launch has not failed; but a stopped mpiexec lets no rank remove its segment."""
    segment = tmp_path / "segment"
    segment.write_bytes(b"x")
    clock = Clock(monkeypatch, tick=0.01)
    supervisor = Supervisor({}, 1, 5.0, command=["sleep", "600"])
    supervisor._record.segments = {str(segment)}
    with supervising(supervisor) as result:
        rank = finished_rank(supervisor)
        clock.step = 0.3
        rank.close()
    assert "were killed: all cells are done" in result[0].notes[0] or "was killed" in result[0].notes[0]
    assert not segment.exists()


@pytest.mark.faults
def test_a_launcher_that_dies_after_the_last_cell_leaves_nothing(tmp_path: Path) -> None:
    """Torture killed mpiexec when all cells were done: the launch is well, and its files stayed."""
    segment, flag = tmp_path / "segment", tmp_path / "flag"
    segment.write_bytes(b"x")
    waiting = f"while [ ! -e '{flag}' ]; do sleep 0.01; done; kill -9 $$"
    supervisor = Supervisor({}, 1, 60.0, command=["sh", "-c", waiting])
    supervisor._record.segments = {str(segment)}
    with supervising(supervisor) as result:
        rank = finished_rank(supervisor)
        flag.touch()
        rank.close()
    assert "all cells are done, but the launcher" in result[0].notes[0]
    assert not segment.exists()
