"""A library with NCCL's interface: its functions through ctypes, and what it lacks."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from omb_py.backends.capabilities import Capabilities, Check, Inspection
from omb_py.backends.nccl.capabilities import BINDINGS, explain_missing
from omb_py.backends.nccl.family import NCCL, OF_DEVICE, RCCL, NcclFamily
from omb_py.engine.devices.gpu import driver_version
from omb_py.engine.devices.registry import find_kind
from omb_py.errors import EnvironmentProblem

SUCCESS = 0
SCALAR_ON_HOST: Final = 1
"""``ncclScalarHostImmediate``: the library reads the number before it returns."""
SHARED_GPU_SINCE: Final = (2, 30, 0)
SPLIT_SINCE: Final = (2, 18, 0)
FUNCTIONS_SINCE: Final = {
    **dict.fromkeys(("ncclPutSignal", "ncclSignal", "ncclWaitSignal"), (2, 29, 0)),
    "ncclCommMemStats": (2, 29, 7),
    "ncclCommShrink": (2, 27, 0),
    "ncclCommGrow": (2, 29, 0),
}
"""Functions that are named with their first version where they are missing."""
MEMORY_STATS: Final = {"suspendable": 0, "persistent": 2, "library": 3}
"""What NCCL counts of a communicator's memory on the GPU -> ncclCommMemStat_t (nccl.h); ``library`` is all of it."""
_ASK = """
import ctypes, json, sys
answer, (path, mode, version, last) = {}, sys.argv[1:5]
try:
    library = ctypes.CDLL(path, int(mode))
    number = ctypes.c_int()
    failed = getattr(library, version)(ctypes.byref(number))
    if failed:
        text = getattr(library, last)
        text.restype, text.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        raise OSError(" ".join((text(None) or b"").decode(errors="replace").split()) or f"{version} returned {failed}")
    answer["version"] = number.value
    answer["has"] = [name for name in sys.argv[5:] if hasattr(library, name)]
    name = path.rpartition("/")[2]
    files = [line.split()[-1] for line in open("/proc/self/maps") if "/" + name in line]
    answer["file"] = files[0] if files else path
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
print("omb-py:" + json.dumps(answer))
"""
OPTIONAL: Final = tuple(
    (
        "ncclAlltoAll ncclGather ncclScatter ncclCommRegister ncclCommWindowRegister ncclAllReduceConfig "
        "ncclGroupSimulateEnd ncclPutSignal"
    ).split()
)
"""Symbols of newer versions, for ``doctor``."""
_FACT: Final = "library for {}"
_BANNER: Final = re.compile(rb"NCCL version [0-9.]+[^+\x00]{0,16}\+cuda([0-9]+)\.([0-9]+)")
"""The text in NVIDIA's builds that names their version and CUDA."""


def built_for(path: str) -> tuple[int, int] | None:
    """(major, minor) of the CUDA that a library file was built for; None where it does not say."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = _BANNER.search(content)
            return (int(match[1]), int(match[2])) if match else None
    except (OSError, ValueError):  # no such file, or an empty one
        return None


def loaded_file(name: str, maps: Path = Path("/proc/self/maps")) -> str:
    """The file of a loaded library, whose name may be without a folder."""
    if "/" in name:
        return name
    try:
        files = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    except OSError:
        return name
    return next((file for file in sorted(files) if Path(file).name.startswith(name)), name)


def check_cuda(built: tuple[int, int] | None, driver: int, path: str) -> None:
    """Raises EnvironmentProblem for a library of a later CUDA than the driver takes.

    Args:
        driver: what cuDriverGetVersion says, thousands and tens; 0: not known.
    """
    if built and driver and built[0] > driver // 1000:
        most = f"{driver // 1000}.{driver % 1000 // 10}"
        raise EnvironmentProblem(
            f"{path} is built for CUDA {built[0]}, and this driver takes CUDA {most} at most: "
            f"pip install nvidia-nccl-cu{driver // 1000}, or a newer driver"
        )


@cache
def unique_id_of(family: NcclFamily) -> type[ctypes.Structure]:
    """``ncclUniqueId``, which functions take by value."""
    return type("UniqueId", (ctypes.Structure,), {"_fields_": (("internal", ctypes.c_char * family.id_bytes),)})


def version_of(code: int) -> tuple[int, int, int]:
    """(major, minor, patch) of a version number: thousands up to 2.8, ten thousands since. (nccl.h)

    >>> version_of(2708), version_of(22803)
    ((2, 7, 8), (2, 28, 3))
    """
    thousand = 1000 if code < 10000 else 10000
    return code // thousand, code % thousand // 100, code % 100


def load(device: str) -> Library:
    """The library of a device. Raises EnvironmentProblem with what to install."""
    family, reasons = OF_DEVICE[device], []
    for name, value in family.usual.items():
        os.environ.setdefault(name, value)
    for name in family.candidates():
        try:
            return Library(ctypes.CDLL(name, mode_of(family)), name, family)
        except OSError as error:
            reasons.append(str(error))
        except AttributeError as error:
            reasons.append(f"{name} is no {family.name} library ({error})")
    reason = "; ".join(reasons) or "none is known"
    raise EnvironmentProblem(f"backend {family.backend}: no library for --device {device} ({reason}): {family.install}")


def mode_of(family: NcclFamily) -> int:
    """How the loader takes it."""
    return ctypes.RTLD_GLOBAL if family.is_global else ctypes.DEFAULT_MODE


class Library:
    """A loaded library.

    Raises:
        AttributeError: it is no library of this family.
        OSError: it cannot be used here.
    """

    family: NcclFamily = NCCL

    def __init__(self, handle: ctypes.CDLL, path: str, family: NcclFamily = NCCL) -> None:
        self.handle, self.path, self.family = handle, path, family
        number = ctypes.c_int()
        failed = self.function("ncclGetVersion")(ctypes.byref(number))
        self.version = version_of(number.value)
        self.function("ncclGetErrorString").restype = ctypes.c_char_p
        self._last = self.function("ncclGetLastError") if self.has("ncclGetLastError") else None  # since 2.13
        if self._last is not None:
            self._last.restype, self._last.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        if failed:
            raise OSError(self.error_text(failed))
        kinds = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, unique_id_of(family), ctypes.c_int]
        self.function("ncclCommInitRank").argtypes = kinds
        for name in ("ncclCommDestroy", "ncclCommAbort"):
            self.function(name).argtypes = [ctypes.c_void_p]
        if self.has("ncclCommGetAsyncError"):
            self.function("ncclCommGetAsyncError").argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]

    @property
    def name(self) -> str:
        return self.family.name

    @property
    def version_text(self) -> str:
        """``2.28.3``."""
        return ".".join(map(str, self.version))

    def has(self, function: str) -> bool:
        """Whether there is a function, which NCCL calls so."""
        return self.version >= FUNCTIONS_SINCE.get(function, (0, 0, 0)) and hasattr(self.handle, self._symbol(function))

    def _symbol(self, function: str) -> str:
        plain = self.family.prefix + function.removeprefix("nccl")  # a newer release may have NCCL's name, too
        return plain if hasattr(self.handle, plain) else self.family.symbol(function)

    def function(self, function: str) -> Any:
        """A function by NCCL's name. Raises AttributeError where the library has none."""
        return getattr(self.handle, self._symbol(function))

    def address_of(self, function: str) -> int:
        """Address of a function. Raises EnvironmentProblem when this version does not have it."""
        if not self.has(function):
            symbol, since = self.family.symbol(function), FUNCTIONS_SINCE.get(function)
            came = f", which came with {'.'.join(map(str, since[:2]))}" if since else ""
            raise EnvironmentProblem(f"{self.name} {self.version_text} has no {symbol}{came}: use a newer version")
        return ctypes.cast(self.function(function), ctypes.c_void_p).value or 0

    def error_text(self, code: int, comm: int | None = None) -> str:
        text = (self.function("ncclGetErrorString")(code) or b"unknown").decode(errors="replace")
        last = (self._last(comm) or b"").decode(errors="replace").strip() if self._last else ""
        return f"{self.name}: {text}" + (f": {last}" if last else "")

    def unique_id(self) -> bytes:
        """A new id of a communicator. Raises EnvironmentProblem."""
        unique_id = unique_id_of(self.family)()
        self._check("ncclGetUniqueId", self.function("ncclGetUniqueId")(ctypes.byref(unique_id)))
        return bytes(unique_id)

    def init_rank(self, size: int, unique_id: bytes, rank: int, config: ctypes.Structure | None = None) -> int:
        """Make the communicator, together with all other ranks. Raises EnvironmentProblem."""
        comm = ctypes.c_void_p()
        identity = unique_id_of(self.family).from_buffer_copy(unique_id)
        usual = self.function("ncclCommInitRank")
        if config is None:
            self._check("ncclCommInitRank", usual(ctypes.byref(comm), size, identity, rank))
            return comm.value or 0
        function = self.function("ncclCommInitRankConfig")
        function.argtypes = [*usual.argtypes, ctypes.c_void_p]
        self._check("ncclCommInitRankConfig", function(ctypes.byref(comm), size, identity, rank, ctypes.byref(config)))
        return comm.value or 0

    def split(self, comm: int, color: int, key: int) -> int:
        """Split a communicator, together with all its ranks: those of one color get one, in the order of their keys.

        Returns:
            The handle; 0 for a negative color.

        Raises:
            EnvironmentProblem: this version has no split, or refused.
        """
        name, part = "ncclCommSplit", ctypes.c_void_p()
        if self.version < SPLIT_SINCE:
            raise EnvironmentProblem(f"{self.name} {self.version_text} has no {name}: use 2.18 or newer, or no groups")
        self.address_of(name)
        words = [ctypes.c_void_p(comm), color, key, ctypes.byref(part), ctypes.c_void_p()]
        self._check(name, self.function(name)(*words))
        return part.value or 0

    def grow_id(self, comm: int) -> bytes:
        """A new id with which ranks join those of a communicator, for one :meth:`grow`. Raises EnvironmentProblem."""
        name, unique_id = "ncclCommGetUniqueId", unique_id_of(self.family)()
        self._check(name, self.function(name)(ctypes.c_void_p(comm), ctypes.byref(unique_id)))
        return bytes(unique_id)

    def grow(self, comm: int, size: int, unique_id: bytes, rank: int, config: ctypes.Structure | None = None) -> int:
        """Make a communicator of `size` ranks from that of some, together with all of them.

        Args:
            comm: the old one; 0 on a rank that joins.
            unique_id: of :meth:`grow_id`, on the rank that asked for it and on those that join; else empty.
            rank: the number of one that joins; -1 where there is an old communicator, which keeps its numbers.
            config: of one that joins; the others inherit theirs.

        Raises:
            EnvironmentProblem: the library refused.
        """
        name, grown = "ncclCommGrow", ctypes.c_void_p()
        identity = ctypes.byref(unique_id_of(self.family).from_buffer_copy(unique_id)) if unique_id else None
        words = [ctypes.c_void_p(comm), size, identity, rank, ctypes.byref(grown)]
        self._check(name, self.function(name)(*words, ctypes.byref(config) if config is not None else None))
        return grown.value or 0

    def mulsum(self, comm: int, scalar: bytes, dtype: int) -> int:
        """A reduction that adds elements times `scalar`, an element of `dtype`, for one communicator.

        Raises EnvironmentProblem: the library has none, or refused.
        """
        name = "ncclRedOpCreatePreMulSum"
        self.address_of(name)
        operation = ctypes.c_int()
        words = [ctypes.byref(operation), ctypes.c_char_p(scalar), dtype, SCALAR_ON_HOST, ctypes.c_void_p(comm)]
        self._check(name, self.function(name)(*words))
        return operation.value

    def free_mulsum(self, op: int, comm: int) -> None:
        """Give back what :meth:`mulsum` made."""
        self.function("ncclRedOpDestroy")(op, ctypes.c_void_p(comm))

    def memory_of(self, comm: int) -> Mapping[str, int]:
        """Bytes of the GPU that a communicator holds, by the words of :data:`MEMORY_STATS`.

        Empty where this version does not count them, or refuses: RCCL's manager of memory can be switched off.
        """
        name, value, found = "ncclCommMemStats", ctypes.c_uint64(), dict[str, int]()
        if not self.has(name):
            return {}
        for word, number in MEMORY_STATS.items():
            if self.function(name)(ctypes.c_void_p(comm), number, ctypes.byref(value)) != SUCCESS:
                return {}
            found[word] = value.value
        return found

    def mem_alloc(self, nbytes: int) -> int:
        """Memory that can be registered. Raises EnvironmentProblem."""
        pointer = ctypes.c_void_p()
        self._check("ncclMemAlloc", self.function("ncclMemAlloc")(ctypes.byref(pointer), ctypes.c_size_t(nbytes)))
        return pointer.value or 0

    def mem_free(self, address: int) -> None:
        """Give back what :meth:`mem_alloc` gave."""
        self.function("ncclMemFree")(ctypes.c_void_p(address))

    def register(self, comm: int, address: int, nbytes: int, flags: int | None) -> int:
        """Register memory with a communicator; with `flags` as a window, by all ranks together.

        Returns:
            The registration's handle.

        Raises:
            EnvironmentProblem: the library refused.
        """
        name = "ncclCommRegister" if flags is None else "ncclCommWindowRegister"
        registration = ctypes.c_void_p()
        words = [ctypes.c_void_p(comm), ctypes.c_void_p(address), ctypes.c_size_t(nbytes), ctypes.byref(registration)]
        words += [] if flags is None else [ctypes.c_int(flags)]
        self._check(name, self.function(name)(*words))
        return registration.value or 0

    def deregister(self, comm: int, handle: int, window: bool) -> None:
        """Undo :meth:`register`."""
        name = "ncclCommWindowDeregister" if window else "ncclCommDeregister"
        self.function(name)(ctypes.c_void_p(comm), ctypes.c_void_p(handle))

    def async_error(self, comm: int) -> int:
        """The error that an operation met after its call had returned; 0: none."""
        code = ctypes.c_int()
        failure = int(self.function("ncclCommGetAsyncError")(comm, ctypes.byref(code)))
        return failure or (0 if code.value == self.family.in_progress else code.value)

    def abort(self, comm: int) -> None:
        """End everything that still runs on a communicator, and free it."""
        self.function("ncclCommAbort")(comm)

    def destroy(self, comm: int) -> None:
        """Free a communicator."""
        self.function("ncclCommDestroy")(comm)

    def _check(self, function: str, code: int) -> None:
        if code != SUCCESS:
            more = "NCCL_DEBUG=WARN" if self.family.prefix == "nccl" else "CCL_LOG_LEVEL=info"
            raise EnvironmentProblem(
                f"{self.family.symbol(function)} failed: {self.error_text(code)}: {more} says more"
            )


def lacking(functions: Collection[str]) -> list[str]:
    """Functions of newer versions that a library does not have, under RCCL's name neither."""
    return [name for name in OPTIONAL if name not in functions and RCCL.symbol(name) not in functions]


@cache
def asked(path: str, family: NcclFamily = NCCL) -> Mapping[str, Any]:
    """The facts that a child process finds in a library: ``version``, ``has`` and ``file``, or ``error``."""
    functions = map(family.symbol, ("ncclGetVersion", "ncclGetLastError"))
    try:
        child = subprocess.run(
            [sys.executable, "-c", _ASK, path, str(mode_of(family)), *functions, *OPTIONAL, *RCCL.also.values()],
            env={**family.usual, **os.environ},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    for line in child.stdout.splitlines():
        if line.startswith("omb-py:"):
            answer: dict[str, Any] = json.loads(line.removeprefix("omb-py:"))
            return answer
    return {"error": f"the process that asked it ended with {child.returncode}"}


def report(declared: Capabilities) -> Capabilities:
    """The capabilities of NCCL here. A child process loads the library, so a broken one harms nobody."""
    devices, reasons, facts, version, name = {"cpu": "NCCL moves device memory: --device cuda"}, [], {}, "", ""
    for device in ("cuda", "rocm"):
        for path in OF_DEVICE[device].candidates():
            answer = asked(path)
            if "error" not in answer:
                break
            reasons.append(str(answer["error"]))
        else:
            devices[device] = f"no {'NCCL' if device == 'cuda' else 'RCCL'} library ({reasons[-1]})"
            continue
        devices[device] = find_kind(device).problem()
        number = version_of(answer["version"])
        version, name = version or ".".join(map(str, number)), name or ("RCCL" if device == "rocm" else "NCCL")
        facts[_FACT.format(device)] = str(answer.get("file", path))
        facts[f"lacks for {device}"] = ", ".join(lacking(answer["has"])) or "nothing"
    usable = any(devices[device] == "" for device in ("cuda", "rocm"))
    reason = "" if usable else devices["cuda"] or devices["rocm"]
    fix = "" if usable else NCCL.install if not version else "take a machine with a GPU and CuPy, or --device cpu"
    bindings = {binding: explain_missing(binding, "cuda") or reason for binding in BINDINGS}
    return replace(
        declared, bindings=bindings, devices=devices, inspection=Inspection(reason, fix, name, version, facts)
    )


def driver_check(inspected: Capabilities) -> list[Check]:
    """Whether the library that was found is built for a CUDA that the driver takes; no line where either is unknown."""
    path = inspected.inspection.facts.get(_FACT.format("cuda"), "")
    built, driver = built_for(path) if path else None, driver_version()
    if not built or not driver:
        return []
    try:
        check_cuda(built, driver, path)
    except EnvironmentProblem as problem:
        text, _, fix = str(problem).rpartition(": ")
        return [Check("  NCCL and driver", False, text, fix, "cuda")]
    return [Check("  NCCL and driver", True, f"built for CUDA {built[0]}, which this driver takes", device="cuda")]
