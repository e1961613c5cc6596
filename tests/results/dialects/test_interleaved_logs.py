"""Logs of launches that were made in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import NEGATIVE, OK, UsageError
from omb_py.orchestrate.compare.stored import compare_stored
from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.report import exit_code, overall
from omb_py.results.dialects.interleaved_logs import LogFile, parse_pattern, store_interleaved
from omb_py.results.dialects.storing import ImportOptions

HEAD = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size          Avg Latency(us)\n"
PATTERN = parse_pattern("{old|new}-{pair}.log")


def log(side: str, pair: int, us: float) -> LogFile:
    return LogFile(f"logs/{side}-{pair}.log", f"{HEAD}8                {us:.2f}\n".encode(), 1.7e9 + pair)


def logs(factor: float, pairs: int = 8) -> list[LogFile]:
    times = [100 + 3 * (number * 7 % 11) / 10 for number in range(pairs)]
    return [
        log(side, number, us * scale)
        for number, us in enumerate(times)
        for side, scale in (("old", 1.0), ("new", factor))
    ]


@pytest.mark.slow
def test_they_are_judged_by_pairs_and_not_by_nights(tmp_path: Path) -> None:
    run_id = store_interleaved(logs(1.1), PATTERN, tmp_path, ImportOptions(tags={"site": "a"}))
    report = compare_stored([run_id], tmp_path, CompareRules())
    assert [overall(judged) for judged in report.judged] == ["SLOWER"]
    assert report.judged[0].answers["median"].paired
    assert dict(report.base.rows[0]["tags"])["site"] == "a"


@pytest.mark.slow
def test_the_same_files_are_the_same_run(tmp_path: Path) -> None:
    first = store_interleaved(logs(1.1), PATTERN, tmp_path, ImportOptions())
    assert store_interleaved(logs(1.1)[::-1], PATTERN, tmp_path, ImportOptions()) == first
    assert compare_stored([first], tmp_path, CompareRules()).base.count == 8


def test_too_few_pairs_are_never_green(tmp_path: Path) -> None:
    run_id = store_interleaved(logs(1.0, pairs=3), PATTERN, tmp_path, ImportOptions())
    assert exit_code(compare_stored([run_id], tmp_path, CompareRules())) == 5


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([log("old", 1, 1.0), log("older", 1, 1.0)], "older-1.log: its name is not as --interleaved"),
        ([log("old", 1, 1.0)], "pair 1 has no file of NEW"),
        ([log("old", 1, 1.0), log("old", 1, 2.0)], "are both BASE of pair 1"),
        ([log("old", 1, 1.0), LogFile("new-1.log", b"hello\n", 1.7e9)], "new-1.log: neither line 1, 'hello'"),
        ([log("old", 1, 1.0), LogFile("new-1.log", f"{HEAD}8     1.0".encode(), 1.7e9)], "nothing was imported"),
    ],
)
def test_other_files_are_refused_and_nothing_is_written(tmp_path: Path, files: list[LogFile], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        store_interleaved(files, PATTERN, tmp_path / "store", ImportOptions())
    assert reason in str(caught.value)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "text", ["{pair}.log", "{old|new}.log", "{old|old}-{pair}", "{a|b}{c|d}{pair}", "{pair}{pair}{a|b}"]
)
def test_another_pattern_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--interleaved takes"):
        parse_pattern(text)


def test_the_pattern_may_turn_side_and_pair_around() -> None:
    pattern = parse_pattern("run{pair}/{main|pr}.txt")
    assert pattern.launch("x/run012/pr.txt") == ("NEW", "12")
    assert pattern.launch("run1/main.txt") == ("BASE", "1")


@pytest.mark.slow
def test_the_command_says_how_to_judge_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for file in logs(1.1):
        path = tmp_path / Path(file.name).name
        path.write_bytes(file.data)
        names.append(str(path))
    store = ["--store", str(tmp_path / "store")]
    assert main(["results", "import", *names, "--interleaved", "{old|new}-{pair}.log", *store]) == OK
    out = capsys.readouterr().out
    assert out.startswith("16 launches in 8 pairs, as import-")
    assert main(out.rpartition("omb-py ")[2].split()) == NEGATIVE
