"""Digests are those of ``hashlib`` and ``hmac``, and load no OpenSSL."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

import pytest

from omb_py.digests import hex_digest, hmac_sha256
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize("length", [0, 1, 55, 63, 64, 65, 200])
def test_they_are_those_of_the_standard_library(length: int) -> None:
    key, message = bytes(range(length)), b"caller 1 2" * length
    assert hmac_sha256(key, message) == hmac.new(key, message, hashlib.sha256).hexdigest()
    assert hex_digest("ü" * length) == hashlib.sha256(("ü" * length).encode()).hexdigest()


def test_no_openssl_is_loaded() -> None:
    code = "import sys, omb_py.digests; sys.exit('_hashlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE_S).returncode == 0
