"""The place of this process among the ranks of a launch, from the variables of :mod:`omb_py.launchers`.

The most specific launcher is asked first. ``mpiexec`` inside a Slurm job starts its helpers through ``srun``, so its
ranks see Slurm's variables too, with the numbers of the helper; torchrun likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omb_py.launchers.launcher import Environment, RankVariables, first_set
from omb_py.launchers.registry import LAUNCHERS, batch_around, rank_variables
from omb_py.launchers.torchrun import TORCHRUN


@dataclass(frozen=True, slots=True)
class Joined:
    """The place that a launcher gave to this process."""

    launcher: str
    rank: int
    size: int | None
    """None where the launcher does not say."""
    local_rank: int | None = None


def joined_environment(environ: Environment) -> Joined | None:
    """The launcher that started this process, and the place it gave; None outside a launcher."""
    launcher = _find_starter(environ)
    if launcher is None:
        return None
    rank, size, local = (_number(environ, names) for names in (launcher.rank, launcher.size, launcher.local_rank))
    assert rank is not None
    return Joined(launcher.name, rank, size, local)


def environment_rank(environ: Environment) -> tuple[int | None, int | None]:
    """(rank, size) from the launcher's variables, before the library starts; None where they are not set."""
    for launcher in _list_readable(environ):
        rank = _number(environ, launcher.rank)
        if rank is not None:
            return rank, _number(environ, launcher.size)
    return None, None


def local_rank(environ: Environment) -> int:
    """Number of this rank on its machine from launchers' variables, before any library starts; 0 without them.

    >>> local_rank({"SLURM_LOCALID": "3"})
    3
    """
    return _number(environ, (local_rank_variable(environ),)) or 0


def local_rank_variable(environ: Environment) -> str:
    """The variable from which :func:`local_rank` takes the number; empty where none gives one."""
    names = (name for launcher in _list_readable(environ) for name in launcher.local_rank)
    return next((name for name in names if _number(environ, (name,)) is not None), "")


def local_size(environ: Environment) -> int | None:
    """Number of ranks on this node, before the library starts; None where no launcher says it."""
    return next((size for x in _list_readable(environ) if (size := _number(environ, x.local_size)) is not None), None)


def on_one_host(environ: Environment) -> bool:
    """Whether the launcher says that all ranks are on this machine; when it does not say, ranks may be elsewhere."""
    for launcher in _list_readable(environ):
        local, size = _number(environ, launcher.local_size), _number(environ, launcher.size)
        if local is not None and size is not None:
            return local == size
    return any(environ.get(name) == "1" for launcher in rank_variables(environ) for name in launcher.nodes)


def started_by_mpi(environ: Environment) -> bool:
    """Whether the processes can find each other by MPI; not when ``RANK`` is set, which asks for another way."""
    ranks = (name for launcher in rank_variables(environ) if launcher.joins_by_mpi for name in launcher.rank)
    return any(name in environ for name in ranks) and not any(name in environ for name in TORCHRUN.rank)


def scheduled_name(environ: Environment, own: str) -> str:
    """The name that the batch system has for this node; `own`, its host name, where none is known.

    The host name decides, among the nodes of the job. A variable decides only for a task that the system's own launcher
    started: an mpiexec hands the one of its own node on to all ranks.
    """
    system = batch_around(environ)
    if system is None:
        return own
    if named := same_host(system.node_names(environ), own):
        return named
    launcher = _find_starter(environ)
    own_task = any(launcher in each.variables for each in LAUNCHERS if each.batch is system)
    return (first_set(environ, system.node) if own_task else "") or own


def same_host(names: Sequence[str], own: str) -> str:
    """The one name that stands for the host name `own`, without its domain where need be; empty where none does."""
    for form in (str.lower, _strip_domain):
        same = [name for name in names if form(name) == form(own)]
        if len(same) == 1:
            return same[0]
    return ""


def _strip_domain(name: str) -> str:
    """A host name without its domain; an address as it is."""
    label = name.lower().partition(".")[0]
    return name if label.isdigit() else label


def _find_starter(environ: Environment) -> RankVariables | None:
    every = rank_variables(environ)
    return next((x for x in every if _number(environ, x.rank) is not None and x.detected(environ)), None)


def _list_readable(environ: Environment) -> Iterator[RankVariables]:
    """Launchers whose variables may speak of this process: the one that started it, then by precedence.

    Variables of a launcher around torchrun describe torchrun, not its processes.
    """
    if TORCHRUN.detected(environ):
        yield TORCHRUN
        return
    launcher = _find_starter(environ)
    if launcher is not None:
        yield launcher
    yield from (candidate for candidate in rank_variables(environ) if candidate not in (launcher, TORCHRUN))


def _number(environ: Environment, names: tuple[str, ...]) -> int | None:
    values = (environ.get(name, "").strip() for name in names)
    return next((int(value) for value in values if value.isdigit()), None)
