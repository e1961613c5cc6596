"""MPI or Gloo on the simulated device: ``python -m tests.support.sessions.device_cells FILE CELLS BACKEND``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from omb_py.backends.registry import find as backend
from omb_py.engine.devices.buffers import DeviceRenderer, DeviceResolver
from omb_py.engine.measuring import validate
from tests.support.sessions.nccl_cells import measured, rotate_little


def classes(name: str, binding: str) -> tuple[Any, Any]:
    """What runs a cell of a backend, and what resolves its steps."""
    if name == "gloo":
        from omb_py.backends.gloo.devices import GlooDeviceRunner

        return GlooDeviceRunner, DeviceRenderer
    from omb_py.backends.mpi.devices import BoundDeviceRunner, DeviceRunner

    return (BoundDeviceRunner, DeviceRenderer) if binding == "mpi4py" else (DeviceRunner, DeviceResolver)


def main() -> None:
    """One rank; rank 0 writes what each cell gave."""
    rotate_little()
    validate.ITERATIONS = 3
    name = json.loads(sys.argv[3])
    session = backend(name).connect(
        {"thread_level": "single", "device": "sim", "ranks": int(os.environ.get("WORLD_SIZE", "0")) or None}
    )
    usual, found = session.buffers, []
    for cell in json.loads(sys.argv[2]):
        placement = cell.get("placement", "")
        # a launch has one placement: here one process stands for several launches
        session.buffers = session._make_device_buffers(usual.device, placement) if placement else usual
        done = measured(session, cell, *classes(name, cell.get("binding", "")))
        done["resides"] = sorted({*getattr(usual.device, "resides", {}).values()})
        found.append(session.gather(done))
        while usual.device.busy():  # where a synchronise was left out
            for stream in usual.device.streams:
                usual.device.call("synchronise", stream)
        if placement:
            session.buffers.memory.close()
    session.buffers = usual
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main()
