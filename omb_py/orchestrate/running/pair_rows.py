"""From a finished round of pairs to rows of the store: one row for each pair, as if it had been measured alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omb_py.engine.program.pair_schedule import parse_schedule
from omb_py.orchestrate.running.rank_process import encode
from omb_py.orchestrate.running.rows import Identity, decode, make_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def pair_rows(identity: Identity, message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a round.

    ``hosts`` are the two hosts of the pair. ``parameters`` hold ``pair`` (the rank that sends first, then the one that
    answers), ``pass``, ``round``, ``rounds`` (parallel or serial), ``direction`` and ``of_ranks``, the launch's size.
    """
    schedule, hosts = parse_schedule(message["cell"]["pairs"]), identity.facts["hosts"]
    rows = []
    for (first, second), samples in zip(message["pairs"], samples_of(message), strict=True):
        facts = {**identity.facts, "ranks": 2, "hosts": [hosts[first], hosts[second]]}
        if places := facts.get("devices"):
            facts["devices"] = [places[first], places[second]]
        series = encode(samples)
        own = {
            **message,
            "series": {"time": {"max": series, "avg": series}},
            "laps": {"time": [float(samples.mean())]},
            "slowest_rank_share": [1.0],
            "iterations": message["cell"]["iterations"],
            "warmup": message["cell"]["warmup"],
            "stop_reason": "fixed",
            "validated": None,
            "wrong_bytes": None,
            "marks": {
                "pair": f"{first}-{second}",
                "pass": str(message["cell"]["sweep"]),
                "round": str(message["round"]),
                "rounds": schedule.kind,
                "direction": schedule.direction,
                "of_ranks": str(len(schedule.ranks) or len(hosts)),
            },
            # pairs that are measured at once share the network, so their rows compare with rows of that kind only
            "program_hash": f"{message['program_hash']}:{schedule.kind}",
        }
        rows.append(make_row(replace(identity, facts=facts), own))
    return rows


def samples_of(message: Mapping[str, Any]) -> NDArray[np.float64]:
    """The samples of a round in µs, shape (pairs, iterations)."""
    return decode(message["samples"]).reshape(len(message["pairs"]), -1)
