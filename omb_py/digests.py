"""SHA-256 and HMAC without OpenSSL, which ``hashlib`` and ``hmac`` load: a start digests too little for that."""

from __future__ import annotations

import sys

try:  # to look for a module of another version would take a rank longer than all this
    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:
        from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # a Python that was built without it
    from hashlib import sha256

__all__ = ["hex_digest", "hmac_sha256", "sha256"]

_BLOCK = 64
"""Bytes of a block of SHA-256."""


def hex_digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    digits: str = sha256(text.encode(errors="surrogateescape")).hexdigest()
    return digits


def hmac_sha256(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 (RFC 2104) in hexadecimal."""
    key = (sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    digits: str = sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()
    return digits
