"""What differs between environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, listed, plural, records, table
from omb_py.results.store.keys import environment_facts, flat

if TYPE_CHECKING:
    import pandas as pd


def environment(sides: Mapping[str, Mapping[str, Any]]) -> View:
    """What differs between environments, fact by fact; only a table.

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
    said = f": {listed(f'{r[1]}' for r in rows)}" if rows else ""
    return View(
        "environment",
        f"{title} between {listed(sides)}{said}",
        f"{plural(len(names), 'fact')} compared",
        None,
        **table(("group", "fact", *sides), sorted(rows)),
    )


def environments(rows: pd.DataFrame, provenance: Callable[[str], Mapping[str, Any]], most: int = 4) -> View | None:
    """What differs between the newest launches of the newest environments; None where all are alike.

    Args:
        rows: prepared cells.
        provenance: looks up launches.
        most: environments that stand side by side.
    """
    newest = rows.sort_values("started_at").drop_duplicates("environment_key", keep="last").tail(most)
    sides = {}
    for row in records(newest):
        facts = environment_facts(provenance(row.launch_id))
        if facts:
            words = (row.backend if theme.absent(row.library) else row.library, row.library_version)
            sides[f"{' '.join(str(w) for w in words if not theme.absent(w))}, {row.launch_id}"] = facts
    return environment(sides) if len(sides) > 1 else None
