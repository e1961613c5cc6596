"""NCCL and RCCL: the same calls, under another library name on AMD GPUs (docs/nccl.md)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.backends.capabilities import Backend
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session

    BACKEND: Backend


def connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.nccl.session import NcclSession  # loads the library

    return NcclSession(spec)


@cache
def __getattr__(name: str) -> object:
    if name != "BACKEND":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omb_py.backends.capabilities import Backend  # ranks need none of it
    from omb_py.backends.nccl.capabilities import CAPABILITIES

    return Backend(CAPABILITIES, connect)
