"""What the check on a GPU runs, as data: one entry is one run of omb-py, with everything that shares its processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from omb_py.backends.nccl.capabilities import BINDINGS, NATIVE, explain_missing
from omb_py.backends.nccl.family import OF_DEVICE
from omb_py.backends.nccl.library import asked, version_of
from omb_py.engine.program.buffers import ON_DEVICE
from tests.support.machines.mpi import ROOT

RANKS = 2
"""On one GPU: NCCL admits about two."""
COLLECTIVES = tuple(
    (
        "allreduce reduce bcast allgather reduce_scatter_block reduce_scatter alltoall alltoallv allgatherv "
        "gather gatherv scatter scatterv sendrecv"
    ).split()
)
UNEVEN = ("allgatherv", "gatherv", "scatterv")
"""Which Gloo has not."""
COMMUNICATORS = ("comm_dup", "comm_split", "comm_create")
PUTS = ("put_latency", "put_bw", "put_bibw")
POINT_TO_POINT = ("latency", "bw", "bibw")
MODES = ("pipelined", "graph", "event", "spin-gated")
INTEL = {"I_MPI_OFFLOAD": "1", "I_MPI_OFFLOAD_MODE": "cuda", "I_MPI_OFFLOAD_CUDA_LIBRARY": "libcuda.so.1"}
"""By which the Intel MPI of PyPI (impi-rt) takes device buffers."""
STAGED, DIRECT = {"OMB_PY_GPU_AWARE": "0"}, {"OMB_PY_GPU_AWARE": "1"}
SETTINGS = tuple(
    (
        "registration=register registration=window max_ctas=1 cta_policy=efficiency algorithm=ring,log=tuning "
        "protocol=simple communicators=2 aggregate=4"
    ).split()
)
"""Of NCCL's own; the log that one asks for is in all rows of the launch."""
STAND_INS = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "standin" / "python")))}
"""Packages that need a GPU, where there is none."""
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A suite of entries, or one command."""

    name: str
    suite: tuple[Entry, ...] = ()
    """As ``[[entry]]`` of a suite (docs/suites.md)."""
    command: tuple[str, ...] = ()
    """Words of omb-py instead, where a suite has no words for it."""
    environ: Mapping[str, str] = field(default_factory=dict)
    mpi: str = ""
    """It is for this MPI library alone, on a GPU."""
    since: tuple[int, ...] = ()
    """The version of NCCL that it needs; empty: any."""

    def applies(self, device: str, mpi: str) -> str:
        """Why it is left out; empty where it is not."""
        if self.mpi and device != "sim" and mpi != self.mpi:
            return f"the MPI library is {mpi or 'missing'}, not {self.mpi}"
        if self.since and self.since > (there := _nccl_version(device)):
            return f"NCCL here is {'.'.join(map(str, there)) or 'missing'}, not {'.'.join(map(str, self.since))}"
        return ""


def _nccl_version(device: str) -> tuple[int, ...]:
    """The version of the NCCL that a device uses; empty where there is none."""
    answers = map(asked, OF_DEVICE[device].candidates())
    return next((version_of(answer["version"]) for answer in answers if "error" not in answer), ())


def every(*names: str, **options: Any) -> Entry:
    """An entry of a suite."""
    return {"benchmarks": list(names), **{name.replace("_", "-"): value for name, value in options.items()}}


NO_DATA = every("barrier", validation=None, message_size=None)
"""Of which there is nothing to check but that it is done."""


def absent(device: str) -> dict[str, str]:
    """Bindings of NCCL whose package is not here, with the reason. The simulated device has stand-ins for all."""
    return {name: why for name in BINDINGS if device != "sim" and (why := explain_missing(name, device))}


def arrays(device: str) -> list[str]:
    """Packages whose arrays can hold buffers on this device. The simulated one has arrays of its own for all."""
    if device == "sim":
        return list(ON_DEVICE)
    return [name for name in ON_DEVICE if (not explain_missing(name, device) if name in BINDINGS else find_spec(name))]


def parts(device: str) -> tuple[Part, ...]:
    """Everything, on a kind of device. A further binding is a further entry."""
    direct = DIRECT if device == "sim" else INTEL
    # in a dry run few stand for all, which tests/backends tries on the simulated device
    collectives = COLLECTIVES if device != "sim" else ("allreduce", "allgatherv", "sendrecv")
    of_mpi = (
        every(*collectives, *POINT_TO_POINT, binding=["native", "mpi4py"]),
        every("allreduce", in_place=True),
        *(every("allreduce", "latency", binding="mpi4py", buffer=name) for name in arrays(device)),
        NO_DATA,
    )
    in_gloo = (name for name in collectives if name not in UNEVEN)
    of_gloo = (every(*in_gloo, *POINT_TO_POINT), every("allreduce", in_place=True), NO_DATA)
    here = [name for name in BINDINGS if name != NATIVE and name not in absent(device)]
    # no max_ctas: CuPy takes none, and a variable that limits them beside it holds for all of the process
    taken = {"cupy": "aggregate=4", "nccl4py": "cta_policy=efficiency,protocol=simple"}
    return (
        Part(
            "nccl",
            (
                every(*collectives, *POINT_TO_POINT),
                every("allreduce", "allgather", in_place=True),
                every("allreduce", timing=list(MODES)),
                every("allreduce", type=["float16", "bfloat16", "float64"]),
                every("iallreduce", cuda_target=["cpu", "gpu", "both"]),
                NO_DATA,
            ),
        ),
        Part(
            "nccl settings",
            (
                every("allgather", "hypercube", type=["float8e4m3", "float8e5m2"]),
                every("allreduce", nccl=list(SETTINGS)),
            ),
        ),
        Part(
            "nccl bindings",
            (
                every(*collectives, *POINT_TO_POINT, binding=here),
                *(every("allreduce", binding=[name], nccl=[taken[name]]) for name in here if name in taken),
                every(*COMMUNICATORS, validation=None, message_size=None, iterations=10),
            ),
            environ=STAND_INS if device == "sim" else {},
        ),
        Part(
            "nccl 2.29",
            (every(*PUTS), every("comm_shrink", "comm_grow", validation=None, message_size=None, iterations=10)),
            since=(2, 29),
        ),
        Part("mpi staged", (*of_mpi, every("iallreduce", cuda_target=["cpu", "gpu", "both"])), environ=STAGED),
        # staged instead would pass, too
        Part("mpi direct", tuple({**entry, "staging": "never"} for entry in of_mpi), environ=direct, mpi="Intel MPI"),
        Part("gloo", of_gloo),
        Part("mpi managed", command=("latency", "--backend", "mpi", "MD", "MH"), environ=STAGED),
        Part("mpi mixed", command=("bw", "--backend", "mpi", "H", "D"), environ=STAGED),
    )


def suite_text(part: Part, device: str, sizes: str, iterations: int, warmup: int) -> str:
    """A part as a suite. JSON's texts, numbers and lists are TOML's, too."""
    common = {
        "backend": part.name.partition(" ")[0],
        "device": device,
        "share-device": True,
        "message-size": sizes,
        "validation": True,
        "iterations": iterations,
        "warmup": warmup,
        "ranks": RANKS,
    }
    lines = [f'name = "gpu-{part.name.replace(" ", "-")}"', f'description = "{part.name}"']
    for entry in part.suite:
        made = {**common, **entry}
        lines += ["", "[[entry]]", *_lines({name: value for name, value in made.items() if value is not None})]
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any]) -> Sequence[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]
