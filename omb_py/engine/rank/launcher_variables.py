"""Environment variables of launchers and batch systems: one table, from which all readers take their names.

An entry of :data:`LAUNCHERS` says which variables a launcher sets for each process, and how it is recognised.  The
order is the precedence: the more specific launcher comes first.  ``mpiexec`` inside a Slurm job starts its helpers
through ``srun``, so its ranks see Slurm's variables too, with the numbers of the helper; torchrun likewise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

Environment = Mapping[str, str]
_FIRST_SPECIAL_STEP: Final = 4294967290
"""Slurm numbers its interactive, batch and external steps from here on: no rank set was started in those."""
_PTY: Final = "SLURM_PTY_PORT"
"""Set in a shell of ``srun --pty``, and inherited by the tasks of each ``srun`` that is typed there."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """The variables of one launcher; of several names the first that is set counts."""

    name: str
    """Name in messages: ``mpiexec (Open MPI)``."""
    rank: tuple[str, ...]
    size: tuple[str, ...]
    local_rank: tuple[str, ...]
    local_size: tuple[str, ...]
    """Number of ranks on this node."""
    nodes: tuple[str, ...] = ()
    """Number of nodes, where the launcher says it."""
    address: tuple[str, ...] = ()
    """Host and port at which the ranks can meet."""
    hosts: tuple[str, ...] = ()
    """Variables that name the nodes on which it starts ranks without being told on the command line."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of the names of its variables."""
    mpi: bool = True
    """These rank variables mean that the processes can find each other by MPI."""
    detected: Callable[[Environment], bool] = lambda environ: True
    """A further condition, beside a rank variable that is set, under which this launcher started the process."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Field without a variable -> the reason."""


@dataclass(frozen=True, slots=True)
class BatchSystem:
    """The variables of one batch system, which every process of a job sees."""

    name: str
    sign: str
    """A variable that is set in every job."""
    job: tuple[str, ...]
    """The job's id."""
    nodes: tuple[str, ...]
    """The job's nodes: a list, or the path of a file."""
    tasks: tuple[str, ...] = ()
    """Number of tasks for which the job has room."""
    read_by_mpiexec: tuple[str, ...] = ()
    """Variables through which an mpiexec learns of the job's other nodes by itself."""
    prefixes: tuple[str, ...] = ()
    launcher: str = ""
    """Name of its own launcher, where omb-py can use it (:mod:`omb_py.orchestrate.launching.launchers`)."""


def has_terminal() -> bool:
    """Whether this process has a controlling terminal. Slurm gives the tasks of a step none without ``--pty``."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def inside_step(environ: Environment) -> bool:
    """True inside any step that ``srun`` started, a shell of ``srun --pty`` too: such a step holds its cores."""
    step = environ.get("SLURM_STEP_ID", "")
    return _PTY in environ or (step.isdigit() and int(step) < _FIRST_SPECIAL_STEP)


def in_srun_step(environ: Environment) -> bool:
    """True for a task of ``srun``; False in a batch script, in ``salloc`` and in an interactive shell step.

    :func:`_own` has taken out what a task inherits from a shell around it.
    """
    return _PTY not in environ and inside_step(environ)


def _own(environ: Environment, terminal: Callable[[], bool]) -> Environment:
    """The variables without the sign of ``srun --pty``, where the process inherits it from the shell around it."""
    if _PTY not in environ or terminal():
        return environ
    return {name: value for name, value in environ.items() if name != _PTY}


def _agrees(name: str) -> Callable[[Environment], bool]:
    """A condition: the launcher's rank equals PMI's. An mpiexec with helpers in it sets another, or MPI_LOCALNRANKS."""

    def check(environ: Environment) -> bool:
        rank = environ.get(name)
        return "MPI_LOCALNRANKS" not in environ and rank == environ.get("PMI_RANK", environ.get("PMIX_RANK", rank))

    return check


TORCHRUN: Final = Launcher(
    "torchrun",
    ("RANK",),
    ("WORLD_SIZE",),
    ("LOCAL_RANK",),
    ("LOCAL_WORLD_SIZE",),
    address=("MASTER_ADDR", "MASTER_PORT"),
    mpi=False,
    detected=lambda environ: "TORCHELASTIC_RUN_ID" in environ,
)
_SRUN: Final = Launcher(
    "srun",
    ("SLURM_PROCID",),
    ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    ("SLURM_LOCALID",),
    (),
    nodes=("SLURM_NNODES",),
    mpi=False,
    detected=in_srun_step,
    absent={"local_size": "SLURM_NTASKS_PER_NODE is what was asked for, not what this node has"},
)
_PMIX: Final = Launcher(
    "a PMIx launcher",
    ("PMIX_RANK",),
    ("PMIX_SIZE", *_SRUN.size),
    ("PMIX_LOCAL_RANK",),
    ("PMIX_LOCAL_SIZE",),
    prefixes=("PMIX_",),
)
LAUNCHERS: Final[tuple[Launcher, ...]] = (
    TORCHRUN,
    Launcher(
        "mpiexec (Open MPI)",
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_SIZE",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
        hosts=("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
        prefixes=("OMPI_", "PRTE_"),
    ),
    Launcher(
        "mpirun_rsh (MVAPICH)",
        ("MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK"),
        ("MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE"),
        ("MV2_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_LOCAL_RANK"),
        ("MV2_COMM_WORLD_LOCAL_SIZE", "MVP_COMM_WORLD_LOCAL_SIZE"),
        prefixes=("MV2_", "MVP_"),
    ),
    Launcher(
        "flux run",
        ("FLUX_TASK_RANK",),
        ("FLUX_JOB_SIZE",),
        ("FLUX_TASK_LOCAL_ID",),
        (),
        nodes=("FLUX_JOB_NNODES",),
        mpi=False,
        detected=lambda environ: "MPI_LOCALNRANKS" not in environ,
        absent={"local_size": "Flux says how many nodes a job has, not how many tasks are on this one"},
    ),
    replace(
        _SRUN,
        rank=("PMI_RANK", "PMIX_RANK"),
        size=("PMI_SIZE", *_SRUN.size),
        mpi=True,
        detected=lambda environ: in_srun_step(environ) and _agrees("SLURM_PROCID")(environ),
    ),
    Launcher(
        "mpiexec (PALS)",
        ("PALS_RANKID",),
        ("PMI_SIZE",),
        ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
        ("PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"),
        prefixes=("PALS_",),
        detected=_agrees("PALS_RANKID"),
    ),
    # MPICH and Intel MPI
    Launcher(
        "mpiexec (hydra)",
        ("PMI_RANK",),
        ("PMI_SIZE",),
        ("MPI_LOCALRANKID",),
        ("MPI_LOCALNRANKS",),
        hosts=("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
        prefixes=("HYDRA_", "I_MPI_"),
    ),
    # inside a Slurm job its helpers are tasks of srun, so Slurm's number of tasks is theirs
    replace(_PMIX, name="prterun", size=("PMIX_SIZE",), detected=lambda environ: "PRTE_LAUNCHED" in environ),
    _SRUN,
    _PMIX,
    # set by the user, or by a launcher of PyTorch's that is unknown here: read last, and no sign of a launcher
    replace(TORCHRUN, name="RANK and WORLD_SIZE", detected=lambda environ: False),
)

SLURM: Final = BatchSystem(
    "Slurm",
    "SLURM_JOB_ID",
    ("SLURM_JOB_ID",),
    ("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
    ("SLURM_NTASKS",),
    ("SLURM_JOB_ID",),
    ("SLURM_",),
    "srun",
)
PBS: Final = BatchSystem(
    "PBS", "PBS_JOBID", ("PBS_JOBID",), ("PBS_NODEFILE",), ("PBS_NP",), ("PBS_NODEFILE",), ("PBS_",)
)
FLUX: Final = BatchSystem(
    "Flux", "FLUX_URI", ("FLUX_ENCLOSING_ID", "FLUX_JOB_ID"), (), prefixes=("FLUX_",), launcher="flux"
)
BATCH_SYSTEMS: Final[tuple[BatchSystem, ...]] = (
    SLURM,
    PBS,
    BatchSystem(
        "LSF",
        "LSB_JOBID",
        ("LSB_JOBID",),
        ("LSB_DJOB_HOSTFILE", "LSB_HOSTS"),
        ("LSB_DJOB_NUMPROC",),
        ("LSB_HOSTS", "LSB_DJOB_HOSTFILE"),
        ("LSB_",),
    ),
    BatchSystem("Grid Engine", "PE_HOSTFILE", ("JOB_ID",), ("PE_HOSTFILE",), ("NSLOTS",), ("PE_HOSTFILE",)),
    BatchSystem("Cobalt", "COBALT_JOBID", ("COBALT_JOBID",), ("COBALT_NODEFILE",), (), ("COBALT_NODEFILE",)),
    FLUX,
)

MANAGED: Final = tuple(
    chain(*(system.read_by_mpiexec for system in BATCH_SYSTEMS), *(launcher.hosts for launcher in LAUNCHERS))
)
"""Variables through which mpiexec learns of other nodes by itself."""
TASKS: Final = tuple(name for system in BATCH_SYSTEMS for name in system.tasks)
"""Variables in which batch systems give the number of tasks for which a job has room."""
PREFIXES: Final = tuple(
    chain(*(launcher.prefixes for launcher in LAUNCHERS), *(system.prefixes for system in BATCH_SYSTEMS))
)
"""Prefixes of the names of all these variables."""
OPEN_MPI_ROOT: Final = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""Both must be 1 before Open MPI's mpiexec starts ranks as root."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The place that a launcher gave to this process."""

    launcher: str
    rank: int
    size: int | None
    """None where the launcher does not say."""
    local_rank: int | None = None


def first_set(environ: Environment, names: tuple[str, ...]) -> str:
    """The value of the first of some variables that is not empty; empty where none is."""
    return next((environ[name] for name in names if environ.get(name)), "")


def joined_environment(environ: Environment, terminal: Callable[[], bool] = has_terminal) -> Joined | None:
    """The launcher that started this process, and the place it gave; None outside a launcher.

    Args:
        environ: usually ``os.environ``.
        terminal: whether this process has a controlling terminal.
    """
    launcher = _started_by(environ, terminal)
    if launcher is None:
        return None
    rank, size, local = (_number(environ, names) for names in (launcher.rank, launcher.size, launcher.local_rank))
    assert rank is not None
    return Joined(launcher.name, rank, size, local)


def environment_rank(environ: Environment) -> tuple[int | None, int | None]:
    """(rank, size) from the launcher's variables, before the library starts; None where they are not set."""
    for launcher in _readable(environ):
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
    names = (name for launcher in _readable(environ) for name in launcher.local_rank)
    return next((name for name in names if _number(environ, (name,)) is not None), "")


def local_size(environ: Environment) -> int | None:
    """Number of ranks on this node, before the library starts; None where no launcher says it."""
    return next((size for x in _readable(environ) if (size := _number(environ, x.local_size)) is not None), None)


def on_one_host(environ: Environment) -> bool:
    """Whether the launcher says that all ranks are on this machine; when it does not say, ranks may be elsewhere."""
    for launcher in _readable(environ):
        local, size = _number(environ, launcher.local_size), _number(environ, launcher.size)
        if local is not None and size is not None:
            return local == size
    return any(environ.get(name) == "1" for launcher in LAUNCHERS for name in launcher.nodes)


def started_by_mpi(environ: Environment) -> bool:
    """Whether the processes can find each other by MPI; not when ``RANK`` is set, which asks for another way."""
    ranks = (name for launcher in LAUNCHERS if launcher.mpi for name in launcher.rank)
    return any(name in environ for name in ranks) and not any(name in environ for name in TORCHRUN.rank)


def _started_by(environ: Environment, terminal: Callable[[], bool] = has_terminal) -> Launcher | None:
    environ = _own(environ, terminal)
    return next((x for x in LAUNCHERS if _number(environ, x.rank) is not None and x.detected(environ)), None)


def _readable(environ: Environment) -> Iterator[Launcher]:
    """Launchers whose variables may speak of this process: the one that started it, then by precedence.

    Variables of a launcher around torchrun describe torchrun, not its processes.
    """
    if TORCHRUN.detected(environ):
        yield TORCHRUN
        return
    launcher = _started_by(environ)
    if launcher is not None:
        yield launcher
    yield from (candidate for candidate in LAUNCHERS if candidate not in (launcher, TORCHRUN))


def _number(environ: Environment, names: tuple[str, ...]) -> int | None:
    values = (environ.get(name, "").strip() for name in names)
    return next((int(value) for value in values if value.isdigit()), None)
