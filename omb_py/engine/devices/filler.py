"""The computing between and beside calls, done by the device: OMB's ``-r cpu|gpu|both``, and matrix products."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.engine.devices import OTHER_STREAM, synchronise
from omb_py.engine.program.language import Body, Node, Program, Repeat, Step, each_body
from omb_py.engine.program.steps import MATMUL

FILLERS: Final = ("cpu", "gpu", "both")
_WAIT: Final = replace(synchronise("filler"), operands={"why": "filler", "stream": OTHER_STREAM})


def on_device(program: Program, filler: str) -> Program:
    """The program whose ``compute`` steps keep the device busy for that long, on a stream of its own.

    As in OMB the host waits for the device before it goes on; with ``both`` it computes meanwhile. The lap ``compute``
    is what that took. Matrix products are always the device's, where their matrices are.
    """
    return each_body(program, lambda body: _body(body, filler))


def _body(nodes: Body, filler: str) -> Body:
    out: list[Node] = []
    for number, node in enumerate(nodes):
        if _multiplies(node):
            out.append(_enqueued(node))
            if number + 1 == len(nodes) or not _multiplies(nodes[number + 1]):
                out.append(_WAIT)
        elif isinstance(node, Repeat):
            out.append(replace(node, body=_body(node.body, filler)))
        elif isinstance(node, Step) and node.op == "compute" and filler not in ("", "cpu"):
            out.append(Step("spin", {"ns": node["ns"], "stream": OTHER_STREAM}))
            out += [node] if filler == "both" else []
            out.append(_WAIT)
        else:
            out.append(node)
    return tuple(out)


def _multiplies(node: Node) -> bool:
    if isinstance(node, Repeat):
        return bool(node.body) and all(map(_multiplies, node.body))
    return isinstance(node, Step) and node.op == MATMUL


def _enqueued(node: Node) -> Node:
    if isinstance(node, Repeat):
        return replace(node, body=tuple(map(_enqueued, node.body)))
    assert isinstance(node, Step)
    return Step(node.op, {**node.operands, "stream": OTHER_STREAM})
