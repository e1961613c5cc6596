"""The product is really computed, in either kind of loop and on a device; and what it counts as."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from omb_py.engine.devices.placement import on_device
from omb_py.engine.measuring.cache_rotation import rotated
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.native import matmul
from omb_py.engine.native.translate import Machine, assemble
from omb_py.engine.program import steps
from omb_py.engine.program.language import Buffer, Lap, Program, Region, Repeat, Stage, Step, body
from omb_py.engine.python_loop.loop import Names, compile_stage
from omb_py.errors import EnvironmentProblem
from omb_py.testing.simulated_device import SimulatedDevice

ROWS, SIDE = 7, 33
STEP = steps.matmul(ROWS, SIDE)


def memory_for(step: Step, kind: str = "numpy") -> HostMemory:
    memory = HostMemory(kind)
    for operand in matmul.OPERANDS:
        memory.reserve(step[operand].buffer, step[operand].nbytes)
    return memory


def parts(memory: HostMemory, step: Step) -> list[matmul.Floats]:
    return matmul.matrices(step, {name: memory.view(step[name].buffer, step[name].nbytes) for name in matmul.OPERANDS})


def native(stage: Stage, memory: HostMemory) -> Any:
    machine = Machine()
    table = assemble(stage, lambda step: matmul.call(step, memory), lambda step: 0, {})
    return lambda times: machine.run(table, 0, times)[0].table()


def flat(stage: Stage, memory: HostMemory, torch: bool = False) -> Any:
    products = matmul.Products(memory, torch)

    def render(step: Step, names: Names, k: str) -> str:
        return products.text(step, names)

    loop = compile_stage(stage, render, {})
    return lambda times: loop.run(0, times)


def by_torch(stage: Stage, memory: HostMemory) -> Any:
    pytest.importorskip("torch")
    return flat(stage, memory, torch=True)


@pytest.mark.parametrize("loop", [native, flat, by_torch])
@pytest.mark.parametrize("kind", ["numpy", "bytearray"])
def test_the_product_is_that_of_numpy(loop: Any, kind: str) -> None:
    memory = memory_for(STEP, kind)
    run = loop(Stage(body(Repeat(2, (STEP,)))), memory)
    left, right, out = parts(memory, STEP)
    assert left.all() and right.all() and not out.any(), "filled before anything runs"
    right[:] = np.random.default_rng(1).normal(size=right.shape)
    run(1)
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-4)


def test_tensors_multiply_by_torch() -> None:
    pytest.importorskip("torch")
    memory = memory_for(STEP, "torch")
    flat(Stage(body(STEP)), memory)(1)
    left, right, out = parts(memory, STEP)
    np.testing.assert_allclose(out, left @ right, rtol=1e-5)


@pytest.mark.parametrize("loop", [native, flat])
def test_it_takes_longer_with_more_rows(loop: Any) -> None:
    memory = memory_for(steps.matmul(256, 400))
    few, many = (steps.matmul(rows, 400) for rows in (2, 256))
    run = loop(Stage(body(Lap(), few, Lap("few"), many, Lap("many"))), memory)
    run(1)
    short, long = np.asarray(run(5)).min(axis=0)
    assert long > 3 * short > 0


def test_larger_shapes_of_one_buffer_are_filled_too() -> None:
    memory = memory_for(STEP)
    matmul.fill(memory, steps.matmul(2, 3))
    matmul.fill(memory, STEP)
    assert all(part.all() for part in parts(memory, STEP)[:2])


def test_without_blas_the_other_binding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    matmul.sgemm.cache_clear()
    monkeypatch.setattr(matmul, "_SGEMM", ("no_such_symbol",))
    with pytest.raises(EnvironmentProblem, match="use --binding mpi4py") as said:
        matmul.call(STEP, memory_for(STEP))
    assert "\n" not in str(said.value)
    matmul.sgemm.cache_clear()


def test_operations_are_counted_where_there_are_matrices() -> None:
    stage = Stage(body(Repeat(3, (STEP,)), steps.compute(5)))
    buffers = tuple(Buffer(STEP[name].buffer, STEP[name].nbytes) for name in matmul.OPERANDS)
    assert matmul.flop(STEP) == 2 * ROWS * SIDE**2 and matmul.flop(steps.compute(5)) == 0
    assert matmul.flop_of(Program(buffers, (stage,))) == 6 * ROWS * SIDE**2
    assert matmul.flop_of(Program((Buffer("send", 8),), (Stage(body(steps.barrier())),))) == 0


def test_rotating_leaves_the_matrices_where_they_are() -> None:
    buffers = (Buffer("send", 64), *(Buffer(STEP[name].buffer, STEP[name].nbytes) for name in matmul.OPERANDS))
    sent = steps.send(Region("send", 0, 64), 1, "char")
    made = rotated(Program(buffers, (Stage(body(STEP, sent)),)), 1 << 10, 1 << 12)
    assert made.buffers[1:] == buffers[1:] and made.buffers[0].nbytes > 64
    multiplied, moved = made.stages[0].variants[0]
    assert multiplied == STEP and isinstance(moved, Step) and moved["send"].turn > 0


class TestOnADevice:
    def test_it_is_enqueued_and_waited_for_once(self) -> None:
        other = steps.matmul(1, 2)
        nodes = (Lap(), Repeat(2, (STEP,)), other, Lap("compute"), steps.barrier(), STEP)
        made = on_device(Program((), (Stage((nodes,)),)), "cpu").stages[0].variants[0]
        ops = [type(node).__name__ if not isinstance(node, Step) else node.op for node in made]
        assert ops == ["Lap", "Repeat", "matmul", "synchronise", "Lap", "barrier", "matmul", "synchronise"]
        enqueued: Mapping[str, Any] = made[2].operands  # type: ignore[union-attr]
        assert enqueued["stream"] == made[3]["stream"] == -1  # type: ignore[index]

    def test_the_product_comes_later_and_is_right(self) -> None:
        device, memory = SimulatedDevice(delay_us=math.inf), memory_for(STEP)
        matmul.fill(memory, STEP)
        left, right, out = parts(memory, STEP)
        addresses = [memory.address(STEP[name].buffer) for name in matmul.OPERANDS]
        device.call("matmul", *addresses, ROWS, SIDE, device.stream)
        assert not out.any(), "nothing has happened when the call returns"
        device.call("synchronise", device.stream)
        np.testing.assert_allclose(out, left @ right, rtol=1e-5)
        device.close()
