"""Initialisation of MPI in a process, and the library's name and version."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import mpi4py

from omb_py.distribution import pip_install
from omb_py.engine.program.requirements import LEVELS
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from mpi4py import MPI


def load() -> ModuleType:
    """The MPI module, nothing initialised. Raises EnvironmentProblem when there is no library."""
    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(
            f"no MPI library can be loaded ({error}); install one: {pip_install('mpich')}"
        ) from error
    return MPI


def initialise(level: str) -> tuple[ModuleType, float]:
    """Load MPI and initialise it at a thread level, unless the program already did.

    Returns:
        the MPI module, and how long MPI_Init_thread took in µs (0 when it was called before).

    Raises:
        EnvironmentProblem: the launcher is one of another library, with which MPI_Init would end the process.
    """
    MPI = load()
    if not MPI.Is_initialized():
        refuse_pmix_launcher(MPI, os.environ)
        with warnings.catch_warnings():
            # mpi4py suspects a foreign launcher; we count the ranks of the world and say it in one line
            warnings.filterwarnings("ignore", "suspicious MPI execution environment", RuntimeWarning)
            began = time.perf_counter_ns()
            MPI.Init_thread(getattr(MPI, _constant(level)))
            return MPI, (time.perf_counter_ns() - began) / 1000
    return MPI, 0.0


def initialise_session(level: str) -> tuple[ModuleType, MPI.Session, MPI.Intracomm, float]:
    """Begin with a session instead of MPI_Init (``-I``), and make a communicator of all processes from it.

    Returns:
        the MPI module, the session, the communicator, and how long both took in µs.

    Raises:
        EnvironmentProblem: the library has no sessions, or the launcher is one of another library.
    """
    MPI = load()
    refuse_pmix_launcher(MPI, os.environ)
    began = time.perf_counter_ns()
    try:
        info = MPI.Info.Create()
        info.Set("thread_level", f"MPI_{_constant(level)}")
        session = MPI.Session.Init(info)
        group = session.Create_group("mpi://WORLD")
        comm = MPI.Intracomm.Create_from_group(group, "omb-py")
    except NotImplementedError:
        raise missing_in(MPI, "MPI_Session_init") from None
    took = (time.perf_counter_ns() - began) / 1000
    info.Free()
    group.Free()
    return MPI, session, comm, took


def refuse_pmix_launcher(mpi: ModuleType, environ: Mapping[str, str]) -> None:
    """Raise EnvironmentProblem where MPICH without PMIx has been started by a launcher that speaks PMIx alone.

    MPICH ends the process in MPI_Init where it finds PMIX_NAMESPACE.
    """
    if "PMIX_NAMESPACE" not in environ or "MPIR_CVAR_PMI_VERSION" in environ:
        return
    text = mpi.Get_library_version()
    if not text.startswith("MPICH Version"):
        return
    with open("/proc/self/maps") as mapped:
        if "pmix" in text or "/libpmix" in mapped.read():
            return
    slurm = "SLURM_STEP_ID" in environ and "OMPI_COMM_WORLD_SIZE" not in environ
    started, better = ("srun --mpi=pmix", "srun --mpi=pmi2") if slurm else ("Open MPI's mpirun", "MPICH's mpiexec")
    own = "the path of its libmpi.so" if slurm else '"$(command -v mpirun)"'
    name, version = vendor(mpi)
    raise EnvironmentProblem(
        f"{started} started this rank, but its library is {name} {version}, which was built without PMIx: start it "
        f"with {better}, or measure the launcher's own library: export OMB_PY_MPI={own} (omb-py doctor names both)"
    )


def _constant(level: str) -> str:
    return f"THREAD_{level.upper()}"


def thread_level(mpi: ModuleType) -> str:
    """The thread level that MPI provides. Its numbers are the library's own, or those of the standard ABI."""
    provided = mpi.Query_thread()
    return next(level for level in LEVELS if getattr(mpi, _constant(level)) == provided)


def allow_forks() -> None:
    """Tell libraries that pin memory, which look when they start, that this process will fork."""
    for name in ("RDMAV_FORK_SAFE", "IBV_FORK_SAFE"):
        os.environ.setdefault(name, "1")


def missing_in(mpi: ModuleType, function: str) -> EnvironmentProblem:
    """The error for a function that the library does not have."""
    name, version = vendor(mpi)
    if function.endswith("_c"):
        return EnvironmentProblem(
            f"a count above {(1 << 31) - 1} elements needs {function}, which is missing in {name} {version} "
            f"(MPI-{mpi.VERSION}.{mpi.SUBVERSION}) and there since MPI-4.0: a newer library, a smaller -m or a wider -T"
        )
    return EnvironmentProblem(
        f"{function} is missing in {name} {version}, which implements MPI-{mpi.VERSION}.{mpi.SUBVERSION}: "
        "it is there since MPI-4.0: use a newer library"
    )


def vendor(mpi: ModuleType) -> tuple[str, str]:
    """Name and version of the MPI library, as we store it."""
    name, version = mpi.get_vendor()
    return str(name), ".".join(map(str, version))


def standard_abi(mpi: ModuleType) -> str:
    """The version of the standard binary interface (ABI, MPI-5.0) that mpi4py calls; empty for a library's own."""
    try:
        major, minor = mpi.Get_abi_version()
    except (AttributeError, NotImplementedError):  # mpi4py or the library is older
        return ""
    return f"{major}.{minor}" if major > 0 else ""
