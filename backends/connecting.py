"""How a rank joins its backend: it loads that one and no other, and no capabilities."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

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
