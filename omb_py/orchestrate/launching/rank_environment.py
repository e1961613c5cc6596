"""Python and environment of the ranks. They differ from our own where two sides are compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Where:
    """The Python and the environment of ranks."""

    python: str = sys.executable
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Changes to our own environment; None removes a variable."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Provenance of the launch: the Python and variables that were asked for."""

    @property
    def names(self) -> tuple[str, ...]:
        """Variables that ranks on other nodes need too."""
        return tuple(name for name, value in self.variables.items() if value is not None)

    def environment(self, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The whole environment of the ranks."""
        merged = {**ours, **self.variables}
        return {name: value for name, value in merged.items() if value is not None}


HERE = Where()
"""The Python and environment of omb-py itself."""
