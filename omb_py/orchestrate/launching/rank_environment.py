"""Which Python runs the ranks, and in which environment: another than ours where two sides are compared."""

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
    """What is set on top of our own environment; None: not set."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for, for the provenance of a launch."""

    @property
    def names(self) -> tuple[str, ...]:
        """Variables that ranks on other nodes need too."""
        return tuple(name for name, value in self.variables.items() if value is not None)

    def environment(self, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The whole environment."""
        merged = {**ours, **self.variables}
        return {name: value for name, value in merged.items() if value is not None}


HERE = Where()
"""As omb-py itself."""
