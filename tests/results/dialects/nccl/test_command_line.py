"""Command lines of nccl-tests and rccl-tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.results.dialects.nccl.command_line import benchmark_of, translate
from tests.support.c_library import COMPILER
from tests.support.machines.standin import library

IN_A_JOB = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "PMI_RANK": "0", "PMI_SIZE": "8"}


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("all_reduce_perf -b 8 -e 128M -f 2 -g 1", "allreduce -n 1 -m 8:128M:2 --batch 20 -x 1 -c"),
        ("./build/all_gather_perf -g 8", "allgather -n 8 -m 4194304:4194304 --batch 20 -x 1 -c"),
        ("all_gather", ""),
        ("all_reduce_bias_perf", ""),
        ("all_reduce_perf -z 1 -n 5 -w 2", "allreduce -n 1 -m 32M:32M:2 -i 5 -x 2 -c --timing isolated"),
        (
            "all_reduce_perf -z 2",
            "allreduce -n 1 -m 32M:32M:2 -i 20 -x 1 -c --timing isolated --process-sync none",
        ),
        ("all_reduce_perf -z 0 -G 1", "allreduce -n 1 -m 32M:32M:2 --batch 20 -x 1 -c --timing graph"),
        (
            "reduce_perf -o all -r 0 -J out.json -u 1",
            "reduce -n 1 -m 32M:32M:2 --batch 20 -x 1 -c --op sum,prod,max,min,avg,mulsum -k 0 --json out.json "
            "--nccl unaligned=1",
        ),
        ("broadcast_perf -o all", "bcast -n 1 -m 32M:32M:2 --batch 20 -x 1 -c"),
        ("all_gather_perf", "allgather -n 1 -m 33554432:33554432 --batch 20 -x 1 -c"),
        ("gather_perf -b 8 -e 100 -f 3 -g 4", "gather -n 4 -m 2,6,18 --batch 20 -x 1 -c"),
        ("scatter_perf -b 1K -e 3K -i 1K -g 2", "scatter -n 2 -m 512,1024,1536 --batch 20 -x 1 -c"),
        ("reduce_scatter_perf -t 2 -g 2 -c 0", "reduce_scatter_block -n 4 -m 32M:32M:2 --batch 20 -x 1"),
        ("alltoall_perf -b 1K -e 4K -i 1024 -n 5 -w 7", "alltoall -n 1 -m 1024,2048,3072,4096 --batch 5 -x 2 -c"),
        (
            "broadcast_perf --minbytes=8 --maxbytes 8 -f2 -r 1 -d half",
            "bcast -n 1 -m 8:8:2 --batch 20 -x 1 -c -T half -k 1",
        ),
        (
            "all_reduce_perf -o max -d f8e4m3 -m 4 -R 2",
            "allreduce -n 1 -m 32M:32M:2 --batch 20 -x 1 -c -T float8e4m3 --op max "
            "--nccl aggregate=4,registration=window",
        ),
        (
            "all_reduce_perf -w 0 --store here --device rocm",
            "allreduce -n 1 -m 32M:32M:2 --batch 20 -x 0 -c --store here --device rocm",
        ),
    ],
)
def test_each_option_is_the_one_that_does_the_same(line: str, ours: str) -> None:
    words = line.split()
    if not ours:
        assert not benchmark_of(words[0])
        return
    benchmark, rest = ours.split(" ", 1)
    assert " ".join(translate(words, {})) == f"{benchmark} --format nccl-tests --backend nccl {rest}"


def test_calls_of_a_library_without_streams_are_samples() -> None:
    line = "all_reduce_perf -b 8 -e 64 -f 2 -w 7 --backend gloo"
    assert " ".join(translate(line.split(), {})) == (
        "allreduce --format nccl-tests -n 1 -m 8:64:2 -i 20 -x 7 -c --backend gloo"
    )


def test_a_launcher_says_how_many_ranks_there_are() -> None:
    assert "-n" not in translate(["all_reduce_perf", "-g", "1"], IN_A_JOB)
    assert "-m 128,256" in " ".join(translate("all_gather_perf -b 1K -e 2K -f 2".split(), IN_A_JOB))
    with pytest.raises(UsageError, match="a rank is a process with one GPU here: start as many"):
        translate(["all_reduce_perf", "-g", "8"], IN_A_JOB)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("all_reduce_perf -N 2", "-N of nccl-tests has nothing like it here: leave it out"),
        ("all_reduce_perf --memory_report 1", "--memory_report of nccl-tests has nothing like it here"),
        ("all_reduce_perf --cudagraph 2", "-G is one of 0, 1 here, not '2'"),
        ("all_reduce_perf -z 4", "-z is one of 0, 1, 2, 3 here, not '4'"),
        ("all_reduce_perf -b", "-b has no value"),
        ("all_reduce_perf -g x", "-g is a whole number of at least 1, not 'x'"),
        ("all_reduce_perf -a 0", "-a is one of 1 here, not '0'"),
        ("all_reduce_perf -R 7", "-R is one of 0, 1, 2 here, not '7'"),
        ("all_reduce_perf -b 1 -e 1M -i 8", "-i 8 makes 131072 sizes: a larger step, or -f 2"),
    ],
)
def test_what_has_no_equal_is_refused_in_a_line(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        translate(line.split(), {})
    assert says in str(caught.value)


@pytest.mark.mpi
@pytest.mark.skipif(COMPILER is None, reason="no C compiler for the stand-in libnccl")
@pytest.mark.parametrize("program", ["./build/all_reduce_perf", "all_gather_perf"])
def test_a_line_of_their_readme_is_measured_and_printed_in_their_text(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    name, file = program.rpartition("/")[2], tmp_path / "out.json"
    line = f"{program} -b 32 -e 128 -f 2 -g 2 -u 1 -o all -J {file} --device sim --store {tmp_path / 'store'}"
    assert main(line.split()) == 0
    told = capfd.readouterr().out
    assert f"# Collective test starting: {name}" in told and "# Out of bounds values : 0 OK" in told
    ops = ["sum", "prod", "max", "min", "avg", "mulsum"] if "reduce" in name else [None]
    stored = rows_of(tmp_path / "store", capfd)
    assert [row["op"] for row in stored] == [op for op in ops for _ in range(6)]
    assert {row["bytes_total"] for row in stored} == {32, 64, 128}
    assert all(row["wrong_bytes"] == 0 and row["parameters"]["nccl_unaligned"] == "1" for row in stored)
    assert main(["results", "import", str(file), "--store", str(tmp_path / "imported")]) == 0
    capfd.readouterr()
    same = ("benchmark", "op", "in_place", "size_bytes", "value", "ranks")
    read = rows_of(tmp_path / "imported", capfd)
    assert [[row[key] for key in same] for row in read] == [[row[key] for key in same] for row in stored]


def rows_of(store: Path, capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The rows of a store, reductions in the order of nccl-tests, then by size."""
    assert main(["results", "export", "--store", str(store), "--format", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    ops = ["sum", "prod", "max", "min", "avg", "mulsum", None]
    return sorted(rows, key=lambda row: (ops.index(row["op"]), row["size_bytes"], row["in_place"]))
