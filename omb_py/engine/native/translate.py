"""The native binding's translation: a stage of steps becomes a table of rows, and its shape machine code."""

from __future__ import annotations

import ctypes
import struct
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from omb_py.engine.native import opcodes as R
from omb_py.engine.native.codegen import Shape, shape_of
from omb_py.engine.native.machine_code import address_of_code
from omb_py.engine.program.language import Body, Host, Lap, Repeat, Result, Stage, Stamp, Step, Until
from omb_py.engine.program.rma import EXPOSED
from omb_py.engine.program.step_text import describe
from omb_py.engine.samples import Integers, LapTimes, address_of_array


@dataclass(frozen=True, slots=True)
class Arg:
    """An operand of a C call: ``base + k * stride`` in pass k; read from that address when `load` is 4 or 8."""

    base: int
    stride: int = 0
    load: int = 0
    turn: int = 0
    """Added for each copy of the buffers that comes before this iteration's (:attr:`.Stage.copies`)."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A C function by address, and its operands."""

    address: int
    args: tuple[Arg, ...]
    op: int = R.CALL
    """CALL, MATMUL or POLL of :mod:`omb_py.engine.native.opcodes`."""


Resolve = Callable[[Step], NativeCall | Sequence[NativeCall]]
"""Gives the library's call for a step, or the calls that it takes one after the other."""


@dataclass(frozen=True, slots=True)
class StageTable:
    """A stage, ready for :meth:`Machine.run`."""

    rows: Integers
    """One a step, one after the other: operands of the code (:mod:`omb_py.engine.native.opcodes`)."""
    shape: Shape
    laps: tuple[str, ...]
    labels: tuple[str, ...]
    """The text of each step, by the number that the code writes into the watched word."""


class Assembler:
    """Builds the rows of one stage."""

    def __init__(
        self,
        laps: Sequence[str],
        resolve: Resolve,
        address: Callable[[Step], int],
        results: Mapping[tuple[str, str], float],
        copies: int = 1,
    ) -> None:
        self.laps = {name: slot for slot, name in enumerate(laps)}
        self.copies = copies
        self.resolve, self.address, self.results = resolve, address, results
        self.rows: list[list[int]] = []
        self.labels: list[str] = []

    def row(self, op: int, fn: int = 0, arity: int = 0) -> list[int]:
        row = [0] * R.WIDTH
        row[R.OP], row[R.FN], row[R.ARITY], row[R.STEP] = op, fn, arity, max(0, len(self.labels) - 1)
        self.rows.append(row)
        return row

    def add(self, nodes: Body) -> None:
        for node in nodes:
            if isinstance(node, Lap):
                self.row(R.LAP, -1 if node.name is None else self.laps[node.name])
            elif isinstance(node, Stamp):
                self.row(R.STAMP, self.laps[node.name])
            elif isinstance(node, Until):
                address = self.address(Step("until", {"recv": node.start}))
                self.row(R.UNTIL, address, self.laps[node.name])
            elif isinstance(node, Repeat):
                before = len(self.rows)
                self.row(R.REPEAT, node.times)
                self.add(node.body)
                self.row(R.END)
                # the code looks at the count at the end, and an empty pass takes time; the steps keep their numbers
                if node.times < 1 or len(self.rows) == before + 2:
                    del self.rows[before:]
            elif isinstance(node, Host):
                raise ValueError(f"host step {node.name!r} in a timed body: host steps belong to setup and teardown")
            elif node.op == EXPOSED:
                self.labels.append(describe(node))  # a number, as every step, and no call
            else:
                self.labels.append(describe(node))
                self.step(node)

    def step(self, step: Step) -> None:
        if step.op == "compute":
            ns = step["ns"]
            self.row(R.COMPUTE, ns.of(self.results) if isinstance(ns, Result) else int(ns))
        elif step.op == "announce":
            self.row(R.ANNOUNCE, self.address(step))
        elif step.op == "flip":
            row = self.row(R.FLIP, self.address(step), step["iteration"])
            row[R.TURN0], row[R.COPIES] = step["recv"].turn, self.copies
        else:
            calls = self.resolve(step)
            for call in (calls,) if isinstance(calls, NativeCall) else calls:
                self.call(call, step)

    def call(self, call: NativeCall, step: Step) -> None:
        if len(call.args) > R.MAX_ARITY:
            raise ValueError(f"{describe(step)}: {len(call.args)} operands, at most {R.MAX_ARITY} fit into a row")
        row = self.row(call.op, call.address, len(call.args))
        row[R.COPIES] = self.copies
        for j, arg in enumerate(call.args):
            row[R.TURN0 + j] = arg.turn
            row[R.ARG0 + j], row[R.STRIDE0 + j], row[R.LOAD0 + j] = arg.base, arg.stride, arg.load


def assemble(
    stage: Stage,
    resolve: Resolve,
    address: Callable[[Step], int],
    results: Mapping[tuple[str, str], float],
    gate: int = 0,
) -> StageTable:
    """Translate a stage's body.

    Args:
        stage: what to translate.
        resolve: gives the library's call for a step.
        address: gives the address of the byte that a ``flip`` step inverts.
        results: mean nanoseconds of laps of earlier stages, for ``Result`` operands.
        gate: address of a word that must be 1 before an iteration begins; 0: none.
    """
    work = Assembler(stage.laps, resolve, address, results, stage.copies)
    bounds: list[int] = []
    for variant in stage.variants or ((),):
        bounds.append(len(work.rows))
        if gate:
            work.row(R.GATE, gate, 1)
        work.add(variant)
        bounds.append(len(work.rows))
    rows = array("q", chain.from_iterable(work.rows))
    return StageTable(rows, shape_of(work.rows, bounds), stage.laps, tuple(work.labels))


_CONSTANTS = struct.unpack("3q", struct.pack("2df4x", 1e9, 0.5, 1.0))
"""Numbers that generated code reads (:func:`~omb_py.engine.native.codegen.llvm_text`)."""
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_RUN = ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _INT, _POINTER, _INT, _POINTER, _POINTER, _POINTER)


class Machine:
    """Runs tables: the code of each shape, the clock, the watched word and the dummy computation's operands.

    Args:
        wtime: address of the library's own clock, ``double f(void)`` in seconds, which laps then read, as C benchmarks
            do: what a reading costs is part of every sample.  0: clock_gettime(CLOCK_MONOTONIC), in nanoseconds.
    """

    def __init__(self, wtime: int = 0) -> None:
        self._code: dict[Shape, Callable[..., int]] = {}
        self.wtime = wtime
        libc = ctypes.CDLL(None)
        clock_gettime = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value or 0  # no system call on Linux
        self.clock = array("q", [clock_gettime, time.CLOCK_MONOTONIC, wtime, *_CONSTANTS])
        self.word = array("q", [0] * 4)
        """[1] iteration, [2] step, [3] return code of the call that failed."""
        self.work = array("f", [1.0]) * (27 * 25)

    def prepare(self, table: StageTable) -> None:
        """Load the code of a table, which is made where this user has none of its shape; :meth:`run` finds it ready."""
        if table.shape not in self._code:
            self._code[table.shape] = _RUN(address_of_code(table.shape, self.wtime != 0))

    def run(self, table: StageTable, first: int, iterations: int) -> tuple[LapTimes, int]:
        """Run a table, the interpreter lock released.

        Returns:
            the times, and 0 or 1 + the step that failed.
        """
        self.prepare(table)
        times = LapTimes(iterations, len(table.laps))
        failed = self._code[table.shape](
            address_of_array(table.rows),
            first,
            iterations,
            address_of_array(times.content),
            times.width,
            address_of_array(self.word),
            address_of_array(self.clock),
            address_of_array(self.work),
        )
        return times, int(failed)
