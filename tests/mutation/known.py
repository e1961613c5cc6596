"""Mistakes that no test noticed once: each must be found today. ``python -m tests.mutation --known`` tries them."""

from __future__ import annotations

from pathlib import Path

from tests.architecture.graph import ROOT
from tests.mutation.mutants import Mutant

SUPERVISOR = "omb_py/orchestrate/supervision/supervisor.py"
ONCE_SURVIVED = (
    # any beginning of the proof, and no proof at all, let a stranger in
    (
        "omb_py/engine/rank/handshake.py",
        'hmac.compare_digest(given.encode(errors="replace"), expected.encode())',
        "expected.startswith(given)",
    ),
    # who says nothing keeps a connection for ever
    ("omb_py/orchestrate/supervision/lobby.py", "if now - since <= self._patience", "if True"),
    # a parent that slept blames its ranks
    (SUPERVISOR, "min(time.monotonic() - before, 2 * _TICK_S)", "time.monotonic() - before"),
    # shared memory goes while somebody writes there
    (SUPERVISOR, "if failed and not left:", "if failed:"),
    # a journal is taken from a writer whose file system has no locks
    ("results/store/recovery.py", 'if locks and header.get("locked", True):', "if locks:"),
    ("results/store/recovery.py", 'if locks and header.get("locked", True):', 'if header.get("locked", True):'),
    # today's launches are merged while some are to come
    ("results/store/compaction.py", "- older_than).date() - timedelta(1)", "- older_than).date()"),
    # a reader does not learn that a file went while it listed them
    ("results/store/compaction.py", "raise_generation(root)\n        # merged files first", "# merged files first"),
    # a launch exactly as old as the limit goes
    ("results/store/compaction.py", 'row["started_at"] < before', 'row["started_at"] <= before'),
    # -m 8,16,8 measures 8 bytes twice
    ("omb_py/grammar/values.py", "if size in sizes:", "if size in sizes[-1:]:"),
    # the bytes of an iteration that did not happen are checked
    ("omb_py/engine/measuring/measure.py", "TIMED_LOOP, sampler.done - 1)", "TIMED_LOOP, sampler.done)"),
    # a library that only one side loaded ends the comparison with KeyError
    ("results/compare/environment_diff.py", "if n in sides[1] and len", "if n in sides[1] or len"),
    # a process that failed never ends, since its gate still listens
    ("omb_py/engine/rank/secret_socket.py", 'name="omb-gate", daemon=True', 'name="omb-gate", daemon=False'),
    # Gloo is given addresses of a device
    ("backends/gloo/session.py", "DeviceBuffers(device, False", "DeviceBuffers(device, True"),
    # three calls of each launch name a late node
    ("dashboards/changes/late_nodes.py", "calls_of[place], 0.0)", "calls_of[place], 1.0)"),
    # what is shown, and in which order, depends on what was stored first
    ("dashboards/base/series.py", "list(PANEL), sort=True", "list(PANEL), sort=False"),
    ("dashboards/changes/sides.py", "observed=True, sort=True)]", "observed=True, sort=False)]"),
    # another tool's numbers, or times of 0, take a fitted curve away
    ("dashboards/views/fits.py", "messages)[:1]", "messages)[:2]"),
    ("dashboards/views/fits.py", '"latency") & (frame["median_us"] > 0)', '"latency") & (frame["median_us"] >= 0)'),
    # the explorer draws no figure, hides what it has to say, stacks panels that overlap
    ("dashboards/explorer/figure.py", "if view.spec is not None:", "if view.spec is None:"),
    ("dashboards/explorer/figure.py", '"label" if view.kind == "status"', '"label" if view.kind != "status"'),
    ("dashboards/explorer/figure.py", 'right["domain"][0]:', 'right["domain"][1]:'),
)
"""(file, what stands there once, what it becomes)"""


def known(root: Path = ROOT) -> list[Mutant]:
    """The mutants of :data:`ONCE_SURVIVED`. Raises ValueError where the source no longer has such a place."""
    mutants = []
    for name, before, after in ONCE_SURVIVED:
        path = root / name
        source = path.read_bytes()
        if source.count(before.encode()) != 1:
            raise ValueError(f"{name} has {before!r} {source.count(before.encode())} times, not once")
        start = source.index(before.encode())
        line = source.count(b"\n", 0, start) + 1
        mutants.append(Mutant(path, line, "known", start, start + len(before.encode()), before, after))
    return mutants
