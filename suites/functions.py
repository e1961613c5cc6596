"""The benchmark ``function``: a communication function of somebody's own code, as the pytest plugin measures it.

It has no program of steps: the function makes the calls, on an mpi4py communicator of all ranks.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from omb_py.backends.registry import capabilities, capabilities_of
from omb_py.digests import hex_digest
from omb_py.engine.program.benchmark import Benchmark, Cell, Counts, Metric
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.suites.shared import no_bytes
from omb_py.suites.startup import ONE_OR_MORE, no_steps

if TYPE_CHECKING:
    from omb_py.backends.capabilities import Capabilities
    from omb_py.engine.measuring.cell_result import CellResult
    from omb_py.engine.measuring.measure import Phase
    from omb_py.engine.session import Session

ITERATIONS, WARMUP = 100, 10
_LAP = "call"


@dataclass(frozen=True, slots=True)
class Target:
    """A function that ranks can find."""

    module: str
    """Name under which it may be imported."""
    file: str
    """Path of its module; it counts where the name leads elsewhere or nowhere."""
    function: str
    setup: str = ""
    """Function of the same module that makes the arguments from the communicator; empty: `arguments`."""
    arguments: tuple[object, ...] = ()
    """Arguments after the communicator, as JSON can hold them."""

    def text(self) -> str:
        """The target as text, for a cell."""
        return json.dumps(asdict(self), sort_keys=True)


def target_of(
    function: Callable[..., object], setup: Callable[..., object] | None = None, arguments: Sequence[object] = ()
) -> Target:
    """Describe a function, so that fresh processes can find it.

    Raises:
        UsageError: it is not a function at the top of a module, its call runs nothing, its setup is of another module,
            or the arguments do not fit into JSON.
    """
    named = [_source_position(function), *([_source_position(setup)] if setup is not None else [])]
    if len({module for module, _, _ in named}) > 1:
        raise UsageError(f"setup {named[1][2]} must stand in the module of {named[0][2]}: ranks load that one only")
    try:
        json.dumps(list(arguments))
    except (TypeError, ValueError) as error:
        raise UsageError(f"arguments of {named[0][2]} go to fresh processes as JSON ({error}): use setup=") from None
    module, file, name = named[0]
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(f"a call of {name} runs none of its lines: give a plain function that does, as by asyncio.run")
    return Target(module, file, name, named[1][2] if setup is not None else "", tuple(arguments))


def _source_position(function: Callable[..., object]) -> tuple[str, str, str]:
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if not name or not file or "<" in name or getattr(module, name.split(".")[0], None) is None:
        raise UsageError(
            f"{name or function!r} cannot be found by fresh processes: define it at the top of a module, and give the "
            "values that it needs by setup= or args="
        )
    return str(function.__module__), str(Path(file).resolve()), name


def parse_target(text: str) -> Target:
    """Read a target. Raises UsageError."""
    try:
        fields = dict(json.loads(text))
        return Target(**{**fields, "arguments": tuple(fields["arguments"])})
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"not a function to measure: {error}: pytest --omb-py makes this text") from None


def loaded(target: Target) -> ModuleType:
    """Import the module of a target. Raises EnvironmentProblem with the reason."""
    try:
        spec = importlib.util.find_spec(target.module)
    except (ImportError, ValueError, AttributeError):
        spec = None
    try:
        if spec is not None and spec.origin and Path(spec.origin).resolve() == Path(target.file):
            return importlib.import_module(target.module)
        sys.path.insert(0, str(Path(target.file).parent))  # modules beside a test file
        spec = importlib.util.spec_from_file_location(f"omb_py_{Path(target.file).stem}", target.file)
        if spec is None or spec.loader is None:
            raise ImportError("it is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        raise EnvironmentProblem(f"ranks cannot load {target.file}: {type(error).__name__}: {error}") from error
    return module


class Caller:
    """Calls the function. The watchdog asks it for its position."""

    labels = ("a call of the function",)

    def __init__(self, session: Session, target: Target) -> None:
        self.session, self.target = session, target
        module = loaded(target)
        self.communicator: object = getattr(session, "world", None)
        if self.communicator is None:
            raise EnvironmentProblem("ranks of this backend have no mpi4py communicator for functions")
        self.function: Callable[..., object] = _inner(module, target.function)
        self.number = 0
        make = _inner(module, target.setup) if target.setup else None
        arguments = self._guarded(make, self.communicator) if make else target.arguments
        self.arguments: tuple[object, ...] = arguments if isinstance(arguments, tuple) else (arguments,)

    def position(self) -> tuple[int, int]:
        """(call, index of the label)."""
        return self.number, 0

    def timed(self, number: int) -> int:
        """Call the function once, which all ranks begin together; the time in ns."""
        self.number = number
        self.session.barrier()
        began = time.perf_counter_ns()
        self._guarded(self.function, self.communicator, *self.arguments)
        return time.perf_counter_ns() - began

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call; what the function raises becomes one line. Raises EnvironmentProblem."""
        try:
            return function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, and what pytest.skip and pytest.fail raise
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == self.target.file]
            at = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
            name = getattr(function, "__qualname__", str(function))
            rank = self.session.local[0]
            said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            raise EnvironmentProblem(f"{name} failed on rank {rank}: {said}{at}") from error


def _inner(module: ModuleType, name: str) -> Callable[..., Any]:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise EnvironmentProblem(f"{module.__file__} has no function {name}")
    return value  # type: ignore[no-any-return]


def run(session: Session, cell: Cell, phase: Phase) -> CellResult:
    """Call the function of `cell.options.workload` on all ranks, after its warm-ups, and time each call.

    Raises:
        UsageError, EnvironmentProblem: the function cannot be loaded or has failed.
    """
    import numpy as np

    from omb_py.engine.measuring.cell_result import CellResult, LapSeries

    target = parse_target(cell.options.workload)
    caller = Caller(session, target)
    session.watch(caller)
    phase("loop")
    for number in range(-cell.sampling.warmup, 0):
        caller.timed(number)
    own = np.array([caller.timed(number) for number in range(cell.sampling.iterations)]) / 1000
    phase("write")
    version = hex_digest(target.text())[:16]
    result = CellResult(cell, cell.sampling.iterations, "fixed", version)
    slowest, whole = session.maximum(own), session.total(own)
    result.series[_LAP] = LapSeries(max=slowest, avg=whole / session.size)
    ranks = sorted(session.gather((session.local[0], float(own.mean()), float((own >= slowest).mean()))))
    result.laps[_LAP] = [mean for _, mean, _ in ranks]
    result.slowest_rank_share = [share for _, _, share in ranks]
    return result


def refuses(cell: Cell) -> str:
    """Why a backend cannot run functions; empty if it can: they get an mpi4py communicator."""
    if _has_ranks_of_mpi(capabilities(cell.backend)):
        return ""
    able = [name for name, each in capabilities_of().items() if _has_ranks_of_mpi(each)]
    return f"functions get an mpi4py communicator, which {cell.backend} has not: use backend {' or '.join(able)}"


def _has_ranks_of_mpi(known: Capabilities) -> bool:
    return known.start.needs_mpi and not known.in_process


def fits(cell: Cell, ranks: int) -> None:
    """Check the text of a target. Raises UsageError."""
    parse_target(cell.options.workload or "{}")


FUNCTION = Benchmark(
    "function",
    "function",
    "a communication function of your own code, by the pytest plugin",
    no_steps,  # no call is known before the function makes it
    Metric("us", "mean over ranks of a call", lap=_LAP),
    None,
    Counts(ITERATIONS, WARMUP, ITERATIONS, WARMUP),
    ONE_OR_MORE,
    "all",
    "char",
    frozenset({"workload"}),
    no_bytes,
    refuses=refuses,
    fits=fits,
    runs=run,
)
BENCHMARKS = {FUNCTION.name: FUNCTION}
"""Benchmarks that are found by name, but not listed: ``function`` belongs to the pytest plugin."""
