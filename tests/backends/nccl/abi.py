"""The binary interface of NCCL, from its own header and library, and of RCCL from its header.

``python -m tests.backends.nccl.abi [--record] FOLDER…``. A folder holds ``nccl.h`` and ``libnccl.so.2``, as an
unpacked wheel does, or ``rccl.h``, as Debian's librccl-dev does. A C compiler says every size, offset and number of the
header, and compiles one call of every function with operands of the types that the backend passes; the library is
loaded in a process of its own, which needs no GPU, and asked for every function.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from omb_py.backends.nccl import communicators, config
from omb_py.backends.nccl.calls import CALLS, CONFIGURED, OPS, TYPES, TYPES_SINCE, TYPES_SINCE_OF_RCCL
from omb_py.backends.nccl.family import NCCL, RCCL, NcclFamily
from omb_py.backends.nccl.library import (
    FUNCTIONS_SINCE,
    MEMORY_STATS,
    SCALAR_ON_HOST,
    SUCCESS,
    unique_id_of,
    version_of,
)
from omb_py.backends.nccl.options import POLICIES
from tests.support.c_library import COMPILER
from tests.support.machines.mpi import run_command

Version = tuple[int, int, int]
FIRST: Final[Version] = (2, 19, 0)
"""The oldest header of NCCL that is asked."""
CONFIGURED_SINCE: Final[Version] = (2, 17, 0)
"""From which on there is a configuration of the first of our forms."""
IN_PROGRESS_SINCE: Final[Version] = (2, 14, 0)
RECORD: Final = Path(__file__).with_name("abi.json")
STRICT: Final = ("-Wall", "-Wextra", "-Wconversion", "-Wenum-conversion", "-Wno-unused-function", "-Werror")
CUDA: Final = {
    "cuda_runtime.h": "typedef struct CUstream_st *cudaStream_t;\ntypedef struct CUevent_st *cudaEvent_t;\n",
    "cuda_fp16.h": "",
    "cuda_bf16.h": "#define __CUDA_BF16_TYPES_EXIST__\n",
}
"""Headers of CUDA that nccl.h includes, with what it takes of them."""
HIP: Final = {"hip/hip_runtime.h": "typedef struct ihipStream_t *hipStream_t;\n", "hip/hip_fp16.h": ""}
"""The same of HIP and rccl.h."""
_STRUCTURES: Final = (
    ("ncclConfig_t", config.Config217, CONFIGURED_SINCE),
    ("ncclConfig_t", config.Config227, communicators.POLICY_SINCE),
    ("ncclConfig_t", config.Config230, config.PEERS_SINCE),
    ("ncclCollConfig_t", config.CollectiveConfig, config.PER_CALL_SINCE),
)
"""Name in C, ours, and the version from which on it is there."""
_DATA_TYPES: Final = {
    **{name: f"nccl{name.capitalize()}" for name in TYPES},
    "float8e4m3": "ncclFloat8e4m3",
    "float8e5m2": "ncclFloat8e5m2",
}
_OPERANDS: Final = {
    "const void *": "send",
    "void *": "recv buf scratch",
    "size_t": "count received block one at",
    "ncclDataType_t": "dtype char",
    "ncclRedOp_t": "op max",
    "int": "root peer rank color descriptors excluded_count",
    "int *": "excluded",
    "ncclComm_t": "comm made",
    "ncclComm_t *": "new_comm",
    "cudaStream_t": "stream",
    "ncclCollConfig_t *": "config",
    "ncclWindow_t": "window",
    "ncclWaitSignalDesc_t *": "signals",
}
"""Type in C -> operands of CALLS. ``zero`` is a literal 0: a number and a null pointer."""
_SINCE: Final[Mapping[str, Version]] = {
    **FUNCTIONS_SINCE,
    **dict.fromkeys(("ncclAlltoAll", "ncclGather", "ncclScatter"), (2, 28, 0)),
    **dict.fromkeys(("ncclCommWindowRegister", "ncclCommWindowDeregister"), communicators.WINDOW_SINCE),
    **dict.fromkeys((f"{CALLS[step][0]}Config" for step in CONFIGURED), config.PER_CALL_SINCE),
    "ncclCommInitRankConfig": IN_PROGRESS_SINCE,
    "ncclCommSplit": (2, 18, 0),
    **dict.fromkeys(("ncclMemAlloc", "ncclMemFree", "ncclCommRegister", "ncclCommDeregister"), FIRST),
}
"""Functions that came later; all others are in every version that is asked."""
_EARLIER_IN_RCCL: Final = ("ncclAlltoAll", "ncclGather", "ncclScatter")
"""Functions that RCCL had before NCCL."""
_BY_CTYPES: Final = (
    "ncclGetVersion ncclGetErrorString ncclGetLastError ncclGetUniqueId ncclCommInitRank ncclCommInitRankConfig "
    "ncclCommDestroy ncclCommAbort ncclCommGetAsyncError ncclMemAlloc ncclMemFree ncclCommRegister ncclCommDeregister "
    "ncclCommWindowRegister ncclCommWindowDeregister ncclRedOpCreatePreMulSum ncclRedOpDestroy ncclCommMemStats "
    "ncclCommGetUniqueId ncclCommGrow"
).split()
_LOAD: Final = """
import ctypes, json, sys
library, number = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
assert library.ncclGetVersion(ctypes.byref(number)) == 0
print(json.dumps([number.value, [name for name in sys.argv[2:] if not hasattr(library, name)]]))
"""


def ours(version: Version, family: NcclFamily = NCCL) -> dict[str, int]:
    """Sizes, offsets and numbers that the backend uses with a version. Bytes, or the number itself."""
    values = {"sizeof ncclUniqueId": ctypes.sizeof(unique_id_of(family))}
    if version >= CONFIGURED_SINCE:
        values |= {"magic": config.MAGIC, "undefined": config.UNDEFINED}
    for name, structure, since in _STRUCTURES:
        if version >= since:
            values |= {f"{name}.{field}": getattr(structure, field).offset for field in _fields(structure)}
    values |= {"ncclSuccess": SUCCESS, "ncclInternalError": communicators.INTERNAL}
    if version >= IN_PROGRESS_SINCE:
        values["ncclInProgress"] = family.in_progress
    since = TYPES_SINCE_OF_RCCL if family is RCCL else TYPES_SINCE
    values |= {_DATA_TYPES[name]: n for name, n in TYPES.items() if version >= since.get(name, (0, 0, 0))}
    values |= {f"nccl{name.capitalize()}": number for name, number in OPS.items()}
    values["ncclScalarHostImmediate"] = SCALAR_ON_HOST
    if version >= communicators.WINDOW_SINCE:
        values["NCCL_WIN_COLL_SYMMETRIC"] = communicators.SYMMETRIC
        known = POLICIES if version >= communicators.ZERO_SINCE else POLICIES[:2]
        values |= {f"NCCL_CTA_POLICY_{name.upper()}": number for number, name in enumerate(known)}
    if version >= FUNCTIONS_SINCE["ncclCommMemStats"]:
        named = {"suspendable": "Suspend", "persistent": "Persist", "library": "Total"}
        values |= {f"ncclStatGpuMem{named[word]}": number for word, number in MEMORY_STATS.items()}
    return values


def library_of(text: str) -> tuple[Version, NcclFamily]:
    """The three numbers of a version, and whose it is.

    >>> library_of("2.28.9")[0], library_of("RCCL 2.13.4")[1].name
    ((2, 28, 9), 'RCCL')
    """
    name, _, version = text.rpartition(" ")
    major, minor, patch = map(int, version.split("."))
    return (major, minor, patch), RCCL if name == RCCL.name else NCCL


def has(function: str, version: Version, family: NcclFamily) -> bool:
    """Whether a version has a function of NCCL, by whatever name."""
    return version >= _SINCE.get(function, (0, 0, 0)) or (family is RCCL and function in _EARLIER_IN_RCCL)


def functions(version: Version) -> list[str]:
    """Every function that the backend may call with a version."""
    names = {*_BY_CTYPES, *(name for name, _ in CALLS.values()), *_SINCE}
    return sorted(name for name in names if has(name, version, NCCL))


def of_header(folder: Path) -> tuple[Version, NcclFamily, dict[str, int]]:
    """The version of a header, whose it is, and its values under the names of :func:`ours`.

    Raises RuntimeError with the compiler's words: the header does not take a call as the backend makes it.
    """
    of_rccl = next(iter(sorted(folder.rglob("rccl.h"))), None)
    header, family = (of_rccl, RCCL) if of_rccl else (_only(folder, "nccl.h"), NCCL)
    code = next(line.split()[-1] for line in header.read_text().splitlines() if "define NCCL_VERSION_CODE" in line)
    version = version_of(int(code))
    with tempfile.TemporaryDirectory() as name:
        build = Path(name)
        for file, text in (HIP if family is RCCL else CUDA).items():
            (build / file).parent.mkdir(exist_ok=True)
            (build / file).write_text(text)
        (build / "abi.c").write_text("\n".join(_program(version, family)))
        includes = ["-isystem", str(build), "-isystem", str(header.parent)]
        common = [str(COMPILER), "-std=gnu11", *includes, str(build / "abi.c")]
        _run([*common, *STRICT, "-c", "-o", str(build / "abi.o")])
        # the calls are compiled only: nothing of the library is linked
        _run([*common, "-DVALUES_ONLY", "-o", str(build / "abi")])
        printed = _run([str(build / "abi")])
    return version, family, {key: int(value) for key, value in (line.rsplit(" ", 1) for line in printed.splitlines())}


def of_library(folder: Path) -> tuple[Version, list[str]]:
    """The version of a library, and those of the functions of that version that it lacks."""
    path = _only(folder, "libnccl.so.2")
    number, _ = _loaded(path)
    return version_of(number), _loaded(path, *functions(version_of(number)))[1]


def _loaded(path: Path, *names: str) -> Any:
    words = [sys.executable, "-c", _LOAD, str(path), *names]
    return json.loads(_run(words))


def _run(words: Sequence[str]) -> str:
    done = run_command(words)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def differences(folder: Path) -> tuple[str, dict[str, int], list[str]]:
    """The version, the header's values, and what differs or is missing, as sentences."""
    version, family, values = of_header(folder)
    expected, text = ours(version, family), ".".join(map(str, version))
    problems = [f"{key} is {values[key]}, not {expected[key]}" for key in expected if values[key] != expected[key]]
    if family is RCCL:  # whose library needs ROCm
        return f"{family.name} {text}", values, problems
    of_file, missing = of_library(folder)
    problems += [f"{name} is not in the library" for name in missing]
    if version != of_file:
        problems.append(f"the header is of {version}, the library of {of_file}")
    return text, values, problems


def _only(folder: Path, name: str) -> Path:
    if path := next(iter(sorted(folder.rglob(name))), None):
        return path
    raise FileNotFoundError(f"no {name} in {folder}: name a folder with an unpacked wheel nvidia-nccl-cu12 or -cu13")


def _fields(structure: type[ctypes.Structure]) -> list[str]:
    return [field[0] for field in structure._fields_ if field[0] != "padding"]


def _program(version: Version, family: NcclFamily) -> Iterator[str]:
    """A C program that prints the header's values, and a call of every function that is never made."""
    headers = "#include <rccl.h>" if family is RCCL else "#include <cuda_bf16.h>\n#include <nccl.h>"
    yield f"#include <stddef.h>\n#include <stdio.h>\n{headers}\n#ifndef VALUES_ONLY"
    kinds = {word: kind for kind, words in _OPERANDS.items() for word in words.split()}
    kinds["stream"] = "hipStream_t" if family is RCCL else kinds["stream"]
    calls = {step: call for step, call in CALLS.items() if has(call[0], version, family)}
    if version >= config.PER_CALL_SINCE:
        calls |= {f"{step}_config": (f"{CALLS[step][0]}Config", f"{CALLS[step][1]} config") for step in CONFIGURED}
    for step, (function, words) in calls.items():
        names = [word for word in dict.fromkeys(words.split()) if word != "zero"]
        operands = ", ".join(f"{kinds[word]} of_{word}" for word in names) or "void"
        values = ", ".join("0" if word == "zero" else f"of_{word}" for word in words.split())
        yield f"static ncclResult_t call_{step}({operands}) {{ return {family.symbol(function)}({values}); }}"
    yield "#endif\nint main(void) {"
    if version >= CONFIGURED_SINCE:
        yield "  ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;"
    for key in ours(version, family):
        yield f'  printf("{key} %lld\\n", (long long)({_expression(key)}));'
    yield "  return 0;\n}"


def _expression(key: str) -> str:
    if key.startswith("sizeof "):
        return f"sizeof({key.removeprefix('sizeof ')})"
    if "." in key:
        return f"offsetof({key.replace('.', ', ')})"
    return {"magic": "initial.magic", "undefined": "NCCL_CONFIG_UNDEF_INT"}.get(key, key)


def main() -> int:
    """Print a line a folder; exit status 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.backends.nccl.abi")
    parser.add_argument("--record", action="store_true", help=f"write the values into {RECORD.name}")
    parser.add_argument("folder", nargs="+", type=Path)
    given = parser.parse_args()
    record, failed = json.loads(RECORD.read_text()) if RECORD.exists() else {}, False
    for folder in given.folder:
        text, values, problems = differences(folder)
        print(f"{text}: {len(values)} values: {'; '.join(problems) or 'all as ours'}")
        record[text], failed = values, failed or bool(problems)
    if given.record:
        RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
