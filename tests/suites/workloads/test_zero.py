"""The calls of ``zero`` against steps of DeepSpeed 0.19.8 that were recorded over Gloo."""

from __future__ import annotations

import pytest

from tests.suites.workloads.test_families import calls

GPT = "custom:layers=2,hidden=64,heads=2,vocabulary=100,seq=32"
LETTERS = {"allreduce": "r", "allgather": "g", "reduce_scatter_block": "s"}


def of(settings: str, ranks: int) -> str:
    own = calls(f"zero:model={GPT},{settings}", ranks)[0]
    return " ".join(f"{LETTERS[call.op]}{call.nbytes}" for call in own)


@pytest.mark.parametrize(
    ("settings", "ranks", "recorded"),
    [
        ("stage=1", 2, "r434176 r4 g217088"),
        ("stage=2", 2, "r434176 r4 g217088"),
        ("stage=2", 3, "r434176 r4 g144728"),
        ("stage=2,dtype=bfloat16", 2, "r217088 r1 r4 g108544"),
        ("stage=1,bucket=20000", 2, "r34304 r67072 r66560 r66304 r67072 r66560 r66304 r4 g217088"),
        ("stage=3,persistent=0", 2, "g12800 g204288 s434176 r8"),
    ],
)
def test_calls_bytes_and_order_are_the_recorded_ones(settings: str, ranks: int, recorded: str) -> None:
    assert of(settings, ranks) == recorded


def test_small_parameters_of_stage_3_are_gathered_one_by_one_after_the_update() -> None:
    """Recorded on 3 ranks: each parameter is filled up by itself."""
    own = of("stage=3", 3).split()
    layer = "g88 g88 g16384 g256 g5464 g88 g88 g88 g21848 g344 g21848 g88"
    assert own == f"s434364 r8 g8536 g2732 {layer} {layer} g88 g88".split()


def test_large_parameters_are_gathered_until_the_prefetch_is_full() -> None:
    """The embedding alone, then groups that reach 50 million elements."""
    own = calls("zero:stage=3,model=gpt2-124m", 2)[0]
    gathered = [2 * call.nbytes // 4 for call in own if call.label == "gather"]
    assert gathered[0] == 50_257 * 768 and len(gathered) == 3
    assert gathered[1] >= 50_000_000 > gathered[1] - 4 * 768 * 768
