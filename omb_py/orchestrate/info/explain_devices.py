"""Text of ``omb-py explain --device``: the GPU that each rank will open, and why. No GPU is opened for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omb_py.engine.devices.registry import find_kind
from omb_py.engine.rank.launcher_variables import Joined, joined_environment, local_rank, local_rank_variable
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.launcher import LaunchCommand, first_set
from omb_py.orchestrate.supervision.rank_state import numbers


def count_here(device: str, environ: Mapping[str, str]) -> int:
    """The GPUs of this machine. Raises EnvironmentProblem where they cannot be counted."""
    try:
        return find_kind(device).count_all()
    except EnvironmentProblem:
        if first_set(environ, find_kind(device).visible):
            return 0  # it names those of this rank
        raise EnvironmentProblem("the GPUs of this machine cannot be counted: say how many with --gpus N") from None


def of_rank(environ: Mapping[str, str], device: str, gpus: int) -> str:
    """The line of this process, which a launcher started.

    Raises:
        EnvironmentProblem: it sees no GPU.
    """
    joined = joined_environment(environ)
    assert joined is not None
    local, name = local_rank(environ), local_rank_variable(environ)
    why = f"local rank {local} by {name}" if name else f"{joined.launcher} names no local rank, so 0"
    return f"{_rank(joined)}: {why}{_seen(environ, device, gpus, local)}"


def _rank(joined: Joined) -> str:
    of = "" if joined.size is None else f" of {joined.size}"
    return f"rank {joined.rank}{of}"


def _seen(environ: Mapping[str, str], device: str, gpus: int, local: int) -> str:
    variable = next((name for name in find_kind(device).visible if environ.get(name) is not None), "")
    if not variable:
        if not gpus:
            raise EnvironmentProblem(f"--device {device}: there is no GPU here: --gpus N says how many there will be")
        return f"; sees {gpus} GPUs → {device}:{local % gpus}"
    words = [word for word in environ[variable].split(",") if word and word != "-1"]
    if not words:
        raise EnvironmentProblem(
            f"--device {device}: {variable}={environ[variable]} hides all GPUs: ask the launcher for them"
        )
    index = local % len(words)
    count = f"{len(words)} GPU{'s' if len(words) > 1 else ''}"
    named = "" if words[index] == str(index) else f", named {words[index]} there"
    return f"; sees {count} ({variable}={environ[variable]}) → {device}:{index}{named}"


def before_launch(command: LaunchCommand, hosts: Sequence[str], ranks: int, device: str, gpus: int) -> str:
    """The launch line, and the GPUs that ranks will open where the launcher fills one machine after the other.

    Args:
        hosts: of the ranks, each perhaps with ``:ranks``; empty: this machine.

    Raises:
        UsageError: the hosts hold fewer ranks.
    """
    line = " ".join((command.words[0].rpartition("/")[2], *command.words[1:]))
    lines = [f"launch line   {line}", f"local rank    by {command.local_rank_variable} of {command.name}"]
    first = 0
    for host, count in _spread_on_hosts(hosts, ranks):
        members = range(first, first + count)
        one_each = f"{device}:0" if count == 1 else f"{device}:0 to {device}:{min(count, gpus) - 1}, by local rank"
        shared = f"; they share {gpus} GPUs: exit 3 without --share-device" if count > gpus else ""
        lines.append(f"{numbers(members):<12}  on {host}: {one_each}{shared}")
        first += count
    lines.append("Where the launcher shows each rank one GPU, that is device 0 for it; UUIDs tell them apart.")
    return "\n".join(lines)


def _spread_on_hosts(hosts: Sequence[str], ranks: int) -> list[tuple[str, int]]:
    each = -(-ranks // max(1, len(hosts)))
    parts = [host.partition(":") for host in hosts] or [("this machine", "", str(ranks))]
    left, placed = ranks, []
    for name, _, slots in parts:
        count = min(left, int(slots) if slots.isdigit() else each)
        if count:
            placed.append((name, count))
        left -= count
    if left:
        raise UsageError(f"--hosts has room for {ranks - left} of {ranks} ranks: more hosts, or more :SLOTS")
    return placed
