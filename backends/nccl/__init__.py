"""NCCL and RCCL: the same calls, under another library name on AMD GPUs (docs/nccl.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Backend
from omb_py.backends.nccl.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session


def _connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.nccl.session import NcclSession  # loads the library

    return NcclSession(spec)


BACKEND = Backend(CAPABILITIES, _connect)
