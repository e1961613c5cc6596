"""The capabilities of MPI. A child process tells which library it is, so that a broken one harms nobody."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omb_py.backends.capabilities import Capabilities, Check, Inspection, LibraryKnobs, usable
from omb_py.engine.devices.registry import GPU_KINDS, EveryKind, find_kind
from omb_py.engine.measuring.process_sync import ADDED
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import BUFFERS, OBJECT, ON_DEVICE
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.mpiexec import find_mpiexec

_TEXT_CHARACTERS = 200


class MpiCapabilities(Capabilities):
    """Asks the library in child processes."""

    def inspect(self) -> Capabilities:
        library = mpi_library()
        devices = {"cpu": "", **{kind: find_kind(kind).problem() for kind in GPU_KINDS}}
        if not library.available:
            bindings = dict.fromkeys(self.bindings, library.reason)
            return replace(self, bindings=bindings, devices=devices, inspection=Inspection(library.reason, library.fix))
        text = " ".join(library.text.split())[:_TEXT_CHARACTERS]
        facts = {"library text": text, "libmpi": library.path, "mpi4py": library.mpi4py}
        try:
            mpiexec = find_mpiexec(library, os.environ)
            facts["mpiexec"] = f"{mpiexec.path} ({mpiexec.vendor} {mpiexec.version})"
        except EnvironmentProblem as problem:
            facts["mpiexec"] = str(problem)
        inspection = Inspection(library=library.vendor, version=library.version, facts=facts)
        return replace(self, devices=devices, inspection=inspection)

    def checks(self) -> Sequence[Check]:
        from omb_py.backends.mpi.aware import probe

        lines = []
        for device in GPU_KINDS:
            support = probe(device)
            yes = f"{self.inspection.library} takes buffers on {device} ({support.how})"
            text = yes if support.aware else support.reason
            lines.append(Check(f"  MPI on {device}", support.aware, text, support.fix, device))
        return lines

    def knobs(self) -> LibraryKnobs:
        from omb_py.backends.mpi.tools.knobs import library_knobs

        return library_knobs()

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        if cell.buffer == OBJECT and cell.options.process_sync in ADDED:
            return f"--process-sync {cell.options.process_sync} sends no Python objects: take barrier or none"
        if cell.device != "cpu" and cell.options.process_sync == "roundtime":
            return "--process-sync roundtime needs buffers on the host: take barrier or dissemination"
        if "op" in benchmark.options and cell.dtype == "bfloat16" and cell.options.op != "sum":
            # MPICH 5.0.2 ends the process at any other
            return f"reduction {cell.options.op} is not defined for bfloat16 in MPI's libraries: --op sum"
        return ""


CAPABILITIES: Final = MpiCapabilities(
    "mpi",
    bindings=usable("native", "mpi4py"),
    devices=EveryKind(),
    buffers=BUFFERS,
    device_buffers=ON_DEVICE,
    priority=0,
    mpi_sessions=True,
)
