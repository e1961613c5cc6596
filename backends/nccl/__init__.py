"""NCCL and RCCL: the same calls, under another library name on AMD GPUs (docs/nccl.md)."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "NcclSession")
