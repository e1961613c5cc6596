"""Translation for Python bindings: a stage becomes the source of one flat loop of bound calls.

Nothing stands between two laps but the calls: the watchdog reads the running frame's line number and loop
variable from outside, so that being watched costs the loop nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.program.language import (
    Blocks,
    Body,
    Host,
    Lap,
    Region,
    Repeat,
    RequestSlot,
    Result,
    Stage,
    Stamp,
    Step,
    Until,
)
from omb_py.engine.program.rma import EXPOSED
from omb_py.engine.program.step_text import describe

FILENAME = "<omb-py program>"


@dataclass(slots=True)
class Names:
    """Objects that the generated source refers to, by the names it uses."""

    values: dict[str, object] = field(default_factory=dict)

    def bind(self, value: object, prefix: str = "v") -> str:
        """A name for `value`; the same object gets the same name."""
        for name, bound in self.values.items():
            if bound is value:
                return name
        name = f"{prefix}_{len(self.values)}"  # the loop's own names have no underscore
        self.values[name] = value
        return name


Render = Callable[[Step, Names, str], str]
"""(step, names, variable that holds the pass of the innermost repeat, empty outside) -> one statement.

Where a region turns (:attr:`.Region.turn`) the variable ``c`` holds the number of the copy."""


def index_of(request: RequestSlot, k: str) -> str:
    """The source of a request's place in the list of slots; `k` as in :data:`Render`."""
    if not k or not request.stride:
        return str(request.index)
    moved = k if request.stride == 1 else f"{k} * {request.stride}"
    return moved if request.index == 0 else f"{request.index} + {moved}"


class Objects:
    """The objects that a program passes for regions: always the same, one for each pass or copy where they move.

    Args:
        nbytes: bytes of each buffer.
        copies: copies of the buffers that iterations use in turn (:attr:`omb_py.engine.program.language.Stage.copies`).
    """

    def __init__(self, nbytes: Mapping[str, int], copies: int) -> None:
        self.nbytes, self.copies = nbytes, copies
        self._objects: dict[object, object] = {}

    def text(self, region: Region | Blocks, key: object, names: Names, k: str, make: Callable[[Any], Any]) -> str:
        """The source of the object that `make` makes of a region; objects of equal `key` are made once."""
        strided = isinstance(region, Region) and region.stride
        if key not in self._objects:
            copies = [region.copy(c) for c in range(self.copies)] if region.turn else [region]
            if isinstance(region, Region) and region.stride:
                buffer_bytes = self.nbytes[region.buffer] - (self.copies - 1) * region.turn
                passes = (buffer_bytes - region.offset - region.nbytes) // region.stride + 1
                objects = [[make(copy.at(number)) for number in range(passes)] for copy in copies]
            else:
                objects = [make(copy) for copy in copies]
            self._objects[key] = objects if region.turn else objects[0]
        suffix = f"[{k}]" if k and strided else "[0]" if strided else ""
        return names.bind(self._objects[key], "b") + ("[c]" if region.turn else "") + suffix


def flip_in(step: Step, names: Names, buffer: NDArray[np.uint8]) -> str:
    """The source of a ``flip`` in `buffer`."""
    region: Region = step["recv"]
    place = f"{region.offset} + c * {region.turn}" if region.turn else str(region.offset)
    when = "True" if step["iteration"] < 0 else f"i == {step['iteration']}"
    return f"if {when}: {names.bind(buffer)}[{place}] ^= 255"


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """A timed loop as a Python function."""

    source: str
    function: Callable[..., None]
    laps: tuple[str, ...]
    labels: tuple[str, ...]
    step_of_line: Mapping[int, int]

    def run(self, first: int, iterations: int) -> NDArray[np.int64]:
        slots = [[0] * iterations for _ in self.laps]
        self.function(first, iterations, *slots)
        return np.array(slots, np.int64).T.reshape(iterations, len(self.laps))

    def position(self, thread: int) -> tuple[int, int]:
        """(iteration, step) that `thread` runs now; (0, 0) when it is not in the loop."""
        frame: FrameType | None = sys._current_frames().get(thread)
        while frame is not None:
            if frame.f_code is self.function.__code__:
                return int(frame.f_locals.get("i", 0)), self.step_of_line.get(frame.f_lineno, 0)
            frame = frame.f_back
        return 0, 0

    def failed_step(self, error: BaseException) -> int:
        """The step that raised `error`."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is self.function.__code__:
                return self.step_of_line.get(trace.tb_lineno, 0)
            trace = trace.tb_next
        return 0


class SourceWriter:
    """Writes the source of a stage line by line and remembers which line is which step."""

    def __init__(self, stage: Stage, render: Render, results: Mapping[tuple[str, str], float]) -> None:
        self.slot = {name: k for k, name in enumerate(stage.laps)}
        self.render, self.results = render, results
        self.names = Names()
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.step_of_line: dict[int, int] = {}

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def add(self, nodes: Body, indent: int, k: str = "") -> None:
        before = len(self.lines)
        for node in nodes:
            if isinstance(node, Lap):
                if node.name is None:
                    self.line(indent, "t = clock()")
                else:
                    self.line(indent, "u = clock()")
                    self.line(indent, f"s{self.slot[node.name]}[i - first] += u - t")
                    self.line(indent, "t = u")
            elif isinstance(node, Stamp):
                self.line(indent, f"s{self.slot[node.name]}[i - first] = clock()")
            elif isinstance(node, Until):
                moment = self.render(Step("until", {"recv": node.start}), self.names, k)
                self.line(indent, f"t = {moment}")
                self.line(indent, f"s{self.slot[node.name]}[i - first] = max(0, clock() - t)")
                self.line(indent, "while clock() < t: pass")
            elif isinstance(node, Repeat):
                inner, start = k + "k", len(self.lines)  # its own for each depth: after a repeat the outer pass goes on
                self.line(indent, f"for {inner} in range({node.times}):")
                self.add(node.body, indent + 1, inner)
                if self.lines[start + 1 :] == ["    " * (indent + 1) + "pass"]:
                    del self.lines[start:]  # nothing to do still takes time
            elif isinstance(node, Host):
                raise ValueError(f"host step {node.name!r} in a timed body: host steps belong to setup and teardown")
            else:
                self.labels.append(describe(node))
                if node.op != EXPOSED:
                    self.line(indent, self.statement(node, k))
                    self.step_of_line[len(self.lines)] = len(self.labels) - 1
        if len(self.lines) == before:
            self.line(indent, "pass")

    def statement(self, step: Step, k: str) -> str:
        if step.op == "compute":
            ns = step["ns"]
            value = ns.of(self.results) if isinstance(ns, Result) else int(ns)
            return f"{self.names.bind(_compute, 'compute')}({value})"
        return self.render(step, self.names, k)


def _compute(nanoseconds: int) -> None:
    until = time.perf_counter_ns() + nanoseconds
    while time.perf_counter_ns() < until:
        _MATRIX @ _VECTOR


_MATRIX = np.ones((25, 25), np.float32)
_VECTOR = np.ones(25, np.float32)


def _continues(variant: Body) -> bool:
    """Whether a body begins with a lap since the end of the iteration before; the first one begins with the loop."""
    first = next((node for node in variant if isinstance(node, (Lap, Until))), None)
    return isinstance(first, Lap) and first.name is not None


def compile_stage(stage: Stage, render: Render, results: Mapping[tuple[str, str], float]) -> CompiledLoop:
    """Translate a stage's body into a compiled loop; arguments as in ``assemble``."""
    work = SourceWriter(stage, render, results)
    slots = "".join(f", s{k}" for k in range(len(stage.laps)))
    work.line(0, f"def loop(first, count{slots}):")
    if any(_continues(variant) for variant in stage.variants):
        work.line(1, "t = clock()")
    work.line(1, "for i in range(first, first + count):")
    if stage.copies > 1:
        work.line(2, f"c = i % {stage.copies}")
    many = len(stage.variants) > 1
    for number, variant in enumerate(stage.variants or ((),)):
        if many:
            work.line(2, f"{'el' if number else ''}if i % {len(stage.variants)} == {number}:")
        work.add(variant, 3 if many else 2)
    source = "\n".join(work.lines) + "\n"
    namespace: dict[str, object] = {"clock": time.perf_counter_ns, **work.names.values}
    # names become locals of an enclosing function: faster to read than globals
    parameters = ", ".join(namespace)
    wrapped = f"def make({parameters}):\n" + "".join(f"    {text}\n" for text in work.lines) + "    return loop\n"
    module: dict[str, Callable[..., Callable[..., None]]] = {}
    exec(compile(wrapped, FILENAME, "exec"), module)
    function = module["make"](**namespace)
    lines = {line + 1: step for line, step in work.step_of_line.items()}
    return CompiledLoop(source, function, stage.laps, tuple(work.labels), lines)
