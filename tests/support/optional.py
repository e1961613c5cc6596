"""Markers of tests that need a package which an installation may lack."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is optional: the extra gloo")
needs_tensorflow = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is optional, 274 MB: the extra tensorflow"
)
