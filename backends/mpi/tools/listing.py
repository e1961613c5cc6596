"""The child process that lists the variables of the MPI library: ``python -m omb_py.backends.mpi.tools.listing``.

MPI_T can begin before MPI, so no rank starts and no launcher is needed.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from omb_py.backends.child import MARK
from omb_py.backends.mpi.start import load, vendor
from omb_py.backends.mpi.tools.interface import Interface
from omb_py.errors import EnvironmentProblem


def listing() -> dict[str, Any]:
    """Library, version, and its variables with their values and categories; ``reason`` where it has no MPI_T."""
    mpi = load()
    name, version = vendor(mpi)
    answer: dict[str, Any] = {"library": name, "version": version}
    try:
        interface = Interface(mpi, name)
    except EnvironmentProblem as problem:
        return {**answer, "reason": str(problem)}
    categories = interface.categories()
    answer["cvars"] = [
        {**asdict(variable), "value": _value(interface, variable), "category": categories.get(variable.name, "")}
        for variable in interface.control_variables()
    ]
    answer["pvars"] = [
        {**asdict(variable), "category": categories.get(variable.name, "")}
        for variable in interface.performance_variables()
    ]
    interface.close()
    return answer


def _value(interface: Interface, variable: Any) -> str:
    try:
        return interface.value(variable)
    except EnvironmentProblem:  # it is listed, and cannot be read now
        return ""


if __name__ == "__main__":
    print(MARK + json.dumps(listing()), flush=True)
