"""The simulated backend: all ranks in one process, with a clock of their own (docs/mock.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Backend
from omb_py.backends.mock.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from omb_py.backends.mock.session import MockSession
    from omb_py.engine.rank.link import LaunchSpec


def _connect(spec: LaunchSpec) -> MockSession:
    from omb_py.backends.mock.session import MockSession

    return MockSession(spec)


BACKEND = Backend(CAPABILITIES, _connect)
