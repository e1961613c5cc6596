"""The third step of planning: cells are ordered into launches. No request is refused here.

Backend, number of ranks and everything in :class:`Needs` are fixed when a process starts, so cells are grouped by them
into launches; with ``--launches N`` the groups take turns, because measurements that are to be compared should see the
same drift of the machine. One benchmark is one request, a suite consists of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from omb_py.engine.devices.registry import HOST
from omb_py.engine.program.benchmark import Cell, Needs
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.orchestrate.planning.resolution import CheckedRequest

_DEFAULT_LEVEL = {"mpi4py": "multiple"}
"""Thread levels that a binding asks for by itself; others ask for what the benchmark needs."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One launch: the ranks start together and measure these cells."""

    backend: str
    needs: Needs
    """The properties of the processes that are fixed when they start."""
    ranks: int
    index: int
    """Number of the launch within the run, from 0."""
    cells: tuple[Cell, ...]
    """The cells, in the order in which they are measured."""
    requests: tuple[Request, ...] = ()
    """All requests of the run; ``Cell.sweep`` is an index into them."""
    turn: int = 0
    """Number of the repetition with ``--launches``, from 0."""
    hosts: tuple[str, ...] = ()
    """Nodes of the ranks, which lie on them in blocks; ``()``: those of the run."""


def plan_launches(checked: Sequence[CheckedRequest]) -> list[LaunchPlan]:
    """Plan the launches of the requests of a run, in the order in which they are made. Equal needs share launches.

    Each request is measured on its own number of ranks; the number of repetitions is that of the first request.
    """
    groups: dict[tuple[str, int, Needs, tuple[str, ...]], list[Cell]] = {}
    for sweep, each in enumerate(checked):
        request, benchmark = each.request, each.benchmark
        for (backend, device, binding), cells in each.cells.items():
            on_device = device != HOST
            level = request.launching.thread_level or _DEFAULT_LEVEL.get(binding, benchmark.needs.thread_level)
            needs = replace(
                benchmark.needs,
                thread_level=level,  # type: ignore[arg-type]
                session=bool(request.options.session),
                device=device,
                share_device=on_device and request.launching.share_device,
                placement=request.placement if on_device else "",
            )
            hosts = request.part.hosts if request.part else ()
            group = groups.setdefault((backend, request.ranks or DEFAULT_RANKS, needs, hosts), [])
            group.extend(replace(cell, sweep=sweep) for cell in cells)
    requests = tuple(each.request for each in checked)
    return [
        LaunchPlan(backend, needs, ranks, turn * len(groups) + position, tuple(cells), requests, turn, hosts)
        for turn in range(requests[0].repetition.launches if requests else 0)
        for position, ((backend, ranks, needs, hosts), cells) in enumerate(groups.items())
    ]
