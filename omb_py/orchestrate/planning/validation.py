"""Checks of the words in a request: backends, bindings, devices, buffers, operations, thread levels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from omb_py.backends.capabilities import Capabilities
from omb_py.backends.registry import capabilities, default, own_options
from omb_py.engine.devices.placement import FILLERS, PLACES
from omb_py.engine.devices.registry import GPU_KINDS, HOST, SIMULATED, find_kind, is_gpu
from omb_py.engine.measuring.async_timing import BATCHED
from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.buffers import ON_DEVICE, TORCH_PIP
from omb_py.engine.program.dtypes import parse_dtype
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.launchers.registry import BATCH_LAUNCHERS, BATCH_SYSTEMS
from omb_py.options.request import Request
from omb_py.options.table import check_words, one_of, usual_cell
from omb_py.results.dialects.dialect import Dialect
from omb_py.results.dialects.registry import dialect_of
from omb_py.suites import find
from omb_py.suites.guidelines.patterns import Guideline

GPUS = GPU_KINDS
HOST_MEMORY = HOST


def lacking(backend: str, benchmark: Benchmark) -> tuple[str, str]:
    """(reason, fix) why a backend cannot run a benchmark; both empty when it can."""
    reason, _, fix = capabilities(backend).why_not(benchmark, usual_cell(benchmark)).rpartition(": ")
    return reason, fix


def guideline_problem(guideline: Guideline, offer: Capabilities) -> str:
    """Why a backend cannot measure a guideline; empty where it can."""
    benchmark = guideline.benchmark
    return offer.without.get(guideline.needs, "") or offer.why_not(benchmark, usual_cell(benchmark))


def gpu_here(device: str, exists: Callable[[Path], bool] = Path.exists) -> bool:
    """Whether the driver for GPUs of this kind is loaded on this machine."""
    return find_kind(device).has_driver(exists)


def ranks_may_be_elsewhere(request: Request, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ranks may start on other machines, so that only they can say which GPUs they see."""
    in_batch_job = any(system.sign in environ for system in BATCH_SYSTEMS)
    return bool(request.launching.hosts) or in_batch_job or request.launching.launcher in BATCH_LAUNCHERS


def device_problem(device: str, backend: str) -> tuple[str, str]:
    """(reason, fix) why a backend cannot use buffers on a GPU of this kind in this version."""
    kind = find_kind(device)
    if not gpu_here(device):
        return f"no {kind.maker} GPU found here ({kind.driver_files[0]} is missing)", "use --device cpu"
    return f"backend {backend} has no device buffers in this version of omb-py", "use --device cpu"


def check_device(request: Request, offers: Mapping[str, Capabilities]) -> None:
    """Check device, timing and staging of a request.

    Raises:
        UsageError: options contradict each other.
        EnvironmentProblem: a backend has no buffers on the device, or the machine has no such GPU.
    """
    for backend, device in request.sides:
        if device not in offers[backend].devices:
            kinds = " or ".join(kind for kind in offers[backend].devices if kind != SIMULATED)
            raise EnvironmentProblem(f"backend {backend} has no buffers on {device}: use --device {kinds}")
        if is_gpu(device) and not gpu_here(device) and not ranks_may_be_elsewhere(request):
            reason, fix = device_problem(device, backend)
            if HOST_MEMORY not in offers[backend].devices:
                fix = f"a machine with one, or --backend {default()} --device {HOST_MEMORY}"
            raise EnvironmentProblem(f"--device {device}: {reason}: {fix}")
    dialect = dialect_of(request.printing.format)
    asynchronous = all(offers[backend].asynchronous for backend in request.backends)
    instead = " or ".join(name for name, offer in offers.items() if offer.asynchronous)
    if request.options.timing is not None and not asynchronous:
        raise UsageError(
            f"--timing is for calls that return before they are done: leave it out, or --backend {instead}"
        )
    if request.options.batch is not None and (request.options.timing or dialect.timing) not in BATCHED:
        raise UsageError(f"--batch is for --timing {', '.join(sorted(BATCHED))}: leave it out")
    if dialect.timing:
        _check_timing(request, dialect, offers, asynchronous, instead)
    for name, text in request.settings.items():
        _check_settings(request, name, text)
    for name in ("energy", "counters"):
        computed = next((backend for backend in request.backends if offers[backend].simulated), "")
        if name in request.observers and computed:
            raise UsageError(f"--{name} is measured, and backend {computed} computes its times: leave it out")
    on_device = [device for device in request.devices if device != HOST_MEMORY]
    if not on_device and request.launching.share_device:
        raise UsageError("--share-device is for ranks on devices: leave it out")
    if on_device and request.buffer not in ("numpy", *ON_DEVICE):
        raise UsageError(f"--buffer {request.buffer} lies on the host: leave it out with --device {on_device[0]}")
    for kind in map(find_kind, on_device):
        if request.buffer in ON_DEVICE and request.buffer not in kind.arrays:
            instead = " or ".join(kind.arrays)
            raise UsageError(f"--buffer {request.buffer} is for NVIDIA GPUs: {instead} with --device {kind.name}")
    if not on_device and request.options.filler not in (None, FILLERS[0]):
        raise UsageError(f"-r {request.options.filler} computes on a device: add --device, or leave it out")
    if request.placement:
        _check_placement(request, on_device, offers)


def check_launching(request: Request, offers: Mapping[str, Capabilities]) -> None:
    """Refuse what a launcher would be told where no launcher runs, because the backend has all ranks in one process.

    Raises:
        UsageError: hosts or a launcher are given, and no backend of the request starts ranks.
    """
    if not all(offers[backend].in_process for backend in request.backends):
        return
    given = (
        ("--hosts", bool(request.launching.hosts)),
        ("--launcher", request.launching.launcher not in ("auto", "none")),
        ("--launcher-args", bool(request.launching.launcher_args)),
    )
    for option, is_given in given:
        if is_given:
            raise UsageError(
                f"{option}: --backend {request.backends[0]} simulates all ranks in this process, so no launcher "
                "starts them: leave it out"
            )


def _check_timing(
    request: Request, dialect: Dialect, offers: Mapping[str, Capabilities], asynchronous: bool, instead: str
) -> None:
    tool = dialect.title
    if not asynchronous:
        raise UsageError(
            f"--format {dialect.name} is the text of rows measured as {tool} do: --backend {instead}, or table"
        )
    if request.options.timing not in (None, dialect.timing):
        raise UsageError(
            f"--format {dialect.name} times {dialect.timing}, as {tool} do, not {request.options.timing}: leave one out"
        )
    for backend in request.backends:
        for binding in offers[backend].in_place_bindings.intersection(request.bindings):
            other = next(name for name in offers[backend].bindings if name not in offers[backend].in_place_bindings)
            raise UsageError(
                f"binding {binding} has no out-of-place allreduce, so no rows of {tool}: --binding {other}"
            )


def check_pvars(request: Request, offers: Mapping[str, Capabilities]) -> None:
    """Check the names of ``--pvar`` by what each library lists; none is asked where there are no names.

    Raises:
        UsageError: a library has no such variable, or none that omb-py can read.
        EnvironmentProblem: a library counts nothing.
    """
    for backend in request.backends if request.observers.get("pvars") else ():
        library = offers[backend].knobs()
        if library is None or not library.pvars:
            title = library.title if library else f"backend {backend}"
            raise EnvironmentProblem(f"{title} counts nothing that can be read: leave --pvar out, or use Open MPI")
        known = {variable.name: variable.binding for variable in library.pvars}
        for name in (request.observers.get("pvars") or "").split(","):
            one_of("performance variable", name, known)
            if known[name] not in ("", "communicator"):
                raise UsageError(f"--pvar {name} belongs to a {known[name]}, and omb-py reads none of it: leave it out")


def _check_settings(request: Request, name: str, text: str) -> None:
    """Check a backend's own option. One that holds for the whole run may stand beside other backends."""
    option = capabilities(name).option
    if option is None:
        raise UsageError(f"there are no settings of backend {name!r}: {nearest(name, own_options())}")
    if not text or option.run_wide:
        return
    if set(request.backends) != {name}:
        raise UsageError(f"--{name} is for --backend {name}: leave it out")
    for binding in request.bindings:
        if why := option.lacks(binding, text):
            raise UsageError(why)


def check_refused(request: Request, offers: Mapping[str, Capabilities]) -> None:
    """Raises UsageError for a value of an option that a backend refuses (:attr:`.Capabilities.refused`)."""
    for backend in request.backends:
        for option, errors in offers[backend].refused.items():
            if error := errors.get(request.get(option)):
                raise UsageError(error)


def _check_placement(request: Request, on_device: list[str], offers: Mapping[str, Capabilities]) -> None:
    words = request.placement.split()
    if request.buffer != "numpy":
        raise UsageError(f"buffers {request.placement} are not of --buffer {request.buffer}: leave one of them out")
    if len(words) != 2:
        raise UsageError(f"buffer places come in twos, sender and receiver, as H D: got {request.placement}")
    for word in words:
        one_of("buffer place", word, PLACES)
    if not on_device:
        raise UsageError(f"buffers {request.placement} are on a device: add --device, or write H H")
    if backend := next((name for name in request.backends if offers[name].asynchronous), ""):
        other = next(name for name, offer in offers.items() if not offer.asynchronous and len(offer.devices) > 1)
        raise EnvironmentProblem(
            f"backend {backend} has all buffers on the device: leave the places out, or --backend {other}"
        )
    if words[0] != words[1] and find(request.benchmark).family != "pt2pt":
        raise UsageError(f"{request.benchmark} has buffers of one kind on all ranks, not {request.placement}")


def check_choices(request: Request, offers: Mapping[str, Capabilities]) -> None:
    """Check every word of a request.

    Raises:
        UsageError: a word is unknown or given twice.
        EnvironmentProblem: a word is known, but cannot be used here.
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
        arrays = offers[backend].device_buffers if HOST_MEMORY not in request.devices else ()
        kinds = (*offers[backend].buffers, *arrays)
        if request.buffer not in kinds:
            valid = nearest(request.buffer, kinds)
            raise UsageError(f"unknown buffer {request.buffer!r} for backend {backend}: {valid}")
        if why := offers[backend].missing():
            raise EnvironmentProblem(f"backend {backend}: {why}")
    for device in request.devices:
        find_kind(device)
    if len(set(request.devices)) < len(request.devices):
        raise UsageError(f"device list {request.device} has one twice")
    check_device(request, offers)
    check_words(request)
    for dtype in request.dtypes:
        parse_dtype(dtype)
    check_refused(request, offers)
    if request.buffer == "torch" and HOST_MEMORY in request.devices and find_spec("torch") is None:
        raise EnvironmentProblem(f"--buffer torch needs PyTorch, which is not installed: {TORCH_PIP}")
