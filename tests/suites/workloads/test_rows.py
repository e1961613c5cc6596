"""What the row of a step stores of its calls' types and bytes, and as what types its data travels."""

from __future__ import annotations

import json
import re

import pytest

from omb_py.cli import main
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, walk
from omb_py.engine.program.requirements import types_of
from omb_py.suites.workloads.benchmark import volume
from omb_py.suites.workloads.families import FAMILIES, parse_workload
from omb_py.suites.workloads.program import program_of
from tests.suites.workloads.test_families import calls
from tests.support.small_workloads import SMALL, text_of


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_has_the_bytes_of_all_calls(name: str) -> None:
    text = text_of(name, SMALL[name])
    sent = [sum(call.sent for call in own) for own in calls(text, 4)]
    stored = volume(text, 4)
    assert (stored.bytes_per_rank, stored.bytes_total) == (max(sent), sum(sent)) and stored.bytes_total > 0
    assert {call.dtype for own in calls(text, 4) for call in own} == set(stored.dtype.split("+"))


@pytest.mark.parametrize(
    ("text", "dtype", "per_rank", "total"),
    [
        ("ddp:scale=1/64", "float32", 41_856, 2 * 41_856),
        ("tensor:layers=1,seq=8", "bfloat16", 4 * 8 * 768 * 2, 8 * 8 * 768 * 2),
        ("knn:queries=8,features=4", "float32", 8 * 4 * 4 + 10 * 8 * 12, 2 * (8 * 4 * 4 + 10 * 8 * 12)),
    ],
)
def test_the_row_that_is_printed(
    text: str, dtype: str, per_rank: int, total: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["step", "-n", "2", "--workload", text, "--backend", "mock", "-i", "2", "-x", "0", "--no-store", "--quiet"]
    assert main([*words, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["dtype"], row["bytes_per_rank"], row["bytes_total"]) == (dtype, per_rank, total)
    assert main(words) == 0
    head = [line for line in capsys.readouterr().out.splitlines() if "Step(us)" in line]
    assert head[0].startswith("# Step(us)"), "a reader of columns takes every line that begins with # for a comment"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("moe", ["dispatch", "combine"]),
        ("pipeline:schedule=gpipe", ["forward", "backward"]),
        (
            "moe:routing=drawn,node=2",
            ["dispatch between nodes", "dispatch within the node", "combine between nodes", "combine within the node"],
        ),
    ],
)
def test_a_row_has_the_kinds_of_calls_that_were_made(
    text: str, kinds: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["step", "-n", "4", "--workload", text, "--backend", "mock", "-i", "2", "-x", "0", "--no-store", "--quiet"]
    assert main([*words, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    stored = [name.removeprefix("serial.") for name in row["metrics"] if name.startswith("serial.")]
    assert sorted(stored) == sorted([*kinds, *(f"{kind}.median" for kind in kinds)])


def test_each_kind_of_call_has_its_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """Of keys and values that one rank sends and two receive: its bytes over its time, not over that of all ranks."""
    text = "kv_transfer:layers=1,prompt=64,requests=2"
    words = ["step", "-n", "3", "--workload", text, "--backend", "mock", "-i", "2", "-x", "0", "--no-store", "--quiet"]
    assert main([*words, "--format", "json"]) == 0
    metrics = dict(json.loads(capsys.readouterr().out)[0]["metrics"])
    whole = 2 * 2 * 64 * 4096 * 2
    assert (metrics["payload.send"], metrics["payload.receive"]) == (whole / 3, whole / 3)
    assert main(words) == 0
    lines = dict(re.findall(r"# (\w+) .* of serial +([\d.]+) GB/s", capsys.readouterr().out))
    for kind in ("send", "receive"):
        rate = whole / 3 / metrics[f"serial.{kind}"] / 1000
        assert float(lines[kind]) == pytest.approx(rate, abs=0.006)


def test_a_rank_without_a_kind_of_call_has_its_slot_and_reads_no_clock_for_it() -> None:
    first, last = (program_of(parse_workload("pipeline"), World(rank, 2)).stages[0] for rank in range(2))
    assert first.laps == last.laps == ("forward", "turn", "backward", "tied embedding")
    made = [{node.name for node, _ in walk(stage.variants[0]) if isinstance(node, Lap)} for stage in (first, last)]
    assert made[0] != made[1], "only the first rank sends forward before it waits"


@pytest.mark.parametrize("name", FAMILIES)
def test_only_what_is_added_up_needs_a_float_of_16_bits(name: str) -> None:
    """MPI knows none: what is only moved runs on every library, as bytes."""
    keys = FAMILIES[name].keys
    if "dtype" not in keys:
        pytest.skip("this family has types of its own")
    settings = [part for part in SMALL[name].split(",") if part and not part.startswith("dtype")]
    workload = parse_workload(f"{name}:{','.join([*settings, 'dtype=bfloat16'])}")
    reduces = ("allreduce", "reduce", "reduce_scatter_block")
    for rank in range(4):
        adds = any(call.op in reduces for call in workload.calls(rank, 4))
        assert ("bfloat16" in types_of(program_of(workload, World(rank, 4)))) == adds
