"""A queue between threads, without the rest of :mod:`queue`, which loads the heaps of its other classes."""

from __future__ import annotations

try:
    from _queue import Empty, SimpleQueue
except ImportError:  # a Python that was built without it
    from queue import Empty, SimpleQueue

__all__ = ["Empty", "SimpleQueue"]
