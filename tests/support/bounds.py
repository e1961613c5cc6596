"""Whether every operand of a program lies within its buffers: what C code would read or write out of bounds."""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.engine.program.language import Blocks, Program, Region, Repeat, Stage, Step
from omb_py.engine.program.step_text import describe


def outside(program: Program) -> Iterator[str]:
    """Each operand that begins before its buffer or ends after it, in any pass and any copy, in words."""
    sizes = {buffer.name: buffer.nbytes for buffer in program.buffers}
    for stage in program.stages:
        for part in (*stage.variants, stage.setup, stage.teardown):
            for step, last in _steps(part, 0):
                for name, operand in step.operands.items():
                    if isinstance(operand, (Region, Blocks)) and operand.nbytes:
                        begin, end = _span(operand, last, stage)
                        if begin < 0 or end > sizes.get(operand.buffer, 0):
                            room = sizes.get(operand.buffer)
                            yield f"{describe(step)}: {name} is {begin} to {end} of {operand.buffer}, {room} B"


def _steps(nodes: tuple[object, ...], last: int) -> Iterator[tuple[Step, int]]:
    """Each step, with the number of the last pass of its innermost repeat."""
    for node in nodes:
        if isinstance(node, Repeat):
            yield from _steps(node.body, node.times - 1)
        elif isinstance(node, Step):
            yield node, last


def _span(operand: Region | Blocks, last: int, stage: Stage) -> tuple[int, int]:
    """First and last byte that is reached, over all passes and copies."""
    corners = [operand.at(k).copy(c) for k in (0, last) for c in (0, stage.copies - 1)]
    spans = [span for corner in corners for span in _pieces(corner)]
    return min(begin for begin, _ in spans), max(end for _, end in spans)


def _pieces(operand: Region | Blocks) -> list[tuple[int, int]]:
    if isinstance(operand, Region):
        return [(operand.offset, operand.offset + operand.nbytes)]
    return [(at, at + size) for at, size in zip(operand.offsets, operand.sizes, strict=True) if size]
