"""Differences between environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omb_py.dashboards.base.view import View, listed, plural, table
from omb_py.results.store.keys import flat


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
        f"{title} between {listed(sides)}{names_text}",
        f"{plural(len(names), 'fact')} compared",
        None,
        **table(("group", "fact", *sides), sorted(rows)),
    )
