"""Capabilities with other methods, as another backend has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from omb_py.backends.capabilities import Capabilities


def with_methods(capabilities: Capabilities, **methods: Callable[..., Any]) -> Capabilities:
    """The same capabilities, of a subclass with these methods."""
    kind = type("Changed", (type(capabilities),), methods)
    return kind(**{field.name: getattr(capabilities, field.name) for field in fields(capabilities)})
