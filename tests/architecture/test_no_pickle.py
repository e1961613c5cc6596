"""Nothing that comes over a socket is unpickled: unpickling runs what the sender wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNPICKLES = re.compile(
    r"^\s*(?:import|from) (?:pickle|cloudpickle|dill|marshal|shelve|multiprocessing)\b"
    r"|\bimport pkl5\b|\.pickle\.loads|_object_list\(|(?:gather|scatter|send|recv|broadcast)_object\("
    r"|\bcomm\.(?:send|recv|isend|irecv|sendrecv|bcast|gather|scatter|allgather|alltoall|reduce|allreduce)\("
    r"|allow_pickle=True|torch\.load\("
    r"|\b(?:import_module|__import__)\(\"pickle\"",
    re.MULTILINE,
)
ALLOWED = {
    "omb_py/class_code.py": "keeps compiled methods in a folder of this user alone",
    "omb_py/orchestrate/running/joined_run.py": "writes to the stdin of the collector, its own child",
    "omb_py/orchestrate/running/joined_collector.py": "reads what its parent wrote, through that pipe",
    "omb_py/orchestrate/running/rank_modules.py": "writes Python's own modules to a folder of this user alone",
    "omb_py/orchestrate/running/rank_start.py": "reads them from there, where nobody else can write (user_cache)",
    "backends/mpi/objects.py": "--buffer object measures mpi4py's pickling itself",
}


def sources() -> list[Path]:
    folders = ("omb_py", "backends", "suites", "results", "dashboards")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.slow
def test_nothing_is_unpickled_but_where_no_stranger_can_write() -> None:
    users = {str(path.relative_to(ROOT)) for path in sources() if UNPICKLES.search(path.read_text())}
    assert users == ALLOWED.keys()


def test_the_pattern_finds_what_it_is_for() -> None:
    for line in (
        "import pickle",
        "    from multiprocessing.connection import Client",
        "dist.broadcast_object_list(box, 0)",
        "self.dist.gather_object(value, objects, 0, self.group)",
        "self.comm.gather(value)",
        "comm.bcast((host, port))",
        "np.load(file, allow_pickle=True)",
    ):
        assert UNPICKLES.search(line), line
    for line in ("comm.Gather(data, sizes)", "mpi_values.gather(comm, value)", '"""nothing is unpickled"""'):
        assert not UNPICKLES.search(line), line
