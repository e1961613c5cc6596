"""oneCCL on host memory, through its C interface, which is NCCL's (docs/oneccl.md)."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "OnecclSession")
