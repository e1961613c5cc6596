"""Writes into memory of other ranks with NCCL's signals, against the stand-in, which writes across processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.nccl.capabilities import CAPABILITIES
from omb_py.backends.nccl.lower import lowered
from omb_py.backends.oneccl.lower import HostLowering
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Repeat, Step
from omb_py.errors import EnvironmentProblem
from omb_py.options.table import make_cell, usual_cell
from omb_py.orchestrate.running.rank_process import arranged
from omb_py.suites.registry import find
from tests.support.machines.mpi import run_omb_py
from tests.support.machines.standin import library, needs_compiler, report

PUTS = ("put_latency", "put_bw", "put_bibw")
VERSION = "23203"
CELLS: list[dict[str, Any]] = [
    {"benchmark": name, "size": size, **more}
    for name, more in (("put_latency", {}), ("put_bw", {"window": 3}), ("put_bibw", {"window": 3}))
    for size in (1, 4096, 70_016)
]


def _cell(name: str, binding: str = "native", **options: Any) -> Cell:
    return make_cell(find(name), "nccl", binding, 64, device="sim", timing="isolated", **options)


def _calls(name: str, rank: int, **options: Any) -> list[str]:
    """The calls of a body, those of a window once, with the signals that a wait is for."""
    benchmark, world = arranged(find(name)), World(rank, 2)
    cell = CAPABILITIES.fitted(benchmark, _cell(name, **options), usual_cell(benchmark))
    program, _ = lowered(benchmark.program(world, cell), world, lambda op: True)
    steps = [
        step
        for node in program.stages[0].variants[0]
        for step in (node.body if isinstance(node, Repeat) else (node,))
        if isinstance(step, Step) and step.op != "synchronise"
    ]
    return [f"{step.op} {step['signals']}" if "signals" in step.operands else step.op for step in steps]


@pytest.mark.parametrize(
    ("name", "rank", "calls"),
    [
        ("put_latency", 0, ["win_start 1", "put", "win_post", "win_wait 1"]),
        ("put_latency", 1, ["win_post", "win_wait 1", "win_start 1", "put"]),
        ("put_bw", 0, ["win_start 1", "put"]),
        ("put_bw", 1, ["win_post", "win_wait 5"]),
        ("put_bibw", 0, ["win_post", "win_start 1", "put", "win_wait 5"]),
    ],
)
def test_a_wait_is_for_every_write(name: str, rank: int, calls: list[str]) -> None:
    assert _calls(name, rank, **({} if name == "put_latency" else {"window": 5})) == calls


def test_the_others_of_the_family_have_none() -> None:
    benchmark, world = arranged(find("put_latency")), World(0, 2)
    program = benchmark.program(world, _cell("put_latency", sync="pscw"))
    with pytest.raises(EnvironmentProblem, match="oneCCL has no one-sided operations: --backend mpi"):
        lowered(program, world, lambda op: True, HostLowering)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sync": "fence"}, "NCCL has no -s fence, since the target waits for the signal of a put: -s pscw"),
        ({"window_kind": "create"}, "not -w create: -w allocate"),
        ({"binding": "cupy"}, "binding cupy has no one-sided operations here: --binding native"),
        ({"settings": "registration=register"}, "a put needs windows: leave it out"),
        ({}, ""),
        ({"settings": "registration=window"}, ""),
    ],
)
def test_other_forms_are_refused_in_one_line(options: dict[str, str], why: str) -> None:
    given = {"sync": "pscw", **options}
    said = CAPABILITIES.refuses(find("put_latency"), _cell("put_latency", **given))
    assert said.endswith(why) and bool(said) == bool(why)


@needs_compiler
@pytest.mark.mpi
def test_every_byte_of_every_write_is_right() -> None:
    done = report("tests.support.sessions.nccl_cells", 2, CELLS, STANDIN_VERSION=VERSION, OMB_PY_SIM_DELAY_US="50")
    assert [(cell["wrong"], cell["iterations"], cell["busy"]) for cell in done] == [(0, 3, False)] * len(CELLS)
    assert {cell["marks"]["windows"] for cell in done} == {"symmetric"}


@needs_compiler
@pytest.mark.mpi
def test_a_write_that_changed_a_byte_is_found() -> None:
    cell = {"benchmark": "put_bw", "size": 64, "window": 1}
    (done,) = report("tests.support.sessions.nccl_cells", 2, [cell], STANDIN_VERSION=VERSION, STANDIN_FAIL="put:1@0")
    assert done["wrong"] > 0


@needs_compiler
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"STANDIN_VERSION": "22809"}, "NCCL 2.28.9 has no nccl{}, which came with 2.29: use a newer version"),
        ({"STANDIN_VERSION": VERSION, "STANDIN_NO_WINDOW": "1"}, "NCCL made no window of the buffer window"),
    ],
)
def test_a_library_that_cannot_is_refused(more: dict[str, str], why: str) -> None:
    (done,) = report("tests.support.sessions.nccl_cells", 2, [{"benchmark": "put_latency", "size": 64}], **more)
    # the step of rank 0 that comes first is the wait for the target's post
    assert why.format("WaitSignal") in done["refused"]


@pytest.mark.slow
@needs_compiler
@pytest.mark.mpi
def test_the_command_line_measures_puts_over_nccl(tmp_path: Path) -> None:
    head = 'name = "puts"\ndescription = "all of them"\n'
    (tmp_path / "puts.toml").write_text(f"{head}[[entry]]\nbenchmarks = {json.dumps(PUTS)}\nvalidation = true\n")
    words = ["--backend", "nccl", "-d", "sim", "-n", "2", "-m", "64:64", "-i", "3", "-x", "1", "--no-store"]
    done = run_omb_py("run", str(tmp_path / "puts.toml"), *words, OMB_PY_NCCL=str(library()), STANDIN_VERSION=VERSION)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["64"]]
    assert len(rows) == len(PUTS) and all(float(row[1]) > 0 and "Pass" in row for row in rows), done.stdout
