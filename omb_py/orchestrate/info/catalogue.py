"""Data of ``omb-py list``: the benchmarks that can run on each backend, binding and device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from textwrap import wrap

from omb_py.backends import registry
from omb_py.backends.capabilities import Capabilities
from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.engine.program.benchmark import Benchmark
from omb_py.orchestrate.planning.availability import device_problem, lacking
from omb_py.plug_ins import REPAIR, described
from omb_py.suites import BENCHMARKS


@dataclass(frozen=True, slots=True)
class RunTarget:
    """One backend, binding and device."""

    backend: str
    binding: str
    """Empty if the backend has no binding here."""
    device: str
    reason: str = ""
    """Why it is not available."""
    fix: str = ""
    """What to install, set or use instead."""

    @property
    def available(self) -> bool:
        """True if there is no reason against it."""
        return not self.reason


def inspected() -> list[Capabilities]:
    """Ask every backend for its capabilities here, in the order of the registry; children ask the libraries."""
    with ThreadPoolExecutor() as together:
        return list(together.map(lambda backend: backend.capabilities.here(), registry.backends().values()))


def list_targets(inspected: Iterable[Capabilities]) -> list[RunTarget]:
    """List every backend, binding and device, with the reason where it is not available."""
    out: list[RunTarget] = []
    for backend in inspected:
        for binding, why in backend.bindings.items():
            out.append(_run_target(backend, binding, "cpu", backend.devices.get("cpu", "") or why))
            for device in GPU_KINDS:
                own = backend.devices.get(device)  # it says what to do
                reason, fix = device_problem(device, backend.name) if own is None else (own or why, "")
                out.append(_run_target(backend, binding, device, reason, fix))
    return out


def _run_target(backend: Capabilities, binding: str, device: str, reason: str, fix: str = "") -> RunTarget:
    own = backend.bindings.get(binding, "")
    if not backend.available and own not in ("", backend.inspection.reason):
        return RunTarget(backend.name, binding, device, own)  # the binding lacks its package too, which comes first
    if not backend.available:
        return RunTarget(backend.name, binding, device, backend.inspection.reason, backend.inspection.fix)
    return RunTarget(backend.name, binding, device, reason, fix)


def for_benchmark(benchmark: Benchmark, place: RunTarget) -> RunTarget:
    """Return the place for one benchmark: the backend may lack what the benchmark needs."""
    if not place.available:
        return place
    try:
        reason, fix = lacking(place.backend, benchmark)
    except Exception as error:
        if benchmark.name in BENCHMARKS:
            raise
        reason, fix = f"its program failed ({described(error)})", REPAIR
    return replace(place, reason=reason, fix=fix)


def as_json(
    benchmarks: Iterable[Benchmark], where: Sequence[RunTarget], broken: Mapping[str, str]
) -> dict[str, object]:
    """Return ``omb-py list`` as plain data for JSON: every benchmark at every place."""
    names = "backend binding device available reason fix".split()
    entries = [
        {"benchmark": b.name, "family": b.family, **{name: getattr(place, name) for name in names}}
        for b in benchmarks
        for place in (for_benchmark(b, place) for place in where)
    ]
    return {"entries": entries, "broken_benchmarks": dict(broken)}


def as_text(
    benchmarks: Sequence[Benchmark], where: Sequence[RunTarget], broken: Mapping[str, str], titles: Mapping[str, str]
) -> str:
    """Make the text of ``omb-py list``: what runs here, what does not and why, then the benchmarks by family.

    Args:
        benchmarks: in the order of the list.
        where: from :func:`list_targets`.
        broken: kind and name of what cannot be loaded -> why.
        titles: family -> its title, in the order of the list.
    """
    gaps: dict[str, int] = {}
    lines = [*_list_here(where), *_list_not_here(where)]
    families = dict.fromkeys([*titles, *(b.family for b in benchmarks)])
    for family in families:
        of_family = [b for b in benchmarks if b.family == family]
        if of_family:
            lines += ["", f"{titles.get(family, family)} benchmarks ({len(of_family)})"]
            lines += (
                _list_by_name(of_family, where, gaps) if family in BY_NAME else _list_by_line(of_family, where, gaps)
            )
    lines += [""] if gaps else []
    lines += [f"[{number}] not on {why}" for why, number in gaps.items()]
    lines += [f"{what} of an installed package cannot be loaded: {why}" for what, why in broken.items()]
    return "\n".join(lines)


BY_NAME = frozenset({"non-blocking", "persistent"})
"""Families whose benchmarks are variants of the collectives: they are listed by name, without a line each."""
_WIDTH = 80


def _group(where: Iterable[RunTarget]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for place in where:
        groups.setdefault((place.backend, place.device), []).append(place.binding or "-")
    return groups


def _list_here(where: Sequence[RunTarget]) -> list[str]:
    rows = [("backend", "device", "bindings")]
    rows += [(*key, ", ".join(names)) for key, names in _group(p for p in where if p.available).items()]
    if len(rows) == 1:
        return ["Nothing runs here."]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return ["Runs here", *(f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in rows)]


def _list_not_here(where: Sequence[RunTarget]) -> list[str]:
    """One line for each reason; a device that is missing everywhere is named once, without the backends."""
    reasons: dict[str, list[RunTarget]] = {}
    for place in where:
        if not place.available:
            reasons.setdefault(_why(place), []).append(place)
    lines = []
    for why, without in reasons.items():
        devices = {place.device for place in without}
        subjects = dict.fromkeys(f"{place.backend}/{place.binding}".rstrip("/") for place in without)
        backends = {place.backend for place in without}
        if len(devices) == 1 and len(backends) > 1:
            device = f"--device {next(iter(devices))}: "
            lines.append(f"  {device}{why.removeprefix(device)}")
        else:
            gpu = [device for device in devices if device in GPU_KINDS]
            only = f" --device {gpu[0]}" if gpu and len(devices) == 1 else ""
            lines.append(f"  {', '.join(subjects)}{only}: {why}")
    return ["", "Does not run here", *lines] if lines else []


def _why(place: RunTarget) -> str:
    return f"{place.reason}: {place.fix}" if place.fix else place.reason


def _mark(benchmark: Benchmark, where: Sequence[RunTarget], gaps: dict[str, int]) -> str:
    """The name, with the numbers of the backends that run here and cannot do this benchmark."""
    marks: dict[str, None] = {}
    for place in where:
        if place.available and not (for_it := for_benchmark(benchmark, place)).available:
            why = f"{place.backend}: {_why(for_it)}"
            marks[f"[{gaps.setdefault(why, len(gaps) + 1)}]"] = None
    return " ".join([benchmark.name, *marks])


def _list_by_line(benchmarks: Sequence[Benchmark], where: Sequence[RunTarget], gaps: dict[str, int]) -> list[str]:
    names = [_mark(benchmark, where, gaps) for benchmark in benchmarks]
    width = max(map(len, names))
    lines = []
    for name, benchmark in zip(names, benchmarks, strict=True):
        lines += wrap(
            benchmark.summary, _WIDTH, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4)
        )
    return lines


def _list_by_name(benchmarks: Sequence[Benchmark], where: Sequence[RunTarget], gaps: dict[str, int]) -> list[str]:
    names = [_mark(benchmark, where, gaps).replace(" ", "\0") for benchmark in benchmarks]
    lines = wrap(", ".join(names), _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]
