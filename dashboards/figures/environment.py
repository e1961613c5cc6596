"""Differences between environments, and the GPUs of a node with the paths between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.dashboards.base.view import View, listed, plural, table
from omb_py.results.store.keys import flat

_NO_PEER = "no peer access"


def environment(sides: Mapping[str, Mapping[str, Any]]) -> View:
    """The facts in which environments differ; only a table.

    Args:
        sides: name → the facts that its environment key is made of (``environment_facts``).
    """
    known = {name: dict(flat(facts, numbered=True)) for name, facts in sides.items()}
    names = list(dict.fromkeys(key for facts in known.values() for key in facts))
    rows = []
    for name in names:
        values = [facts.get(name, "-") for facts in known.values()]
        if len(set(values)) > 1:
            group, _, rest = name.partition(".")
            rows.append((group, rest or group, *values))
    title = f"{plural(len(rows), 'fact')} differ" if len(rows) != 1 else "1 fact differs"
    names_text = f": {listed(f'{r[1]}' for r in rows)}" if rows else ""
    return View(
        "environment",
        f"{title} between {listed(sides) if len(sides) < 3 else plural(len(sides), 'environment')}{names_text}",
        f"{plural(len(names), 'fact')} compared",
        None,
        **table(("group", "fact", *sides), sorted(rows)),
    )


def gpu_paths(hosts: Sequence[str], inventory: Mapping[str, Any]) -> View:
    """The table of a node's GPUs; nodes that are alike share one.

    Args:
        hosts: nodes that have these GPUs.
        inventory: of one of them, as a launch stores it
            (:meth:`omb_py.engine.devices.nvml.Inventory.as_dict`): ``gpus`` and ``pairs``.
    """
    gpus = list(inventory.get("gpus") or ())
    pairs = {(pair["first"], pair["second"]): pair for pair in inventory.get("pairs") or ()}
    numbers = [gpu["index"] for gpu in gpus]
    rows = [
        (
            f"GPU {gpu['index']}",
            gpu.get("name") or "-",
            *(_cell(pairs, gpu["index"], other) for other in numbers),
            "-" if gpu.get("numa") is None else gpu["numa"],
            gpu.get("pcie") or "-",
            gpu.get("mig") or "-",
        )
        for gpu in gpus
    ]
    driver = f"driver {inventory.get('driver') or 'unknown'}, CUDA {inventory.get('cuda') or 'unknown'}"
    heads = ("GPU", "name", *(f"to {number}" for number in numbers), "NUMA node", "PCIe", "MIG")
    return View("gpu paths", _title(hosts, len(gpus), pairs), driver, None, **table(heads, rows))


def unknown_paths(hosts: Sequence[str], why: str) -> View:
    """Nodes on which no launch could ask for the paths, with the reason and what to do."""
    rows = [(host, why) for host in hosts]
    title = f"The paths between GPUs of {listed(hosts)} are unknown: {why}"
    return View("gpu paths", title, "", None, **table(("node", "why"), rows))


def _cell(pairs: Mapping[tuple[int, int], Mapping[str, Any]], first: int, second: int) -> str:
    if first == second:
        return "·"
    pair = pairs.get((min(first, second), max(first, second)), {})
    path = str(pair.get("path") or "?")
    return f"{path}, {_NO_PEER}" if pair.get("no_peer") else path


def _title(hosts: Sequence[str], count: int, pairs: Mapping[tuple[int, int], Mapping[str, Any]]) -> str:
    """The finding: ``NV18 between all pairs of 8 GPUs on n1, n2``."""
    where = f"{plural(count, 'GPU')} on {listed(hosts)}"
    paths = Counter(str(pair.get("path") or "an unknown path") for pair in pairs.values())
    if not paths:
        return where
    apart = [pair for pair in pairs.values() if pair.get("no_peer")]
    reasons = f"; {_NO_PEER} on {plural(len(apart), 'pair')}: {listed(p['no_peer'] for p in apart)}" if apart else ""
    if len(paths) == 1:
        return f"{next(iter(paths))} between all pairs of {where}{reasons}"
    parts = (f"{path} between {plural(number, 'pair')}" for path, number in paths.most_common())
    return f"{where}: {listed(parts)}{reasons}"
