"""Lower bounds of collectives: what no algorithm of messages can beat, from the latency in the same store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards.views.fits import MESSAGES, rows_of
from omb_py.results.analysis.cost_model import message_of
from omb_py.results.analysis.lower_bounds import lower_bound_us
from omb_py.results.analysis.series import WHO

if TYPE_CHECKING:
    import pandas as pd


def bounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Lower bounds of the collectives: ``benchmark``, ``ranks``, ``size_bytes``, ``lower_us``.

    Args:
        frame: prepared cells with :data:`omb_py.dashboards.views.cells.COLUMNS`; messages between two ranks are
            those of `latency` among them.

    Of several libraries that of the fastest messages counts, so that all of them can be held against one line.
    """
    import pandas as pd

    messages = rows_of(frame[frame["benchmark"] == MESSAGES])
    lowest: dict[tuple[str, int, int], float] = {}
    if messages:
        names = ["benchmark", *WHO, "device", "buffer", "ranks", "size_bytes", "bytes_total", "bw_formula"]
        known: dict[tuple[Any, ...], Any] = {}
        rows: list[tuple[dict[str, Any], tuple[Any, ...]]] = []
        for row in rows_of(frame[frame["metric"] == "latency"].drop_duplicates(names)):
            who = tuple(row[name] for name in (*WHO, "device", "buffer"))
            if who not in known:
                known[who] = message_of(row, messages)
            if row["benchmark"] != MESSAGES:
                rows.append((row, who))
        for row, (*_, device, buffer) in rows:
            at = (row["benchmark"], int(row["ranks"]), int(row["size_bytes"] or 0))
            for (*_, where, held), message in known.items():
                # at every size of all of them, whoever measured it: the line would leap where one library stops
                if message is None or (where, held) != (device, buffer):
                    continue
                lower = lower_bound_us(
                    row["bw_formula"],
                    row["benchmark"],
                    row["bytes_total"] or 0,
                    row["ranks"] or 1,
                    message.alpha_us,
                    message.beta_us,
                )
                if lower is not None:
                    lowest[at] = min(lower, lowest.get(at, lower))
    return pd.DataFrame(
        [(*at, lower) for at, lower in lowest.items()], columns=["benchmark", "ranks", "size_bytes", "lower_us"]
    )


def of_panel(bound: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame | None:
    """The lower bounds of one panel; None where its cells have several numbers of ranks, or no bound is known."""
    if not len(bound) or rows["ranks"].nunique() != 1:
        return None
    mine = bound[(bound["benchmark"] == rows["benchmark"].iloc[0]) & (bound["ranks"] == rows["ranks"].iloc[0])]
    return mine if len(mine) else None
