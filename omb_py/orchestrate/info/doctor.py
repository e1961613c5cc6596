"""What this machine can do, and why the rest cannot: the data of ``omb-py doctor``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

from omb_py import __version__
from omb_py.backends.capabilities import Capabilities
from omb_py.backends.mpi_library import find_mpiexec, mpi_library
from omb_py.engine.rank.launcher_variables import OPEN_MPI_ROOT, SLURM, joined_environment
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.info.catalogue import Place
from omb_py.orchestrate.launching.launchers import launcher_report
from omb_py.orchestrate.planning.validation import GPUS, device_problem

SHM_ENOUGH_BYTES = 256 << 20
"""Open MPI, MPICH and Intel MPI keep their queues and large messages in /dev/shm; 64 MiB, a container's default, is
little for more than a few ranks."""
MAX_TEXT = 120
"""Characters of a finding in the text form; JSON has all of it."""
MEMORY_ENOUGH_BYTES = 1 << 30

Status = Literal["ok", "warn", "no"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    status: Status
    text: str
    fix: str = ""
    """What to do, where it is not ok."""


def report(
    found: Sequence[Capabilities], where: Sequence[Place], store: Path, environ: Mapping[str, str]
) -> list[Finding]:
    """All findings, most important first.

    Args:
        found: what the backends can do here.
        where: where benchmarks can run (:func:`omb_py.orchestrate.info.catalogue.places`).
        store: folder of the results.
        environ: usually ``os.environ``.
    """
    return [
        python(),
        Finding("omb-py", "ok", f"{__version__} in {Path(__file__).resolve().parents[2]}"),
        *(finding for known in found for finding in backend(known)),
        *checks(found),
        *launchers(launcher_report(), _mpiexec()),
        *others(where, [known.name for known in found]),
        *root_variables(found, os.geteuid(), environ),
        launcher_around(environ),
        *cores(len(os.sched_getaffinity(0)), os.cpu_count(), _read("/sys/fs/cgroup/cpu.max")),
        governor(_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        memory(_read("/proc/meminfo")),
        shared_memory(Path("/dev/shm")),
        code_generation(),
        store_folder(store),
    ]


def exit_ok(found: Iterable[Capabilities]) -> bool:
    """At least one backend works that measures something real."""
    return any(backend.available and not backend.simulated for backend in found)


def as_json(findings: Iterable[Finding], usable: bool) -> dict[str, Any]:
    """The JSON form of the report."""
    return {"usable": usable, "findings": [asdict(finding) for finding in findings]}


def as_text(findings: Sequence[Finding]) -> str:
    """One line a finding, and one for what to do about it."""
    width = max(len(f.subject) for f in findings)
    lines = []
    for f in findings:
        text = shorten(f.text, MAX_TEXT, placeholder=" …")  # a library's own text can be pages long
        lines.append(f"{f.status:<4}  {f.subject:<{width}}  {text}".rstrip())
        if f.fix:
            lines.append(f"{'':<4}  {'':<{width}}  → {f.fix}")
    return "\n".join(lines)


def python() -> Finding:
    """The interpreter."""
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def backend(inspected: Capabilities) -> list[Finding]:
    """What a backend reports: library, launcher, bindings."""
    name = f"backend {inspected.name}"
    if not inspected.available:
        own = [(binding, why) for binding, why in inspected.bindings.items() if why not in ("", inspected.reason)]
        missing = [Finding(f"  binding {binding}", "no", why) for binding, why in own]
        return [Finding(name, "no", inspected.reason, inspected.fix), *missing]
    library = " ".join(part for part in (inspected.library, inspected.version) if part)
    findings = [Finding(name, "ok", library)]
    findings += [Finding(f"  {fact}", "ok", value) for fact, value in inspected.facts.items()]
    for binding, why in inspected.bindings.items():
        findings.append(Finding(f"  binding {binding}", "no" if why else "ok", why or "usable"))
    return findings


def checks(found: Sequence[Capabilities]) -> list[Finding]:
    """What the backends that work check further, such as whether MPI takes the buffers of the GPUs that are here."""
    lines = (check for backend in found if backend.available for check in backend.checks(backend))
    return [Finding(line.subject, "ok" if line.passed else "no", line.text, line.fix) for line in lines]


def launchers(problems: Mapping[str, str], mpiexec: str) -> list[Finding]:
    """What can start ranks here.

    Args:
        problems: launcher -> why it cannot be used, or an empty text.
        mpiexec: path of the mpiexec that belongs to the MPI library; empty when there is none.
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
        found = find_mpiexec(mpi_library(), os.environ)
    except EnvironmentProblem:
        return ""
    return f"{found.path} ({found.vendor} {found.version})"


def others(where: Sequence[Place], probed: Sequence[str]) -> list[Finding]:
    """GPUs, and which backends use them."""
    findings = []
    for device in GPUS:
        users = sorted({place.backend for place in where if place.device == device and place.available})
        reason, fix = device_problem(device, ", ".join(probed))
        subject = f"device {device}"
        findings.append(
            Finding(subject, "ok", f"for {', '.join(users)}") if users else Finding(subject, "no", reason, fix)
        )
    return findings


def root_variables(found: Iterable[Capabilities], user: int, environ: Mapping[str, str]) -> list[Finding]:
    """Open MPI's launcher refuses to run as root unless told twice."""
    if user != 0 or not any("open mpi" in known.library.lower() for known in found):
        return []
    missing = [name for name in OPEN_MPI_ROOT if environ.get(name) != "1"]
    if not missing:
        return [Finding("root", "ok", "Open MPI is told to run as root")]
    fix = "export " + " ".join(f"{name}=1" for name in missing) + ", or use another user"
    return [Finding("root", "warn", "Open MPI's mpiexec refuses to start ranks as root", fix)]


def launcher_around(environ: Mapping[str, str]) -> Finding:
    """Was this process started by a launcher?"""
    joined = joined_environment(environ)
    if joined is None:
        job = environ.get(SLURM.sign)
        how = f"with srun, inside Slurm job {job}" if job else "itself"
        return Finding("launcher around", "ok", f"none: omb-py starts ranks {how}")
    size = f" of {joined.size}" if joined.size is not None else ""
    return Finding("launcher around", "ok", f"{joined.launcher}: this is rank {joined.rank}{size}")


def cores(usable: int, online: int | None, quota: str | None) -> list[Finding]:
    """Cores that this process may use, and from how many ranks on they share one.

    Args:
        usable: cores in the affinity mask.
        online: cores of the machine.
        quota: text of ``cpu.max``, "MICROSECONDS PERIOD" or "max PERIOD".
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
    """The frequency governor: others than ``performance`` make short times vary."""
    if text is None:
        return Finding("CPU governor", "ok", "not visible here (a virtual machine or a container)")
    if text in ("performance", "schedutil"):
        return Finding("CPU governor", "ok", text)
    fix = "cpupower frequency-set -g performance"
    return Finding("CPU governor", "warn", f"{text}: clock rates vary with load", fix)


def memory(meminfo: str | None) -> Finding:
    """Free memory."""
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
    """Room in /dev/shm, through which ranks of one node exchange data."""
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
    """Can loops be made into machine code here? A hardened kernel may forbid it."""
    try:
        from omb_py.engine.native.translate import Call, Machine, assemble
        from omb_py.engine.program.language import Lap, Stage, body

        table = assemble(Stage(body(Lap(), Lap("t"))), lambda step: Call(0, ()), lambda step: 0, {})
        samples, _ = Machine().run(table, 0, 1001)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Finding("code generation", "no", text, "pip install llvmlite; or use --binding mpi4py")
    return Finding(
        "code generation",
        "ok",
        f"llvmlite {version('llvmlite')}; a clock reading takes {sorted(samples[:, 0])[500]} ns",
    )


def store_folder(store: Path) -> Finding:
    """Can results be stored?"""
    shown = store if store.is_absolute() else f"./{store}"
    if writable(store):
        return Finding("store", "ok", f"{shown} is writable" + ("" if store.exists() else " (made by the first run)"))
    return Finding("store", "no", f"{shown} is not writable", "use --store DIR, or --no-store")


def writable(folder: Path) -> bool:
    """Could files be made in a folder, or the folder itself? Nothing is written."""
    place = Path(os.path.abspath(folder))
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def amount(nbytes: int) -> str:
    """Bytes for a reader: ``1.5 GiB``."""
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None
