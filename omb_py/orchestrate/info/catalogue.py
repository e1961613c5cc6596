"""Data of ``omb-py list``: the benchmarks that can run on each backend, binding and device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from omb_py.backends import registry
from omb_py.backends.capabilities import Capabilities
from omb_py.engine.program.benchmark import Benchmark
from omb_py.orchestrate.planning.validation import GPUS, device_problem, lacking


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark on one backend, binding and device."""

    benchmark: str
    family: str
    backend: str
    binding: str
    """Empty if the backend has no binding here."""
    device: str
    available: bool
    reason: str = ""
    """Why it is not available."""
    fix: str = ""
    """What to install, set or use instead."""


@dataclass(frozen=True, slots=True)
class Place:
    """One backend, binding and device, the same for every benchmark."""

    backend: str
    binding: str
    device: str
    reason: str = ""
    fix: str = ""

    @property
    def available(self) -> bool:
        """True if there is no reason against it."""
        return not self.reason


def inspected() -> list[Capabilities]:
    """Ask every backend for its capabilities here, in the order of the registry."""
    return [backend.capabilities.here() for backend in registry.backends().values()]


def places(inspected: Iterable[Capabilities]) -> list[Place]:
    """List every backend, binding and device, with the reason where it is not available."""
    out: list[Place] = []
    for backend in inspected:
        for binding, why in backend.bindings.items():
            out.append(_place(backend, binding, "cpu", backend.devices.get("cpu", "") or why))
            for device in GPUS:
                reason, fix = device_problem(device, backend.name)
                if backend.devices.get(device) == "":
                    reason, fix = why, ""
                out.append(_place(backend, binding, device, backend.devices.get(device) or reason, fix))
    return out


def _place(backend: Capabilities, binding: str, device: str, reason: str, fix: str = "") -> Place:
    own = backend.bindings.get(binding, "")
    if not backend.available and own not in ("", backend.reason):
        return Place(backend.name, binding, device, own)  # the binding lacks its package too, which comes first
    if not backend.available:
        return Place(backend.name, binding, device, backend.reason, backend.fix)
    return Place(backend.name, binding, device, reason, fix)


def catalogue(benchmarks: Iterable[Benchmark], where: Sequence[Place]) -> list[Entry]:
    """Combine every benchmark with every place."""
    return [
        Entry(b.name, b.family, p.backend, p.binding, p.device, p.available, p.reason, p.fix)
        for b in benchmarks
        for p in (for_benchmark(b, place) for place in where)
    ]


def for_benchmark(benchmark: Benchmark, place: Place) -> Place:
    """Return the place for one benchmark: the backend may lack what the benchmark needs."""
    if not place.available:
        return place
    reason, fix = lacking(place.backend, benchmark)
    return replace(place, reason=reason, fix=fix)


def as_json(entries: Iterable[Entry], broken: Mapping[str, str]) -> dict[str, Any]:
    """Return ``omb-py list`` as plain data for JSON."""
    return {"entries": [asdict(entry) for entry in entries], "broken_benchmarks": dict(broken)}


def as_table(benchmarks: Sequence[Benchmark], where: Sequence[Place], broken: Mapping[str, str]) -> str:
    """Make a table with a line for each benchmark and a column for each backend and binding; gaps are numbered."""
    gaps: dict[str, int] = {}

    def mark(place: Place) -> str:
        if place.available:
            return "yes"
        text = f"{place.reason}: {place.fix}" if place.fix else place.reason
        return f"[{gaps.setdefault(text, len(gaps) + 1)}]"

    devices = list(dict.fromkeys(p.device for p in where))
    columns: dict[str, dict[str, Place]] = {}
    for place in where:
        label = f"{place.backend}/{place.binding}" if place.binding else place.backend
        columns.setdefault(label, {})[place.device] = place
        mark(place)  # what is missing everywhere gets the first numbers
    head = ["benchmark", *columns]
    marks = {
        b.name: [{d: mark(for_benchmark(b, place)) for d, place in column.items()} for column in columns.values()]
        for b in benchmarks
    }
    wide = max((len(m) for row in marks.values() for column in row for m in column.values()), default=0)

    def side_by_side(words: Mapping[str, str]) -> str:
        return " ".join(f"{words.get(d, '-'):<{max(wide, len(d))}}" for d in devices).rstrip()

    rows = [["", *[side_by_side({d: d for d in devices}) for _ in columns]]]
    rows += [[name, *map(side_by_side, row)] for name, row in marks.items()]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(f"{word:<{w}}" for word, w in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]
    for why, number in gaps.items():
        lines.append(f"{'' if number > 1 else chr(10)}[{number}] {why}")
    for name, why in broken.items():
        lines.append(f"benchmark {name} of an installed package cannot be loaded: {why}")
    return "\n".join(lines)
