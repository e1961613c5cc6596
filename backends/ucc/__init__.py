"""UCC on host memory, through the calls of ``ucc.h`` (docs/ucc.md)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.backends.capabilities import Backend
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session

    BACKEND: Backend


def connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.ucc.session import UccSession  # loads the library

    return UccSession(spec)


@cache
def __getattr__(name: str) -> object:
    if name != "BACKEND":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omb_py.backends.capabilities import Backend  # ranks need none of it
    from omb_py.backends.ucc.capabilities import CAPABILITIES

    return Backend(CAPABILITIES, connect)
