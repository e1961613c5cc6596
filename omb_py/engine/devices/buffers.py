"""A session's buffers on a device, the steps of the device for either kind of loop, and the devices of all ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.devices import FUNCTIONS, OTHER_STREAM, Device
from omb_py.engine.devices.memory import DeviceMemory, StagingMemory
from omb_py.engine.devices.placement import DEVICE, HOST, is_managed, on_device, settled, spoiled, staged
from omb_py.engine.measuring.host_memory import HostMemory
from omb_py.engine.native.matmul import OPERANDS, fill
from omb_py.engine.native.translate import Arg, NativeCall, Resolve
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.engine.program.language import Program, Region, Result, Step
from omb_py.engine.program.steps import MATMUL
from omb_py.engine.python_loop.loop import Names, Render, flip_in
from omb_py.engine.python_loop.runners import CellRunner
from omb_py.engine.rank.control_plane import Plane
from omb_py.engine.rank.launch_facts import DevicePlace
from omb_py.errors import EnvironmentProblem

Results = Mapping[tuple[str, str], float]


class HereMemory(HostMemory):
    """Memory of a rank whose end of a mixed placement is the host: nothing is copied to a device."""

    def hand_over(self) -> None:
        """Do nothing: the bytes are where they are used."""

    def close(self) -> None:
        """Do nothing: Python frees the memory."""


class DeviceBuffers:
    """Buffers at one end of a placement.

    Args:
        device: where they live.
        direct: the library takes addresses of the device.
        placement: ``SOURCE DESTINATION`` as given, or empty: all on the device.
        crowd: the most ranks that share a device.
    """

    def __init__(self, device: Device, direct: bool, placement: str = "", place: str = DEVICE, crowd: int = 1) -> None:
        self.device, self.placement, self.place, self.crowd = device, placement, place, crowd
        self.direct = direct or place == HOST
        self._kinds: dict[str, HereMemory | DeviceMemory] = {}
        self.memory = self._find_memory("")
        """The memory that holds the buffers that were reserved last."""
        self.stage = StagingMemory(device)
        """Host memory that the library reads and writes when communication is staged."""
        self._other = 0

    @property
    def seen(self) -> HostMemory | DeviceMemory:
        """The memory that the library is given."""
        return self.memory if self.direct else self.stage

    def memory_left(self) -> int | None:
        """Bytes of the device that this rank may take; None where its buffers are on the host."""
        return None if self.place == HOST else self.device.memory_left() // self.crowd

    def _find_memory(self, kind: str) -> HereMemory | DeviceMemory:
        kind = kind if kind in ON_DEVICE else ""
        if kind not in self._kinds:
            on_host = self.place == HOST
            self._kinds[kind] = (
                HereMemory("numpy") if on_host else DeviceMemory(self.device, is_managed(self.place), kind)
            )
        return self._kinds[kind]

    def reserve(self, kind: str, sizes: Mapping[str, int]) -> None:
        self.memory = self._find_memory(kind)
        for name, nbytes in sizes.items():
            self.memory.reserve(name, nbytes)
            if not self.direct:
                self.stage.reserve(name, nbytes)

    def prepared(self, program: Program, world: World, filler: str) -> Program:
        """The program as it is done with these buffers. Raises EnvironmentProblem for what has no such form."""
        if program.window is not None:
            raise EnvironmentProblem("one-sided benchmarks have no buffers on a device: use --device cpu")
        form = program if self.direct else staged(program, world)
        form = form if self.place == HOST else spoiled(form)
        return settled(on_device(form, filler), self.placement, self.place, self.device.index)

    def marks(self, staging: str, cell: Cell) -> dict[str, str]:
        """Marks for the rows of these buffers: staging, placement, filler, ranks that share the device."""
        more = {
            "placement": self.placement,
            "filler": "" if cell.options.get("filler", "cpu") == "cpu" else cell.options.get("filler", "cpu"),
            "ranks_per_device": str(self.crowd),
        }
        return {"staging": staging} | {name: word for name, word in more.items() if word}

    @property
    def host(self) -> HostMemory:
        """Host memory with a place for every byte on the device: the stage, or the mirrors."""
        if not self.direct:
            return self.stage
        return self.memory.host if isinstance(self.memory, DeviceMemory) else self.memory

    def byte(self, step: Step) -> int:
        """Address of the byte that a ``flip`` step inverts (:func:`~omb_py.engine.devices.placement.spoiled`)."""
        return int(self.host.address(step["recv"].buffer)) + int(step["recv"].offset)

    def operands(self, step: Step, results: Results) -> tuple[Arg, ...]:
        """The operands of a step of the device, in the order of :data:`~omb_py.engine.devices.FUNCTIONS`."""
        if step.op == MATMUL:
            fill(self.memory, step)
        return tuple(self._operand(word, step, results) for word in FUNCTIONS[step.op].split())

    def _operand(self, word: str, step: Step, results: Results) -> Arg:
        if word == "stream":
            return Arg(self._stream(step))
        if word == "ns":
            ns: Result | int = step["ns"]
            return Arg(ns.of(results) if isinstance(ns, Result) else int(ns))
        if word in ("where", "rows", "side"):
            return Arg(int(step[word]))
        if word in OPERANDS:
            return Arg(self.memory.address(step[word].buffer) + step[word].offset)
        region: Region = step["region"]
        if word == "nbytes":
            return Arg(region.nbytes)
        memory = self.host if word == "host" else self.memory
        return Arg(memory.address(region.buffer) + region.offset, region.stride, turn=region.turn)

    def _stream(self, step: Step) -> int:
        if step.operands.get("stream") != OTHER_STREAM:
            return self.device.stream
        self._other = self._other or self.device.new_stream()
        return self._other

    def close(self) -> None:
        for memory in self._kinds.values():
            memory.close()
        self.stage.close()
        self.device.close()


class DeviceResolver:
    """Resolves steps for generated code: a step of the device by the device's function, others by the library."""

    def __init__(self, buffers: DeviceBuffers, library: Resolve, results: Results) -> None:
        self.buffers, self.library, self.results = buffers, library, results

    def __call__(self, step: Step) -> NativeCall | Sequence[NativeCall]:
        if step.op not in FUNCTIONS:
            return self.library(step)
        return NativeCall(self.buffers.device.function(step.op), self.buffers.operands(step, self.results))


class DeviceRenderer:
    """Renders steps for a flat loop: a step of the device by the device's function, others by the library."""

    def __init__(self, buffers: DeviceBuffers, library: Render, results: Results) -> None:
        self.buffers, self.library, self.results = buffers, library, results

    def __call__(self, step: Step, names: Names, k: str) -> str:
        """One statement for a step (:data:`omb_py.engine.python_loop.loop.Render`)."""
        if step.op == "flip":
            name = step["recv"].buffer
            return flip_in(step, names, self.buffers.host.view(name, sys.maxsize))
        if step.op not in FUNCTIONS:
            return self.library(step, names, k)
        words = [repr(step.op), *(_source(arg, k) for arg in self.buffers.operands(step, self.results))]
        return f"{names.bind(self.buffers.device.call, 'device')}({', '.join(words)})"


def _source(arg: Arg, k: str) -> str:
    moved = f" + {k} * {arg.stride}" if k and arg.stride else ""
    return f"{arg.base}{moved}" + (f" + c * {arg.turn}" if arg.turn else "")


class OnDevice(CellRunner):
    """A runner for buffers on a device: the bytes that a check sees are their mirrors on the host."""

    buffers: DeviceBuffers

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        mirror: NDArray[np.uint8] = self.buffers.memory.view(buffer, self._nbytes[buffer])
        return mirror

    def ready(self) -> None:
        self.buffers.memory.hand_over()


def places_of(plane: Plane, device: Device, share: bool, host: str) -> list[DevicePlace]:
    """The devices of all ranks, by rank; called by all ranks together.

    Args:
        plane: lets the ranks agree; a session is one.
        share: several ranks may use one device.

    Raises:
        EnvironmentProblem: on every rank alike, when several have the same one and `share` is off.
    """
    place: DevicePlace = {
        "rank": plane.rank,
        "host": host,
        "device": f"{device.kind}:{device.index}",
        "name": device.name,
        "identity": device.identity(),
        "clocks_khz": dict(device.clocks()),
    }
    places: list[DevicePlace] = plane.share(plane.gather(place))
    if not share:
        refuse_sharing(places)
    return places


def crowd(places: Sequence[DevicePlace]) -> int:
    """The most ranks that have the same device."""
    return max(map(len, _group_by_device(places)))


def refuse_sharing(places: Sequence[DevicePlace]) -> None:
    """Raises EnvironmentProblem when several ranks have the same device."""
    shared = max(_group_by_device(places), key=len)
    if len(shared) == 1:
        return
    host, ranks = shared[0]["host"], ", ".join(str(place["rank"]) for place in shared)
    units = len({place["identity"] for place in places if place["host"] == host})
    raise EnvironmentProblem(
        f"ranks {ranks} would share {shared[0]['device']} ({shared[0]['name']}) of {host}, where "
        f"{sum(place['host'] == host for place in places)} ranks have {units}: as many ranks on each machine as there "
        "are devices for them, or --share-device to let ranks share one (rows are labelled)"
    )


def _group_by_device(places: Sequence[DevicePlace]) -> list[list[DevicePlace]]:
    by_device: dict[tuple[str, str], list[DevicePlace]] = {}
    for place in places:
        by_device.setdefault((place["host"], place["identity"]), []).append(place)
    return list(by_device.values())
