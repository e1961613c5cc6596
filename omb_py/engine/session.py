"""What a backend gives to the engine: a session, and a runner for each cell.

A session holds one or more *local* ranks: one in a real process, all of them in the simulation. Everything here
is called between timed loops, never inside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Runner(Protocol):
    """A cell, ready to run: buffers allocated, programs translated."""

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer of a local rank, writable."""

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Run iterations of a stage's body.

        Args:
            stage: index into the program's stages.
            first: number of the first iteration; chooses the variant.
            iterations: how many.

        Returns:
            For each local rank nanoseconds, shape (iterations, number of laps).

        Raises:
            StepFailed: a call returned an error.
        """

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Run a stage's setup. `results` holds earlier laps: (stage, lap) -> mean nanoseconds on this rank."""

    def leave(self, stage: int) -> None:
        """Run a stage's teardown."""

    def later(self) -> None:
        """Too many rounds began late: announce them further ahead (``--process-sync roundtime``)."""

    def notes(self) -> Mapping[str, float]:
        """Further numbers about the cell, for ``metrics``: ``topology_us``, what making the graph
        took; ``win_create_us``, the window."""

    def close(self) -> None:
        """Free what the cell needed."""


class Session(Protocol):
    """A communicator of `size` ranks, of which this process holds `local`."""

    backend: str
    binding: str
    size: int
    local: tuple[int, ...]
    hosts: tuple[str, ...]
    """Host of each rank."""
    library: str
    library_version: str
    binding_version: str
    thread_level: str
    """What the library provided."""

    started: Mapping[str, Mapping[int, float]]
    """What starting took: ``init``, ``hello`` -> local rank -> µs. Missing where the backend does not know."""

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        """Allocate buffers of a kind for a whole sweep: name -> bytes. Sizes of a sweep then share their pages."""

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> Runner:
        """Allocate and translate the programs of the local ranks."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise maximum over processes, on all of them."""

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum over processes, on all of them."""

    def gather(self, value: Any) -> list[Any]:
        """One object of each process, on the one that holds rank 0; elsewhere an empty list."""

    def share(self, value: Any) -> Any:
        """The object of the process that holds rank 0, everywhere."""

    def position(self) -> tuple[int, int]:
        """(iteration, step) now being run, for the watchdog; called from another thread."""

    def doing(self, step: int) -> str:
        """What a step of the running program does, in words."""

    def skew(self, kind: str = "barrier") -> float | None:
        """Median time in µs between the first and the last rank to leave a synchronisation (``process_sync``).

        None where it is not measured.
        """

    def close(self) -> None:
        """Leave the communicator."""


class StepFailed(Exception):
    """A library call returned an error."""

    def __init__(self, step: int, code: int, text: str) -> None:
        super().__init__(f"step {step}: {text} (code {code})")
        self.step, self.code, self.text = step, code, text


@dataclass(frozen=True, slots=True)
class Probe:
    """What a backend can do here; cheap to make, never an exception."""

    backend: str
    available: bool
    reason: str = ""
    """Why not, when not available."""
    fix: str = ""
    """What to install or set."""
    library: str = ""
    version: str = ""
    bindings: Mapping[str, str] = field(default_factory=dict)
    """binding -> '' when usable, else the reason."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """device -> '' when usable, else the reason."""
    buffers: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """For ``doctor``: where the library lies, which launcher belongs to it, …"""


class OneRank:
    """A session of one rank a process: where its runner is, for the watchdog."""

    _runner: Any

    def watch(self, runner: Any) -> None:
        """Ask `runner` for `position()` and `labels`, where no program of steps is loaded."""
        self._runner = runner

    def position(self) -> tuple[int, int]:
        """(iteration, step) of the loop that runs now."""
        return self._runner.position() if self._runner else (0, 0)

    def doing(self, step: int) -> str:
        """What a step of the running program does, in words."""
        labels = self._runner.labels if self._runner else ()
        return labels[step] if step < len(labels) else ""
