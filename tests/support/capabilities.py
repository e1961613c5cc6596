"""Capabilities with other methods, as another backend has them, and the benchmarks that a backend has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import find
from omb_py.options.table import usual_cell
from omb_py.suites.registry import BENCHMARKS


def benchmarks_of(backend: str) -> tuple[str, ...]:
    """Names of the benchmarks that a backend has."""
    capabilities = find(backend).capabilities
    return tuple(name for name, each in BENCHMARKS.items() if not capabilities.why_not(each, usual_cell(each)))


def with_methods(capabilities: Capabilities, **methods: Callable[..., Any]) -> Capabilities:
    """The same capabilities, of a subclass with these methods."""
    kind = type("Changed", (type(capabilities),), methods)
    return kind(**{field.name: getattr(capabilities, field.name) for field in fields(capabilities)})
