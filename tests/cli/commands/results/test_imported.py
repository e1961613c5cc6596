"""What can be done with imported launches: compare, history, model; their means are never mixed with medians."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omb_py.cli import main

Run = Callable[[str], tuple[int, str, str]]
SIZES = [1 << k for k in range(0, 21, 2)]


def omb(launches: int, seed: int, factor: float = 1.0, version: str = "7.5", head: str = "Avg Latency(us)") -> str:
    """A log with so many starts of osu_latency (or osu_bw)."""
    rng = np.random.default_rng(seed)
    text = []
    for _ in range(launches):
        text.append(
            f"# OSU MPI {'Bandwidth' if 'MB/s' in head else 'Latency'} Test v{version}\n# Datatype: MPI_CHAR.\n"
        )
        text.append(f"# Size       {head}\n")
        for size in SIZES:
            time = factor * (2 + size / 1000) * rng.lognormal(0, 0.005)
            value = size / time if "MB/s" in head else time
            text.append(f"{size:<10} {value:>20.2f}\n")
    return "".join(text)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str, str]:
        code = main([*line.split(), "--store", "store"])
        return code, *capsys.readouterr()

    return call


def put(run: Run, name: str, text: str, more: str = "", at: int = 1_790_000_000) -> None:
    Path(name).write_text(text)
    os.utime(name, (at, at))
    code, _, err = run(f"results import {name} --tag file={name} {more}")
    assert code == 0, err


@pytest.mark.slow
def test_two_logs_of_several_launches_are_compared_by_their_means(run: Run) -> None:
    put(run, "a.log", omb(6, 1))
    put(run, "b.log", omb(6, 2, factor=1.2))
    code, out, _ = run("compare tag=file=a.log tag=file=b.log --format json")
    told = json.loads(out)
    # each file is one night, and the nights of a machine may differ by as much
    assert code == 0 and [cell["verdict"] for cell in told["cells"]] == ["LIKELY SLOWER"] * len(SIZES)
    assert {cell["median"]["reason"] for cell in told["cells"]} == {"not interleaved"}
    one = told["cells"][0]
    assert one["statistic"] == "mean" and one["median"]["statistic"] == "mean" and "tail" not in one
    assert one["median"]["launches"] == [6, 6] and not one["median"]["paired"]
    assert 1.17 < one["median"]["ratio"] < 1.23
    _, out, _ = run("compare tag=file=a.log tag=file=b.log")
    head = next(line for line in out.splitlines() if "BASE µs" in line)
    assert head.split()[:2] == ["cell", "of"] and "tail" not in head
    assert out.count("  mean  ") == len(SIZES)
    assert "mean: imported cells have only means, so slow single calls (p99) cannot be seen" in out
    assert (
        f"NEW is likely slower in {len(SIZES)} of {len(SIZES)} cells (most: latency" in out
        and "6 of 6 launches beyond all of BASE" in out
        and "next: measure both sides in turn" in out
    )
    assert "differs: nothing that is recorded" in out and "what else differs is not known" in out
    assert "BASE OMB, C, 2 ranks, 6 launches (tag=file=a.log)" in out


def nights(run: Run, factor: float = 1.0, **more: str) -> str:
    """Logs of six nights of each side, one by one; the words that compare them."""
    for number in range(12):
        side = "ab"[number % 2]
        text = omb(3, number, factor if side == "b" else 1.0, **more)
        put(run, f"{number}.log", text, f"--tag side={side}", at=1_790_000_000 + 86_400 * number)
    return "compare tag=side=a tag=side=b"


@pytest.mark.slow
def test_logs_of_several_nights_that_differ_in_nothing_are_the_same(run: Run) -> None:
    code, out, _ = run(nights(run))
    assert code == 0 and f"NEW is the same in {len(SIZES)} of {len(SIZES)} cells" in out
    assert "nights are compared, and a steady drift over them is allowed for" in out


@pytest.mark.slow
def test_what_is_not_comparable_and_what_to_do(run: Run) -> None:
    put(run, "a.log", omb(3, 1))
    put(run, "old.log", omb(3, 1, version="5.9"))
    put(run, "one.log", omb(1, 5))
    assert run("latency --backend mock -n 2 -m 1:64 -i 20 --launches 3 --quiet --tag file=ours")[0] == 0
    for line, *told in (
        (
            "tag=file=a.log tag=file=ours",
            "source OMB against omb-py, statistic mean against median",
            "import a file of OMB for tag=file=ours too: omb-py results import FILE…",
        ),
        (
            "tag=file=ours tag=file=a.log",
            "statistic median against mean",
            "measure tag=file=a.log again with omb-py latency --backend mock",
        ),
        ("tag=file=a.log tag=file=old.log", "another version of OMB, or with other options"),
        ("tag=file=a.log tag=file=one.log", "is only one launch", "import the output of more starts of OMB"),
        ("a.log one.log", "a.log is a file: omb-py results import a.log --tag file=a.log --store store"),
    ):
        code, out, err = run(f"compare {line}")
        assert code == 2 and out == "" and err.count("\n") == 1, err
        assert all(text in err for text in told), err


@pytest.mark.slow
def test_history_over_imported_files(run: Run) -> None:
    for day in range(12):
        put(run, f"{day}.log", omb(3, day, factor=1.0 if day < 6 else 1.3), at=1_790_000_000 + 86_400 * day)
    code, out, err = run("history latency -m 1024 --format json")
    assert code == 0, err
    (found,) = json.loads(out)
    assert (found["series"]["statistic"], found["series"]["source"]) == ("mean", "OMB")
    assert [level["launches"] for level in found["levels"]] == [18, 18] and len(found["changes"]) == 1
    assert found["changes"][0]["ratio"] == pytest.approx(1.3, rel=0.02)
    assert "mean_us" in found["levels"][0] and "median_us" not in found["launches"][0]
    _, out, _ = run("history latency -m 1024")
    assert "means of OMB" in out and "mean µs" in out and "median µs" not in out


@pytest.mark.slow
def test_the_launches_of_one_file_are_in_its_order(run: Run) -> None:
    put(run, "a.log", omb(12, 1) + omb(12, 2, factor=1.3))
    (found,) = json.loads(run("history latency -m 1024 --unit launch --format json")[1])
    assert [level["launches"] for level in found["levels"]] == [12, 12], "the tenth launch is behind the second"


@pytest.mark.slow
def test_medians_of_ours_are_a_series_of_their_own(run: Run) -> None:
    put(run, "a.log", omb(12, 1))
    assert run("latency --backend mock -n 2 -m 1:16:4 -i 20 --launches 11 --quiet")[0] == 0
    found = json.loads(run("history latency -m 4 --unit launch --format json")[1])
    assert sorted(one["series"]["statistic"] for one in found) == ["mean", "median"]


def test_a_model_of_imported_times(run: Run) -> None:
    put(run, "a.log", omb(3, 1))
    code, out, err = run("model latency --format json")
    assert code == 0, err
    (found,) = json.loads(out)
    assert found["facts"]["statistic"] == "mean" and found["facts"]["source"] == "OMB"
    (segment,) = found["segments"]
    assert segment["alpha_us"] == pytest.approx(2, rel=0.05) and segment["beta_us"] == pytest.approx(1e-3, rel=0.05)
    assert "means of OMB" in run("model latency")[1]


def folder(name: str, factor: float, launches: int = 5) -> None:
    Path(name).mkdir()
    for number in range(launches):
        Path(name, f"run{number}.log").write_text(omb(1, hash_of(name) + number, factor))


def hash_of(name: str) -> int:
    return sum(map(ord, name))


@pytest.mark.slow
def test_two_folders_of_logs_are_two_sides(run: Run) -> None:
    folder("old", 1.0)
    folder("new", 3.1)
    Path("new", "notes.md").write_text("what I did\n")
    code, out, err = run("compare old new")
    assert code == 0 and out.startswith(f"NEW is likely slower in {len(SIZES)} of {len(SIZES)} cells (most: ")
    assert "5 of 5 launches beyond all of BASE" in out
    assert "a difference between the days cannot be told from one between the sides" in out
    assert err.count("skipped new/notes.md: neither line 1, 'what I did'") == 1
    assert not Path("store").exists(), "nothing is kept"
    assert run("compare old new --strict")[0] == 4
    code, out, _ = run("compare old new --trust-sides")
    assert code == 1 and f"NEW is slower in {len(SIZES)} of {len(SIZES)} cells" in out
    code, out, _ = run("compare old new --format junit")
    assert code == 0 and out.count("<skipped") == len(SIZES)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("compare old", "old is a folder of logs, which is one side: name the other too, as NEW"),
        ("compare old junk", "no file of junk is a log that a reader knows: omb-py results import FILE says why"),
        ("compare old empty", "empty is a folder without files"),
        ("compare old ./empty", "./empty is a folder without files"),
        ("compare old above", "above is a folder without files: name one of its folders, as above/below"),
        ("compare old ./above", "./above is a folder without files: name one of its folders, as ./above/below"),
        ("results import above", "above is a folder without files: name one of its folders, as above/below"),
        ("compare --trust-sides latency --set NEW:A=1", "--trust-sides is for sides that are stored"),
        ("compare --trust-sides --run true", "--trust-sides is for sides that are stored"),
    ],
)
def test_folders_that_are_no_sides(run: Run, line: str, reason: str) -> None:
    folder("old", 1.0, 1)
    Path("junk").mkdir()
    Path("junk", "a.txt").write_text("nothing\n")
    Path("empty").mkdir()
    Path("above").mkdir()
    folder("above/below", 1.0, 1)
    code, _, err = run(line)
    assert code == 2 and reason in err and "Traceback" not in err
