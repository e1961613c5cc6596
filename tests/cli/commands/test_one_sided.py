"""OMB's one-sided text: to the character on the simulation; refusals in one line.

From real MPI: tests/cli/commands/test_omb_text.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import main

HEAD = """\
# OSU MPI_{title} Test v7.5
# Window creation: {window}
# Synchronization: {sync}
"""
BLOCK = """\
-------------------------------------------
Atomic Data Validation results for Rank={rank}:
{said}-------------------------------------------
"""
PASSED = "PASSED: All {n} combinations of ops and datatypes tested passed.\n"


def printed(line: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(f"{line} --backend mock --mock series=3us/5us --no-store --quiet -i 4 -x 0".split()) == code
    return capsys.readouterr().out


def head(title: str, window: str = "MPI_Win_allocate", sync: str = "MPI_Win_flush") -> str:
    return HEAD.format(title=title, window=window, sync=sync)


def test_a_bandwidth_with_another_window_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    expected = head("Put Bi-directional Bandwidth", "MPI_Win_create_dynamic", "MPI_Win_fence") + (
        "# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)        Validation\n"
    )
    text = printed("put_bibw -w dynamic -s fence -m 1000:1000 -c", capsys)
    assert text.startswith(expected)
    assert re.fullmatch(r"1000 {6} +\d+\.\d\d {14}Pass\n", text.removeprefix(expected))


def test_accumulate_ends_with_a_block_for_each_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("acc_latency -m 4:4 -T mpi_char,mpi_int -c", capsys) == head("Accumulate latency") + (
        "# Datatype: MPI_CHAR.\n"
        "# Size          Latency (us)        Validation\n"
        "4                       4.00            passed\n" + head("Accumulate latency") + "# Datatype: MPI_INT.\n"
        "# Size          Latency (us)        Validation\n"
        "4                       4.00            passed\n"
    ) + BLOCK.format(rank=0, said="") + BLOCK.format(rank=1, said=PASSED.format(n=2))


def test_a_wrong_byte_fails(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("acc_latency -m 4:8 -c --inject flip:1", capsys, code=1).splitlines()
    assert "4                       4.00            failed" in text
    assert "DATA VALIDATION ERROR: omb-py acc_latency exited with status 1 on message size 4." in text
    assert "FAILED: 1 of the 1 combinations of ops and datatypes tested failed." in text


def test_stored_tables_are_printed_as_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"cas_latency -s fence -c --backend mock --store {tmp_path} --quiet -i 4".split()) == 0
    live = capsys.readouterr().out
    assert main(f"results show last --store {tmp_path}".split()) == 0
    assert capsys.readouterr().out == live


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("put_bibw -s lock", "put_bibw has no -s lock: use pscw, fence"),
        ("rget_latency -s pscw", "rget_latency has no -s pscw: use flush, flush_local, lock, lock_all"),
        ("put_latency -s flsh", "unknown synchronisation 'flsh': did you mean flush?"),
        ("put_latency -w alocate", "unknown window kind 'alocate': did you mean allocate?"),
        ("cas_latency -T float64", "cas_latency has no type float64: MPI_Compare_and_swap takes integers"),
        ("latency -s lock", "latency has no synchronisation of a window, so it takes no -s/--sync-option: for put_lat"),
        ("fop_latency -W 8", "fop_latency has no window of messages in flight, so it takes no -W/--window-size"),
        ("put_latency -n 3", "put_latency needs exactly 2 ranks, not 3: use -n 2"),
    ],
)
def test_bad_input(refusal: Callable[[str], tuple[int, str]], line: str, said: str) -> None:
    code, text = refusal(line)
    assert code == 2 and text.startswith(said)
