"""Suites of procurements and the files of what was promised, on simulated nodes; in a Slurm job: test_slurm.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from omb_py.cli import main
from omb_py.cli.suite_options import CommandLine
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.table import TABLE as OPTIONS
from omb_py.orchestrate.accept.contract_file import MACHINE_KEYS, Contract, read_contract
from omb_py.orchestrate.accept.criteria_file import read_criteria
from omb_py.orchestrate.accept.session import AcceptRequest, accept
from omb_py.orchestrate.suites.node_layout import NodeContents
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.orchestrate.suites.trust import FILES, STARTS
from omb_py.printing.writers import to_text
from omb_py.results.accept.report import AcceptReport, document_of, exit_code
from omb_py.suites.shipped import shipped

HEAD = 'name = "table"\ndescription = "d"\n[defaults]\nbackend = "mock"\niterations = 5\n'
TABLE = (
    HEAD
    + """
[[entry]]
name = "far"
benchmarks = ["latency"]
message-size = "8"
nodes = "distant"

[[entry]]
name = "pairs"
benchmarks = ["mbw_mr"]
message-size = "16K"
nodes = "nearest"
ranks-per-node = "nic"

[[entry]]
name = "gpu"
benchmarks = ["latency"]
message-size = "8"
nodes = "distant"
device = "cuda"

[[criterion]]
id = "pairs"
benchmark = "mbw_mr"
entry = "pairs"
unit = "GB/s"
promise = true
peak = "50%"

[[criterion]]
id = "far"
benchmark = "latency"
entry = "far"
metric = "mean"
unit = "ns"
promise = true

[[criterion]]
id = "gpu"
benchmark = "latency"
entry = "gpu"
unit = "us"
promise = true
"""
)
ROWS = """latency-distant bibw-distant mbw_mr-nic-distant mbw_mr-core-distant get_acc_latency-distant latency-nearest
bibw-nearest mbw_mr-nic-nearest mbw_mr-core-nearest get_acc_latency-nearest allreduce-8 allreduce-25M alltoall-odd
alltoall-even""".split()
"""The rows of nersc10 on nodes without accelerators, in its order."""


def accepted(store: Path, text: str = TABLE, contract: str = "", **values: Any) -> AcceptReport:
    path = store / "contract.toml"
    path.write_text(contract)
    values = {"quiet": True, "seed": 1, "mock": "nodes=4", **values}
    asked = AcceptRequest(CommandLine(), values, contract=path if contract else None, correctness=False, quiet=True)
    return accept(parse_suite(text, "f.toml"), asked, store / "store")


@pytest.mark.slow
def test_what_is_promised_bounds_a_row(tmp_path: Path) -> None:
    contract = '[promised]\nfar = "1.2 us"\npairs = "900 GB/s"\n[machine]\nnics = 3\ndistant = ["node1", "node2"]\n'
    found = accepted(tmp_path, contract=contract)
    pairs, far = found.verdicts
    assert (far.case.name, far.word, far.case.bound) == ("far, 8 B", "PASS", "at most 1200 ns")
    assert (pairs.word, pairs.case.bound, pairs.case.criterion.source) == ("FAIL", "at least 900 GB/s", "contract")
    assert far.case.criterion.at.endswith("contract.toml:2") and exit_code(found) == 1
    assert (far.case.facts["placed"], pairs.case.facts["placed"]) == (
        "2 ranks on node1, node2",
        "6 ranks on node0, node1",
    )
    text = to_text(document_of(found), Console(width=240))
    assert text.index("pairs, 16 KiB") < text.index("far, 8 B"), "the order of the table"
    assert " ns " in text and "a node has 3 NICs" in text and "most distant nodes node1 and node2" in text
    assert "skipped: latency (entry: gpu): the nodes have no accelerators" in text, "what was left out"


@pytest.mark.slow
def test_without_a_contract_rows_are_filled(tmp_path: Path) -> None:
    found = accepted(tmp_path)
    assert [verdict.word for verdict in found.verdicts] == ["NO BOUND", "NO BOUND"]
    assert all(verdict.measured and verdict.low and verdict.high for verdict in found.verdicts)
    assert all(verdict.limit is None and verdict.launches == 8 for verdict in found.verdicts)
    assert found.word == "NO BOUND" and exit_code(found) == exit_code(found, strict=True) == 4
    assert "0 NICs" not in found.contract and found.contract.startswith("no contract: a node has 1 NIC")


@pytest.mark.slow
def test_a_promise_that_cannot_be_measured_is_an_error(tmp_path: Path) -> None:
    found = accepted(tmp_path, contract='[promised]\ngpu = "3 us"\n')
    gpu = found.verdicts[-1]
    assert gpu.word == "ERROR" and gpu.note == "the nodes have no accelerators, as far as is known"
    far = accepted(tmp_path / "..", contract='[machine]\ndistant = ["node0", "node9"]\n').verdicts[1]
    assert far.word == "ERROR" and far.note == "the distant nodes are node0, node9: node9 is none of these"


@pytest.mark.slow
def test_a_promise_by_size(tmp_path: Path) -> None:
    """A size without one stays without a bound; one that the row has not is refused."""
    text = TABLE.replace('message-size = "8"', 'message-size = "8,64"', 1)
    found = accepted(tmp_path, text, '[promised]\nfar = { 64 = "2 us" }\n')
    assert [(verdict.case.name, verdict.word, verdict.case.bound) for verdict in found.verdicts[1:]] == [
        ("far, 8 B", "NO BOUND", "none"),
        ("far, 64 B", "PASS", "at most 2000 ns"),
    ]
    with pytest.raises(UsageError, match=r"contract.toml:2: \[promised\] key 'far': the row has no size 16 B"):
        accepted(tmp_path, text, '[promised]\nfar = { 16 = "2 us" }\n')


@pytest.mark.slow
def test_every_row_of_esif_hpc4_is_filled(tmp_path: Path) -> None:
    text = shipped()["esif-hpc4"].read_text().replace("launches = 8", "launches = 2")
    more = {"backend": ("mock",), "mock": "nodes=4,data=off", "iterations": "1"}
    found = accepted(tmp_path, text.replace(":64M", ":64"), "[machine]\ncores = 5\n", **more)
    rows = {verdict.case.criterion.id: verdict.case.facts["placed"] for verdict in found.verdicts}
    assert rows == {
        "latency": "2 ranks on node0, node1",
        "mbw_mr": "8 ranks on node0, node1",
        "allreduce": "16 ranks on node0, node1, node2, node3",
        "alltoall": "4 ranks on node0, node1, node2, node3",
    }
    assert len(found.verdicts) == 7 + 7 + 5 + 7 and all(verdict.measured for verdict in found.verdicts)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[promised]\nfarr = "1 us"',
            "2: [promised] key 'farr': suite table has no row of this name: did you mean far?",
        ),
        ('[promised]\nfar = "1"', "2: [promised] key 'far': '1' has no unit"),
        ('[promised]\nfar = "1 uss"', "2: [promised] key 'far': unknown unit 'uss' in '1 uss': did you mean us?"),
        ('[promised]\nfar = "1 GB/s"', "2: [promised] key 'far': far is a time, and '1 GB/s' is a rate"),
        ("[promised]\nfar = 1", "2: [promised] key 'far': expected a text with a unit"),
        ("promised = 1", "1: key 'promised': expected a table [promised], got 1"),
        ("[promise]", "1: key 'promise': there is no such key: did you mean promised?"),
        ("[machine]\nnic = 1", "2: [machine] key 'nic': there is no such key: did you mean nics?"),
        (
            "[machine]\naccelerators = 4",
            "2: [machine] key 'accelerators': needs a key 'device': their kind, one of cuda",
        ),
        ("[machine]\nnics = 0", "2: [machine] key 'nics': expected a whole number from 1"),
        ('[machine]\ndevice = "cud"', "2: [machine] key 'device': 'cud' is unknown: did you mean cuda?"),
        ('[machine]\ndistant = ["a"]', "2: [machine] key 'distant': expected two names of nodes"),
        ("[machine]\nnearest = 3", "2: [machine] key 'nearest': expected two names of nodes"),
        ("[machine", "1: not TOML"),
    ],
)
def test_a_bad_contract_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    suite = parse_suite(TABLE, "f.toml")
    path = tmp_path / "c.toml"
    path.write_text(text + "\n")
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        read_contract(path, suite, read_criteria(suite))
    assert str(caught.value).startswith(f"{path}:{says}")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('entry = "far"', 'entry = "fa"', "no entry is called 'fa': did you mean far?"),
        ('unit = "ns"\n', "", "key 'promise': needs a key 'unit'"),
        ('unit = "ns"', 'unit = "MB/s"', "key 'unit': 'MB/s' is unknown"),
        ('unit = "ns"\npromise = true', 'unit = "ns"\npromise = false', "key 'promise': expected true"),
        ('unit = "ns"\npromise = true', 'unit = "ns"\npromise = true\npeak = "5%"', "key 'peak': is about rates"),
        ('unit = "ns"\npromise = true', 'unit = "ns"\nmax = "1 us"\npeak = "5%"', "key 'peak': stands where nothing"),
    ],
)
def test_a_bad_row_is_one_line(old: str, new: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        read_criteria(parse_suite(TABLE.replace(old, new), "f.toml"))
    assert says in str(caught.value) and str(caught.value).startswith("f.toml:")


class TestOfAStranger:
    """A contract from elsewhere has numbers and names: it starts nothing, opens no file and writes no raw text."""

    @pytest.mark.parametrize("table", ["", "[machine]\n", "[promised]\n"])
    def test_it_can_say_nothing_of_a_suite_or_a_command_line(self, table: str, tmp_path: Path) -> None:
        suite, path = parse_suite(TABLE, "f.toml"), tmp_path / "c.toml"
        criteria = read_criteria(suite)
        named = {option.long for option in OPTIONS} | {*STARTS, *FILES, "defaults", "entry", "criterion", "accept"}
        for key in sorted(named - {*MACHINE_KEYS}):
            path.write_text(f'{table}{key} = "/bin/sh"\n')
            with pytest.raises(UsageError, match=r"^[^\n]+:[12]: [^\n]*key '[^\n]+$"):
                read_contract(path, suite, criteria)

    def test_its_nodes_are_none_but_those_of_the_user(self, tmp_path: Path) -> None:
        names = '["--launcher-args=/bin/sh", "elsewhere"]'
        with pytest.raises(EnvironmentProblem, match="nothing of this suite can be measured here"):
            accepted(tmp_path, contract=f"[machine]\ndistant = {names}\nnearest = {names}\n")

    @pytest.mark.slow
    def test_its_words_reach_terminal_and_page_as_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        name, bell = "<script>alert(1)</script>", r"\u001b]0;x\u0007"
        Path("c.toml").write_text(f'[machine]\ndistant = ["{name}", "{bell}"]\n')
        Path("s.toml").write_text(TABLE.replace("[defaults]\n", "[defaults]\nmock = 'nodes=4'\n"))
        line = "accept ./s.toml --no-correctness --contract c.toml --store s --output page.html --output page.md"
        assert main(line.split()) == 3
        said = "".join(capsys.readouterr()) + Path("page.md").read_text() + Path("page.html").read_text()
        assert "script>alert(1)" in said, "it is shown"
        assert name not in Path("page.html").read_text() and not {"\x1b", "\x07"} & {*said}


def test_a_contract_that_says_nothing() -> None:
    assert Contract().contents == NodeContents()


@pytest.mark.slow
def test_every_row_of_nersc10_is_filled(tmp_path: Path) -> None:
    text = shipped()["nersc10"].read_text().replace("launches = 8", "launches = 2")
    more = {"backend": ("mock",), "mock": "nodes=4,data=off", "iterations": "1"}
    found = accepted(tmp_path, text, "[machine]\nnics = 2\ncores = 4\n", **more)
    assert [verdict.case.criterion.id for verdict in found.verdicts] == ROWS
    assert all(verdict.measured for verdict in found.verdicts) and exit_code(found) == 4
    placed = {verdict.case.criterion.id: verdict.case.facts["placed"] for verdict in found.verdicts}
    everywhere = "node0, node1, node2, node3"
    assert (
        placed["alltoall-odd"] == f"7 ranks on {everywhere}" and placed["alltoall-even"] == f"8 ranks on {everywhere}"
    )
    assert placed["mbw_mr-core-distant"] == "8 ranks on node0, node3"
    assert len(found.incidents) == 8 and not any(incident.failed for incident in found.incidents)
