"""Findings of ``omb-py doctor --device cuda``: all that decides a run on NVIDIA GPUs, in the order of checking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from omb_py.backends.capabilities import Capabilities
from omb_py.engine.devices import nvml
from omb_py.engine.devices.nvml import GpuFacts, Inventory, PairFacts
from omb_py.engine.devices.registry import find_kind
from omb_py.engine.rank.launch_facts import InfinibandPort
from omb_py.engine.rank.system_info import infiniband
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.info.doctor import Finding, Status, backend, checks
from omb_py.orchestrate.planning.availability import device_problem, gpu_here
from omb_py.orchestrate.supervision.rank_state import numbers

DEVICE: Final = "cuda"
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_DRIVER: Final = "driver"
_LIBRARY: Final = "nvidia-ml-py"
_OF_GPUS: Final = ("visible to ranks", "compute mode", "MIG", "NVLink and PCIe", "NUMA nodes", "peer access")
_MODULES: Final = {
    "nvidia_peermem": (
        "network cards cannot read and write GPU memory through it (GPUDirect RDMA)",
        "modprobe nvidia_peermem, after RDMA's drivers; not needed where NCCL says that it uses DMA-BUF",
    ),
    "gdrdrv": (
        "UCX and NVSHMEM copy small messages without GDRCopy",
        "install GDRCopy and modprobe gdrdrv; the rest works without it",
    ),
}
"""Kernel module -> (what is missing without it, what to do)."""


def report(
    inspected: Sequence[Capabilities], environ: Mapping[str, str], system: Path = Path("/sys")
) -> tuple[list[Finding], bool]:
    """All findings, and whether some backend can use a GPU here."""
    lines, closed = machine(system, environ)
    users = [known for known in inspected if known.available and known.devices.get(DEVICE) == ""]
    cupy = find_kind(DEVICE).problem()
    opens = _refuse("CuPy", cupy) if cupy else Finding("CuPy", "ok", "opens the GPUs")
    able = sorted((known for known in inspected if DEVICE in known.devices), key=lambda known: not known.asynchronous)
    libraries = [line for known in able for line in of_backend(known, cupy)]
    network = [*ports(infiniband(system)), *modules(system)]
    return [*lines, opens, *libraries, *network], bool(users) and not cupy and not closed


def _refuse(subject: str, problem: str) -> Finding:
    """A refusal, which ends with a colon and the fix, as a line."""
    text = problem.removeprefix(f"--device {DEVICE}").lstrip(": ")
    what, _, fix = text.rpartition(": ")
    return Finding(subject, "no", what or text, fix if what else "")


def unseen(subjects: Iterable[str], without: str) -> list[Finding]:
    """Lines on what is not visible as long as an earlier line says no."""
    return [Finding(subject, "no", f"not visible: see {without}", f"mend {without} first") for subject in subjects]


def machine(system: Path, environ: Mapping[str, str]) -> tuple[list[Finding], bool]:
    """The lines about driver and GPUs, and whether the compute mode closes all of them."""
    if not gpu_here(DEVICE):
        missing, _ = device_problem(DEVICE, "")
        return [Finding(_DRIVER, "no", missing, nvml.DRIVER_FIX), *unseen(("GPUs", *_OF_GPUS), _DRIVER)], False
    try:
        seen = nvml.inventory(system)
    except EnvironmentProblem as problem:
        return [_refuse(_LIBRARY, str(problem)), *unseen(("GPUs", *_OF_GPUS), _LIBRARY)], False
    gpus = seen.gpus
    if not gpus:
        return [Finding("GPUs", "no", "the driver sees none", nvml.DRIVER_FIX), *unseen(_OF_GPUS, "GPUs")], False
    lines = [
        Finding(_DRIVER, "ok", f"{seen.driver}, takes programs of CUDA {seen.cuda} and older"),
        *each_gpu(gpus),
        visible(gpus, environ.get(VISIBLE)),
        *compute_mode(gpus),
        mig(gpus),
        *paths(seen),
        numa(gpus),
        peers(seen.pairs),
    ]
    return lines, bool(gpus) and all(gpu.compute_mode == nvml.PROHIBITED for gpu in gpus)


def each_gpu(gpus: Sequence[GpuFacts]) -> list[Finding]:
    """A line for each GPU."""
    return [
        Finding(f"GPU {gpu.index}", "ok", ", ".join(filter(None, (gpu.name, gpu.uuid, gpu.pci, gpu.pcie))))
        for gpu in gpus
    ]


def visible(gpus: Sequence[GpuFacts], value: str | None) -> Finding:
    """What CUDA_VISIBLE_DEVICES leaves to ranks that are started from here."""
    if value is None:
        return Finding("visible to ranks", "ok", f"all, as {VISIBLE} is not set")
    words = [word.strip() for word in value.split(",")]
    uuids = [uuid for gpu in gpus for uuid in (gpu.uuid, *gpu.instances)]
    numbers = {str(gpu.index) for gpu in gpus}

    def names_a_gpu(word: str) -> bool:
        # a beginning of a UUID is enough where it fits one alone
        return word in numbers or (word[:4] in ("GPU-", "MIG-") and sum(uuid.startswith(word) for uuid in uuids) == 1)

    wrong = next((word for word in words if not names_a_gpu(word)), None)
    if wrong is None:
        return Finding("visible to ranks", "ok", f"{len(words)} of {len(gpus)}: {VISIBLE}={value}")
    count = words.index(wrong)  # CUDA ignores what stands behind the first wrong one
    text = f"{VISIBLE}={value} leaves {count or 'none'}: {wrong!r} is no GPU here"
    return Finding(
        "visible to ranks", "warn" if count else "no", text, f"unset {VISIBLE}, or name GPUs of the list above"
    )


def compute_mode(gpus: Sequence[GpuFacts]) -> list[Finding]:
    """A line for each compute mode that GPUs have."""
    by_mode: dict[str, list[int]] = {}
    for gpu in gpus:
        by_mode.setdefault(gpu.compute_mode, []).append(gpu.index)
    lines = []
    for mode, which in by_mode.items():
        fix = f"nvidia-smi -i {','.join(map(str, which))} -c DEFAULT, as root"
        text = f"{mode or 'not known'}: {numbers(which, 'GPU')}"
        if mode == nvml.PROHIBITED:
            lines.append(Finding("compute mode", "no", f"{text}: no program may use it", fix))
        elif mode.startswith("exclusive"):
            text += ": one process each, so no --share-device, and no probe beside a rank"
            lines.append(Finding("compute mode", "warn", text, fix))
        else:
            lines.append(Finding("compute mode", "ok", text))
    return lines


def mig(gpus: Sequence[GpuFacts]) -> Finding:
    """Whether GPUs are split in instances."""
    split = [gpu for gpu in gpus if gpu.mig.startswith("on") or gpu.mig.endswith("reset")]
    if not split:
        return Finding("MIG", "ok", "off" if any(gpu.mig for gpu in gpus) else "these GPUs have none")
    text = "; ".join(f"GPU {gpu.index} {gpu.mig}, {len(gpu.instances)} instances" for gpu in split)
    empty = any(gpu.mig == "on" and not gpu.instances for gpu in split)
    which = ",".join(str(gpu.index) for gpu in split)
    fix = (
        f"nvidia-smi -i {which} -mig 0 and a reset; or make instances and give each rank one. NCCL has no NVLink there"
    )
    return Finding("MIG", "no" if empty else "warn", text, fix)


def paths(seen: Inventory) -> list[Finding]:
    """The paths between pairs of GPUs, as nvidia-smi writes them: all alike in a line, else a line for each GPU."""
    subject = "NVLink and PCIe"
    if len(seen.gpus) < 2:
        return [Finding(subject, "ok", "one GPU, no pair")]
    words = {pair.path or "unknown" for pair in seen.pairs}
    if len(words) == 1:
        return [Finding(subject, "ok", f"{words.pop()} between each of the {len(seen.pairs)} pairs")]
    lines = []
    for gpu in seen.gpus:
        by_path: dict[str, list[int]] = {}
        for pair in seen.pairs:
            if gpu.index in (pair.first, pair.second):
                other = pair.first + pair.second - gpu.index
                by_path.setdefault(pair.path or "unknown", []).append(other)
        text = "; ".join(f"{path} to {numbers(others, 'GPU')}" for path, others in by_path.items())
        lines.append(Finding(subject, "ok", f"GPU {gpu.index}: {text}"))
    return lines


def numa(gpus: Sequence[GpuFacts]) -> Finding:
    """The NUMA node of each GPU."""
    by_node: dict[int | None, list[int]] = {}
    for gpu in gpus:
        by_node.setdefault(gpu.numa, []).append(gpu.index)
    if set(by_node) == {None}:
        fix = "none on a machine with one socket; else switch NUMA on in its firmware"
        return Finding("NUMA nodes", "warn", "the kernel names none for these GPUs", fix)
    text = "; ".join(
        f"{'unknown' if node is None else node}: {numbers(which, 'GPU')}" for node, which in by_node.items()
    )
    return Finding("NUMA nodes", "ok", text)


def peers(pairs: Sequence[PairFacts]) -> Finding:
    """Whether GPUs read and write each other's memory."""
    if not pairs:
        return Finding("peer access", "ok", "one GPU, no pair")
    without = [pair for pair in pairs if pair.no_peer]
    if not without:
        return Finding("peer access", "ok", f"each of the {len(pairs)} pairs reads and writes the other's memory")
    first = without[0]
    text = f"{len(without)} of {len(pairs)} pairs go through host memory, first GPU {first.first} and {first.second}"
    fix = "switch PCIe ACS and the IOMMU off, or pass them through; a virtual machine often forbids it"
    return Finding("peer access", "no", f"{text}: {first.no_peer}", fix)


def of_backend(known: Capabilities, cupy: str) -> Iterable[Finding]:
    """A backend that can have buffers on GPUs: its library, what it says of them beyond `cupy`, and its checks."""
    yield from backend(known)
    if known.available and known.devices[DEVICE] not in ("", cupy):
        yield _refuse(f"  {known.name} on {DEVICE}", known.devices[DEVICE])
    yield from checks([known], DEVICE)


def ports(devices: Sequence[InfinibandPort]) -> list[Finding]:
    """A line for each InfiniBand or RoCE port."""
    if not devices:
        fix = "for ranks on several nodes: load the card's driver (mlx5_ib); in a container: --device /dev/infiniband"
        return [Finding("InfiniBand", "no", "no device in /sys/class/infiniband", fix)]
    lines = []
    for port in devices:
        up = "ACTIVE" in (port["state"] or "")
        status: Status = "ok" if up else "no"
        state = f"{port['state'] or 'state unknown'}, {port['rate'] or 'rate unknown'}"
        text = f"{port['device']} port {port['port']}: {state}"
        lines.append(Finding("InfiniBand", status, text, "" if up else "check cable and subnet manager: ibstat"))
    return lines


def modules(system: Path) -> list[Finding]:
    """The kernel modules of GPUDirect."""
    lines = []
    for name, (without, fix) in _MODULES.items():
        loaded = (system / "module" / name).is_dir()
        lines.append(Finding(name, "ok", "loaded") if loaded else Finding(name, "no", f"not loaded: {without}", fix))
    return lines
