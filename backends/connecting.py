"""How a rank joins its backend: it loads that one and no other, and no capabilities."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session


def connect(spec: LaunchSpec) -> Session:
    """Join the ranks of a launch. Raises EnvironmentProblem where the backend cannot."""
    name = str(spec["backend"])
    if os.path.isdir(os.path.join(os.path.dirname(__file__), name)):
        session: Session = import_module(f"omb_py.backends.{name}").connect(spec)
        return session
    from omb_py.backends.registry import find  # it is of another package

    return find(name).connect(spec)


def offer_backend(package: str, session: str) -> tuple[Callable[[LaunchSpec], Session], Callable[[str], Any]]:
    """Make the ``connect`` and the ``__getattr__`` of a backend's package, which loads its parts when they are used.

    Args:
        package: its name.
        session: the class in its module ``session`` that joins the ranks.
    """

    def join(spec: LaunchSpec) -> Session:
        joined: Session = getattr(import_module(f"{package}.session"), session)(spec)
        return joined

    @cache
    def find_attribute(name: str) -> Any:
        if name != "BACKEND":
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from omb_py.backends.capabilities import Backend  # ranks need none of it

        return Backend(import_module(f"{package}.capabilities").CAPABILITIES, join)

    return join, find_attribute
