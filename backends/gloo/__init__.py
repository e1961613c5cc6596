"""Gloo through torch.distributed, on CPU tensors over TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Backend
from omb_py.backends.gloo.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session


def _connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.gloo.session import GlooSession  # loads PyTorch

    return GlooSession(spec)


BACKEND = Backend(CAPABILITIES, _connect)
