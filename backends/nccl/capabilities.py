"""The capabilities of NCCL, of its bindings, and its knobs, as data: nothing here loads a package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Final

from omb_py.backends.capabilities import (
    FROM_ANYONE,
    ONE_SIDED,
    SCAN,
    Capabilities,
    Check,
    Choice,
    Knob,
    LibraryKnobs,
    OwnOption,
    RankStart,
    usable,
)
from omb_py.backends.gloo.capabilities import fit_in_place
from omb_py.backends.nccl.options import ALGORITHMS, KEYS, PROTOCOLS, canonical_text, changed, measured_as, settings_of
from omb_py.engine.devices.registry import SIMULATED
from omb_py.engine.measuring.async_timing import Multiplicity
from omb_py.engine.measuring.process_sync import ADDED
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.engine.program.dtypes import FACTORED, FP8
from omb_py.engine.program.steps import COMMUNICATORS

_GUIDE: Final = "NCCL user guide, Environment Variables (docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html)"
_DECLARED: Final = (
    ("NCCL_ALGO", ALGORITHMS, "", "Algorithms to choose from, several with commas; ^ in front: all but these."),
    ("NCCL_PROTO", PROTOCOLS, "", "Protocols to choose from, several with commas; ^ in front: all but these."),
    ("NCCL_MIN_CTAS", (), "", "Fewest CTAs (channels) that the library uses; from 2.17 on."),
    ("NCCL_MAX_CTAS", (), "", "Most CTAs (channels) that the library uses; from 2.17 on."),
    ("NCCL_NTHREADS", ("64", "128", "256", "512"), "", "Threads of a CTA."),
    ("NCCL_BUFFSIZE", (), "4194304", "Bytes of the buffer between two GPUs."),
    ("NCCL_NCHANNELS_PER_NET_PEER", (), "", "Channels to each peer over the network; -1: the library's choice."),
    ("NCCL_NVLS_ENABLE", ("0", "1", "2"), "2", "NVLink SHARP: never, always, or where it works."),
    ("NCCL_CROSS_NIC", ("0", "1", "2"), "2", "Whether rings and trees may use several NICs of a node."),
    ("NCCL_P2P_NET_CHUNKSIZE", (), "131072", "Bytes of a chunk of sends and receives over the network."),
    ("NCCL_IB_QPS_PER_CONNECTION", (), "1", "Queue pairs of each connection over InfiniBand."),
)
"""Name, values, default, and meaning."""
ALGORITHM_KNOBS: Final = ("NCCL_ALGO", "NCCL_PROTO")


def library_knobs() -> LibraryKnobs:
    """The declared list with the values of this environment. No library is loaded."""
    knobs = tuple(
        Knob(
            name,
            "enum" if words else "int",
            os.environ.get(name, default),
            name,
            tuple(map(Choice, words)),
            category="algorithm" if name in ALGORITHM_KNOBS else "",
            description=meaning,
            source=_GUIDE,
        )
        for name, words, default, meaning in _DECLARED
    )
    return LibraryKnobs("nccl", "NCCL or RCCL", how="a declared list", knobs=knobs, joined=True)


NATIVE: Final = "native"
BINDINGS: Final = (NATIVE, "torch", "cupy", "nccl4py")
"""The first is the default."""
_PACKAGES: Final[Mapping[str, tuple[str, str, str]]] = {
    "torch": ("torch", "PyTorch", "pip install torch==2.13.0, the build for CUDA or ROCm"),
    "cupy": ("cupy", "CuPy", "pip install cupy-cuda13x (or cupy-cuda12x, cupy-rocm-7-0)"),
    "nccl4py": ("nccl", "nccl4py", "pip install nccl4py[cu13] (or [cu12])"),
}
"""Binding -> (module, its name, what to do)."""
_NO_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "torch": ("uint32", "uint64", *FP8),
    "cupy": FP8,
    "nccl4py": ("bfloat16", *FP8),
}
"""Binding -> types that it lacks. Torch's NCCL reduces its types in some releases only; nccl4py has CuPy's arrays."""
OPS: Final = ("sum", "prod", "min", "max", *FACTORED)
SIGNALLED: Final = "pscw"
"""The synchronisation of MPI whose target waits for the writes, as NCCL's does."""
_USUAL_SYNC: Final = "flush"
"""That of a benchmark without ``-s``, instead of which NCCL's is taken."""
_BY_VARIABLE: Final = ("algorithm", "protocol", "log")
"""Settings that NCCL reads from variables, whoever makes the communicator."""
_SETTINGS: Final[Mapping[str, frozenset[str]]] = {
    NATIVE: frozenset(KEYS),
    "torch": frozenset({*_BY_VARIABLE, "min_ctas", "max_ctas"}),
    "cupy": frozenset({*_BY_VARIABLE, "aggregate", "replays"}),
    "nccl4py": frozenset({*_BY_VARIABLE, "aggregate", "replays", "min_ctas", "max_ctas", "cta_policy"}),
}
"""Binding -> keys of ``--nccl`` that it takes: CuPy's NcclConfig has none of them, PyTorch's has the two counts."""


def explain_missing(binding: str, device: str) -> str:
    """Why a binding cannot be used here, with what to do; empty when it can.

    Whether its NCCL fits the GPU shows when ranks start.
    """
    if binding == NATIVE:
        return ""
    module, name, fix = _PACKAGES[binding]
    if find_spec(module) is None:
        return f"binding {binding} needs {name}, which is not installed: {fix}"
    if binding == "torch" and device != SIMULATED and _has_no_gpus():
        return f"binding torch: this PyTorch was built without GPUs: {fix}"
    return ""


def _has_no_gpus() -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch").endswith("+cpu")
    except PackageNotFoundError:
        return False


def lacks_type(binding: str, dtype: str) -> str:
    """Why a binding has no element type, with what to do; empty when it has it."""
    if dtype not in _NO_TYPES.get(binding, ()):
        return ""
    return f"binding {binding} has no type {dtype}: --binding native"


def lacks_settings(binding: str, text: str) -> str:
    """Why a binding does not take the settings of ``--nccl``, with the bindings that do; empty when it does."""
    for key in changed(settings_of(text)):
        if key not in _SETTINGS[binding]:
            able = [name for name in BINDINGS if key in _SETTINGS[name]]
            return f"binding {binding} takes no --nccl {key}: --binding {' or '.join(able)}"
    return ""


def lacks_step(binding: str, op: str) -> str:
    """Why a binding cannot do a step, with what to do; empty when it can."""
    if binding == NATIVE or op not in COMMUNICATORS:
        return ""
    return f"binding {binding} makes no communicators in a loop here: --binding {NATIVE}"


def one_sided(benchmark: Benchmark) -> bool:
    """Whether a benchmark writes into memory of other ranks."""
    return "window_kind" in benchmark.options


def lacks_one_sided(cell: Cell) -> str:
    """Why the writes of a cell cannot be done, with what to do; empty when they can.

    A rank learns that a write has come by waiting for its signal: no other rank can complete it there.
    """
    if cell.binding != NATIVE:
        return f"binding {cell.binding} has no one-sided operations here: --binding {NATIVE}"
    if cell.options.sync not in (SIGNALLED, _USUAL_SYNC):
        return f"NCCL has no -s {cell.options.sync}, since the target waits for the signal of a put: -s {SIGNALLED}"
    if cell.options.window_kind != "allocate":
        return f"NCCL's windows are of memory of ncclMemAlloc, not -w {cell.options.window_kind}: -w allocate"
    registration = settings_of(cell.settings).registration
    return "" if registration in ("none", "window") else "registration of --nccl: a put needs windows: leave it out"


def lacks_groups(binding: str, text: str) -> str:
    """Why a binding with the settings of ``--nccl`` has no communicators of some ranks; empty when it has."""
    if binding != NATIVE:
        return f"binding {binding} makes no communicators of some ranks here: --binding {NATIVE}"
    settings = settings_of(text)
    registered = "registration" if settings.registration != "none" else ""
    key = "communicators" if settings.communicators > 1 else registered
    return f"{key} of --nccl is for one communicator of all ranks: leave it out, or the groups" if key else ""


def multiplicity(text: str) -> Multiplicity:
    """The number of calls that a sample makes at once."""
    settings = settings_of(text)
    return Multiplicity(settings.communicators, settings.aggregate, settings.replays, "--nccl")


class NcclCapabilities(Capabilities):
    """Bindings differ in what they have."""

    def fitted(self, benchmark: Benchmark, cell: Cell, usual: Cell) -> Cell:
        if one_sided(benchmark) and cell.options.sync == _USUAL_SYNC:
            return cell.with_options(sync=SIGNALLED)
        return fit_in_place(benchmark, cell, usual) if cell.binding == "torch" else cell

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        if cell.options.groups and (why := lacks_groups(cell.binding, cell.settings)):
            return why
        if one_sided(benchmark) and (why := lacks_one_sided(cell)):
            return why
        reduces = "op" in benchmark.options
        if reduces and cell.options.op == "mulsum" and cell.binding != NATIVE:
            return f"binding {cell.binding} makes no reduction mulsum here: --binding {NATIVE}"
        return lacks_type(cell.binding, benchmark.sent_dtype(cell.dtype))

    def unbound(self, binding: str, device: str) -> str:
        return explain_missing(binding, device)

    def inspect(self) -> Capabilities:
        from omb_py.backends.nccl.library import report

        return report(self)

    def checks(self) -> Sequence[Check]:
        from omb_py.backends.nccl.library import driver_check

        return driver_check(self)

    def knobs(self) -> LibraryKnobs:
        return library_knobs()


CAPABILITIES: Final = NcclCapabilities(
    "nccl",
    bindings=usable(*BINDINGS),
    devices=usable("cuda", "rocm", SIMULATED),
    ops=OPS,
    priority=20,
    without={
        SCAN: "NCCL has no scan",
        FROM_ANYONE: "a server that answers whoever comes first needs MPI_ANY_SOURCE (mode=async answers in order)",
        ONE_SIDED: "NCCL's writes are done when the target has waited for them (op=send moves the same bytes)",
    },
    refused={"process_sync": {word: f"backend nccl takes no --process-sync {word}: barrier or none" for word in ADDED}},
    # NCCL's threads inherit the mask: its proxy would share a core with a rank that spins
    start=RankStart(needs_mpi=False, bound=False, alone=True),
    asynchronous=True,
    in_place_at_rank=True,
    resizes=True,
    option=OwnOption(
        "K=V,…",
        f"With --backend nccl: {', '.join(KEYS)} (docs/nccl.md).",
        "NCCL's own choices",
        canonical_text,
        lacks=lacks_settings,
        multiplicity=multiplicity,
        marks=tuple(f"nccl_{key}" for key in KEYS),
        measured_as=measured_as,
    ),
)
