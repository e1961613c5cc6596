"""The simulated backend: all ranks in one process, with a clock of their own (docs/mock.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.backends.mock.session import MockSession
    from omb_py.engine.session import Probe

__all__ = ["BACKEND", "MockBackend"]


class MockBackend:
    """The backend ``mock``. NumPy is imported only when something is asked of it."""

    name = "mock"

    def probe(self) -> Probe:
        """It works everywhere."""
        from omb_py.engine.session import Probe

        return Probe(
            self.name,
            available=True,
            library="mock",
            version="1.0",
            bindings={"native": ""},
            devices={"cpu": ""},
            buffers=("numpy", "bytearray", "array"),
            facts={"what it is": "a simulation of all ranks in one process; nothing is measured"},
        )

    def connect(self, spec: Mapping[str, Any]) -> MockSession:
        """A session of ``spec["ranks"]`` simulated ranks.

        Args:
            spec: `ranks`; and `launch_index`, `seed`, `mock` (text of costs and faults), `thread_level`,
                which may be left out.

        Raises:
            UsageError: a setting is wrong.
        """
        from omb_py.backends.mock.session import MockSession

        return MockSession(spec)


BACKEND = MockBackend()
