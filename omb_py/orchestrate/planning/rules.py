"""Options that contradict each other, the benchmark, or the backends: one rule for each contradiction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities_of
from omb_py.engine.devices.registry import HOST
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.buffers import OBJECT
from omb_py.engine.program.dtypes import FACTORED
from omb_py.errors import UsageError
from omb_py.options.measured import VARIED_WINDOWS
from omb_py.options.request import Request
from omb_py.options.table import takes


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What rules look at."""

    request: Request
    benchmark: Benchmark
    offers: Mapping[str, Capabilities]
    """Capabilities of the request's backends, by name."""

    def given(self, *names: str) -> str:
        """The spelling of the first of some options that is given; empty where none is."""
        flags = {"in_place": "-l/--in-place", "imbalance": "--imbalance", "ddt": "-D/--ddt"}
        return next((flags[name] for name in names if self.request.options.get(name)), "")

    def every(self, ability: Callable[[Capabilities], bool]) -> bool:
        """Whether all backends of the request have an ability."""
        return all(ability(self.offers[name]) for name in self.request.backends)


@dataclass(frozen=True, slots=True)
class OptionRule:
    """One contradiction of options."""

    about: str
    """The option without which the rule says nothing."""
    why: Callable[[RuleContext], str]
    """Why the request is refused, with what to do; empty where it is accepted."""


def _layout(on: RuleContext) -> str:
    what = on.given("in_place", "imbalance")
    return f"-D/--ddt does not go together with {what}: leave one of them out" if what else ""


def _groups_on_arrays(on: RuleContext) -> str:
    on_device = on.request.devices != (HOST,) and not on.every(lambda offer: offer.asynchronous)
    if on.request.buffer == OBJECT or on_device:
        return "--groups is for arrays on the host, or on devices with NCCL: leave out --buffer object and --device"
    return ""


def _groups_apart(on: RuleContext) -> str:
    if on.request.options.process_sync != "roundtime":
        return ""
    return (
        "--process-sync roundtime starts all ranks together, and --groups do not wait for each other: "
        "use barrier or dissemination"
    )


def _traffic(on: RuleContext) -> str:
    what = on.given("in_place", "imbalance", "ddt")
    return f"--traffic does not go together with {what}: leave one of them out" if what else ""


def _thread_level(on: RuleContext) -> str:
    needed, level = on.benchmark.needs.thread_level, on.request.launching.thread_level
    if needed != "multiple" or level == needed:
        return ""
    return f"{on.benchmark.name} needs --thread-level {needed}, not {level}: leave it out"


def _windows(on: RuleContext) -> str:
    if on.request.options.window is None:
        return ""
    return f"-V/--vary-window takes the windows {', '.join(map(str, VARIED_WINDOWS))} in turn: leave out -W"


def _session(on: RuleContext) -> str:
    if on.every(lambda offer: offer.mpi_sessions):
        return ""
    able = " or ".join(name for name, offer in on.offers.items() if offer.mpi_sessions)
    return f"-I/--session begins MPI with a session: leave it out, or use --backend {able} alone"


RULES = (
    OptionRule("ddt", _layout),
    OptionRule("groups", _groups_on_arrays),
    OptionRule("groups", _groups_apart),
    OptionRule("traffic", _traffic),
    OptionRule("thread_level", _thread_level),
    OptionRule("vary_window", _windows),
    OptionRule("session", _session),
)
"""All rules, in the order in which they are checked."""


def factored_problem(on: RuleContext) -> str:
    """Why a reduction that MPI does not define is refused: none of the backends has it."""
    op = on.request.options.op
    if not takes(on.benchmark, "op") or op not in FACTORED:
        return ""
    if any(op in on.offers[backend].ops for backend in on.request.backends):
        return ""
    able = " or ".join(name for name, offer in capabilities_of().items() if op in offer.ops)
    return f"--op {op} is not in backend {' or '.join(on.request.backends)}: --backend {able}, or --op sum"


def check_rules(on: RuleContext) -> None:
    """Raises UsageError for the first rule that the request breaks."""
    for rule in RULES:
        if on.request.get(rule.about) and (why := rule.why(on)):
            raise UsageError(why)
