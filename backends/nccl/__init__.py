"""NCCL and RCCL: the same calls, under another library name on AMD GPUs (docs/nccl.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.engine.session import Probe, Session


class NcclBackend:
    """The backend as the registry sees it; the library is loaded only when asked for."""

    name = "nccl"

    def probe(self) -> Probe:
        """Which library is here, found without loading it into this process."""
        from omb_py.backends.nccl.library import probe

        return probe()

    def connect(self, spec: Mapping[str, Any]) -> Session:
        """Choose the device, meet the other ranks, make the communicator. Raises EnvironmentProblem."""
        from omb_py.backends.nccl.session import NcclSession

        return NcclSession(spec)


BACKEND = NcclBackend()
