"""Gloo through torch.distributed, on CPU tensors over TCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.engine.session import Probe, Session


class GlooBackend:
    """The backend as the registry sees it; PyTorch is loaded by ranks only."""

    name = "gloo"

    def probe(self) -> Probe:
        """Whether PyTorch is installed; it is not imported, which takes seconds."""
        from omb_py.backends.gloo.capabilities import probe

        return probe()

    def connect(self, spec: Mapping[str, Any]) -> Session:
        """Join the process group. Raises EnvironmentProblem."""
        from omb_py.backends.gloo.session import GlooSession

        return GlooSession(spec)


BACKEND = GlooBackend()
