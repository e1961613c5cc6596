"""Capabilities of the simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omb_py.backends.capabilities import Capabilities, Inspection, OwnOption


class MockCapabilities(Capabilities):
    """The simulation works on every machine."""

    def inspect(self) -> Capabilities:
        facts = {"what it is": "a simulation of all ranks in one process; nothing is measured"}
        return replace(self, inspection=Inspection(library="mock", version="1.0", facts=facts))


def _add_nodes(text: str, nodes: int) -> str:
    return text if "nodes=" in text else ",".join(filter(None, (text, f"nodes={nodes}")))


def _nodes_of(text: str) -> int:
    from omb_py.backends.mock.config import parse  # a command that only lists backends reads no settings

    return parse(text).nodes


CAPABILITIES: Final = MockCapabilities(
    "mock",
    buffers=("numpy", "bytearray", "array"),
    priority=90,
    refused={
        "process_sync": {
            "roundtime": "backend mock has one clock for all ranks, so it takes no --process-sync roundtime"
        },
        "cache": {"rotate": "backend mock has no caches, so it takes no --cache rotate: use --backend mpi"},
    },
    in_process=True,
    simulated=True,
    resizes=True,
    option=OwnOption(
        "TEXT",
        "Settings of the simulated cluster of --backend mock.",
        "none",
        run_wide=True,
        on_nodes=_add_nodes,
        nodes_of=_nodes_of,
    ),
)
