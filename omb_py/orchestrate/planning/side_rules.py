"""Rules on one backend on one device."""

from __future__ import annotations

from importlib.util import find_spec

from omb_py.backends.registry import default
from omb_py.engine.devices.placement import FILLERS
from omb_py.engine.devices.registry import HOST, SIMULATED, is_gpu
from omb_py.engine.program.buffers import TORCH_PIP
from omb_py.errors import EnvironmentProblem, nearest
from omb_py.options.table import one_of, takes
from omb_py.orchestrate.planning import availability
from omb_py.orchestrate.planning.rule import RequestRule, RuleContext


def _binding(on: RuleContext) -> str:
    bindings = [binding for binding in on.request.bindings if binding in on.offer.bindings]
    return next(filter(None, (on.offer.unbound(binding, on.device) for binding in bindings)), "")


def _buffer(on: RuleContext) -> str:
    kinds = (*on.offer.buffers, *(on.offer.device_buffers if on.device != HOST else ()))
    if on.request.buffer in kinds:
        return ""
    return f"unknown buffer {on.request.buffer!r} for backend {on.backend}: {nearest(on.request.buffer, kinds)}"


def _check_availability(on: RuleContext) -> str:
    why = on.offer.missing()
    return f"backend {on.backend}: {why}" if why else ""


def _device(on: RuleContext) -> str:
    if on.device in on.offer.devices:
        return ""
    kinds = " or ".join(kind for kind in on.offer.devices if kind != SIMULATED)
    return f"backend {on.backend} has no buffers on {on.device}: use --device {kinds}"


def _gpu(on: RuleContext) -> str:
    if not is_gpu(on.device) or availability.gpu_here(on.device) or availability.ranks_may_be_elsewhere(on.request):
        return ""
    reason, fix = availability.device_problem(on.device, on.backend)
    if HOST not in on.offer.devices:
        fix = f"take a machine with one, or --backend {default()} --device {HOST}"
    return f"--device {on.device}: {reason}: {fix}"


def _timing(on: RuleContext) -> str:
    if on.offer.asynchronous:
        return ""
    return f"--timing is for calls that return before they are done: leave it out, or --backend {on.able_to_wait}"


def _check_method(on: RuleContext) -> str:
    dialect = on.parsed.dialect
    if not on.offer.asynchronous or dialect.measured_on(True).timing == dialect.timing:
        return ""
    return (
        f"--format {dialect.name}: calls are timed in batches on {on.backend}, and alone on the other backends: one "
        "--backend, or --format table"
    )


def _check_computed(on: RuleContext) -> str:
    name = next((name for name in ("energy", "counters") if name in on.request.observers), "")
    if not name or not on.offer.simulated:
        return ""
    return f"--{name} is measured, and backend {on.backend} computes its times: leave it out"


def _placement(on: RuleContext) -> str:
    if on.device == HOST or not on.offer.asynchronous:
        return ""
    other = next(name for name, offer in on.offers.items() if not offer.asynchronous and len(offer.devices) > 1)
    return f"backend {on.backend} has all buffers on the device: leave the places out, or --backend {other}"


def _check_refused(on: RuleContext) -> str:
    """A value that the backend refuses (:attr:`.Capabilities.refused`)."""
    errors = (errors.get(on.request.get(option)) for option, errors in on.offer.refused.items())
    return next(filter(None, errors), "")


def _torch(on: RuleContext) -> str:
    if on.request.buffer != "torch" or on.device != HOST or find_spec("torch") is not None:
        return ""
    return f"--buffer torch needs PyTorch, which is not installed: {TORCH_PIP}"


def _filler(on: RuleContext) -> str:
    if on.device == HOST or on.request.options.filler == FILLERS[0] or takes(on.benchmark, "tests"):
        return ""
    return f"{on.benchmark.name} computes nothing beside its call, so it takes no -r/--cuda-target"


def _check_timing(on: RuleContext) -> str:
    mode = on.request.options.timing or on.parsed.dialect.timing or "isolated"
    if on.device == HOST or not on.offer.asynchronous or mode == "isolated" or on.benchmark.family == "collective":
        return ""
    return f"--timing {mode} is for blocking collectives, not for {on.benchmark.name}: leave it out"


def _check_counters(on: RuleContext) -> str:
    library = on.offer.knobs()
    if library is not None and library.pvars:
        return ""
    title = library.title if library else f"backend {on.backend}"
    return f"{title} counts nothing that can be read: leave --pvar out, or use Open MPI"


def _counter_names(on: RuleContext) -> str:
    """Each library lists the names of its variables."""
    library = on.offer.knobs()
    belongs_to = {variable.name: variable.binding for variable in library.pvars} if library else {}
    for name in (on.request.observers.get("pvars") or "").split(","):
        one_of("performance variable", name, belongs_to)
        if belongs_to[name] not in ("", "communicator"):
            return f"--pvar {name} belongs to a {belongs_to[name]}, and omb-py reads none of it: leave it out"
    return ""


def _backend(on: RuleContext) -> str:
    return availability.backend_problem(on.offer, on.benchmark, on.cells)


SIDE_RULES = (
    RequestRule("binding that cannot be used here", "side", _binding, EnvironmentProblem, "bindings"),
    RequestRule("buffer that the backend lacks", "side", _buffer),
    RequestRule("backend that is not installed", "side", _check_availability, EnvironmentProblem),
    RequestRule("device that the backend lacks", "side", _device, EnvironmentProblem),
    RequestRule("GPU that is not here", "side", _gpu, EnvironmentProblem),
    RequestRule("timing of calls that wait", "side", _timing, option="timing"),
    RequestRule("rows of a tool that times other calls", "side", _check_method),
    RequestRule("counters of computed times", "side", _check_computed),
    RequestRule("buffer places of a backend without any", "side", _placement, EnvironmentProblem, "placement"),
    RequestRule("value that the backend refuses", "side", _check_refused),
    RequestRule("PyTorch that is not installed", "side", _torch, EnvironmentProblem),
    RequestRule("computing beside no call", "side", _filler, option="filler"),
    RequestRule("batches of calls that cannot be timed", "side", _check_timing),
    RequestRule("library that counts nothing", "cells of a side", _check_counters, EnvironmentProblem, "pvars"),
    RequestRule("name of no counter", "cells of a side", _counter_names, option="pvars"),
    RequestRule("benchmark that the backend cannot do", "cells of a side", _backend, EnvironmentProblem),
)
