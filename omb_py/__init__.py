"""omb-py: communication benchmarks over MPI, NCCL/RCCL and Gloo, in Python.

The public names are those of this module's ``__all__``, of :mod:`omb_py.plugin` and of :mod:`omb_py.reframe`;
everything else is private.
"""

from __future__ import annotations

from importlib import import_module as _import_module

TYPE_CHECKING = False  # typing's own takes milliseconds, in which Ctrl-C would print a traceback
if TYPE_CHECKING:
    from omb_py.api import accept, compare, compare_commands, guidelines, links, report, run
    from omb_py.api_results import (
        Acceptance,
        CellVerdict,
        Comparison,
        CriterionVerdict,
        GuidelineCheck,
        GuidelineVerdict,
        LinkCheck,
        LinkVerdict,
        ReportPage,
        RunResult,
        Side,
    )
    from omb_py.errors import EnvironmentProblem, Interrupted, LaunchFailed, NoVerdict, OmbError, UsageError
    from omb_py.options.request import Request
    from omb_py.results.store.read import load

__all__ = [
    "Acceptance",
    "CellVerdict",
    "Comparison",
    "CriterionVerdict",
    "EnvironmentProblem",
    "GuidelineCheck",
    "GuidelineVerdict",
    "Interrupted",
    "LaunchFailed",
    "LinkCheck",
    "LinkVerdict",
    "NoVerdict",
    "OmbError",
    "ReportPage",
    "Request",
    "RunResult",
    "Side",
    "UsageError",
    "__version__",
    "accept",
    "compare",
    "compare_commands",
    "guidelines",
    "links",
    "load",
    "report",
    "run",
]

__version__ = "0.1.0"

# Modules of the names that are not in api: importing omb_py loads none of them.
_HOME = {
    "load": "results.store.read",
    "Request": "options.request",
    **dict.fromkeys(
        ("EnvironmentProblem", "Interrupted", "LaunchFailed", "NoVerdict", "OmbError", "UsageError"), "errors"
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_HOME.get(name, 'api')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
