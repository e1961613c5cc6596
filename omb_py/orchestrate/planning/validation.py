"""The words that a request may hold: backends, bindings, devices, buffers, operations, thread levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from omb_py.backends.gloo import capabilities as gloo
from omb_py.backends.nccl import capabilities as nccl
from omb_py.engine.devices import GPU_KINDS, KINDS, SIMULATED
from omb_py.engine.devices.filler import FILLERS
from omb_py.engine.devices.placement import PLACES
from omb_py.engine.measuring.async_timing import BATCHED
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.buffers import BUFFERS, ON_DEVICE, TORCH_PIP
from omb_py.engine.program.dtypes import parse_dtype
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.options.request import NCCL_TESTS, Request
from omb_py.options.table import check_words, one_of
from omb_py.suites import find

BINDINGS = ("native", "mpi4py")
GPUS = {"cuda": ("NVIDIA", ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")), "rocm": ("AMD", ("/dev/kfd",))}
"""Device -> (maker, files that are there when its driver is)."""
DEVICES = KINDS
HOST_MEMORY = "cpu"
ARRAYS_OF = ("mpi", "gloo")
"""Backends that take buffers on a device as the arrays of a package."""


def _nothing(*about: object) -> str:
    """No reason against it."""
    return ""


def _as_it_is(benchmark: Benchmark, cell: Cell) -> Cell:
    return cell


@dataclass(frozen=True, slots=True)
class Offer:
    """What a backend admits; the first binding is the default."""

    bindings: tuple[str, ...] = BINDINGS
    buffers: tuple[str, ...] = BUFFERS
    missing: Callable[[], str] = _nothing
    """Why it cannot be used on this machine, with what to do, as far as it shows without starting a rank."""
    lacks: Callable[[Benchmark], str] = _nothing
    """Why it cannot do a benchmark, with what to do."""
    refuses: Callable[[Benchmark, Cell], str] = _nothing
    """Why it cannot do a benchmark with these options, with what to do."""
    fitted: Callable[[Benchmark, Cell], Cell] = _as_it_is
    """The cell as the backend does it, where it has one form of an operation alone."""
    unbound: Callable[[str, str], str] = _nothing
    """Why a binding cannot be used with buffers on a device here, with what to do."""
    needs_mpi: bool = True
    """Its ranks are started by an MPI launcher; else torchrun does as well."""
    bound: bool = True
    """A core of its own for each rank; not where a rank has a thread that moves its data."""
    pass_names: tuple[str, ...] = ()
    """Variables that its ranks on other nodes need."""
    devices: tuple[str, ...] = ("cpu",)
    """Where its buffers can be."""


OFFERS: Mapping[str, Offer] = {
    "mpi": Offer(devices=(*KINDS, SIMULATED)),
    "gloo": Offer(
        (gloo.BINDING,),
        gloo.BUFFERS,
        lambda: f"{why}: {gloo.FIX}" if (why := gloo.missing()) else "",
        gloo.lacks,
        gloo.refuses,
        gloo.fitted,
        needs_mpi=False,
        bound=False,
        pass_names=("GLOO_SOCKET_IFNAME",),
        devices=(*KINDS, SIMULATED),
    ),
    "nccl": Offer(
        nccl.BINDINGS,
        ("numpy",),
        refuses=nccl.refuses,
        fitted=nccl.fitted,
        unbound=nccl.missing,
        devices=(*GPU_KINDS, SIMULATED),
    ),
    "mock": Offer(("native",), ("numpy", "bytearray", "array")),
}
"""Backends that come with omb-py."""


def offers_of(names: Iterable[str]) -> Mapping[str, Offer]:
    """Offers of the backends called `names`: ours, and those of installed packages where one is named."""
    if all(name in OFFERS for name in names):
        return OFFERS
    from omb_py.backends.registry import backends

    found = dict(OFFERS)
    for name, backend in backends().items():
        if name in names and name not in found:
            probe = backend.probe()
            devices = tuple(device for device, why in probe.devices.items() if not why) or ("cpu",)
            found[name] = Offer(tuple(probe.bindings) or ("native",), probe.buffers or BUFFERS, devices=devices)
    return found


def lacking(backend: str, benchmark: Benchmark) -> tuple[str, str]:
    """(reason, fix) why a backend cannot do a benchmark; empty when it can."""
    reason, _, fix = OFFERS.get(backend, Offer()).lacks(benchmark).rpartition(": ")
    return reason, fix


def gpu_here(device: str, exists: Callable[[Path], bool] = Path.exists) -> bool:
    """Is the driver of a GPU of this kind loaded on this machine?"""
    return any(exists(Path(name)) for name in GPUS[device][1])


def device_problem(device: str, backend: str) -> tuple[str, str]:
    """(reason, fix) why a backend cannot use buffers on a GPU of this kind in this version."""
    maker, files = GPUS[device]
    if not gpu_here(device):
        return f"no {maker} GPU found here ({files[0]} is missing)", "use --device cpu"
    return f"backend {backend} has no device buffers in this version of omb-py", "use --device cpu"


def check_device(request: Request, offers: Mapping[str, Offer]) -> None:
    """Device, timing and staging of a request.

    Raises:
        UsageError: they do not go together.
        EnvironmentProblem: a backend has no such buffers, or there is no GPU.
    """
    for backend, device in request.sides:
        if device not in offers[backend].devices:
            there = ", ".join(kind for kind in offers[backend].devices if kind != SIMULATED)
            raise EnvironmentProblem(f"backend {backend} has no buffers on {device}: --device {there}")
        if device in GPUS and not gpu_here(device):
            reason, fix = device_problem(device, backend)
            raise EnvironmentProblem(f"--device {device}: {reason}: {fix}")
        if backend == "nccl" and request.process_sync not in (None, "barrier", "none"):
            raise UsageError(f"backend nccl takes no --process-sync {request.process_sync}: barrier or none")
    if request.timing is not None and request.backends != ("nccl",):
        raise UsageError("--timing is for calls that return before they are done: leave it out, or --backend nccl")
    if request.batch is not None and request.timing not in BATCHED and request.format != NCCL_TESTS:
        raise UsageError(f"--batch is for --timing {', '.join(sorted(BATCHED))}: leave it out")
    if request.format == NCCL_TESTS and request.backends != ("nccl",):
        raise UsageError("--format nccl-tests is the text of rows measured as nccl-tests do: --backend nccl, or table")
    if request.format == NCCL_TESTS and request.timing not in (None, "pipelined"):
        raise UsageError(f"--format nccl-tests times pipelined, as nccl-tests do, not {request.timing}: leave one out")
    if request.format == NCCL_TESTS and "torch" in request.bindings:
        raise UsageError("binding torch has no out-of-place allreduce, so no rows of nccl-tests: --binding native")
    if request.nccl and set(request.backends) != {"nccl"}:
        raise UsageError("--nccl is for --backend nccl: leave it out")
    for binding in request.bindings if request.nccl else ():
        if why := nccl.lacks_settings(binding, request.nccl):
            raise UsageError(why)
    on_device = [device for device in request.devices if device != HOST_MEMORY]
    if not on_device and request.share_device:
        raise UsageError("--share-device is for ranks on devices: leave it out")
    if on_device and request.buffer not in ("numpy", *ON_DEVICE):
        raise UsageError(f"--buffer {request.buffer} lies on the host: leave it out with --device {on_device[0]}")
    if request.buffer == "numba" and "rocm" in on_device:
        raise UsageError("--buffer numba is for NVIDIA GPUs: cupy or torch with --device rocm")
    if not on_device and request.filler != FILLERS[0]:
        raise UsageError(f"-r {request.filler} computes on a device: add --device, or leave it out")
    if request.placement:
        _check_placement(request, on_device)


def _check_placement(request: Request, on_device: list[str]) -> None:
    words = request.placement.split()
    if request.buffer != "numpy":
        raise UsageError(f"buffers {request.placement} are not of --buffer {request.buffer}: leave one of them out")
    if len(words) != 2:
        raise UsageError(f"buffer places come in twos, sender and receiver, as H D: got {request.placement}")
    for word in words:
        one_of("buffer place", word, PLACES)
    if not on_device:
        raise UsageError(f"buffers {request.placement} are on a device: add --device, or write H H")
    if "nccl" in request.backends:
        raise EnvironmentProblem("backend nccl has all buffers on the device: leave the places out, or --backend mpi")
    if words[0] != words[1] and find(request.benchmark).family != "pt2pt":
        raise UsageError(f"{request.benchmark} has buffers of one kind on all ranks, not {request.placement}")


def check_choices(request: Request, offers: Mapping[str, Offer]) -> None:
    """Every word of a request.

    Raises:
        UsageError: unknown, or given twice.
        EnvironmentProblem: known, but not to be had here.
    """
    for what, words in (("backend", request.backends), ("binding", request.bindings), ("type", request.dtypes)):
        twice = next((word for word in words if words.count(word) > 1), None)
        if twice is not None:
            raise UsageError(f"{what} {twice!r} is given twice")
    if not request.backends:
        raise UsageError("no backend given: " + nearest("", offers))
    for backend in request.backends:
        one_of("backend", backend, offers)
    for binding in request.bindings:
        known = [word for backend in request.backends for word in offers[backend].bindings]
        if binding not in known:
            asked = f"backend{'s' * (len(request.backends) > 1)} {', '.join(request.backends)}"
            raise UsageError(f"unknown binding {binding!r} for {asked}: {nearest(binding, known)}")
        for backend, device in request.sides:
            if binding in offers[backend].bindings and (why := offers[backend].unbound(binding, device)):
                raise EnvironmentProblem(why)
    for backend in request.backends:
        arrays = ON_DEVICE if HOST_MEMORY not in request.devices and backend in ARRAYS_OF else ()
        kinds = (*offers[backend].buffers, *arrays)
        if request.buffer not in kinds:
            valid = nearest(request.buffer, kinds)
            raise UsageError(f"unknown buffer {request.buffer!r} for backend {backend}: {valid}")
        if why := offers[backend].missing():
            raise EnvironmentProblem(f"backend {backend}: {why}")
    for device in request.devices:
        if device != SIMULATED:
            one_of("device", device, DEVICES)
    if len(set(request.devices)) < len(request.devices):
        raise UsageError(f"device list {request.device} has one twice")
    check_device(request, offers)
    check_words(request)
    for dtype in request.dtypes:
        parse_dtype(dtype)
    if request.process_sync == "roundtime" and "mock" in request.backends:
        raise UsageError("backend mock has one clock for all ranks, so it takes no --process-sync roundtime")
    if request.buffer == "torch" and HOST_MEMORY in request.devices and find_spec("torch") is None:
        raise EnvironmentProblem(f"--buffer torch needs PyTorch, which is not installed: {TORCH_PIP}")
