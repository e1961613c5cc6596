"""Gloo through torch.distributed, on CPU tensors over TCP."""

from __future__ import annotations

from omb_py.backends.connecting import offer_backend

connect, __getattr__ = offer_backend(__name__, "GlooSession")
