"""Devices on which buffers live: one small interface over GPUs. A kind of device is one file (:mod:`.registry`).

Streams, events and graphs are handles (int64), and the operations of a loop on them are C functions at addresses
(:meth:`Device.function`), so that generated code calls them as it calls the communication library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from omb_py.engine.program.language import Step

FUNCTIONS: Final[Mapping[str, str]] = {
    "synchronise": "stream",
    "copy_in": "device host nbytes stream",
    "copy_out": "host device nbytes stream",
    "fill": "device value nbytes stream",
    "record": "event stream",
    "begin_capture": "stream mode",
    "end_capture": "stream graph",
    "instantiate": "executable graph flags",
    "launch": "executable stream",
    "destroy_graph": "graph",
    "destroy_executable": "executable",
    "store": "address value",
    "wait_value": "stream address value flags mask",
    "launch_host": "stream function argument",
    "prefetch": "device nbytes where stream",
    "spin": "ns stream",
    "matmul": "left right out rows side stream",
}
"""Name -> operands. Each returns 0, or an error code of the device's own library.

``store`` is done by the host, at once and on no stream: it writes a word of mapped memory.  ``prefetch`` brings managed
memory to device `where`, or to the host (-1); ``spin`` computes on the device for `ns` nanoseconds; ``matmul``
multiplies a matrix (rows, side) by one of (side, side), all float32.
"""
GATE: Final = "gate"
"""The buffer with the word that holds a stream back, in mapped memory: the host opens it, whatever is enqueued."""
OTHER_STREAM: Final = -1
"""Value of a step's operand `stream` for the second stream of this rank."""


def synchronise(why: str) -> Step:
    """A step that waits for the stream; `why` names the wait."""
    return Step("synchronise", {"why": why})


class Device(Protocol):
    """A device that this rank uses. All addresses lie in the device's memory."""

    kind: str
    index: int
    """Its number among the visible devices of this machine."""
    name: str
    """Its model."""
    cache_bytes: int
    """Its last cache; 0: not known."""
    stream: int
    """The stream on which everything of this rank runs."""

    def allocate(self, nbytes: int) -> int:
        """Memory on the device. Raises EnvironmentProblem when there is not enough."""

    def allocate_managed(self, nbytes: int) -> int:
        """Memory that host and device both use. Raises EnvironmentProblem when there is none to be had."""

    def allocate_mapped(self, nbytes: int) -> int:
        """Memory of the host that the device reads at the same address. Raises EnvironmentProblem."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def event(self) -> int:
        """A new event that can be timed."""

    def elapsed_ns(self, start: int, stop: int) -> int:
        """Time between two recorded events that have happened."""

    def new_stream(self) -> int:
        """A further stream."""

    def memory_left(self) -> int:
        """Bytes that may still be allocated."""

    def clocks(self) -> Mapping[str, int]:
        """Clock rates in kHz, by name; empty where they are not known."""

    def identity(self) -> str:
        """A text that no other device of its machine has: a PCI address, or a number."""

    def function(self, name: str) -> int:
        """Address of one of :data:`FUNCTIONS`. Raises EnvironmentProblem when this device's library lacks it."""

    def call(self, name: str, *operands: int) -> None:
        """Call one of :data:`FUNCTIONS`. Raises EnvironmentProblem when it fails."""

    def error_text(self, code: int, function: str) -> str:
        """The meaning of what one of :data:`FUNCTIONS` returned."""

    def attach(self, library: object) -> None:
        """Introduce a communication library (a ctypes.CDLL) that will enqueue work here."""

    def close(self) -> None:
        """Free streams and events."""
