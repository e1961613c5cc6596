"""What launchers, collectors of logs and other threads put into a log changes no row."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omb_py
from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects import imb_texts, nccl_texts
from tests.results.dialects.texts import OMB

LOGS = {
    "OMB": OMB["allreduce -f -c -z"],
    "OMB 5.3": OMB["5.3 allreduce"],
    "nccl-tests": nccl_texts.FOURTH,
    "IMB": imb_texts.MPI1,
}
PREFIXES = {
    "mpirun --tag-output": "[1,0]<stdout>:",
    "mpirun --timestamp-output --tag-output": "Wed May 16 10:17:50 2018[1,0]<stdout>:",
    "mpirun --tag-output of Open MPI 4, detailed": "[1,0][node01]<stdout>: ",
    "Open MPI 5, detailed": "[prterun-node01-4711@1,0][node01:812]<stdout>: ",
    "torchrun --tee": "[default0]:",
    "a rank": "[rank0]: ",
    "mpiexec -prepend-pattern": "[node01:0] ",
    "pdsh by address": "10.0.0.1: ",
    "stern": "osu-launcher-x7 launcher ",
    "GitLab": "2024-03-01T12:00:01.123456Z 00O ",
    "journalctl": "Mar 01 12:00:01 node01 osu_bw[812]: ",
    "journalctl -o short-iso": "2024-03-01T12:00:01+0000 node01 osu_bw[812]: ",
    "ts": "Mar  1 12:00:01 ",
    "ts %H:%M:%S": "12:00:01 ",
    "Open MPI 5": "[prterun-node01-4711@1,0]<stdout>: ",
    "mpiexec -prepend-rank": "[0] ",
    "srun -l": "0: ",
    "srun -l of many": " 12: ",
    "kubectl logs --timestamps": "2024-03-01T12:00:01.123456789Z ",
    "kubectl logs --prefix": "[pod/osu-launcher-x7/launcher] ",
    "docker compose": "launcher-1  | ",
    "pdsh": "node01.cluster: ",
    "gh run view --log": "bench\tRun benchmark\t2024-03-01T12:00:01.1234567Z ",
    "Jenkins": "[2024-03-01T12:00:01.123Z] ",
    "a mail": "> ",
    "an answer to a mail": "> > ",
    "pdsh of a launcher's": "node01: [1,0]<stdout>:",
    "a collector's of a launcher's": "2024-03-01T12:00:01Z 0: ",
    "CRI, /var/log/pods": "2024-03-01T12:00:01.123456789Z stdout F ",
    "Ray": "(main pid=4711) ",
    "Ray on another node": "(main pid=4711, ip=10.0.0.1) ",
    "podman-compose": "[launcher] | ",
    "syslog": "<14>Mar  1 12:00:01 node01 slurm[812]: ",
    "Airflow": "[2024-03-01, 12:00:01 UTC] {subprocess.py:93} INFO - ",
    "Python's logging": "2024-03-01 12:00:01,123 - bench - INFO - ",
    "loguru": "2024-03-01 12:00:01.123 | INFO     | bench:run:12 - ",
}
OTHERS = (
    "job starts on node01",
    "Loaded module openmpi/5.0.3",
    "Warning: Permanently added 'node01' to the list of known hosts.",
    "",
)
NOISE = (
    "node01:812:845 [3] NCCL INFO Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/2/GDRDMA",
    "[2024-06-01 10:00:00] node01:11:22 [0] misc/socket.cc:55 NCCL WARN socketProgress: Connection closed",
    "[1717236000.123456] [node01:50816:0]          parser.c:2048 UCX  WARN  unused environment variable: UCX_X",
    "[node01:50816:0:50816] Caught signal 7 (Bus error: nonexistent physical address)",
    "==== backtrace (tid:  50816) ====",
    " 0 0x0000000000012b20 .annobin_sigaction.c()  sigaction.c:0",
    " 1  /usr/lib/libucs.so.0(ucs_handle_error+0x2e4) [0x7f1c2d3e4f50]",
    "real\t0m12.345s",
    "srun: error: node07: task 3: Killed",
    "slurmstepd: error: *** STEP 4711.0 ON node01 CANCELLED AT 2024-06-01T10:00:00 ***",
)


def rows_of(parsed: Parsed) -> list[tuple[str, int, dict[str, Any]]]:
    return [(table.benchmark, table.launch, row) for table in parsed.tables for row in table.rows]


def read(text: str) -> Parsed:
    return parse(text.encode(), Context("a.log"))


@pytest.mark.parametrize(
    ("prefix", "log"), list(zip(PREFIXES.values(), cycle(LOGS.values()), strict=False)), ids=PREFIXES
)
def test_prefixes_change_nothing(prefix: str, log: str) -> None:
    whole = "".join(prefix + line for line in log.splitlines(keepends=True))
    few = "\n".join([*OTHERS * 12, whole, *OTHERS])
    for text in (whole, few):
        found = read(text)
        assert rows_of(found) == rows_of(read(log))
        assert not found.problems


def test_two_launchers_in_one_log() -> None:
    first, second = LOGS["OMB"], LOGS["nccl-tests"]
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in first.splitlines())
    text += "".join(f"3: {line}\n" for line in second.splitlines())
    assert rows_of(read(text)) == rows_of(read(first + second))


RUNS = [
    f"# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n{rows}"
    for rows in (
        "4                       5.40\n8                       5.96\n",
        "16                     50.40\n32                     50.96\n",
    )
]


TWO_PREFIXES = (
    ("[1,0]<stdout>:", "[1,1]<stdout>:"),
    ("node01: ", "node02: "),
    ("2024-03-01T12:00:01Z 0: ", "2024-03-01T12:00:02Z 1: "),
)


@pytest.mark.slow
@given(draw=st.data())
def test_programs_that_print_at_once_are_told_apart_by_their_prefixes(draw: st.DataObject) -> None:
    """Such as two starts of a program that was built without MPI: no table holds rows of both."""
    runs = [LOGS["nccl-tests"]] * 2 if draw.draw(st.booleans()) else RUNS
    prefixes = draw.draw(st.sampled_from(TWO_PREFIXES))
    queues = [[prefix + line for line in run.splitlines(True)] for prefix, run in zip(prefixes, runs, strict=True)]
    mixed = []
    while all(queues):
        mixed.append(queues[draw.draw(st.integers(0, 1))].pop(0))
    found = parse("".join([*mixed, *queues[0], *queues[1]]).encode(), Context("a.log"))
    alone = [[row for _, _, row in rows_of(read(run))] for run in runs]
    tables = [table.rows for table in found.tables]
    assert not found.problems and len({table.launch for table in found.tables}) == 2
    assert tables in (alone, alone[::-1])


def test_programs_that_print_at_once_without_a_prefix_are_left_out() -> None:
    heads = [run.splitlines(keepends=True) for run in RUNS]
    text = "".join([heads[0][0], heads[1][0], heads[0][1], heads[1][1], *heads[0][2:], *heads[1][2:]])
    found = read(text)
    assert not found.tables and "two programs print at once" in str(found.problems[0])


def test_prefixes_of_programs_that_ran_in_turn_keep_their_order() -> None:
    """A line that names nobody stays where it is: it may be the command of the next table."""
    command = "+ mpirun -np 2 ./alltoall_perf -b 8 -e 8M\n"
    log = nccl_texts.FIRST
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in RUNS[0].splitlines())
    text += command + "".join(f"[1,1]<stdout>:{line}\n" for line in log.splitlines())
    assert rows_of(read(text)) == rows_of(read(RUNS[0] + command + log))


def test_what_only_looks_like_a_prefix_stays() -> None:
    """``nprocs: 4`` is osu_init's own, and a number before a colon may be anything."""
    text = "nprocs: 4, min: 120 ms, max: 130 ms, avg: 125 ms\n"
    assert rows_of(read("0: ready\n" + text)) == rows_of(read(text)) != []


@given(log=st.sampled_from(sorted(LOGS)), draw=st.data())
def test_noise_between_rows_changes_none(log: str, draw: st.DataObject) -> None:
    lines = LOGS[log].splitlines(keepends=True)
    for _ in range(draw.draw(st.integers(1, 6))):
        lines.insert(draw.draw(st.integers(0, len(lines))), draw.draw(st.sampled_from(NOISE)) + "\n")
    found = read("".join(lines))
    assert rows_of(found) == rows_of(read(LOGS[log]))
    assert not found.problems


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_log_is_unpacked(ending: str) -> None:
    data = PACKERS[ending](LOGS["OMB"].encode())
    assert rows_of(parse(data, Context(f"a.log.{ending}"))) == rows_of(read(LOGS["OMB"]))
    with pytest.raises(UsageError, match="a packed file that cannot be unpacked"):
        parse(data[:-9], Context("a.log"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "store"


def test_equal_files_of_one_command_are_launches(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("logs")
    folder.mkdir()
    head = "# OSU MPI Barrier Latency Test v7.5\n# Avg Latency(us)\n"
    for name, value in (("0", "1.05"), ("1", "1.05"), ("2", "1.06")):
        (folder / f"barrier_{name}.log").write_text(f"{head} {value}\n")
    assert main(["results", "import", "logs", "--store", str(store)]) == 0
    frame = omb_py.load(store)
    assert sorted(frame["value"]) == [1.05, 1.05, 1.06] and frame["run_id"].nunique() == 3
    capsys.readouterr()
    assert main(["results", "import", "logs", "--store", str(store)]) == 0, "the same command adds nothing"
    assert capsys.readouterr().out.count("imported before") == 3
    assert len(omb_py.load(store)) == 3


def test_a_folder_without_files_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("none").mkdir()
    assert main(["results", "import", "none", "--store", str(store)]) == 2
    assert "none is a folder without files" in capsys.readouterr().err
