"""How the acceptances of a store ended, as the last line of each one's log says (``STORE/.accept/RUN.jsonl``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.results.json_values import read_object

FOLDER = ".accept"


@dataclass(frozen=True, slots=True)
class AcceptOutcome:
    """End of an acceptance, by which a later one knows that it is a repetition."""

    suite: str
    bounds: str
    """Hash of the rule and the criteria."""
    hosts: tuple[str, ...]
    verdict: str
    headline: str = ""
    """The verdicts, counted."""
    failed: tuple[str, ...] = ()
    """A sentence for each criterion that failed."""
    run_id: str = ""
    """In the log empty: it is the file's name."""
    done: str = ""
    """Time at which all was judged, ISO 8601, UTC."""


def ended_acceptances(store: Path) -> list[AcceptOutcome]:
    """The acceptances of a store that were judged, in the order of time."""
    ended = (_read_end(path) for path in (store / FOLDER).glob("*.jsonl"))
    return sorted((outcome for outcome in ended if outcome), key=lambda outcome: (outcome.done, outcome.run_id))


def earlier_acceptances(store: Path, suite: str, hosts: Sequence[str], own_run: str) -> list[AcceptOutcome]:
    """Find the acceptances that were judged before by a suite of this name on the same hosts, in the order of time.

    Args:
        store: folder of the launches and logs.
        suite: name of the suite; its bounds may have been others.
        hosts: hosts on which ranks ran, in any order; with none it is not known what is repeated.
        own_run: the run that is being judged; it is left out.
    """
    return [
        outcome
        for outcome in ended_acceptances(store)
        if outcome.run_id != own_run and outcome.suite == suite and hosts and set(outcome.hosts) == set(hosts)
    ]


def _read_end(path: Path) -> AcceptOutcome | None:
    """Read the last line of a log that says how the acceptance ended."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None  # it was pruned meanwhile
    entries = [entry for line in lines if (entry := read_object(line)) and "done" in entry and "verdict" in entry]
    if not entries:
        return None
    end = entries[-1]
    suite, bounds, headline = (str(end.get(name, "")) for name in ("suite", "bounds", "headline"))
    lists = [end.get(name) for name in ("hosts", "failed")]
    hosts, failed = (tuple(map(str, each)) if isinstance(each, list) else () for each in lists)
    return AcceptOutcome(suite, bounds, hosts, str(end["verdict"]), headline, failed, path.stem, str(end["done"]))
