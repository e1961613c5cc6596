"""What tests cost in processor time: ``python -m pytest -p tests.lab.costs PATH…`` prints the dearest at the end.

With ``-n``, the costs of all workers are added. ``OMB_PY_COSTS=FILE`` writes what every test costs to a file of JSON.

Processor time of the test's own process and of the children that it waited for hardly depends on who else is working on
the machine; wall time does. Children that spin while they wait still cost more on a busy machine.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MOST = 25
"""Lines of each table."""

_seconds: dict[str, float] = {}


def _spent() -> float:
    """Processor seconds of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what a test costs, with the fixtures that are set up for it first."""
    began = _spent()
    result = yield
    _seconds[item.nodeid] = _spent() - began
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands its costs to the process that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["costs"] = _seconds


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the costs of a worker that has ended."""
    _seconds.update(getattr(node, "workeroutput", {}).get("costs", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the dearest tests and files."""
    if path := os.environ.get("OMB_PY_COSTS"):
        Path(path).write_text(json.dumps(_seconds, indent=0))
    files: defaultdict[str, float] = defaultdict(float)
    for name, seconds in _seconds.items():
        files[name.partition("::")[0]] += seconds
    for title, table in (("files", files), ("tests", _seconds)):
        terminalreporter.section(f"processor seconds of the dearest {title}, {sum(table.values()):.0f} in all")
        for name, seconds in sorted(table.items(), key=lambda entry: -entry[1])[:MOST]:
            terminalreporter.line(f"{seconds:8.2f}  {name}")
