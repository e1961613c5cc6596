"""The simulated backend: all ranks in one process, with a clock of their own (docs/mock.md)."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "MockSession")
