"""Libraries with NCCL's C interface: NCCL, RCCL and oneCCL. Each is one row; all else is the same code.

What a function is called here is NCCL's name of it; numbers of types, reductions and results agree in all of them
(nccl.h, rccl.h, oneapi/ccl.h 2022.2), and where one lacks something, its capabilities say so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omb_py.engine.devices.registry import HOST, SIMULATED


@dataclass(frozen=True, eq=False)
class NcclFamily:
    """How a library differs from NCCL."""

    name: str
    backend: str
    prefix: str
    """What stands before its functions instead of ``nccl``."""
    variable: str
    """Names a file of the library, where it is not found by itself."""
    files: tuple[str, ...]
    """Names by which the system's loader may find it."""
    install: str
    """What to do where none is found."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Functions that it has under another name, with the same operands."""
    calls: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Steps that others have no call for -> (function, operands), as :data:`omb_py.backends.nccl.calls.CALLS`."""
    id_bytes: int = 128
    """Size of ``ncclUniqueId``, which functions take by value."""
    in_progress: int = 7
    """Its number of ``ncclInProgress``."""
    is_global: bool = False
    """Its plug-ins look for its symbols, so they are loaded for all."""
    usual: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set before it is loaded, where the user has not."""

    def symbol(self, function: str) -> str:
        """The library's name of a function of NCCL."""
        return self.also.get(function, self.prefix + function.removeprefix("nccl"))

    def folders(self) -> Sequence[Path]:
        """Folders of installed packages that hold it, besides those that the system's loader knows."""
        return ()

    def candidates(self, environ: Mapping[str, str] = os.environ) -> list[str]:
        """Paths where it may be: the variable's, or those of packages and then the system's."""
        if environ.get(self.variable):
            return [environ[self.variable]]
        stem = self.files[0].partition(".so")[0] if self.files else ""
        found = [str(path) for folder in self.folders() for path in sorted(folder.glob(f"{stem}.so*"))]
        return [*found, *self.files]


class NvidiaFamily(NcclFamily):
    """NCCL comes with the wheels nvidia-nccl-cu12 and -cu13."""

    def folders(self) -> Sequence[Path]:
        try:
            wheel = find_spec("nvidia.nccl")
        except ModuleNotFoundError:
            wheel = None
        return [Path(folder, "lib") for folder in (wheel.submodule_search_locations or ()) if wheel] if wheel else []


class OnecclFamily(NcclFamily):
    """oneCCL's wheel puts its files into the environment's own lib/; Intel's script sets CCL_ROOT."""

    def candidates(self, environ: Mapping[str, str] = os.environ) -> list[str]:
        if environ.get(self.variable):
            return [environ[self.variable]]
        roots = (sys.prefix, environ.get("CCL_ROOT", ""))
        files = (Path(root, "lib", self.files[0]) for root in roots if root)
        return [*(str(file) for file in files if file.exists()), *self.files]


_IN_VARIABLE: Final = "or name the library in"
NCCL: Final = NvidiaFamily(
    "NCCL",
    "nccl",
    "nccl",
    "OMB_PY_NCCL",
    ("libnccl.so.2", "libnccl.so"),
    f"pip install nvidia-nccl-cu13 (or -cu12, as the driver), {_IN_VARIABLE} OMB_PY_NCCL",
)
_OF_RCCL: Final = {
    "alltoallv": ("ncclAllToAllv", "send sent_counts sent_at recv received_counts received_at dtype comm stream")
}
RCCL: Final = NcclFamily(
    "RCCL",
    "nccl",
    "nccl",
    "OMB_PY_NCCL",
    ("librccl.so.1", "librccl.so"),
    f"install ROCm's rccl package, {_IN_VARIABLE} OMB_PY_NCCL",
    also={"ncclAlltoAll": "ncclAllToAll"},
    calls=_OF_RCCL,
)
SIMULATION: Final = NcclFamily(
    "NCCL",
    "nccl",
    "nccl",
    "OMB_PY_NCCL",
    (),
    "the simulated device needs a library that knows it: name it in OMB_PY_NCCL (tests/standin)",
    calls=_OF_RCCL,
)
ONECCL: Final = OnecclFamily(
    "oneCCL",
    "oneccl",
    "oneccl",
    "OMB_PY_ONECCL",
    ("libccl.so.2",),
    "pip install --no-deps oneccl && pip install --no-deps oneccl-cpu, in this order, and libfabric (apt install "
    f"libfabric1), {_IN_VARIABLE} OMB_PY_ONECCL",
    also={"ncclAlltoAll": "onecclAllToAll"},
    calls={
        "alltoallv": ("ncclAllToAllV", "send sent_counts recv received_counts dtype comm stream"),
        "bcast_from": ("ncclBroadcast", "send recv count dtype root comm stream"),
    },
    id_bytes=4096,
    in_progress=6,
    is_global=True,
    # ranks meet by the unique id alone; the caller does the work, since a thread that spins would take its core
    usual={"CCL_ATL_TRANSPORT": "ofi", "CCL_PROCESS_LAUNCHER": "none", "CCL_WORKER_OFFLOAD": "0"},
)
OF_DEVICE: Final[Mapping[str, NcclFamily]] = {HOST: ONECCL, "cuda": NCCL, "rocm": RCCL, SIMULATED: SIMULATION}
"""Device -> the library that moves what is on it."""
