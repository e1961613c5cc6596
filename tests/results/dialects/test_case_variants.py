"""Further logs of each kind that cases/ holds one of: the same rows, in another form of the same fault."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import omb_py
from omb_py.cli import main
from omb_py.errors import OK, UsageError
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects.test_cases import CASES, NCCL, column
from tests.results.dialects.test_log_lines import LOGS, rows_of

Change = Callable[[str], str]


def case(name: str) -> str:
    return (CASES / f"{name}.log").read_text()


def read(text: str, name: str = "a.log", benchmark: str | None = None) -> Parsed:
    return parse(text.encode(), Context(name, benchmark))


def swapped(*pairs: tuple[str, str]) -> Change:
    """A change that puts other words in place; each must be there."""

    def change(text: str) -> str:
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return text

    return change


def before_each(*prefixes: str) -> Change:
    return lambda text: "".join(
        prefixes[number % len(prefixes)] + line for number, line in enumerate(text.splitlines(keepends=True))
    )


def docker_json(text: str) -> str:
    """The file that Docker keeps of a container: a line is JSON."""
    stamp = "2024-03-01T12:00:01.123456789Z"
    return "".join(
        json.dumps({"log": line, "stream": "stdout", "time": stamp}, separators=(",", ":")) + "\n"
        for line in text.splitlines(keepends=True)
    )


COLLECTORS: dict[str, Change] = {
    "Docker's JSON": docker_json,
    "srun -l of a pod's": before_each("2024-03-01T12:00:01.5Z 0: ", "2024-03-01T12:00:02.25Z 0: "),
    "Azure": before_each("2024-03-01T12:00:01.1234567Z ", "2024-03-01T12:00:02.7654321Z "),
}


@pytest.mark.parametrize(("collector", "log"), list(zip(COLLECTORS, cycle(LOGS), strict=False)))
def test_other_collectors(collector: str, log: str) -> None:
    around = "job starts on node01\n", "\nmodule a\n" * 3
    found = read(around[0] + COLLECTORS[collector](LOGS[log]) + around[1])
    assert rows_of(found) == rows_of(read(LOGS[log])) and not found.problems


RCCL_FORMS = {
    "a hash alone": swapped(("2.17.9-develop:0a1b2c3", "2.17.9")),
    "rccl-tests of a build without git": swapped(("develop:0a1b2c3", "unknown")),
    "indented": swapped(("# rccl-tests version", "  # rccl-tests version")),
    "a prefix": before_each("[1,0]<stdout>:"),
}


@pytest.mark.parametrize(
    ("change", "name"),
    list(zip(RCCL_FORMS.values(), cycle(["rccl_no_block", "rccl_version_line"]), strict=False)),
    ids=RCCL_FORMS,
)
def test_other_heads_of_rccl_tests(name: str, change: Change) -> None:
    facts = ("source", "library", "library_version", "device", "benchmark", "ranks", "nodes")
    assert set(column(read(change(case(name))), *facts)) == set(column(read(case(name)), *facts))


RANKS: dict[str, tuple[str, Change, tuple[Any, ...]]] = {
    "three copies": (
        "two_copies",
        lambda text: text.replace(
            "#  Rank  0 Group  0 Pid   2000",
            "#  Rank  0 Group  0 Pid   3000 on      hostc device  0 [0000:0f:00] Test GPU 16GB\n"
            "#  Rank  1 Group  0 Pid   3000 on      hostc device  1 [0000:0f:00] Test GPU 16GB\n"
            "#  Rank  0 Group  0 Pid   2000",
        ),
        (2, None, 2, None),
    ),
    "copies on one node": ("two_copies", swapped(("hostb", "hosta")), (2, None, 2, None)),
    "copies whose lines are mixed": (
        "two_copies",
        lambda text: _moved(text, "Rank  1 Group  0 Pid   1000", "Rank  1 Group  0 Pid   2000"),
        (2, None, 2, None),
    ),
    "copies without the column of groups": ("two_copies", swapped((" Group  0", "")), (2, None, 2, None)),
    "MOD 2 on one node": ("split", swapped(("hostb", "hosta")), (2, 1, 4, None)),
    "DIV 2: a group a node": (
        "split",
        swapped(("Rank  1 Group  1", "Rank  1 Group  0"), ("Rank  2 Group  0", "Rank  2 Group  1")),
        (2, 2, 4, None),
    ),
    "groups of unlike size": ("split", swapped(("Rank  3 Group  1", "Rank  3 Group  0")), (None, 2, 4, None)),
    "an elision in words": ("ranks_elided", swapped(("...\n", "#  [12 lines left out]\n")), (16, None, 16, None)),
    "a line broken by NCCL": (
        "ranks_elided",
        swapped(("...\n", "#  Rank  2 Grouphosta:11:22 [0] NCCL INFO Bootstrap\n")),
        (16, None, 16, None),
    ),
    "the highest alone": (
        "ranks_elided",
        lambda text: "".join(
            line for line in text.splitlines(True) if "Rank  0" not in line and "Rank  1 " not in line
        ),
        (16, None, 16, None),
    ),
}


def _moved(text: str, first: str, second: str) -> str:
    """The text with two of its lines in each other's place."""
    lines = text.splitlines(keepends=True)
    a, b = (next(i for i, line in enumerate(lines) if what in line) for what in (first, second))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


@pytest.mark.parametrize(("name", "change", "facts"), RANKS.values(), ids=RANKS)
def test_other_lists_of_ranks(name: str, change: Change, facts: tuple[Any, ...]) -> None:
    found = read(change(case(name)))
    assert column(found, "value") == column(read(case(name)), "value")
    assert set(map(str, column(found, *NCCL))) == {str(facts)}


MESSAGES = (
    "nodea:11:22 [0] NCCL INFO Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/2/GDRDMA",
    "nodea:11:22 [0] misc/socket.cc:55 NCCL WARN socketProgress: Connection closed by remote peer",
    "nodea:11:22 [0] NCCL TRACE 12.5 allreduce",
    "\n[2024-06-01 10:00:00] nodea:11:22 [0] transport/net.cc:35 NCCL WARN a slow peer",
    "[1717236000.123456] [nodea:50816:0]          parser.c:2048 UCX  WARN  unused environment variable: UCX_X",
    "[1717236000.123456] [nodea:50816:0]   ucp_worker.c:1855 UCX  INFO  0x1 self cfg#0 tag(self/memory)",
)


@pytest.mark.parametrize("message", MESSAGES)
def test_other_messages_within_a_row(message: str) -> None:
    whole = case("info_in_row").replace(
        "-1nodea:11:22 [0] NCCL INFO Channel 00/0 : 3[3] -> 0[0] [receive] via NET/IB/2/GDRDMA\n"
        "nodea:11:23 [1] NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n",
        "-1",
    )
    broken = whole.replace("sum      -1   150.00", f"sum      -1{chr(10).join([message] * 3)}\n   150.00")
    assert broken != whole
    found = read(broken)
    assert rows_of(found) == rows_of(read(whole)) and not found.problems


BLANK = {
    "allgather": ("all_gather_perf", "allgather"),
    "sendrecv": ("sendrecv_perf", "sendrecv"),
    "a command line": ("./build/alltoall_perf -b 32 -e 64 -g 2", "alltoall"),
}


@pytest.mark.parametrize(("command", "benchmark"), BLANK.values(), ids=BLANK)
def test_other_collectives_with_a_blank_reduction(command: str, benchmark: str) -> None:
    found = read(f"+ {command}\n{case('blank_redop')}")
    assert column(found, "value", "op") == [(v, None) for v in (89.0, 85.13, 86.83, 85.77)] and not found.problems
    assert {table.benchmark for table in found.tables} == {benchmark}


@pytest.mark.parametrize(
    ("program", "benchmark"),
    [
        ("all_reduce_perf_mpi", "allreduce"),
        ("reduce_scatter_perf_mpi", "reduce_scatter"),
        ("alltoall_perf_cuda12", "alltoall"),
        ("/opt/nccl-tests/build/broadcast_perf_mpi", "bcast"),
    ],
)
def test_other_suffixes_of_programs(program: str, benchmark: str) -> None:
    text = case("perf_mpi").replace("none      -1", "none       0" if benchmark == "bcast" else "none      -1")
    text = text.replace("none ", " sum ") if "reduce" in benchmark else text
    for log in (
        text.replace("all_gather_perf_mpi", program.rpartition("/")[2]),
        f"+ mpirun -np 2 {program} -b 1M\n"
        + "".join(line for line in text.splitlines(keepends=True) if "# Collective test" not in line),
    ):
        found = read(log)
        assert [table.benchmark for table in found.tables] == [benchmark] and not found.problems


@pytest.mark.parametrize(("version", "counts"), [("5.6.3", (2, 2)), ("5.7.1", (4, 1)), ("5.8", (16, 16))])
def test_other_versions_and_counts_of_latency_mp(version: str, counts: Sequence[int]) -> None:
    sender, receiver = counts
    change = swapped(
        ("v5.8", f"v{version}"), ("sender: 2", f"sender: {sender}"), ("receiver: 2", f"receiver: {receiver}")
    )
    found = read(change(case("latency_mp_58")))
    assert column(found, "value") == [20.05, 20.1, 21.25] and not found.problems
    assert column(found, "parameters") == [{"process_counts": f"{sender}:{receiver}"}] * 3


FRAMES = {
    "UCX without a name": " 0 0x0000000000012b20  ??:0\n",
    "libucs": " 0  /usr/lib/libucs.so.0(ucs_handle_error+0x2e4) [0x7f1c2d3e4f50]\n",
    "gdb": "#0  0x00007f1c2d3e4f50 in raise () from /lib64/libc.so.6\n",
    "Open MPI": "[node01:50816] [ 0] /lib64/libpthread.so.0(+0x12b20)[0x7f1c2d3e4f50]\n",
    "MPICH": "/usr/lib/libmpi.so.12(MPL_backtrace_show+0x35) [0x7f1c2d3e4f50]\n",
    "Python": '  File "bench.py", line 12, in main\n',
    "Intel MPI": "Image              PC                Routine            Line        Source\n"
    "libmpi.so.12       00007F1C2D3E4F50  PMPI_Alltoall         45  alltoall.c\n",
    "addresses alone": "0x7f1c2d3e4f50\n0x7f1c2d3e4f58\n",
}


@pytest.mark.parametrize(("frames", "log"), list(zip(FRAMES.values(), cycle(LOGS), strict=False)), ids=FRAMES)
def test_other_backtraces(log: str, frames: str) -> None:
    found = read(f"{LOGS[log]}{frames * 3}=================================\n")
    assert rows_of(found) == rows_of(read(LOGS[log])) and not found.problems


DEATHS = {
    "OMB": ("# OSU MPI Latency Test v5.6.3\n", "latency"),
    "OMB with its head": ("# OSU MPI Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n", "bw"),
    "IMB": ("#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n# Benchmarking PingPong \n# #processes = 2 \n", ""),
    "an old nccl-tests": (
        "# nThread 1 nGpus 2 minBytes 32 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 \n"
        "#\n# Using devices\n",
        "nccl-tests",
    ),
    "rccl-tests": (
        "# rccl-tests version 2.17.9 rccl-headers=22707 rccl-library=22707\n"
        "# Collective test starting: all_reduce_perf\n",
        "rccl-tests",
    ),
    "nccl-tests with its head": ("".join(case("perf_mpi").splitlines(keepends=True)[:10]), "nccl-tests"),
}


LAST = ("", "srun: error: node07: task 3: Killed\n", "Segmentation fault (core dumped)\n")


@pytest.mark.parametrize(("log", "last"), list(zip(DEATHS.values(), cycle(LAST), strict=False)), ids=DEATHS)
def test_other_deaths_before_the_first_row(log: tuple[str, str], last: str) -> None:
    text, named = log
    found = read(text + last)
    assert not found.tables and len(found.problems) == 1
    problem = str(found.problems[0])
    assert named in problem and ("no rows" in problem or "ended before its first row" in problem)


BARRIER = "# OSU MPI Barrier Latency Test v7.5\n# Avg Latency(us)\n 1.05\n"
LATENCY = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n4 1.05\n8 1.06\n16 1.07\n32 1.08\n"


@pytest.mark.parametrize("log", [BARRIER, LATENCY], ids=["short", "long"])
def test_equal_texts_in_two_folders_are_launches_where_they_are_short(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = log is BARRIER
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        for number in range(5):
            (tmp_path / folder / f"{number}.log").write_text(log)
    code = main(["compare", str(tmp_path / "old"), str(tmp_path / "new")])
    told = capsys.readouterr()
    assert code == (OK if short else UsageError.exit_code)
    assert ("5 launches" if short else "5 of their launches in common") in told.out + told.err


def test_a_folder_is_never_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "0.log").write_text(BARRIER)
    (tmp_path / "new").symlink_to("old")
    assert main(["compare", str(tmp_path / "old"), str(tmp_path / "new")]) == UsageError.exit_code
    assert "1 of their launches in common" in capsys.readouterr().err


def test_equal_texts_that_are_packed_or_stand_in_two_folders_are_launches(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0.log").write_text(BARRIER)
    (tmp_path / "0.log.gz").write_bytes(gzip.compress(BARRIER.encode()))
    logs = [str(tmp_path / name) for name in ("a", "b", "0.log.gz")]
    assert main(["results", "import", *logs, "--store", str(tmp_path / "store")]) == OK
    assert omb_py.load(tmp_path / "store")["launch_id"].nunique() == 3
