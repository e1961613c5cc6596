"""Data of ``omb-py doctor``: what this machine can do, and why it cannot do the rest."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from textwrap import shorten
from typing import Literal

from omb_py import __version__
from omb_py.backends.capabilities import Capabilities
from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.engine.rank.system_info import read
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.mpi_library import mpi_library
from omb_py.launchers.mpiexec import find_mpiexec
from omb_py.launchers.open_mpi import OPEN_MPI_ROOT
from omb_py.launchers.srun import SLURM
from omb_py.orchestrate.info.catalogue import RunTarget
from omb_py.orchestrate.launching.launch_command import report_launchers
from omb_py.orchestrate.launching.machine_state import BUSY_SHARE, STEADY_GOVERNORS, MachineState, observe
from omb_py.orchestrate.planning.availability import device_problem

SHM_ENOUGH_BYTES = 256 << 20
"""Open MPI, MPICH and Intel MPI keep their queues and large messages in /dev/shm; 64 MiB, a container's default, is
little for more than a few ranks."""
MAX_TEXT = 120
"""Most characters of a finding in the text form; JSON has the whole text."""
MEMORY_ENOUGH_BYTES = 1 << 30

Status = Literal["ok", "warn", "no"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    status: Status
    text: str
    fix: str = ""
    """What to do if the status is not ok."""


def report(
    inspected: Sequence[Capabilities], where: Sequence[RunTarget], store: Path, environ: Mapping[str, str]
) -> list[Finding]:
    """Return all findings, most important first.

    Args:
        inspected: capabilities of the backends here.
        where: places where benchmarks can run (:func:`omb_py.orchestrate.info.catalogue.list_targets`).
        store: folder of the results.
        environ: environment variables, usually ``os.environ``.
    """
    machine = observe()
    return [
        python(),
        Finding("omb-py", "ok", f"{__version__} in {Path(__file__).resolve().parents[2]}"),
        *(finding for known in inspected for finding in backend(known)),
        *checks(inspected),
        *launchers(report_launchers(), _mpiexec()),
        *others(where, [known.name for known in inspected]),
        *root_variables(inspected, os.geteuid(), environ),
        launcher_around(environ),
        *cores(len(os.sched_getaffinity(0)), os.cpu_count(), read("/sys/fs/cgroup/cpu.max")),
        governor(machine.governor),
        *idleness(machine),
        memory(read("/proc/meminfo")),
        shared_memory(Path("/dev/shm")),
        code_generation(),
        store_folder(store),
    ]


def exit_ok(inspected: Iterable[Capabilities]) -> bool:
    """Return True if at least one backend that is not simulated works."""
    return any(backend.available and not backend.simulated for backend in inspected)


def as_json(findings: Iterable[Finding], usable: bool) -> dict[str, object]:
    """Return the report as plain data for JSON."""
    return {"usable": usable, "findings": [asdict(finding) for finding in findings]}


def as_text(findings: Sequence[Finding]) -> str:
    """Format one line for each finding, and one for its fix."""
    width = max(len(f.subject) for f in findings)
    lines = []
    for f in findings:
        text = shorten(f.text, MAX_TEXT, placeholder=" …")  # a library's own text can be pages long
        lines.append(f"{f.status:<4}  {f.subject:<{width}}  {text}".rstrip())
        if f.fix:
            lines.append(f"{'':<4}  {'':<{width}}  → {f.fix}")
    return "\n".join(lines)


def python() -> Finding:
    """Report the Python interpreter."""
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def backend(inspected: Capabilities) -> list[Finding]:
    """Report a backend: library, facts and bindings."""
    name = f"backend {inspected.name}"
    if not inspected.available:
        own = [
            (binding, why)
            for binding, why in inspected.bindings.items()
            if why not in ("", inspected.inspection.reason)
        ]
        missing = [Finding(f"  binding {binding}", "no", why) for binding, why in own]
        return [Finding(name, "no", inspected.inspection.reason, inspected.inspection.fix), *missing]
    library = " ".join(part for part in (inspected.inspection.library, inspected.inspection.version) if part)
    findings = [Finding(name, "ok", library)]
    findings += [Finding(f"  {fact}", "ok", value) for fact, value in inspected.inspection.facts.items()]
    for binding, why in inspected.bindings.items():
        findings.append(Finding(f"  binding {binding}", "no" if why else "ok", why or "usable"))
    return findings


def checks(inspected: Sequence[Capabilities], device: str = "") -> list[Finding]:
    """Run the further checks of available backends, such as whether MPI takes buffers of the GPUs that are here.

    Args:
        inspected: capabilities of the backends.
        device: leave out checks of other kinds of devices; empty: all checks.
    """
    every = (check for backend in inspected if backend.available for check in backend.checks())
    lines = (check for check in every if not device or check.device in ("", device))
    return [Finding(line.subject, "ok" if line.passed else "no", line.text, line.fix) for line in lines]


def launchers(problems: Mapping[str, str], mpiexec: str) -> list[Finding]:
    """Report the launchers that can start ranks here.

    Args:
        problems: launcher -> why it cannot be used; empty if it can.
        mpiexec: path of the mpiexec that belongs to the MPI library; empty if there is none.
    """
    findings = []
    for name, problem in problems.items():
        why, _, fix = problem.partition(". What to do: ")
        if name in ("none", "auto"):
            continue
        if not problem:
            findings.append(Finding(f"launcher {name}", "ok", mpiexec if name == "mpiexec" else "found"))
        else:
            findings.append(Finding(f"launcher {name}", "no", why, fix))
    return findings


def _mpiexec() -> str:
    try:
        mpiexec = find_mpiexec(mpi_library(), os.environ)
    except EnvironmentProblem:
        return ""
    return f"{mpiexec.path} ({mpiexec.vendor} {mpiexec.version})"


def others(where: Sequence[RunTarget], probed: Sequence[str]) -> list[Finding]:
    """Report the GPUs and the backends that use them."""
    findings = []
    for device in GPU_KINDS:
        users = sorted({place.backend for place in where if place.device == device and place.available})
        reason, fix = device_problem(device, ", ".join(probed))
        subject = f"device {device}"
        findings.append(
            Finding(subject, "ok", f"for {', '.join(users)}") if users else Finding(subject, "no", reason, fix)
        )
    return findings


def root_variables(inspected: Iterable[Capabilities], user: int, environ: Mapping[str, str]) -> list[Finding]:
    """Report whether Open MPI may run as root: its mpiexec refuses unless two variables allow it."""
    if user != 0 or not any("open mpi" in known.inspection.library.lower() for known in inspected):
        return []
    missing = [name for name in OPEN_MPI_ROOT if environ.get(name) != "1"]
    if not missing:
        return [Finding("root", "ok", "Open MPI is told to run as root")]
    fix = "export " + " ".join(f"{name}=1" for name in missing) + ", or use another user"
    return [Finding("root", "warn", "Open MPI's mpiexec refuses to start ranks as root", fix)]


def launcher_around(environ: Mapping[str, str]) -> Finding:
    """Report the launcher that started this process, if any."""
    joined = joined_environment(environ)
    if joined is None:
        job = environ.get(SLURM.sign)
        how = f"with srun, inside Slurm job {job}" if job else "itself"
        return Finding("launcher around", "ok", f"none: omb-py starts ranks {how}")
    size = f" of {joined.size}" if joined.size is not None else ""
    return Finding("launcher around", "ok", f"{joined.launcher}: this is rank {joined.rank}{size}")


def cores(usable: int, online: int | None, quota: str | None) -> list[Finding]:
    """Report the cores that this process may use, and the number of ranks from which they share cores.

    Args:
        usable: number of cores in the affinity mask.
        online: number of cores of the machine.
        quota: text of ``cpu.max`` of the control group, "MICROSECONDS PERIOD" or "max PERIOD".
    """
    limit: float = usable
    words = (quota or "max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        limit = min(limit, int(words[0]) / int(words[1]))
    of = f" of {online}" if online and online != usable else ""
    text = f"{usable}{of} usable"
    if limit < usable:
        text += f", limited to the time of {limit:g} by the control group"
    ranks = int(limit)
    rule = f"from {ranks + 1} ranks on, ranks share cores and times grow by scheduling"
    findings = [Finding("cores", "ok" if ranks >= 2 else "warn", text, "" if ranks >= 2 else "give it 2 cores or more")]
    findings.append(Finding("oversubscription", "ok", rule))
    return findings


def governor(text: str | None) -> Finding:
    """Report the frequency governor: others than ``performance`` and ``schedutil`` make short times vary."""
    if text is None:
        return Finding("CPU governor", "ok", "not visible here (a virtual machine or a container)")
    if text in STEADY_GOVERNORS:
        return Finding("CPU governor", "ok", text)
    fix = "cpupower frequency-set -g performance"
    return Finding("CPU governor", "warn", f"{text}: clock rates vary with load", fix)


def idleness(state: MachineState) -> list[Finding]:
    """Report other programs, an affinity mask and heat, as they are now."""
    findings = []
    if state.busy_cores is None:
        findings.append(Finding("other programs", "ok", "their work is not visible here"))
    else:
        load = "" if state.load is None else f"; load {state.load:.1f}"
        text = f"use {state.busy_cores:.1f} of {state.cores} cores{load}"
        busy = state.busy_cores > BUSY_SHARE * state.cores
        fix = "end them before measuring, or expect wide spreads" if busy else ""
        findings.append(Finding("other programs", "warn" if busy else "ok", text, fix))
    if state.restricted:
        text = f"an affinity mask leaves {state.usable} of {state.cores} cores"
        findings.append(Finding("affinity", "warn", text, "start omb-py without taskset to measure on all"))
    if state.throttled:
        text = f"throttled {state.throttled} times just now because of heat"
        findings.append(Finding("heat", "warn", text, "let the machine cool, or mend its cooling"))
    return findings


def memory(meminfo: str | None) -> Finding:
    """Report the available memory."""
    for line in (meminfo or "").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
            low = free < MEMORY_ENOUGH_BYTES
            return Finding(
                "memory",
                "warn" if low else "ok",
                f"{amount(free)} available",
                "large messages may not fit: -m with a smaller MAX" if low else "",
            )
    return Finding("memory", "ok", "not visible here")


def shared_memory(folder: Path) -> Finding:
    """Report the room in /dev/shm, through which ranks of one node exchange data."""
    try:
        state = os.statvfs(folder)
    except OSError as error:
        return Finding(str(folder), "warn", f"not usable: {error.strerror}", f"mount a tmpfs on {folder}")
    total, free = state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
    text = f"{amount(free)} free of {amount(total)}"
    if free < SHM_ENOUGH_BYTES:
        return Finding(str(folder), "warn", text, "in a container: --shm-size=1g; else remove stale files there")
    return Finding(str(folder), "ok", text)


def code_generation() -> Finding:
    """Try to compile and run a loop: a hardened kernel may forbid machine code that is generated at run time."""
    try:
        # inside the try block: llvmlite may be missing or broken
        from omb_py.engine.native.translate import Machine, NativeCall, assemble
        from omb_py.engine.program.language import Lap, Stage, body

        table = assemble(Stage(body(Lap(), Lap("t"))), lambda step: NativeCall(0, ()), lambda step: 0, {})
        samples, _ = Machine().run(table, 0, 1001)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Finding("code generation", "no", text, "pip install llvmlite; or use --binding mpi4py")
    return Finding(
        "code generation",
        "ok",
        f"llvmlite {version('llvmlite')}; a clock reading takes {sorted(samples.lap(0))[500]} ns",
    )


def store_folder(store: Path) -> Finding:
    """Report whether results can be stored."""
    shown = store if store.is_absolute() else f"./{store}"
    if writable(store):
        return Finding("store", "ok", f"{shown} is writable" + ("" if store.exists() else " (made by the first run)"))
    return Finding("store", "no", f"{shown} is not writable", "use --store DIR, or --no-store")


def writable(folder: Path) -> bool:
    """Return True if files could be written to a folder, or the folder created. Nothing is written."""
    place = Path(os.path.abspath(folder))
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def amount(nbytes: int) -> str:
    """Format bytes with a unit: ``1.5 GiB``."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"
