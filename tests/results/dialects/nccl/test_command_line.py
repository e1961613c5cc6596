"""Command lines of nccl-tests and rccl-tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.results.dialects.nccl.command_line import benchmark_of, translate
from tests.support.machines.standin import library, needs_compiler
from tests.support.tiers import few_quick

IN_A_JOB = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "PMI_RANK": "0", "PMI_SIZE": "8"}


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("all_reduce_perf -b 8 -e 128M -f 2 -g 1", "allreduce -n 1 -m 8:128M:2 --batch 20 -x 1 -c"),
        ("./build/all_gather_perf -g 8", "allgather -n 8 -m 4194304:4194304 --batch 20 -x 1 -c"),
        ("all_gather", ""),
        ("all_reduce_bias_perf", ""),
        ("all_reduce_perf_mpi -z 1 -n 5 -w 2", "allreduce -n 1 -m 33554432:33554432 -i 5 -x 2 -c --timing isolated"),
        ("all_reduce_perf -b 30M", "allreduce -n 1 -m 31457280,32505856,33554432 --batch 20 -x 1 -c"),
        ("all_reduce_perf -b 8 -e 16 -i 4 -f 1 -p 1 -y 0 -D 0", "allreduce -n 1 -m 8,12,16 --batch 20 -x 1 -c"),
        (
            "all_reduce_perf -b 8 -e 8 -N 3 -C 1 -S 1 -M 1 -a 3 -x 2",
            "allreduce -n 1 -m 8:8 --batch 20 -x 1 -c --repeat-for 3x --report cputime,timestamps,memory,slowest "
            "--nccl cta_policy=zero",
        ),
        ("all_reduce_perf -b 8 -e 8 -N 1 -C 0 -a 1 -x -1 -I 0", "allreduce -n 1 -m 8:8 --batch 20 -x 1 -c"),
        ("alltoallv_perf -b 1K -e 1K -g 2", "alltoallv -n 2 -m 512:512 --batch 20 -x 1 -c --traffic spread:1"),
        (
            "all_reduce_perf -z 2",
            "allreduce -n 1 -m 33554432:33554432 -i 20 -x 1 -c --timing isolated --process-sync none",
        ),
        ("all_reduce_perf -z 0 -G 1", "allreduce -n 1 -m 33554432:33554432 --batch 20 -x 1 -c --timing graph"),
        (
            "all_reduce_perf --cudagraph 2",
            "allreduce -n 1 -m 33554432:33554432 --batch 20 -x 1 -c --timing graph --nccl replays=2",
        ),
        (
            "reduce_perf -o all -r 0 -J out.json -u 1",
            "reduce -n 1 -m 33554432:33554432 --batch 20 -x 1 -c --op sum,prod,max,min,avg,mulsum -k 0 --json out.json "
            "--nccl unaligned=1",
        ),
        ("broadcast_perf -o all", "bcast -n 1 -m 33554432:33554432 --batch 20 -x 1 -c"),
        ("all_gather_perf", "allgather -n 1 -m 33554432:33554432 --batch 20 -x 1 -c"),
        ("gather_perf -b 8 -e 100 -f 3 -g 4", "gather -n 4 -m 2,6,18 --batch 20 -x 1 -c"),
        ("scatter_perf -b 1K -e 3K -i 1K -g 2", "scatter -n 2 -m 512,1024,1536 --batch 20 -x 1 -c"),
        ("reduce_scatter_perf -t 2 -g 2 -c 0", "reduce_scatter_block -n 4 -m 33554432:33554432 --batch 20 -x 1"),
        ("alltoall_perf -b 1K -e 4K -i 1024 -n 5 -w 7", "alltoall -n 1 -m 1024,2048,3072,4096 --batch 5 -x 2 -c"),
        (
            "broadcast_perf --minbytes=8 --maxbytes 8 -f2 -r 1 -d half",
            "bcast -n 1 -m 8:8:2 --batch 20 -x 1 -c -T half -k 1",
        ),
        (
            "all_reduce_perf -o max -d f8e4m3 -m 4 -R 2",
            "allreduce -n 1 -m 33554432:33554432 --batch 20 -x 1 -c -T float8e4m3 --op max "
            "--nccl aggregate=4,registration=window",
        ),
        (
            "all_reduce_perf -w 0 --store here --device rocm",
            "allreduce -n 1 -m 33554432:33554432 --batch 20 -x 0 -c --store here --device rocm",
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


def test_own_words_say_among_how_many_ranks_a_message_is_divided() -> None:
    line = "all_gather_perf -b 1K -e 1K".split()
    for own, block in (("--ranks 4", 256), ("--ranks=2", 512), ("-g 4 --groups 2x2", 512), ("-g 4 --groups node", 256)):
        assert f"-m {block}:{block} " in " ".join(translate([*line, *own.split()], {})), own


@pytest.mark.parametrize("given", ["-G 3", "-R 1", "-m 4"])
def test_what_is_for_nccl_alone_is_named_as_it_was_written(given: str) -> None:
    with pytest.raises(UsageError, match=f"^{given} is for NCCL: leave it out, or --backend mpi$"):
        translate(f"all_reduce_perf {given} --backend mpi".split(), {})


def test_a_launcher_says_how_many_ranks_there_are() -> None:
    assert "-n" not in translate(["all_reduce_perf", "-g", "1"], IN_A_JOB)
    assert "-m 128,256" in " ".join(translate("all_gather_perf -b 1K -e 2K -f 2".split(), IN_A_JOB))
    with pytest.raises(UsageError, match="a rank is a process with one GPU here: start as many"):
        translate(["all_reduce_perf", "-g", "8"], IN_A_JOB)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("all_reduce_perf -N 0", "-N 0 would never end: --repeat-for 24h, or a number of cycles"),
        ("all_reduce_perf --cudagraph x", "-G is 0 or more, not 'x'"),
        ("all_reduce_perf -I 1", "-I 1 of nccl-tests has nothing like it here: --timing event times each call"),
        ("all_reduce_perf -Y fine", "-Y fine of nccl-tests has nothing like it here"),
        ("all_reduce_perf -D 2", "-D 2 of nccl-tests has nothing like it here"),
        ("all_reduce_perf -k 2", "nccl-tests have no -k; options of omb-py are written long here, as --store"),
        ("all_reduce_perf -b 1G", "-b 1G is above -e 32M, which is 32M where it is not given"),
        ("all_reduce_perf -z 4", "-z is one of 0, 1, 2, 3 here, not '4'"),
        ("all_reduce_perf -b", "-b has no value"),
        ("all_reduce_perf -g x", "-g is a whole number of at least 1, not 'x'"),
        ("all_reduce_perf -a 4", "-a is one of 0, 1, 2, 3 here, not '4'"),
        ("all_reduce_perf -R 7", "-R is one of 0, 1, 2 here, not '7'"),
        ("all_reduce_perf -b 1 -e 1M -i 8", "-i 8 makes 131072 sizes: a larger step, or -f 2"),
    ],
)
def test_what_has_no_equal_is_refused_in_a_line(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        translate(line.split(), {})
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("NCCL_TESTS_SPLIT", "MOD 2", "allgather -n 8 -m 256:256 --batch 20 -x 1 -c --groups mod:2"),
        ("NCCL_TESTS_SPLIT_MASK", "0x3", "allgather -n 8 -m 512:512 --batch 20 -x 1 -c --groups and:3"),
        ("NCCL_TESTS_ALLTOALLV_SPREAD", "0.25", "alltoallv -n 8 -m 128:128 --batch 20 -x 1 -c --traffic spread:0.25"),
        ("NCCL_TESTS_ALLTOALLV_SPREAD", "7", "alltoallv -n 8 -m 128:128 --batch 20 -x 1 -c --traffic spread:1"),
    ],
)
def test_variables_of_nccl_tests_hold(variable: str, value: str, line: str) -> None:
    program = "alltoallv_perf" if "SPREAD" in variable else "all_gather_perf"
    benchmark, rest = line.split(" ", 1)
    assert " ".join(translate([program, "-b", "1K", "-e", "1K", "-g", "8"], {variable: value})) == (
        f"{benchmark} --format nccl-tests --backend nccl {rest}"
    )


def test_a_variable_without_an_equal_is_refused() -> None:
    with pytest.raises(UsageError, match="NCCL_TESTS_DEVICE of nccl-tests has nothing like it here: unset it; name"):
        translate(["all_reduce_perf"], {"NCCL_TESTS_DEVICE": "2"})


@pytest.mark.mpi
@needs_compiler
@pytest.mark.parametrize("program", few_quick(["all_gather_perf", "./build/all_reduce_perf"]))
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


@pytest.mark.slow
@pytest.mark.mpi
@needs_compiler
@pytest.mark.parametrize(
    ("line", "rows", "lines"),
    [
        ("all_reduce_perf -b 32 -e 32 -d bfloat16 -o all", 12, 6),
        ("all_reduce_perf -b 32 -e 64 -f 2 -N 3 -S 1 -C 1", 12, 6),
        ("all_reduce_perf -b 32 -e 32 -G 3 -M 1 -a 2 -x 1", 2, 1),
        ("all_gather_perf -b 32 -e 32 -M 1", 2, 1),
        ("alltoallv_perf -b 64 -e 128 -f 2", 2, 2),
    ],
)
def test_every_byte_is_right_with_further_options(
    line: str, rows: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    if "-M" in line:
        monkeypatch.setenv("STANDIN_VERSION", "22703" if "-G" in line else "22907")
    assert main([*line.split(), "-g", "2", "--device", "sim", "--store", str(tmp_path / "store"), "--quiet"]) == 0
    text = capfd.readouterr().out
    assert "# Out of bounds values : 0 OK" in text
    assert sum(row[:1] == " " for row in text.splitlines()) == lines
    assert ("# GPU memory usage     : Initialization " in text) == ("-M" in line)
    own = "# Library's own memory : Persistent 4.00 MB | Suspendable 1.00 MB | Total  5.00 MB\n"
    assert (own in text, "Library's" in text) == (("all_gather" in line),) * 2, "NCCL counts its memory from 2.29.7 on"
    assert (text.count("cputime"), text.count("timestamp")) == ((2, 1) if "-C" in line else (0, 0))
    assert ("launched 3 times" in text) == ("-G" in line)
    stored = rows_of(tmp_path / "store", capfd)
    assert len(stored) == rows and all(row["wrong_bytes"] == 0 for row in stored)


def rows_of(store: Path, capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The rows of a store, reductions in the order of nccl-tests, then by size."""
    assert main(["results", "export", "--store", str(store), "--format", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    ops = ["sum", "prod", "max", "min", "avg", "mulsum", None]
    return sorted(rows, key=lambda row: (ops.index(row["op"]), row["size_bytes"], row["in_place"]))


def test_ranks_are_asked_for_by_a_word_of_its_lines_where_n_counts_calls(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["all_reduce_perf", "-b", "8", "-e", "8", "--backend", "mock", "--no-store"]
    assert main([*line, "-n", "2"]) == 2
    assert "allreduce needs 2 ranks or more, not 1: use --ranks 2\n" in capsys.readouterr().err
    assert main([*line, "--ranks", "2"]) == 0
