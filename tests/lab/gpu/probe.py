"""Each function of a device on its own, before anything communicates: ``python -m tests.lab.gpu.probe [cuda|rocm|sim]``.

One line a check, in seconds and one process; exit status 1 if one failed. What fails here fails everywhere, and here it
has a name. A check that hangs ends the process with Python's stack.
"""

from __future__ import annotations

import ctypes
import faulthandler
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from omb_py.engine.devices import FUNCTIONS, Device, memory
from omb_py.engine.devices.registry import SIMULATED, open_device
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.errors import EnvironmentProblem

NBYTES = 1 << 20
LIMIT_S = 60.0
ALL_BITS = 0xFFFFFFFF


@dataclass(slots=True)
class Probe:
    """A device that is tried, and the host's bytes."""

    device: Device
    real: bool
    pattern: np.ndarray = field(default_factory=lambda: (np.arange(NBYTES) % 251).astype(np.uint8))
    back: np.ndarray = field(default_factory=lambda: np.zeros(NBYTES, np.uint8))

    def enqueue(self, name: str, *operands: int) -> None:
        """Put work on the device's stream."""
        self.device.call(name, *operands, self.device.stream)

    def wait(self) -> None:
        self.enqueue("synchronise")

    def read(self, address: int) -> np.ndarray:
        """The bytes of the device, after all that was enqueued."""
        self.enqueue("copy_out", self.back.ctypes.data, address, NBYTES)
        self.wait()
        return self.back

    def expect(self, address: int, wanted: np.ndarray | int) -> None:
        """Raises AssertionError where the device has other bytes."""
        got = self.read(address)
        assert (got == wanted).all(), f"{got[:4]}…, not {wanted if isinstance(wanted, int) else wanted[:4]}"


def facts(on: Probe) -> str:
    device = on.device
    return f"{device.name}, {device.identity()}, {device.memory_left() >> 20} MiB free, clocks {dict(device.clocks())}"


def addresses(on: Probe) -> None:
    assert all(on.device.function(name) for name in FUNCTIONS)


def copies(on: Probe) -> None:
    at = on.device.allocate(NBYTES)
    on.enqueue("copy_in", at, on.pattern.ctypes.data, NBYTES)
    on.expect(at, on.pattern)
    on.enqueue("fill", at, 0x5A, NBYTES)
    on.expect(at, 0x5A)
    on.device.free(at)


def second_stream(on: Probe) -> None:
    other, at = on.device.new_stream(), on.device.allocate(NBYTES)
    on.device.call("fill", at, 7, NBYTES, other)
    on.device.call("synchronise", other)
    on.expect(at, 7)
    on.device.free(at)


def events_around_a_spin(on: Probe) -> str:
    first, last = on.device.event(), on.device.event()
    on.enqueue("spin", 1000)  # compiled and loaded
    on.wait()
    on.enqueue("record", first)
    on.enqueue("spin", 5_000_000)
    on.enqueue("record", last)
    on.wait()
    ms = on.device.elapsed_ns(first, last) / 1e6
    assert 4.9 < ms < (8 if on.real else 1000), f"{ms} ms between the events, not 5"
    return f"{ms:.3f} ms"


def gate(on: Probe) -> str:
    """256 calls wait behind a closed gate, which the host opens."""
    word, at, first, last = on.device.allocate_mapped(4), on.device.allocate(64), on.device.event(), on.device.event()
    on.device.call("store", word, 0)
    on.enqueue("record", first)
    on.wait()  # a stream that begins late would see the gate closed for less
    on.device.call("wait_value", on.device.stream, word, 1, 0, ALL_BITS)
    for _ in range(256):
        on.enqueue("fill", at, 1, 64)
    on.enqueue("record", last)
    time.sleep(0.03)
    on.device.call("store", word, 1)
    on.wait()
    ms = on.device.elapsed_ns(first, last) / 1e6
    on.device.free(word)
    on.device.free(at)
    assert ms > 20, f"open after {ms} ms: it never was closed"
    return f"closed for {ms:.1f} ms"


def graph(on: Probe) -> None:
    at, handles = on.device.allocate(NBYTES), (ctypes.c_int64 * 2)()
    on.enqueue("fill", at, 1, NBYTES)
    on.wait()
    on.device.call("begin_capture", on.device.stream, 1)
    on.enqueue("fill", at, 9, NBYTES)
    on.device.call("end_capture", on.device.stream, ctypes.addressof(handles))
    on.device.call("instantiate", ctypes.addressof(handles) + 8, handles[0], 0)
    on.expect(at, 1)  # captured, and not run
    for _ in range(2):
        on.enqueue("launch", handles[1])
    on.expect(at, 9)
    on.device.call("destroy_executable", handles[1])
    on.device.call("destroy_graph", handles[0])
    on.device.free(at)


def matrix_product(on: Probe) -> str:
    rows, side, numbers = 33, 64, np.random.default_rng(1)
    left, right = (numbers.random((n, side), np.float32) for n in (rows, side))
    out = np.zeros((rows, side), np.float32)
    at = [on.device.allocate(matrix.nbytes) for matrix in (left, right, out)]
    for address, matrix in zip(at, (left, right), strict=False):
        on.enqueue("copy_in", address, matrix.ctypes.data, matrix.nbytes)
    on.enqueue("matmul", *at, rows, side)
    on.enqueue("copy_out", out.ctypes.data, at[2], out.nbytes)
    on.wait()
    for address in at:
        on.device.free(address)
    error = float(np.abs(out - left @ right).max())
    assert error < 1e-2, f"off by {error}"
    return f"off by {error:.1e}"


def arrays(on: Probe) -> str:
    """Arrays of each package that is there hold bytes where they say."""
    tried = []
    for kind in ON_DEVICE:
        try:
            held = memory.array(kind, on.device, NBYTES)
        except EnvironmentProblem as problem:
            tried.append(f"{kind}: {problem}")
            continue
        on.enqueue("copy_in", memory.address_of(held), on.pattern.ctypes.data, NBYTES)
        on.expect(memory.address_of(held), on.pattern)
        tried.append(kind)
    return "; ".join(tried)


def too_much_memory(on: Probe) -> str:
    try:
        on.device.allocate(1 << 50)
    except EnvironmentProblem as problem:
        on.wait()  # the error does not stick
        return str(problem)
    raise AssertionError("1 PiB was given")


def managed_memory(on: Probe) -> None:
    """1 MiB, to the device and back: more than a GPU has free may hang it."""
    at = on.device.allocate_managed(NBYTES)
    on.enqueue("copy_in", at, on.pattern.ctypes.data, NBYTES)
    on.wait()
    on.enqueue("prefetch", at, NBYTES, on.device.index)
    on.wait()
    on.enqueue("fill", at, 3, NBYTES // 2)
    on.wait()
    on.enqueue("prefetch", at, NBYTES, -1)
    on.wait()
    seen = np.frombuffer((ctypes.c_uint8 * NBYTES).from_address(at), np.uint8)
    half = NBYTES // 2
    assert (seen[:half] == 3).all() and (seen[half:] == on.pattern[half:]).all()
    on.device.free(at)


CHECKS: tuple[Callable[[Probe], str | None], ...] = (
    *(facts, addresses, copies, second_stream, events_around_a_spin, gate, graph, matrix_product, arrays),
    *(too_much_memory, managed_memory),
)
"""In the order in which a failure explains the later ones."""


def run_checks(on: Probe, checks: tuple[Callable[[Probe], str | None], ...] = CHECKS) -> list[str]:
    """Print a line for each check, and return the names of those that failed."""
    failed = []
    for check in checks:
        faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=2)
        try:
            said = f"ok     {check.__name__} {check(on) or ''}"
        except Exception as error:  # whatever it is, the next one may say more
            failed.append(check.__name__)
            said = f"FAILED {check.__name__}: {type(error).__name__}: {error}"
        finally:
            faulthandler.cancel_dump_traceback_later()
        print(said, flush=True)
    return failed


def main(kind: str) -> int:
    device = open_device(kind, 0)
    failed = run_checks(Probe(device, kind != SIMULATED))
    device.close()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "cuda"))
