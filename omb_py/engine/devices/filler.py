"""The computing beside a non-blocking collective, done by the device (OMB's ``-r cpu|gpu|both``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.engine.devices import OTHER_STREAM, synchronise
from omb_py.engine.program import Body, Node, Program, Repeat, Step, each_body

FILLERS: Final = ("cpu", "gpu", "both")


def on_device(program: Program, filler: str) -> Program:
    """The program whose ``compute`` steps keep the device busy for that long, on a stream of its own.

    As in OMB the host waits for the device before it goes on; with ``both`` it computes meanwhile. The lap ``compute``
    is what that took.
    """
    if filler in ("", "cpu"):
        return program
    return each_body(program, lambda body: _body(body, filler == "both"))


def _body(nodes: Body, both: bool) -> Body:
    out: list[Node] = []
    for node in nodes:
        if isinstance(node, Repeat):
            out.append(replace(node, body=_body(node.body, both)))
        elif isinstance(node, Step) and node.op == "compute":
            out.append(Step("spin", {"ns": node["ns"], "stream": OTHER_STREAM}))
            out += [node] if both else []
            out.append(replace(synchronise("filler"), operands={"why": "filler", "stream": OTHER_STREAM}))
        else:
            out.append(node)
    return tuple(out)
