"""The package as pip knows it: its name, and what to type for a part of it that is missing."""

from __future__ import annotations

import os
import shlex
from typing import Final

DISTRIBUTION: Final = "omb-bench"
"""The name on PyPI. ``omb-py``, the name of the command, belongs to another project there."""
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pip_install(extra: str) -> str:
    """The command that adds an extra: to the checkout where omb-py runs from one, else from PyPI."""
    if not os.path.isfile(os.path.join(_ROOT, "pyproject.toml")):
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    here = os.path.realpath(os.curdir) == os.path.realpath(_ROOT)
    return f"pip install -e {shlex.quote(f'{os.curdir if here else _ROOT}[{extra}]')}"
