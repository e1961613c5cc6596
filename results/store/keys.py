"""Two hashes of a row: what was measured, and under which software, hardware and settings.

**Comparability key.** Two rows with equal keys measure the same thing and may be compared; with different keys the
answer is NOT COMPARABLE. It covers everything that changes *what* is measured (:data:`COMPARED`), the placement policy,
and the hash of the program of steps, which stands for the version of the benchmark. It leaves out on purpose:

- ``backend`` and ``binding``: people ask how NCCL compares with MPI, or mpi4py with generated code. A comparison
  inside one backend filters by it.
- the iteration rule (fixed or auto) and the counts: they change how precisely a quantity is known, not the quantity.
- library, versions, host names, thread level: they are what a comparison is about. Versions and host facts belong to
  the environment key.

**Environment key.** It covers everything in the provenance about software, hardware and settings, and nothing that
changes from launch to launch: ids, times, process numbers, host names, load. Equal descriptions of several nodes or
ranks count once, so that the key does not depend on how many there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from omb_py.digests import hex_digest
from omb_py.results.store.row import Row

COMPARED: tuple[str, ...] = tuple(
    (
        "benchmark metric unit timing process_sync device buffer cache dtype datatype_layout op in_place root "
        "ranks nodes ranks_per_node window threads batch size_bytes"
    ).split()
)
"""Columns that must be equal for two rows to be compared."""

_DROPPED_SECTIONS = frozenset(
    "run job tags config effective_config measure ranks rank_facts load clocks loaded_libraries".split()
)
"""Parts of a provenance, at any depth, that describe the launch and not the system it ran on. The list of mapped
libraries is one of them because it is known only after the last cell, while the first row already has its key."""

_DROPPED_FACTS = frozenset(
    (
        "run_id launch_id launch_index run_uuid uuid id job_id jobid step_id seed reason index attempt "
        "recovered started_at ended_at start end started ended time timestamp date launchdate elapsed "
        "elapsed_s walltime pid pids ppid tid user username rank local_rank world_rank node node_rank "
        "affinity argv command command_line config_hash store cwd workdir host hosts hostname hostnames "
        "hostlist nodelist node_list numhosts nodes_used address port load_before loadavg load_1 load_5 "
        "load_15 uptime uptime_s boot_time available_bytes free_bytes memory_available_bytes "
        "memory_free_bytes temperature temperature_c power_w clock_mhz skew_us barrier_us other_cores failed_attempts "
        "identity pci pcie instances"
    ).split()
) | {"cpu mhz"}
"""Single facts, at any depth, that change from launch to launch or only name an object."""

_OF_A_RANK = r"(?:.*_)?(?:RANK|RANKID|PROCID|LOCALID|NODEID|JOBID|PID|APPNUM|HOSTS?|HOSTNAME|NODELIST)$"
"""Names of environment variables that tell a rank or a job apart, whoever sets them."""

_ENVIRONMENT_SECTIONS = ("environment", "env")


def digest(value: object) -> str:
    """32 hex digits of the SHA-256 of the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hex_digest(text)[:32]


def comparability_key(row: Row, program_hash: str, placement: str = "default") -> str:
    """The key that must be equal for two rows to be compared, as 32 hex digits.

    Args:
        row: a row of the store; a missing column of :data:`COMPARED` counts as null.
        program_hash: hash of the lowered program without addresses.
        placement: the policy that assigned ranks to nodes and cores, for example ``block/core``.
    """
    facts = {name: _plain(row.get(name)) for name in COMPARED}
    return digest({**facts, "program_hash": program_hash, "placement": placement})


def environment_key(provenance: Mapping[str, object]) -> str:
    """The key of the software, hardware and settings of a launch, as 32 hex digits."""
    return digest(environment_facts(provenance))


def environment_facts(provenance: Mapping[str, object]) -> dict[str, object]:
    """The facts of a provenance that the environment key covers; two launches can be compared fact by fact."""
    reduced = _reduce(provenance)
    assert isinstance(reduced, dict)
    return reduced


def flat(value: object, path: str = "", numbered: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the facts of a provenance as (path with dots, text), without empty ones.

    Args:
        value: a provenance, or a part of it.
        path: prefix of every path.
        numbered: put the index of each mapping of a list with several into the path: ``node_facts[1].kernel``.

    >>> list(flat({"a": {"b": 1, "c": None}, "d": [{"e": "x"}, {"e": "y"}]}))
    [('a.b', '1'), ('d.e', 'x'), ('d.e', 'y')]
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key), numbered)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, Mapping) for v in value):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{path}[{index}]" if numbered and len(value) > 1 else path, numbered)
    elif value not in (None, "", [], ()):
        yield path, value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _plain(value: object) -> object:
    """Convert a NumPy scalar to Python, so that the key does not depend on where a row came from."""
    return value.item() if hasattr(value, "item") else value


def _is_section(value: object) -> bool:
    """Whether a value describes an object (``{"host": {"cpu": …}}``) and does not only name it (``{"host": "n1"}``)."""
    return isinstance(value, Mapping) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(v, Mapping) for v in value)
    )


def _is_volatile(variable: str) -> bool:
    """Whether a launcher sets this environment variable for each job or rank. Settings of people stay in the key."""
    from omb_py.launchers.registry import per_job  # who only reads keys needs no launcher

    return re.match(f"{per_job()}|{_OF_A_RANK}", variable) is not None


def _reduce(value: object) -> object:
    if isinstance(value, Mapping):
        out: dict[str, object] = {}
        for key, inner in value.items():
            name = str(key)
            lower = name.lower()
            if lower in _DROPPED_SECTIONS or (lower in _DROPPED_FACTS and not _is_section(inner)):
                continue
            if lower in _ENVIRONMENT_SECTIONS and isinstance(inner, Mapping):
                out[name] = {str(k): v for k, v in inner.items() if not _is_volatile(str(k))}
            else:
                out[name] = _reduce(inner)
        return out
    if isinstance(value, (list, tuple)):
        inner_values = [_reduce(v) for v in value]
        if inner_values and all(isinstance(v, dict) for v in inner_values):
            distinct = {digest(v): v for v in inner_values}
            return [distinct[k] for k in sorted(distinct)]
        return inner_values
    return value
