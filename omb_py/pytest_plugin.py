"""The pytest plugin: ``pytest --omb-py`` and the fixture ``comm_benchmark`` (docs/pytest.md).

A test gives the fixture a function of its own project. Fresh ranks call it, and each launch is one sample, because two
launches differ by more than two calls in one of them. pytest-benchmark prints, stores and compares these samples.
Loading this module loads neither omb-py's engine nor pytest-benchmark.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pandas as pd

LAUNCHES, ITERATIONS, WARMUP, TIMEOUT_S = 5, 100, 10, 60.0


@dataclass(frozen=True, slots=True)
class CommResult:
    """What a function took."""

    medians_us: tuple[float, ...]
    """For each launch, the median over its calls of the time of the slowest rank, in µs."""
    frame: pd.DataFrame
    """A row for each launch, with the columns of the store (docs/store.md)."""

    @property
    def median_us(self) -> float:
        """Median over the launches, in µs."""
        return statistics.median(self.medians_us)


class CommBenchmark:
    """The fixture ``comm_benchmark``. Call it once in a test."""

    def __init__(self, request: pytest.FixtureRequest, measures: bool, store: str | None) -> None:
        self._request, self._measures, self._store = request, measures, store
        self._called = False

    def __call__(
        self,
        function: Callable[..., object],
        *,
        ranks: int = 2,
        setup: Callable[..., object] | None = None,
        args: Sequence[object] = (),
        iterations: int = ITERATIONS,
        warmup: int = WARMUP,
        launches: int = LAUNCHES,
        timeout: float = TIMEOUT_S,
        launcher: str = "auto",
        hosts: str | Sequence[str] = (),
    ) -> CommResult:
        """Measure ``function(comm, *args)`` on fresh ranks; without ``--omb-py``, call it once in one launch.

        Args:
            function: a function at the top of a module; `comm` is mpi4py's communicator of all ranks.
            ranks: number of ranks.
            setup: a function of the same module; ``setup(comm)`` returns the further arguments, as a tuple if there are
                several. It runs once on each rank and is not timed.
            args: further arguments that JSON can hold, where there is no `setup`.
            iterations: timed calls in each launch.
            warmup: calls before them.
            launches: number of launches; each is one sample.
            timeout: seconds without progress after which a launch has failed.
            launcher: as ``--launcher`` of omb-py.
            hosts: hosts of the ranks; none: this machine.

        Returns:
            The times. With ``--omb-py`` pytest-benchmark reports them too.

        Raises:
            pytest.UsageError: an argument is wrong.
            pytest.fail.Exception: the ranks could not be started, or the function failed, in one line.
        """
        from omb_py.errors import OmbError, UsageError
        from omb_py.grammar.values import parse_count
        from omb_py.results.repro_command import PYTEST_TAG
        from omb_py.suites.functions import target_of

        __tracebackhide__ = True  # the report of a test shows its own line
        if self._called:
            raise pytest.UsageError("comm_benchmark measures one function in a test: write a test for each")
        self._called = True
        if setup is not None and args:
            raise pytest.UsageError("comm_benchmark takes setup= or args=, not both: setup returns all arguments")
        try:
            for name, value in (("ranks", ranks), ("iterations", iterations), ("launches", launches)):
                parse_count(str(value), what=name, least=1)
            if not self._measures:
                iterations, warmup, launches = 1, 0, 1
            frame = _measure(
                target_of(function, setup, args).text(),
                root=self._request.config.rootpath,
                ranks=ranks,
                iterations=str(iterations),
                warmup=warmup,
                launches=launches,
                timeout=timeout,
                launcher=launcher,
                hosts=hosts,
                store=self._store if self._measures else None,
                tags={PYTEST_TAG: self._request.node.nodeid} if self._measures else {},
            )
        except UsageError as error:
            raise pytest.UsageError(f"comm_benchmark: {error}") from None
        except OmbError as error:
            raise pytest.fail.Exception(f"comm_benchmark: {error}", pytrace=False) from None
        result = CommResult(tuple(float(median) for median in frame["median_us"]), frame)
        if self._measures:
            self._report(result, ranks, iterations)
        return result

    def _report(self, result: CommResult, ranks: int, iterations: int) -> None:
        """Give the launches to pytest-benchmark, through a timer that tells their medians."""
        clock = _Clock([median * 1e-6 for median in result.medians_us])
        node = self._request.node
        marker = node.get_closest_marker("benchmark")
        kwargs = {**(marker.kwargs if marker else {}), "timer": clock}
        node.add_marker(pytest.mark.benchmark(**kwargs), append=False)
        benchmark = self._request.getfixturevalue("benchmark")
        row = result.frame.iloc[0]
        benchmark.extra_info |= {
            "sample": "median of a launch",
            "ranks": ranks,
            "calls_per_launch": iterations,
            "library": f"{row['library']} {row['library_version']}",
            "run_id": str(row["run_id"]),
            "omb_py_medians_us": list(result.medians_us),
        }
        benchmark.pedantic(clock.advance, rounds=len(result.medians_us), iterations=1, warmup_rounds=0)


class _Clock:
    """A clock that moves only when :meth:`advance` is called, each time by the next of some durations."""

    __name__ = "omb_py"

    def __init__(self, durations_s: Sequence[float]) -> None:
        self._durations = iter(durations_s)
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def advance(self) -> None:
        self._now += next(self._durations, 0.0)


def _measure(workload: str, *, root: Path, store: str | None, **options: Any) -> pd.DataFrame:
    """Make the launches; a row for each. Raises OmbError."""
    from omb_py.api import run

    with _share_path(root):
        return run("function", workload=workload, store=store, quiet=True, **options).frame


@contextlib.contextmanager
def _share_path(root: Path) -> Iterator[None]:
    """Let ranks import what this process can: pytest's ``pythonpath`` and ``--import-mode`` act only here."""
    before = os.environ.get("PYTHONPATH")
    own = [path for path in sys.path if path and "site-packages" not in path and not path.startswith(sys.base_prefix)]
    paths = [*own, *(before or "").split(os.pathsep), str(root)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--omb-py`` and ``--omb-py-store``."""
    group = parser.getgroup("omb-py", "communication benchmarks")
    group.addoption(
        "--omb-py",
        action="store_true",
        help="Measure tests with comm_benchmark; without it, each function is called once, unmeasured.",
    )
    group.addoption("--omb-py-store", metavar="DIR", help="Keep the launches in this store of omb-py too.")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to measure what would be neither sound nor shown."""
    if config.getoption("--omb-py"):
        if not config.pluginmanager.hasplugin("benchmark"):
            raise pytest.UsageError("pytest --omb-py reports through pytest-benchmark: pip install pytest-benchmark")
        if config.getoption("dist", "no") != "no":
            raise pytest.UsageError(
                "pytest --omb-py is for one test at a time, as workers disturb each other: add -n 0"
            )


@pytest.fixture
def comm_benchmark(request: pytest.FixtureRequest) -> CommBenchmark:
    """Measure a communication function on fresh ranks: ``comm_benchmark(function, ranks=2)``."""
    config = request.config
    return CommBenchmark(request, bool(config.getoption("--omb-py")), config.getoption("--omb-py-store"))
