"""The table of a suite from logs of C OMB: those that omb-py prints in its layout, and some by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omb_py
from omb_py.cli import main
from omb_py.cli.suite_options import CommandLine
from omb_py.errors import UsageError
from omb_py.orchestrate.accept.from_logs import accept_logs
from omb_py.orchestrate.accept.session import AcceptRequest
from omb_py.orchestrate.suites.expand import load_suite
from omb_py.results.accept.report import AcceptReport, exit_code
from tests.orchestrate.accept.test_contract_file import ROWS

MOCK = "--backend mock -i 1 -x 1 --no-store --mock data=off"
PAIRS = ("latency -n 2 -m 8:8", "bibw -n 2 -m 1M:1M", "mbw_mr -n 4 -m 16K:16K", "mbw_mr -n 8 -m 16K:16K")
PAIRS += ("get_acc_latency -n 2 -m 8:8",)
WHOLE = {
    "allreduce.log": "allreduce -n 8 -m 8,25M",
    "alltoall-odd.log": "alltoall -n 7 -m 1M:1M",
    "alltoall-even.log": "alltoall -n 8 -m 1M:1M",
}
BY_HAND = """Nodes:2   Tasks:2
# OSU MPI Latency Test v5.9
# Size          Latency (us)
8                       1.61

0: # OSU MPI Multiple Bandwidth / Message Rate Test v7.4
0: # [ pairs: 4 ] [ window size: 64 ]
0: # Datatype: MPI_CHAR.
0: # Size                  MB/s        Messages/s
0: 16384               23456.78        1431688.23
# OSU MPI_Get_accumulate latency Test v7.1
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Size          Latency (us)
8                       4.25
16                      4.31
"""
CONTRACT = '[machine]\nnics = 2\ncores = 4\n[promised]\nlatency-distant = "2 us"\nbibw-nearest = "1 TB/s"\n'


def filled(folder: Path, *sources: Path, contract: str = CONTRACT) -> AcceptReport:
    (folder / "c.toml").write_text(contract)
    asked = AcceptRequest(CommandLine(), contract=folder / "c.toml")
    return accept_logs(load_suite("nersc10"), asked, [str(path) for path in sources], folder / "store")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.slow
def test_every_row_is_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that a job prints, in a file; the folder says on which nodes."""

    def printed(*lines: str) -> str:
        assert not any(main([*line.split(), *MOCK.split()]) for line in lines)
        return capsys.readouterr().out

    pairs = printed(*PAIRS)
    for where in ("distant", "nearest"):
        for number in range(2):
            write(tmp_path / "logs" / f"{where}-{number}.out", pairs)
    for name, line in WHOLE.items():
        write(tmp_path / "logs" / name, printed(line))
    found = filled(tmp_path, tmp_path / "logs")
    assert [verdict.case.criterion.id for verdict in found.verdicts] == ROWS
    assert all(verdict.measured for verdict in found.verdicts)
    launches = {verdict.case.criterion.id: verdict.launches for verdict in found.verdicts}
    assert launches["mbw_mr-core-nearest"] == 2 and launches["alltoall-odd"] == 1
    assert {v.case.criterion.id: v.word for v in found.verdicts if v.case.criterion.source == "contract"} == {
        "latency-distant": "MARGINAL",
        "bibw-nearest": "MARGINAL",
    }
    assert found.hosts == [] and found.libraries == ["omb-py text"] and len(found.files) == 7
    assert [incident.what for incident in found.incidents if "entry" not in incident.what] == []
    contract = write(tmp_path / "c.toml", CONTRACT)
    line = ["accept", "nersc10", "--from", str(tmp_path / "logs"), "--contract", str(contract)]
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    assert main([*line, "--store", str(tmp_path / "again"), "--output", str(page), "--output", str(data)]) == 4
    assert [verdict["criterion"] for verdict in json.loads(data.read_text())["verdicts"]] == ROWS
    text = page.read_text()
    assert "from alltoall-odd.log" in text and "signed for the customer" in text


@pytest.mark.slow
def test_logs_by_hand(tmp_path: Path) -> None:
    logs = [write(tmp_path / "distant" / f"run{number}.out", BY_HAND) for number in range(8)]
    found = filled(tmp_path, *logs)
    values = {v.case.criterion.id: (v.measured, v.word) for v in found.verdicts}
    assert values["latency-distant"] == (pytest.approx(1.61), "PASS")
    assert values["mbw_mr-core-distant"] == (pytest.approx(23456.78), "NO BOUND"), "4 pairs are 4 cores a node"
    assert values["get_acc_latency-distant"][0] == pytest.approx(4.25)
    missing = [v for v in found.verdicts if v.word == "ERROR"]
    assert len(missing) == 11 and {v.note for v in missing} == {"no log has it"} and exit_code(found) == 3
    assert "8 lines of the logs are in no row of the table" in found.deviations
    assert found.libraries == ["OMB 5.9", "OMB 7.4", "OMB 7.1"]


@pytest.mark.slow
def test_the_python_interface(tmp_path: Path) -> None:
    contract = write(tmp_path / "c.toml", CONTRACT)
    logs = [write(tmp_path / "distant" / f"run{number}.out", BY_HAND) for number in range(8)]
    judged = omb_py.accept("nersc10", contract=contract, logs=logs, store=tmp_path / "store")
    verdicts = {verdict.name.partition(":")[0]: verdict.verdict for verdict in judged.verdicts}
    assert judged.exit_code == 3 and list(verdicts.values()).count("PASS") == 1, verdicts
    with pytest.raises(UsageError, match="nothing: cannot read it"):
        omb_py.accept("nersc10", logs=["nothing"], store=tmp_path / "store")


def test_a_row_that_may_be_two_is_left_out_with_what_to_do(tmp_path: Path) -> None:
    found = filled(tmp_path, write(tmp_path / "logs" / "job.out", BY_HAND))
    assert [incident.reason for incident in found.incidents[:1]] == [
        "line 2: latency of 8 B may be latency-distant or latency-nearest: call the file or its folder so, as "
        "latency-distant.log"
    ]
    assert all(verdict.word == "ERROR" for verdict in found.verdicts)


def test_what_a_log_says_is_not_bent(tmp_path: Path) -> None:
    """Pairs that are neither a rank a NIC nor a rank a core, and a device, are in no row."""
    text = BY_HAND.replace("pairs: 4", "pairs: 3").replace("MPI Latency", "MPI-CUDA Latency")
    found = filled(tmp_path, write(tmp_path / "distant" / "job.out", text))
    filled_rows = [verdict.case.criterion.id for verdict in found.verdicts if verdict.word != "ERROR"]
    assert filled_rows == ["get_acc_latency-distant"]


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = write(tmp_path / "logs" / "a.out", "nothing\n")
    with pytest.raises(UsageError, match=rf"^{nothing}: neither line 1, 'nothing'"):
        filled(tmp_path, nothing)
    with pytest.raises(UsageError, match=r"^no table in .*logs: give logs of OMB$"):
        filled(tmp_path, tmp_path / "logs")
    with pytest.raises(UsageError, match=r"cannot read it: no such file"):
        filled(tmp_path, tmp_path / "none.out")
    assert main(["accept", "nersc10", "--from", str(nothing), "-n", "2"]) == 2
    assert "--from measures nothing, so --ranks says nothing" in capsys.readouterr().err
