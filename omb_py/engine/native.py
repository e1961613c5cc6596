"""The native binding's translation: a stage of steps becomes the interpreter's table of rows."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omb_py.engine import rows as R
from omb_py.engine.compiled import load
from omb_py.engine.describe import describe
from omb_py.engine.program import Body, Host, Lap, Repeat, Result, Stage, Stamp, Step


UNROLLED = 512
"""Rows up to which a repeat is written out pass by pass: a moving operand costs as much as a short call's loop in C,
and a window of 64 sends is what bandwidth is measured with."""


@dataclass(frozen=True, slots=True)
class Arg:
    """An operand of a C call: ``base + k * stride`` in pass k; read from that address when `load` is 4 or 8."""

    base: int
    stride: int = 0
    load: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A C function by address, and its operands."""

    address: int
    args: tuple[Arg, ...]


Resolve = Callable[[Step], Call]
"""How a library does a step."""


@dataclass(frozen=True, slots=True)
class Table:
    """A stage, ready for :func:`omb_py.engine.interpreter.run`."""

    rows: NDArray[np.int64]
    bounds: NDArray[np.int64]
    laps: tuple[str, ...]
    labels: tuple[str, ...]
    """What each step does, by the number that the interpreter writes into the watched word."""


def _pass(row: list[int], k: int) -> list[int]:
    """The row of pass `k` on its own: nothing moves any more."""
    still = row.copy()
    if row[R.OP] == R.CALLX:
        for j in range(row[R.ARITY]):
            still[R.ARG0 + j] += k * row[R.STRIDE0 + j]
            still[R.STRIDE0 + j] = 0
        if not any(row[R.LOAD0 : R.LOAD0 + R.MAX_ARITY]):
            still[R.OP] = R.CALL
    return still


class Assembler:
    """Builds the rows of one stage."""

    def __init__(
        self,
        laps: Sequence[str],
        resolve: Resolve,
        address: Callable[[Step], int],
        results: Mapping[tuple[str, str], float],
    ) -> None:
        self.laps = {name: slot for slot, name in enumerate(laps)}
        self.resolve, self.address, self.results = resolve, address, results
        self.rows: list[list[int]] = []
        self.labels: list[str] = []

    def row(self, op: int, fn: int = 0, arity: int = 0) -> list[int]:
        """Append a row and return it."""
        row = [0] * R.WIDTH
        row[R.OP], row[R.FN], row[R.ARITY], row[R.STEP] = op, fn, arity, max(0, len(self.labels) - 1)
        self.rows.append(row)
        return row

    def add(self, nodes: Body, depth: int = 0) -> None:
        """Append the rows of some nodes, which stand in `depth` repeats."""
        if depth > R.MAX_DEPTH:
            raise ValueError(f"repeats stand more than {R.MAX_DEPTH} deep")
        for node in nodes:
            if isinstance(node, Lap):
                self.row(R.LAP, -1 if node.name is None else self.laps[node.name])
            elif isinstance(node, Stamp):
                self.row(R.STAMP, self.laps[node.name])
            elif isinstance(node, Repeat):
                before = len(self.rows)
                self.row(R.REPEAT, node.times)
                self.add(node.body, depth + 1)
                self.row(R.END)
                once = self.rows[before + 1 : -1]
                if node.times < 1:  # the interpreter looks at the count at the end; the steps keep their numbers
                    del self.rows[before:]
                elif node.times * len(once) <= UNROLLED and all(row[R.OP] not in (R.REPEAT, R.END) for row in once):
                    self.rows[before:] = [_pass(row, k) for k in range(node.times) for row in once]
            elif isinstance(node, Host):
                raise ValueError(f"host step {node.name!r} in a timed body: host steps belong to setup and teardown")
            else:
                self.labels.append(describe(node))
                self.step(node)

    def step(self, step: Step) -> None:
        """Append the row of one step."""
        if step.op == "compute":
            ns = step["ns"]
            self.row(R.COMPUTE, int(self.results[ns.stage, ns.lap] if isinstance(ns, Result) else ns))
        elif step.op == "flip":
            self.row(R.FLIP, self.address(step), step["iteration"])
        else:
            call = self.resolve(step)
            if len(call.args) > R.MAX_ARITY:
                raise ValueError(f"{describe(step)}: {len(call.args)} operands, at most {R.MAX_ARITY} fit into a row")
            strided = any(a.stride or a.load for a in call.args)
            row = self.row(R.CALLX if strided else R.CALL, call.address, len(call.args))
            for j, arg in enumerate(call.args):
                row[R.ARG0 + j], row[R.STRIDE0 + j], row[R.LOAD0 + j] = arg.base, arg.stride, arg.load


def assemble(
    stage: Stage,
    resolve: Resolve,
    address: Callable[[Step], int],
    results: Mapping[tuple[str, str], float],
) -> Table:
    """Translate a stage's body.

    Args:
        stage: what to translate.
        resolve: how the library does a step.
        address: where the byte lies that a ``flip`` step inverts.
        results: mean nanoseconds of laps of earlier stages, for :class:`~omb_py.engine.program.Result` operands.
    """
    work = Assembler(stage.laps, resolve, address, results)
    bounds: list[int] = []
    for variant in stage.variants or ((),):
        bounds.append(len(work.rows))
        work.add(variant)
        bounds.append(len(work.rows))
    table = np.array(work.rows, np.int64).reshape(len(work.rows), R.WIDTH)
    return Table(table, np.array(bounds, np.int64), stage.laps, tuple(work.labels))


def clock() -> NDArray[np.int64]:
    """The interpreter's clock: CLOCK_MONOTONIC through the C library (no system call on Linux)."""
    words = np.zeros(5, np.int64)
    words[0] = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    words[1] = time.CLOCK_MONOTONIC
    words[2] = words.ctypes.data + 24
    return words


class Machine:
    """The interpreter with its clock, its watched word and the dummy computation's operands."""

    def __init__(self) -> None:
        self._run = load()
        self.clock = clock()
        self.word = np.zeros(4, np.int64)
        """[1] iteration, [2] step, [3] return code of the call that failed."""
        self.work = np.ones((27, 25), np.float32)

    def run(self, table: Table, first: int, iterations: int) -> tuple[NDArray[np.int64], int]:
        """Run a table; returns nanoseconds (iterations, laps) and 0 or 1 + the step that failed."""
        out = np.zeros((iterations, max(1, len(table.laps))), np.int64)
        failed = self._run(table.rows, table.bounds, first, iterations, out, self.word, self.clock, self.work)
        return out[:, : len(table.laps)], int(failed)
