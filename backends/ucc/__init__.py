"""UCC on host memory, through the calls of ``ucc.h`` (docs/ucc.md)."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "UccSession")
