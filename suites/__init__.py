"""The benchmarks, by family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.suites.registry import BENCHMARKS, find, names

__all__ = ["BENCHMARKS", "find", "names"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omb_py.suites import registry  # a rank loads the families that it measures alone

    return getattr(registry, name)
