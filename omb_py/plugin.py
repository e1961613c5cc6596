"""Everything that another package imports to extend omb-py (docs/extending.md).

A benchmark is a :class:`Benchmark` whose ``program`` makes a :class:`Program` of `steps` (:mod:`steps
<omb_py.engine.program.steps>`, one-sided ones in `rma`); its entry-point group is ``omb_py.benchmarks``. A backend is a
:class:`Backend`; its group is ``omb_py.backends``. A :class:`Launcher` starts ranks; its group is ``omb_py.launchers``.
A :class:`DeviceKind` is a device that holds buffers; its group is ``omb_py.devices``. An :class:`Observer` reads
counters around the timed loop; its group is ``omb_py.observers``. A :class:`TextReader` or :class:`WholeReader` reads
another tool's files into rows; its group is ``omb_py.readers``. A :class:`Dialect` is a tool with all that omb-py knows
of it; its group is ``omb_py.dialects``. A :class:`ViewEntry` is a view of report and explorer; its group is
``omb_py.views``. A :class:`Command` is a command of ``omb-py``; its group is ``omb_py.commands``. A :class:`Framework`
spreads what ``omb-py train`` trains; its group is ``omb_py.frameworks``.

Importing this module loads nothing heavy, since every command reads the names of benchmarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Backend, Capabilities, Check, Inspection, OwnOption, RankStart, usable
from omb_py.cli.registry import Command
from omb_py.dashboards.base.view import InReport, Shown, View, ViewEntry, table
from omb_py.engine.devices import Device
from omb_py.engine.devices.kind import DeviceKind, GpuKind, MpiSupport
from omb_py.engine.observers.observer import Observer
from omb_py.engine.program import rma, steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric, Needs, RankRule, Sizes, World
from omb_py.engine.program.language import (
    Blocks,
    Buffer,
    Lap,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Result,
    Stage,
    Step,
    body,
    request_count,
)
from omb_py.engine.session import Runner, Session, StepFailed
from omb_py.errors import EnvironmentProblem, LaunchFailed, OmbError, UsageError
from omb_py.launchers.launcher import BatchSystem, LaunchCommand, Launcher, RankRequest, RankVariables
from omb_py.results.dialects.dialect import Dialect, TextOptions, Transcript
from omb_py.results.dialects.log_lines import LogLine
from omb_py.results.dialects.reading import BadTable, Context, ImportedTable, Parsed, Problem, TextReader, WholeReader
from omb_py.results.store.row import Row
from omb_py.suites.shared import (
    BANDWIDTH_COUNTS,
    COLLECTIVE_COUNTS,
    COLLECTIVE_SIZES,
    EVEN,
    EXACTLY_TWO,
    LATENCY_COUNTS,
    ONE_WAY,
    PER_CALL,
    POWER_OF_TWO,
    PT2PT_SIZES,
    REDUCTION_SIZES,
    TWO_OR_MORE,
    message_bytes,
    window_bytes,
)
from omb_py.suites.training.frameworks import Framework

if TYPE_CHECKING:
    from omb_py.engine.python_loop.loop import Objects, compile_stage, index_of
    from omb_py.launchers.machine import LaunchMachine

__all__ = [
    "BANDWIDTH_COUNTS",
    "COLLECTIVE_COUNTS",
    "COLLECTIVE_SIZES",
    "EVEN",
    "EXACTLY_TWO",
    "LATENCY_COUNTS",
    "ONE_WAY",
    "PER_CALL",
    "POWER_OF_TWO",
    "PT2PT_SIZES",
    "REDUCTION_SIZES",
    "TWO_OR_MORE",
    "Backend",
    "BadTable",
    "BatchSystem",
    "Benchmark",
    "Blocks",
    "Buffer",
    "Capabilities",
    "Cell",
    "Check",
    "Command",
    "Context",
    "Counts",
    "Device",
    "DeviceKind",
    "Dialect",
    "EnvironmentProblem",
    "Framework",
    "GpuKind",
    "ImportedTable",
    "InReport",
    "Inspection",
    "Lap",
    "LaunchCommand",
    "LaunchFailed",
    "LaunchMachine",
    "Launcher",
    "LogLine",
    "Metric",
    "MpiSupport",
    "Needs",
    "Objects",
    "Observer",
    "OmbError",
    "OwnOption",
    "Parsed",
    "Problem",
    "Program",
    "RankRequest",
    "RankRule",
    "RankStart",
    "RankVariables",
    "Region",
    "Repeat",
    "RequestSlot",
    "Requests",
    "Result",
    "Row",
    "Runner",
    "Session",
    "Shown",
    "Sizes",
    "Stage",
    "Step",
    "StepFailed",
    "TextOptions",
    "TextReader",
    "Transcript",
    "UsageError",
    "View",
    "ViewEntry",
    "WholeReader",
    "World",
    "body",
    "compile_stage",
    "index_of",
    "message_bytes",
    "request_count",
    "rma",
    "steps",
    "table",
    "usable",
    "window_bytes",
]


def __getattr__(name: str) -> object:
    if name in ("Objects", "compile_stage", "index_of"):  # these load NumPy
        from omb_py.engine.python_loop import loop

        return getattr(loop, name)
    if name == "LaunchMachine":  # for annotations
        from omb_py.launchers.machine import LaunchMachine

        return LaunchMachine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
