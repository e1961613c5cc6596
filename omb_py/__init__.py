"""omb-py: communication benchmarks over MPI, NCCL/RCCL and Gloo, in Python."""

from __future__ import annotations

from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.api import run
    from omb_py.results import load

__all__ = ["__version__", "load", "run"]

__version__ = "0.1.0"

# In a checkout the folders stand side by side; an installed omb-py has them inside (docs/architecture.md).
_ROOT = _Path(__file__).resolve().parent.parent
if (_ROOT / "pyproject.toml").is_file() and not (_ROOT / "omb_py" / "backends").exists():
    __path__.append(str(_ROOT))


def __getattr__(name: str) -> Any:
    if name == "run":
        from omb_py.api import run

        return run
    if name == "load":
        from omb_py.results import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
