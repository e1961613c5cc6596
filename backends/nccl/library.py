"""The NCCL or RCCL library of this machine: its functions through ctypes, and what it lacks."""

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
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from omb_py.backends.capabilities import Capabilities, Check, Inspection
from omb_py.backends.nccl.capabilities import BINDINGS, missing
from omb_py.engine.devices.gpu import driver_version
from omb_py.engine.devices.registry import SIMULATED, find_kind
from omb_py.errors import EnvironmentProblem

VARIABLE: Final = "OMB_PY_NCCL"
"""Path of the library, where it is not found by itself."""
NAMES: Final = {"cuda": ("libnccl.so.2", "libnccl.so"), "rocm": ("librccl.so.1", "librccl.so"), SIMULATED: ()}
_INSTALL: Final = {
    "cuda": "pip install nvidia-nccl-cu13 (or -cu12, as the driver), or name the library in OMB_PY_NCCL",
    "rocm": "install ROCm's rccl package, or name the library in OMB_PY_NCCL",
    SIMULATED: "the simulated device needs a library that knows it: name it in OMB_PY_NCCL (tests/standin)",
}
SUCCESS, IN_PROGRESS = 0, 7
SCALAR_ON_HOST: Final = 1
"""``ncclScalarHostImmediate``: the library reads the number before it returns."""
ID_BYTES: Final = 128
SHARED_GPU_SINCE: Final = (2, 30, 0)
SPLIT_SINCE: Final = (2, 18, 0)
_ASK = """
import ctypes, json, sys
answer = {}
try:
    library = ctypes.CDLL(sys.argv[1])
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    answer["version"] = number.value
    answer["has"] = [name for name in sys.argv[2:] if hasattr(library, name)]
    name = sys.argv[1].rpartition("/")[2]
    files = [line.split()[-1] for line in open("/proc/self/maps") if "/" + name in line]
    answer["file"] = files[0] if files else sys.argv[1]
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
print("omb-py:" + json.dumps(answer))
"""
_ALSO: Final = {"ncclAlltoAll": "ncclAllToAll"}
"""Functions that RCCL has under another name, with the same operands (rccl.h)."""
OPTIONAL: Final = tuple(
    (
        "ncclAlltoAll ncclGather ncclScatter ncclCommRegister ncclCommWindowRegister ncclAllReduceConfig "
        "ncclGroupSimulateEnd"
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


class UniqueId(ctypes.Structure):
    """``ncclUniqueId``, which functions take by value."""

    _fields_ = (("internal", ctypes.c_char * ID_BYTES),)


def version_of(code: int) -> tuple[int, int, int]:
    """(major, minor, patch) of a version number: thousands up to 2.8, ten thousands since. (nccl.h)

    >>> version_of(2708), version_of(22803)
    ((2, 7, 8), (2, 28, 3))
    """
    thousand = 1000 if code < 10000 else 10000
    return code // thousand, code % thousand // 100, code % 100


def candidates(device: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Paths where the library of a device may be: the variable's, or the wheel's and then the system's."""
    if environ.get(VARIABLE):
        return [environ[VARIABLE]]
    paths = []
    if device == "cuda":
        try:
            wheel = find_spec("nvidia.nccl")
        except ModuleNotFoundError:
            wheel = None
        for folder in (wheel.submodule_search_locations or ()) if wheel else ():
            paths += [str(path) for path in sorted(Path(folder, "lib").glob("libnccl.so*"))]
    return [*paths, *NAMES[device]]


def load(device: str) -> Library:
    """The library of a device. Raises EnvironmentProblem with what to install."""
    reasons = []
    for name in candidates(device):
        try:
            return Library(ctypes.CDLL(name), name)
        except OSError as error:
            reasons.append(str(error))
        except AttributeError as error:
            reasons.append(f"{name} is no NCCL library ({error})")
    reason = "; ".join(reasons) or "none is known"
    raise EnvironmentProblem(f"backend nccl: no library for --device {device} ({reason}): {_INSTALL[device]}")


class Library:
    """A loaded library.

    Raises:
        AttributeError: it is no NCCL library.
    """

    def __init__(self, handle: ctypes.CDLL, path: str) -> None:
        self.handle, self.path = handle, path
        number = ctypes.c_int()
        handle.ncclGetVersion(ctypes.byref(number))
        self.version = version_of(number.value)
        handle.ncclGetErrorString.restype = ctypes.c_char_p
        self._last = getattr(handle, "ncclGetLastError", None)  # since 2.13
        if self._last is not None:
            self._last.restype, self._last.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        handle.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
        for name in ("ncclCommDestroy", "ncclCommAbort"):
            getattr(handle, name).argtypes = [ctypes.c_void_p]
        handle.ncclCommGetAsyncError.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]

    @property
    def name(self) -> str:
        return "RCCL" if "rccl" in Path(self.path).name else "NCCL"

    @property
    def version_text(self) -> str:
        """``2.28.3``."""
        return ".".join(map(str, self.version))

    def has(self, function: str) -> bool:
        """Whether there is a function of that name, or of the name that it has in RCCL."""
        return hasattr(self.handle, self._name_of(function))

    def _name_of(self, function: str) -> str:
        if self.name != "RCCL" or hasattr(self.handle, function):
            return function
        return _ALSO.get(function, function)

    def address_of(self, function: str) -> int:
        """Address of a function. Raises EnvironmentProblem when this version does not have it."""
        if not self.has(function):
            raise EnvironmentProblem(f"{self.name} {self.version_text} has no {function}: use a newer version")
        return ctypes.cast(getattr(self.handle, self._name_of(function)), ctypes.c_void_p).value or 0

    def error_text(self, code: int, comm: int | None = None) -> str:
        text = (self.handle.ncclGetErrorString(code) or b"unknown").decode(errors="replace")
        last = (self._last(comm) or b"").decode(errors="replace").strip() if self._last else ""
        return f"{self.name}: {text}" + (f": {last}" if last else "")

    def unique_id(self) -> bytes:
        """A new id of a communicator. Raises EnvironmentProblem."""
        unique_id = UniqueId()
        self._check("ncclGetUniqueId", self.handle.ncclGetUniqueId(ctypes.byref(unique_id)))
        return bytes(unique_id)

    def init_rank(self, size: int, unique_id: bytes, rank: int, config: ctypes.Structure | None = None) -> int:
        """Make the communicator, together with all other ranks. Raises EnvironmentProblem."""
        comm = ctypes.c_void_p()
        identity = UniqueId.from_buffer_copy(unique_id)
        if config is None:
            self._check("ncclCommInitRank", self.handle.ncclCommInitRank(ctypes.byref(comm), size, identity, rank))
            return comm.value or 0
        function = self.handle.ncclCommInitRankConfig
        function.argtypes = [*self.handle.ncclCommInitRank.argtypes, ctypes.c_void_p]
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
        self._check(name, getattr(self.handle, name)(*words))
        return part.value or 0

    def mulsum(self, comm: int, scalar: bytes, dtype: int) -> int:
        """A reduction that adds elements times `scalar`, an element of `dtype`, for one communicator.

        Raises EnvironmentProblem: the library has none, or refused.
        """
        name = "ncclRedOpCreatePreMulSum"
        self.address_of(name)
        operation = ctypes.c_int()
        words = [ctypes.byref(operation), ctypes.c_char_p(scalar), dtype, SCALAR_ON_HOST, ctypes.c_void_p(comm)]
        self._check(name, getattr(self.handle, name)(*words))
        return operation.value

    def free_mulsum(self, op: int, comm: int) -> None:
        """Give back what :meth:`mulsum` made."""
        self.handle.ncclRedOpDestroy(op, ctypes.c_void_p(comm))

    def mem_alloc(self, nbytes: int) -> int:
        """Memory that can be registered. Raises EnvironmentProblem."""
        pointer = ctypes.c_void_p()
        self._check("ncclMemAlloc", self.handle.ncclMemAlloc(ctypes.byref(pointer), ctypes.c_size_t(nbytes)))
        return pointer.value or 0

    def mem_free(self, address: int) -> None:
        """Give back what :meth:`mem_alloc` gave."""
        self.handle.ncclMemFree(ctypes.c_void_p(address))

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
        self._check(name, getattr(self.handle, name)(*words))
        return registration.value or 0

    def deregister(self, comm: int, handle: int, window: bool) -> None:
        """Undo :meth:`register`."""
        name = "ncclCommWindowDeregister" if window else "ncclCommDeregister"
        getattr(self.handle, name)(ctypes.c_void_p(comm), ctypes.c_void_p(handle))

    def async_error(self, comm: int) -> int:
        """The error that an operation met after its call had returned; 0: none."""
        code = ctypes.c_int()
        failure = int(self.handle.ncclCommGetAsyncError(comm, ctypes.byref(code)))
        return failure or (0 if code.value == IN_PROGRESS else code.value)

    def abort(self, comm: int) -> None:
        """End everything that still runs on a communicator, and free it."""
        self.handle.ncclCommAbort(comm)

    def destroy(self, comm: int) -> None:
        """Free a communicator."""
        self.handle.ncclCommDestroy(comm)

    def _check(self, function: str, code: int) -> None:
        if code != SUCCESS:
            raise EnvironmentProblem(f"{function} failed: {self.error_text(code)}: NCCL_DEBUG=WARN says more")


def lacking(functions: Collection[str]) -> list[str]:
    """Functions of newer versions that a library does not have, under RCCL's name neither."""
    return [name for name in OPTIONAL if name not in functions and _ALSO.get(name) not in functions]


@cache
def asked(path: str) -> Mapping[str, Any]:
    """The facts that a child process finds in a library: ``version``, ``has`` and ``file``, or ``error``."""
    try:
        child = subprocess.run(
            [sys.executable, "-c", _ASK, path, *OPTIONAL, *_ALSO.values()],
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
        for path in candidates(device):
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
    fix = "" if usable else _INSTALL["cuda"] if not version else "a machine with a GPU and CuPy, or --device cpu"
    bindings = {binding: missing(binding, "cuda") or reason for binding in BINDINGS}
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
