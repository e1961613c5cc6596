"""Launchers: the command line of each one, and the choice of the one that starts the ranks.

A launcher is one entry of :data:`LAUNCHERS`: a test whether it can be used here, and a builder of its command. MPI's
mpiexec has one builder for each vendor, because their options for binding, hosts and variables differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from omb_py.backends.mpi_library import INTEL, MPICH, OPEN_MPI, Mpiexec, MPILibrary, find_mpiexec, mpi_library
from omb_py.distribution import pip_install
from omb_py.engine.rank.launcher_variables import BATCH_SYSTEMS, MANAGED, OPEN_MPI_ROOT, PREFIXES, SLURM, inside_step
from omb_py.engine.rank.link import AGENTS_VARIABLE, CONTROL_VARIABLE, TOKEN_VARIABLE
from omb_py.engine.rank.node_name import host_and_slots
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.orchestrate.launching.allocation import allocation
from omb_py.orchestrate.launching.core_binding import Placement, Processors, bound_by_user, place, processors
from omb_py.orchestrate.launching.rank_environment import HERE, Where
from omb_py.results.store.redact import is_allowed

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Set because libraries that start threads of their own would compete with ranks for cores."""
_PASSED = (CONTROL_VARIABLE, TOKEN_VARIABLE, AGENTS_VARIABLE, *_ONE_THREAD, "PYTHONPATH")
_OURS = "OMB_PY_"
_HOST_WORDS = ("host", "hosts", "H", "hostfile", "hostlist", "machinefile", "machine", "f")
_SRUN_PLACES = ("ntasks-per-node", "distribution", "m")
_BIND_WORDS = ("bind-to", "map-by", "rank-by", "cpu-set", "cpu-list", "bind-to-core", "cpu-bind", "rankfile", "binding")


Gpus = Literal["none", "own", "shared"]
"""Whether ranks use GPUs, one each or several ranks one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The ranks to start."""

    program: tuple[str, ...]
    ranks: int
    hosts: tuple[str, ...] = ()
    """Host names, each perhaps with ``:slots``."""
    extra: tuple[str, ...] = ()
    """The user's own launcher arguments."""
    pass_names: tuple[str, ...] = ()
    """Further variables that ranks on other nodes need."""
    bind: bool = True
    gpus: Gpus = "none"


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The command that starts ranks."""

    name: str
    """The launcher's name in messages: ``mpiexec (MPICH 5.0.2)``."""
    words: tuple[str, ...]
    """The command line."""
    environ: Mapping[str, str]
    """The whole environment of the command."""
    local: bool
    """Whether all ranks run on this machine."""
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()
    """Sentences for the user, to be shown before measuring."""
    library: MPILibrary | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The machine as builders see it. A builder asks for the MPI library only when it needs it."""

    environ: Mapping[str, str]
    python: str = sys.executable
    here: Processors = field(default_factory=processors)
    ask: Callable[[str], MPILibrary] = mpi_library
    root: bool = field(default_factory=lambda: os.geteuid() == 0)


@dataclass(frozen=True, slots=True)
class Launcher:
    """An entry of the registry."""

    name: str
    summary: str
    missing: Callable[[Context], str]
    """Why the launcher cannot be used here, with what to do; empty when it can."""
    build: Callable[[Wanted, Context], LaunchCommand]
    """Builds the command. Raises EnvironmentProblem or UsageError."""


def command_for(
    launcher: str,
    program: Sequence[str],
    ranks: int,
    *,
    hosts: Sequence[str] = (),
    extra: Sequence[str] = (),
    pass_names: Sequence[str] = (),
    bind: bool = True,
    needs_mpi: bool = True,
    gpus: Gpus = "none",
    context: Context | None = None,
) -> LaunchCommand:
    """Build the command that starts `ranks` processes of `program`.

    Args:
        launcher: ``auto`` or a name of :data:`LAUNCHERS`.
        program: command line of one rank.
        ranks: number of ranks.
        hosts: host names; empty for this machine, or for the nodes that a batch system has allocated.
        extra: the user's own arguments for the launcher.
        pass_names: further environment variables that ranks on other nodes need.
        bind: give each rank a core of its own where there are enough.
        needs_mpi: the ranks use MPI; else ``auto`` means torchrun where MPI's launcher cannot be used.
        gpus: whether ranks use GPUs, which Flux hides from those that do not ask.
        context: for tests; by default the environment of this process.

    Raises:
        UsageError: unknown launcher, or one that cannot start that many ranks, or host by host.
        EnvironmentProblem: the launcher is missing or does not belong to the MPI library.
    """
    context = context or Context(os.environ)
    name = choose(context) if launcher == "auto" else launcher
    if name not in LAUNCHERS:
        raise UsageError(f"no launcher {launcher!r}: {nearest(launcher, ['auto', *LAUNCHERS])}")
    reason = LAUNCHERS[name].missing(context)
    if reason:
        raise EnvironmentProblem(reason)
    wanted = Wanted(tuple(program), ranks, tuple(hosts), tuple(extra), tuple(pass_names), bind, gpus)
    try:
        return LAUNCHERS[name].build(wanted, context)
    except EnvironmentProblem:
        # a user who gave hosts or arguments meant the launcher that cannot be used, so no other one takes its place
        if launcher != "auto" or needs_mpi or hosts or extra or LAUNCHERS["torchrun"].missing(context):
            raise
        return LAUNCHERS["torchrun"].build(wanted, context)


def context_of(where: Where) -> Context | None:
    """The context for ranks of another Python or environment; None for our own."""
    if where is HERE:
        return None
    environ = where.environment()
    return Context(environ, where.python, ask=lambda python: mpi_library(python, environ=environ))


def choose(context: Context) -> str:
    """The launcher that ``auto`` means: that of the Slurm or Flux allocation around us, else the library's mpiexec."""
    for system in BATCH_SYSTEMS:
        name = system.launcher
        if name and system.sign in context.environ and not LAUNCHERS[name].missing(context):
            return name
    return "mpiexec"


def _which(name: str, context: Context) -> str | None:
    return shutil.which(name, path=context.environ.get("PATH", os.defpath))


# shared by all launchers


def _environ(context: Context, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**_ONE_THREAD, **context.environ, **(more or {})}


def _slots(wanted: Wanted) -> list[str]:
    """Hosts with a number of slots each, so that all ranks fit. An address of IPv6 can have none."""
    each = -(-wanted.ranks // max(1, len(wanted.hosts)))
    return [host if ":" in host else f"{host}:{each}" for host in wanted.hosts]


def _names(wanted: Wanted, launcher: str, advice: str, own: Sequence[str]) -> list[str]:
    """Hosts for a launcher of a batch system, which takes names and shares the ranks out evenly.

    Args:
        wanted: the ranks.
        launcher: its name in the error.
        advice: how else to place ranks.
        own: words of the user's by which the launcher places ranks.

    Raises:
        UsageError: a host is an address of IPv6, or the slots ask for something else.
    """
    pairs = [host_and_slots(host) for host in wanted.hosts]
    for name, _ in pairs:
        if ":" in name:
            raise UsageError(
                f"{launcher} takes no address of IPv6 in --hosts, as {name}: give the node's name or --launcher mpiexec"
            )
    slots = [count for _, count in pairs if count is not None]
    fits = slots[0] >= wanted.ranks if len(pairs) == 1 and slots else all(s * len(pairs) == wanted.ranks for s in slots)
    if not fits and not bound_by_user(wanted.extra, own):
        raise UsageError(f"{launcher} takes no slots in --hosts: {advice} or --launcher mpiexec")
    return [name for name, _ in pairs]


def _is_local(wanted: Wanted, context: Context) -> bool:
    if wanted.hosts:
        return all(host_and_slots(host)[0] in ("localhost", "127.0.0.1", "::1") for host in wanted.hosts)
    return not bound_by_user(wanted.extra, _HOST_WORDS) and not any(name in context.environ for name in MANAGED)


def _placement(wanted: Wanted, context: Context, local: bool) -> Placement:
    """How ranks are bound. On other nodes, whose cores are not known, each rank gets a core."""
    own = bound_by_user(wanted.extra, _BIND_WORDS)
    if not local:
        return Placement("default" if own else "core" if wanted.bind else "none")
    placed = place(wanted.ranks, context.here)
    if own:
        return Placement("default", oversubscribed=placed.oversubscribed, notes=placed.notes)
    if not wanted.bind:
        return Placement("none", oversubscribed=placed.oversubscribed, notes=placed.notes)
    return placed


# mpiexec


def _in_allocation(wanted: Wanted, context: Context) -> Wanted:
    """Add the nodes of a PBS or Flux job, which an mpiexec need not know. Every mpiexec asks Slurm for its nodes."""
    if wanted.hosts or bound_by_user(wanted.extra, _HOST_WORDS) or SLURM.sign in context.environ:
        return wanted
    job = allocation(context.environ)
    if job is None or len(job.nodes) < 2:
        return wanted
    return replace(wanted, hosts=job.hosts)


def _mpiexec(wanted: Wanted, context: Context) -> LaunchCommand:
    wanted = _in_allocation(wanted, context)
    library = context.ask(context.python)
    mpiexec = find_mpiexec(library, context.environ, context.python)
    if mpiexec.vendor == OPEN_MPI and context.root and any(context.environ.get(name) != "1" for name in OPEN_MPI_ROOT):
        raise EnvironmentProblem(
            f"Open MPI refuses to start as root. What to do: export {OPEN_MPI_ROOT[0]}=1 {OPEN_MPI_ROOT[1]}=1, "
            "or run as an ordinary user"
        )
    local = _is_local(wanted, context)
    placed = _placement(wanted, context, local)
    builder = {OPEN_MPI: _open_mpi, INTEL: _intel}.get(mpiexec.vendor, _mpich)
    options, more = builder(mpiexec, wanted, context, placed, local)
    return LaunchCommand(
        name=f"mpiexec ({mpiexec.vendor} {mpiexec.version})",
        words=(mpiexec.path, "-n", str(wanted.ranks), *options, *wanted.extra, *wanted.program),
        environ=_environ(context, more),
        local=local,
        oversubscribed=placed.oversubscribed,
        notes=placed.notes,
        library=library,
    )


Built = tuple[list[str], dict[str, str]]


def _open_mpi(mpiexec: Mpiexec, wanted: Wanted, context: Context, placed: Placement, local: bool) -> Built:
    cpus = ",".join(map(str, placed.cpus))
    new = int(mpiexec.version.split(".")[0] or 5) >= 5
    options = {
        "core": ["--bind-to", "core", *(["--map-by", "core"] if local else [])],
        "hwthread": ["--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread"],
        "list": ["--map-by", f"pe-list={cpus}:ordered"] if new else ["--cpu-set", cpus, "--bind-to", "core"],
        "none": ["--bind-to", "none"],
        "default": [],
    }[placed.policy]
    if placed.oversubscribed:
        options.append("--oversubscribe")
    if wanted.hosts:
        options += ["--host", ",".join(_slots(wanted))]
    known = {*context.environ, CONTROL_VARIABLE, TOKEN_VARIABLE, *_ONE_THREAD}
    # mpiexec gives the whole environment to ranks of this machine, and to others what is named
    elsewhere = () if local else sorted(filter(_decides, context.environ))
    for name in dict.fromkeys((*_PASSED, *wanted.pass_names, *elsewhere)):
        if name in known:  # Open MPI warns of one that is not set
            options += ["-x", name]
    return options, {}


def _decides(name: str) -> bool:
    """Whether a variable decides how ranks communicate, and is not of the launcher or batch system itself."""
    return name.startswith(_OURS) or (is_allowed(name) and not name.startswith(PREFIXES))


def _mpich(mpiexec: Mpiexec, wanted: Wanted, context: Context, placed: Placement, local: bool) -> Built:
    options = {
        "core": ["-bind-to", "core"],
        "hwthread": ["-bind-to", "hwthread"],
        "list": ["-bind-to", "user:" + ",".join(map(str, placed.cpus))],
        "none": ["-bind-to", "none"],
        "default": [],
    }[placed.policy]
    if wanted.hosts:
        options += ["-hosts", ",".join(_slots(wanted))]
    return options, {}


def _intel(mpiexec: Mpiexec, wanted: Wanted, context: Context, placed: Placement, local: bool) -> Built:
    pin = {
        "core": {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"},
        "hwthread": {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "all"},
        "list": {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": ",".join(map(str, placed.cpus))},
        "none": {"I_MPI_PIN": "0"},
        "default": {},
    }[placed.policy]
    if any(name.startswith("I_MPI_PIN") for name in context.environ):
        pin = {}
    return (["-hosts", ",".join(_slots(wanted))] if wanted.hosts else []), pin


# the other launchers


def _srun(wanted: Wanted, context: Context) -> LaunchCommand:
    srun = _which("srun", context) or "srun"
    options = ["-n", str(wanted.ranks), "--kill-on-bad-exit=1", "--export=ALL", "--input=none"]
    if inside_step(context.environ):
        options.append("--overlap")  # the step around us holds the cores
    if wanted.hosts:
        names = _names(wanted, "srun", "give --launcher-args '--ntasks-per-node=…'", _SRUN_PLACES)
        options += ["-N", str(len(names)), "-w", ",".join(names)]
    if not bound_by_user(wanted.extra, _BIND_WORDS):
        options.append("--cpu-bind=cores" if wanted.bind else "--cpu-bind=none")
    library = context.ask(context.python)
    notes: tuple[str, ...] = ()
    chosen = "SLURM_MPI_TYPE" in context.environ or bound_by_user(wanted.extra, ("mpi",))
    if library.available and not chosen:
        offered = _srun_types(srun, context)
        kind = srun_type(library.vendor, offered, library.text)
        if kind:
            options.append(f"--mpi={kind}")
        elif offered:
            notes = (f"srun offers no --mpi type for {library.vendor} (it has {', '.join(offered)})",)
    return LaunchCommand(
        name="srun",
        words=(srun, *options, *wanted.extra, *wanted.program),
        environ=_environ(context),
        local=False,
        notes=notes,
        library=library,
    )


def srun_type(vendor: str, offered: Sequence[str], text: str = "") -> str:
    """The ``--mpi`` type of srun with which this MPI library starts up; empty if srun offers none for it.

    `text` is what the library says of itself: Cray's MPICH has its own type.
    """
    if "cray_shasta" in offered and "cray" in f"{vendor} {text}".lower():
        return "cray_shasta"
    pmix = sorted((name for name in offered if name.startswith("pmix")), key=len)
    if vendor == OPEN_MPI:
        return pmix[0] if pmix else ""
    if "pmi2" in offered:
        return "pmi2"
    return pmix[0] if pmix and vendor == MPICH else ""


def _srun_types(srun: str, context: Context) -> list[str]:
    try:
        child = subprocess.run(
            [srun, "--mpi=list"],
            capture_output=True,
            text=True,
            timeout=20,
            stdin=subprocess.DEVNULL,
            env=dict(context.environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(dict.fromkeys(re.findall(r"\b(?:pmi2|pmix\w*|cray_shasta|none)\b", child.stdout + child.stderr)))


def _flux(wanted: Wanted, context: Context) -> LaunchCommand:
    options = ["-n", str(wanted.ranks)]
    if wanted.hosts:
        names = _names(wanted, "flux run", "leave them out, or give the same to each host,", ())
        options += ["-N", str(len(names)), f"--requires=host:{','.join(names)}"]
    if wanted.gpus != "none" and not bound_by_user(wanted.extra, ("g", "gpus-per-task", "gpus-per-node")):
        # to ranks without a GPU of the job Flux says CUDA_VISIBLE_DEVICES=-1; shared ones are more ranks than GPUs
        options.append("-g1" if wanted.gpus == "own" else "-ogpu-affinity=off")
    library = context.ask(context.python)
    if not bound_by_user(wanted.extra, ("o", "setopt")):
        options.append(f"-ocpu-affinity={'per-task' if wanted.bind else 'off'}")
        if library.vendor == OPEN_MPI:
            options.append("-opmi=pmix")  # Flux speaks the protocol of other libraries without an option
    words = (_which("flux", context) or "flux", "run", *options, *wanted.extra, *wanted.program)
    return LaunchCommand("flux run", words, _environ(context), False, library=library)


def _no_flux(context: Context) -> str:
    return "" if _which("flux", context) else "flux not found in PATH: use --launcher mpiexec, or load Flux's module"


def _torchrun(wanted: Wanted, context: Context) -> LaunchCommand:
    if wanted.hosts:
        raise UsageError("torchrun starts ranks on this machine only: start it on each host yourself, or use mpiexec")
    placed = place(wanted.ranks, context.here)
    words = (
        context.python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={wanted.ranks}",
        "--max-restarts=0",
        "--no-python",
        *wanted.extra,
        *wanted.program,
    )
    return LaunchCommand("torchrun", words, _environ(context), True, placed.oversubscribed, placed.notes)


def _no_torch(context: Context) -> str:
    child = subprocess.run(
        [context.python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return "" if child.returncode == 0 else f"torchrun not found: {pip_install('gloo')}"


def _none(wanted: Wanted, context: Context) -> LaunchCommand:
    if wanted.ranks != 1:
        raise UsageError(f"--launcher none starts 1 rank, not {wanted.ranks}: choose another launcher, or -n 1")
    return LaunchCommand("none", wanted.program, _environ(context), True)


def _no_srun(context: Context) -> str:
    return "" if _which("srun", context) else "srun not found in PATH: use --launcher mpiexec, or load Slurm's module"


def _no_mpiexec(context: Context) -> str:
    return ""  # building the command gives a better error, which names both mpiexec and library


LAUNCHERS: dict[str, Launcher] = {
    launcher.name: launcher
    for launcher in (
        Launcher("mpiexec", "mpiexec of the MPI library that mpi4py loads", _no_mpiexec, _mpiexec),
        Launcher("srun", "Slurm's launcher, inside an allocation", _no_srun, _srun),
        Launcher("flux", "Flux's launcher, inside an instance", _no_flux, _flux),
        Launcher("torchrun", "PyTorch's launcher, on one machine", _no_torch, _torchrun),
        Launcher("none", "no launcher: one rank", lambda context: "", _none),
    )
}


def launcher_report(context: Context | None = None) -> dict[str, str]:
    """Launcher -> why it cannot be used here, empty when it can; for ``doctor``. Never raises."""
    context = context or Context(os.environ)
    report = {}
    for name, launcher in LAUNCHERS.items():
        try:
            report[name] = launcher.missing(context)
            if not report[name]:
                launcher.build(Wanted(("true",), 1), context)
        except (EnvironmentProblem, UsageError) as problem:
            report[name] = str(problem)
    return report
