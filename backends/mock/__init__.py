"""The simulated backend: all ranks in one process, with a clock of their own (docs/mock.md)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.backends.capabilities import Backend
    from omb_py.backends.mock.session import MockSession
    from omb_py.engine.rank.link import LaunchSpec

    BACKEND: Backend


def connect(spec: LaunchSpec) -> MockSession:
    from omb_py.backends.mock.session import MockSession

    return MockSession(spec)


@cache
def __getattr__(name: str) -> object:
    if name != "BACKEND":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omb_py.backends.capabilities import Backend  # ranks need none of it
    from omb_py.backends.mock.capabilities import CAPABILITIES

    return Backend(CAPABILITIES, connect)
