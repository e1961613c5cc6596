"""Command lines of nccl-tests and rccl-tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.cli.nccl_tests import program_of, translated
from omb_py.errors import UsageError
from tests.support.c_library import COMPILER
from tests.support.machines.standin import library

IN_A_JOB = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "PMI_RANK": "0", "PMI_SIZE": "8"}


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("all_reduce_perf -b 8 -e 128M -f 2 -g 1", "allreduce -n 1 -m 8:128M:2 --batch 20 -x 1 -c"),
        ("./all_gather_perf", ""),
        ("all_gather_perf", "allgather -n 1 -m 32M:32M:2 --batch 20 -x 1 -c"),
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
        assert not program_of(words[0])
        return
    benchmark, rest = ours.split(" ", 1)
    assert " ".join(translated(words, {})) == f"{benchmark} --format nccl-tests --backend nccl {rest}"


def test_calls_of_a_library_without_streams_are_samples() -> None:
    line = "all_reduce_perf -b 8 -e 64 -f 2 -w 7 --backend gloo"
    assert " ".join(translated(line.split(), {})) == (
        "allreduce --format nccl-tests -n 1 -m 8:64:2 -i 20 -x 7 -c --backend gloo"
    )


def test_a_launcher_says_how_many_ranks_there_are() -> None:
    assert "-n" not in translated(["all_reduce_perf", "-g", "1"], IN_A_JOB)
    with pytest.raises(UsageError, match="a rank has one GPU here: start as many ranks as GPUs"):
        translated(["all_reduce_perf", "-g", "8"], IN_A_JOB)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("all_reduce_perf -z 1", "-z of nccl-tests has nothing like it here: leave it out"),
        ("all_reduce_perf --cudagraph 1", "--cudagraph of nccl-tests has nothing like it here"),
        ("all_reduce_perf -b", "-b has no value"),
        ("all_reduce_perf -g x", "-g is a whole number of at least 1, not 'x'"),
        ("all_reduce_perf -a 0", "-a is 1 here, the mean over the ranks"),
        ("all_reduce_perf -R 7", "-R is one of 0, 1, 2, not '7'"),
        ("all_reduce_perf -o all", "-o all of nccl-tests"),
        ("all_reduce_perf -b 1 -e 1M -i 8", "-i 8 makes 131072 sizes: a larger step, or -f 2"),
    ],
)
def test_what_has_no_equal_is_refused_in_a_line(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        translated(line.split(), {})
    assert says in str(caught.value)


@pytest.mark.mpi
@pytest.mark.skipif(COMPILER is None, reason="no C compiler for the stand-in libnccl")
def test_a_line_of_their_readme_is_measured_and_printed_in_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    line = f"all_reduce_perf -b 8 -e 64 -f 2 -g 2 --device sim --store {tmp_path}"
    assert main(line.split()) == 0
    told = capfd.readouterr().out
    assert "# Collective test starting: all_reduce_perf" in told and "# Out of bounds values : 0 OK" in told
    assert main(["results", "export", "--store", str(tmp_path), "--format", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["size_bytes"] for row in rows} == {8, 16, 32, 64} and all(row["wrong_bytes"] == 0 for row in rows)
