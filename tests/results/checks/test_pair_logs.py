"""Logs of pairs that people have: matrix, suspects, and what confirms them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

import omb_py
from omb_py.cli import main
from omb_py.errors import OK, USAGE, UsageError
from omb_py.orchestrate.checks.links import from_logs
from omb_py.results.checks.pair_logs import parse_names, read_pairs
from omb_py.results.checks.pair_sweeps import PairSweep

Slow = Mapping[tuple[int, ...], float]
Text = Callable[[str, str, float], str]


def omb(a: str, b: str, slower: float) -> str:
    """Latency and bandwidth, as OMB's programs print them one after the other."""
    latency = "".join(f"{size:<16}{(2 + size / 1000) * slower:>12.2f}\n" for size in (1, 8, 1024))
    bandwidth = "".join(f"{size:<16}{rate / slower:>12.2f}\n" for size, rate in ((1024, 900), (1 << 20, 12000)))
    return (
        f"# OSU MPI Latency Test v7.5\n# Size          Latency (us)\n{latency}"
        f"# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n{bandwidth}"
    )


def nccl(a: str, b: str, slower: float) -> str:
    """All GPUs of two nodes."""
    ranks = "".join(
        f"#  Rank {rank:>2} Group  0 Pid   1000 on {host:>10} device {rank % 2:>2} [0000:0f:00] Test GPU 16GB\n"
        for rank, host in enumerate((a, a, b, b))
    )
    rows = ""
    for size, us in ((1024, 20.0), (1 << 20, 100.0), (1 << 26, 4000.0)):
        time = us * slower
        rate = size / time / 1000
        half = f"{time:>8.2f}{rate:>8.2f}{rate * 1.5:>8.2f}{0:>7}"
        rows += f"{size:>12}{size // 4:>14}{'float':>10}{'sum':>8}{-1:>8} {half} {half}\n"
    return (
        "# nThread 1 nGpus 2 minBytes 1024 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        f"validation: 1 graph: 0\n#\n# Using devices\n{ranks}#\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        f"#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n{rows}"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.18\n"
    )


def write(
    folder: Path,
    text: Text = omb,
    nodes: int = 8,
    slow: Slow | None = None,
    launches: int = 1,
    name: str = "n{a}-n{b}.log",
) -> Path:
    """A log of every pair and launch; `slow` has nodes and links -> times as long."""
    draw = Random(7)
    for launch in range(launches):
        for a, b in combinations(range(1, nodes + 1), 2):
            slower = 1 + draw.random() / 100
            for ends, factor in (slow or {}).items():
                slower *= factor if set(ends) <= {a, b} else 1
            path = folder / name.format(a=a, b=b, launch=launch)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(f"n{a}", f"n{b}", slower))
    return folder


def found(sweep: PairSweep) -> set[str]:
    return {f"{suspect.metric} {sweep.name(suspect)}" for suspect in sweep.suspects}


SLOW: Slow = {(5,): 1.5, (2, 3): 2.0}
BOTH = {f"{metric} {name}" for metric in ("latency", "bandwidth") for name in ("n5", "n2 - n3")}


@pytest.mark.parametrize("text", [omb, nccl])
@pytest.mark.parametrize("launches", [1, 3])
def test_a_slow_node_and_a_slow_link_are_suspects(text: Text, launches: int, tmp_path: Path) -> None:
    name = "{launch}/n{a}-n{b}.log" if text is omb else "{launch}/{a}{b}.log"
    sweep = read_pairs([str(write(tmp_path, text, slow=SLOW, launches=launches, name=name))])
    assert sweep.names == tuple(f"n{k}" for k in range(1, 9))
    assert found(sweep) == BOTH and not sweep.confirmed
    assert {round(suspect.slower, 1) for suspect in sweep.suspects} == {1.5, 2.0}
    assert sweep.first.shares == [1] * launches


def test_healthy_nodes_are_no_suspects(tmp_path: Path) -> None:
    assert not read_pairs([str(write(tmp_path, launches=3, name="{launch}/n{a}-n{b}.log"))]).suspects


def test_a_list_of_devices_says_more_than_the_name(tmp_path: Path) -> None:
    assert read_pairs([str(write(tmp_path, nccl, nodes=4, name="x{a}-y{b}.log"))]).names == ("n1", "n2", "n3", "n4")


def test_a_link_that_is_slow_one_way_is_found(tmp_path: Path) -> None:
    """Logs of both orders: of a bandwidth the slower direction counts."""
    write(tmp_path)
    write(tmp_path, name="n{b}-n{a}.log", slow={(2, 3): 2.0})
    sweep = read_pairs([str(tmp_path)])
    assert "bandwidth n2 - n3" in found(sweep) and sweep.first.shares == [1]


@pytest.mark.slow
def test_the_report_has_the_matrix_and_what_confirms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "logs", slow=SLOW)
    page, file = tmp_path / "l.html", tmp_path / "l.json"
    line = ["links", "--from", str(folder), "-G", "tty", "-o", str(page), "-o", str(file)]
    assert main(line) == OK, "what nothing confirmed is no finding"
    out = capsys.readouterr().out
    assert "8 nodes, 28 links: suspect, not yet repeated: link n2 - n3 may be slow (" in out and "n5 |" in out
    assert "latency: latency of 8 B; bandwidth: bw of 1 MiB; 56 tables of OMB 7.5, 1 launch of each pair" in out
    assert "what was slow in it only cannot be told from what is slow for good" in out
    assert "to confirm or clear what may be slow, omb-py links --hosts n1,n2,n3,n4,n5,n6,n7,n8\n" in out
    told = json.loads(file.read_text())
    assert len(told["pairs"]) == 28 and set(told["pairs"][0]) == {"ends", "latency", "bandwidth"}
    assert "of logs" in page.read_text()


def test_what_confirms_measures_what_the_logs_did(tmp_path: Path) -> None:
    sweep = read_pairs([str(write(tmp_path, nccl, slow=SLOW))])
    assert sweep.logs[-1].endswith("n7,n8 --backend nccl --small 1024")


def test_latency_alone_is_judged_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def latency(a: str, b: str, slower: float) -> str:
        return omb(a, b, slower).partition("# OSU MPI Bandwidth")[0]

    assert main(["links", "--from", str(write(tmp_path, latency, slow=SLOW)), "-G", "tty"]) == OK
    out = capsys.readouterr().out
    assert "n5 |" in out and "latency: latency of 8 B; 28 tables" in out and "bandwidth   suspect" not in out


def test_what_lacks_is_named_and_its_node_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, slow={(5,): 1.5})
    (folder / "n7-n8.log").unlink()
    (folder / "n6-n8.log").write_text("# OSU MPI B" + omb("n6", "n8", 1).partition("# OSU MPI B")[2])
    (folder / "README").write_text("how they were made\n")
    sweep = read_pairs([str(folder)])
    assert sweep.names == tuple(f"n{k}" for k in range(1, 8)) and "latency n5" in found(sweep)
    notes = "\n".join(sweep.logs)
    assert f"n8 is left out: {folder}/n6-n8.log lacks latency of 8 B" in notes
    assert f"{folder}/README: neither line 1" in notes


def test_a_packed_log_and_several_sizes_of_some(tmp_path: Path) -> None:
    """The size that most have counts, so that a damaged row costs no pair."""
    folder = write(tmp_path, nodes=4)
    first = folder / "n1-n2.log"
    (folder / "n1-n2.log.gz").write_bytes(gzip.compress(first.read_text().replace("8  ", "8 x").encode()))
    first.unlink()
    sweep = read_pairs([str(folder)])
    assert sweep.names == ("n1", "n2", "n3", "n4") and "latency of 1 B" in sweep.logs[0]


def test_a_switch_whose_nodes_are_slow_to_others_is_named(tmp_path: Path) -> None:
    slow = {(a, b): 1.5 for a in range(1, 8) for b in range(8, 11)}
    folder, topology = write(tmp_path / "logs", nodes=10, slow=slow), tmp_path / "topology.conf"
    topology.write_text("leaf1: n[1-7]\nleaf2: n[8-10]\n")
    sweep = from_logs([str(folder)], topology=topology)
    assert "latency n8, n9, n10" in found(sweep)
    assert sweep.logs[-1] == "leaf2 has just these: its uplink may be slow"
    topology.write_text("leaf1: n[1-7]\n")
    with pytest.raises(UsageError, match="no switch has n8, n9, n10: add what takes part"):
        from_logs([str(folder)], topology=topology)


@pytest.mark.parametrize(
    ("pattern", "name", "ends"),
    [
        ("{a}-{b}", "logs/n1-n2.log.gz", ("n1", "n2")),
        ("{a}-{b}", "cn1.lab.local-cn2.lab.local.out", ("cn1.lab.local", "cn2.lab.local")),
        ("osu_bw.{a}_{b}.*", "osu_bw.n1_n2.7.log", ("n1", "n2")),
        ("{a}--{b}.log", "gpu-1--gpu-2.log", ("gpu-1", "gpu-2")),
        ("to/{b}/from/{a}.log", "x/to/n2/from/n1.log", None),
        ("run_*_{a}_to_{b}_*.txt", "run_3_n1_to_n2_x.txt", ("n1", "n2")),
        ("{a}-{b}", "gpu-1-gpu-2.log", None),
        ("{a}-{b}", "README", None),
    ],
)
def test_names_of_files(pattern: str, name: str, ends: tuple[str, str] | None) -> None:
    got = parse_names(pattern).ends(name)
    assert got == ends or (ends is None and "to/" in pattern)


BAD_LINES = {
    "a pattern without text between": (["--names", "{a}{b}"], "--names takes '{a}-{b}.log'"),
    "a pattern with one node": (["--names", "{a}.log"], "--names takes '{a}-{b}.log'"),
    "a pattern alone": (["--names", "{a}-{b}"], "--names is for --from: give both"),
    "no file": (["--from", "nothing"], "nothing: cannot read it: no such file or directory"),
    "an option that measures": (["--from", ".", "-i", "10"], "--from measures nothing, so --iterations says nothing"),
    "a search": (["--from", ".", "--isolate"], "--from measures nothing, so --isolate says nothing"),
    "no log": (["--from", "empty"], "no log of a pair of nodes in empty"),
    "three nodes": (["--from", "three"], "fewer than 4 nodes have a log of every pair of them: add logs"),
    "four nodes and a damaged log": (["--from", "damaged"], "no log of n1 and n2; damaged/n1-n2.log: line 3: row left"),
    "no names": (["--from", "unnamed"], "unnamed/12.log: neither its lines nor its name say the two nodes"),
    "one node": (["--from", "one"], "both nodes are n1"),
    "four nodes in a log": (["--from", "whole/12.log"], "whole/12.log: 4 nodes, no pair: n1, n3, n2"),
}


@pytest.mark.parametrize(("words", "reason"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_input_is_one_line(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    write(Path("three"), nodes=3)
    write(Path("damaged"), nodes=4)
    damaged = Path("damaged/n1-n2.log")
    damaged.write_text(re.sub(r"(\.\d)\d$", r"\1", damaged.read_text(), flags=re.MULTILINE))
    write(Path("unnamed"), nodes=2, name="{a}{b}.log")
    write(Path("one"), nodes=2, name="n1-n1.log")
    write(Path("whole"), nccl, nodes=2, name="{a}{b}.log")
    text = Path("whole/12.log").read_text()
    text = text.replace("1 Group  0 Pid   1000 on         n1", "1 Group  0 Pid   1000 on         n3", 1)
    Path("whole/12.log").write_text(text.replace("3 Group  0 Pid   1000 on         n2", "3 Group  0 Pid   1000 on  n4"))
    assert main(["links", *words]) == USAGE
    err = capsys.readouterr().err
    assert reason in err and err.count("\n") == 1


def test_the_python_interface(tmp_path: Path) -> None:
    check = omb_py.links(logs=[write(tmp_path, slow=SLOW, name="{a}_{b}.log")], names="{a}_{b}")
    assert check.exit_code == OK and check.run_id == "of logs" and check.nodes == tuple("12345678")
    assert {(verdict.kind, verdict.name, verdict.state) for verdict in check.verdicts} == {
        ("node", "5", "suspect"),
        ("link", "2 - 3", "suspect"),
    }
