"""The interface of a backend to the engine: a session, and a runner for each cell.

A session holds one or more *local* ranks: one in a real process, all of them in the simulation. Everything here
is called between timed loops, never inside one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Protocol, TypeVar

from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.groups import Group, groups_of
from omb_py.engine.program.language import Program
from omb_py.engine.samples import LapTimes, Values
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.engine.devices.buffers import DeviceBuffers
    from omb_py.engine.program.pair_programs import PairPrograms
    from omb_py.engine.rank.launch_facts import DevicePlace


T = TypeVar("T")


class StepFailed(Exception):
    """A library call returned an error."""

    def __init__(self, step: int, code: int, text: str) -> None:
        super().__init__(f"step {step}: {text} (code {code})")
        self.step, self.code, self.text = step, code, text


class Watched(Protocol):
    """What the watchdog asks where a rank is."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Text of each step."""

    def position(self) -> tuple[int, int]:
        """(iteration, step) now being run."""


class Runner:
    """A cell, ready to run: buffers allocated, programs translated. A subclass defines `memory` and `run`."""

    labels: tuple[str, ...] = ()
    """Text of each step of the running stage."""
    _marks: Mapping[str, str] = {}

    @property
    def marks(self) -> Mapping[str, str]:
        """Remarks on the measurement, stored with the row: ``staging``, ``timing_mode``, ``library_version``, …"""
        return self._marks

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer of a local rank, writable."""
        raise NotImplementedError

    def run(
        self, stage: int, first: int, iterations: int
    ) -> Mapping[int, NDArray[np.int64]] | Mapping[int, LapTimes | NDArray[np.int64]]:
        """Run iterations of a stage's body.

        Args:
            stage: index into the program's stages.
            first: number of the first iteration; chooses the variant.
            iterations: their number.

        Returns:
            For each local rank nanoseconds, shape (iterations, number of laps).

        Raises:
            StepFailed: a call returned an error.
        """
        raise NotImplementedError

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run a stage's setup. `results` holds earlier laps: (stage, lap) -> mean nanoseconds on this rank."""

    def leave(self, stage: int) -> None:
        """Run a stage's teardown."""

    def position(self) -> tuple[int, int]:
        """(iteration, step) now being run, for the watchdog; called from another thread."""
        return 0, 0

    def postpone_rounds(self) -> None:
        """Too many rounds began late: announce them further ahead (``--process-sync roundtime``)."""

    def notes(self) -> Mapping[str, float]:
        """Further numbers about the cell, for ``metrics``: ``topology_us`` and ``win_create_us``, the times in µs that
        it took to make the graph and the window."""
        return {}

    def close(self) -> None:
        """Free what the cell needed."""


class Session:
    """A communicator of `size` ranks, of which this process holds `local`.

    A subclass sets `backend`, `size`, `local` and `hosts`, and defines `load`. What is here suits ranks that are all in
    one process; a subclass for several processes also defines `barrier`, `maximum`, `total`, `gather` and `share`.
    """

    backend: str
    size: int
    local: tuple[int, ...]
    hosts: tuple[str, ...]
    """Host of each rank."""
    binding = "native"
    library = library_version = binding_version = ""
    library_string = ""
    """The library's own version text; empty where it has none."""
    standard = ""
    """The version of the standard that the library follows, as ``4.1`` of MPI; empty where there is none."""
    thread_level = "single"
    """The thread level that the library provided."""
    started: Mapping[str, Mapping[int, float]] = {}
    """Start-up times: ``init``, ``hello`` -> local rank -> µs. Missing where the backend does not know."""
    places: Sequence[DevicePlace] = ()
    """The device of each rank, where buffers are on devices."""
    device_name = ""
    cache_bytes = 0
    """The last cache of the device that has the buffers; 0: they are on the host, or it is not known."""
    device_note = ""
    """A note for the user on how the bytes reach the device."""
    buffers: DeviceBuffers | None = None
    """The buffers of a launch on a device, for a library that knows addresses alone; None on the host."""
    listener: Callable[[str], None] | None = None
    """Takes what :meth:`say` tells the user, on rank 0 of a launch."""
    _runner: Watched | None = None
    """The runner that the watchdog asks for the position."""

    def say(self, text: str) -> None:
        """Tell the user something while a cell is measured; rank 0 speaks for all."""
        if text and self.listener is not None:
            self.listener(text)

    def check_cells(self, cells: Sequence[Cell], benchmarks: Mapping[str, Benchmark]) -> None:
        """Raises EnvironmentProblem, on every rank alike, for what the library lacks; before anything is allocated."""

    def lacks(self, programs: Iterable[Program]) -> str:
        """Why the library cannot run one of these programs on this rank; empty where it can."""
        return ""

    def memory_left(self) -> int | None:
        """Bytes of the device that this rank may take; None where buffers are on the host."""
        return self.buffers.memory_left() if self.buffers else None

    def memory_used(self) -> Mapping[str, int]:
        """Bytes of its device that a rank has taken so far, by what for: of the rank that took most; asked by all.

        Empty where buffers are on the host.
        """
        return {}

    def stages(self) -> bool:
        """Whether bytes on a device travel through as many on the host."""
        return self.buffers is not None and not self.buffers.direct

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        """Allocate buffers of a kind for a whole sweep: name -> bytes. Sizes of a sweep then share their pages."""

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> Runner:
        """Allocate and translate the programs of the local ranks."""
        raise NotImplementedError

    def load_pairs(self, cell: Cell, programs: PairPrograms) -> Runner:
        """:meth:`load` for a round of pairs."""
        return self.load(cell, programs.of_ranks(self.local))

    def barrier(self) -> None:
        """Wait for all ranks."""

    def settle(self) -> None:
        """Wait for all ranks, and meanwhile answer what they access in this rank's memory."""
        self.barrier()

    def sleeping_barrier(self) -> None:
        """Wait for all ranks asleep, where waiting long would take a core from other ranks."""

    def guard(self) -> AbstractContextManager[None]:
        """A context for calls of the library: a rank that has lost a peer waits, so that the peer's error is shown."""
        return nullcontext()

    def maximum(self, values: Values) -> Values:
        """Element-wise maximum over processes, on all of them."""
        return copy(values)

    def total(self, values: Values) -> Values:
        """Element-wise sum over processes, on all of them."""
        return copy(values)

    def gather(self, value: T) -> list[T]:
        """One object of each process, on the one that holds rank 0; elsewhere an empty list."""
        return [value]

    def share(self, value: T) -> T:
        """The object of the process that holds rank 0, everywhere."""
        return value

    def groups_of_all(self, program: Program) -> list[Group]:
        """The groups of ranks in the programs of all processes, which call it together; each once, sorted."""
        own = groups_of(program)
        if not self.maximum(array("d", [len(own)]))[0]:
            return []
        return self.share(sorted({group for groups in self.gather(own) for group in groups}))

    def counted(self, names: Sequence[str]) -> Mapping[str, float]:
        """What the library has counted on this process, by name. Raises EnvironmentProblem where it counts nothing."""
        raise EnvironmentProblem(f"backend {self.backend} counts nothing: leave --pvar out")

    def position(self) -> tuple[int, int]:
        """(iteration, step) now being run, for the watchdog; called from another thread."""
        return self._runner.position() if self._runner else (0, 0)

    def doing(self, step: int) -> str:
        """The text of a step of the running program."""
        labels = self._runner.labels if self._runner else ()
        return labels[step] if step < len(labels) else ""

    def watch(self, runner: Watched) -> None:
        """Ask `runner` for ``position()`` and ``labels``, where no program of steps is loaded."""
        self._runner = runner

    def skew(self, kind: str = "barrier") -> float | None:
        """Median time in µs between the first and the last rank to leave a synchronisation (``process_sync``).

        None where it is not measured.
        """
        return None

    def close(self) -> None:
        """Leave the communicator."""
        self._runner = None
