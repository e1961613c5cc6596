"""The columns of the store, and what the commands say of a store that an older omb-py wrote.

``data/old-store/`` is of omb-py 0.1.0 at ff3401b, on simulated ranks (``--backend mock``), facts of the machine taken
out of the provenance, and its days moved to 2025, before the launches were written:

* ``latency -n 2 -m 1:1M:4 -i 8 --mock noise=0.02 --tag why=sweep``;
* ``allreduce -n 2 -m 8,4K -i 8 --launches 5`` with ``--mock version=1.0,…`` and, slower, ``version=1.1,alpha=1.2us,…``;
* ``allgather -n 2 -m 8,1K,32K -i 8 -c``; ``ibcast -n 4 -m 8,1K -i 8``;
* a comparison of two launches a side, ``compare --option NEW:mock=alpha=1.3us,… bcast``, with its report;
* an acceptance of ``latency``, three launches, ``accept --no-correctness``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.running import Place

OLD = Path(__file__).parent / "data" / "old-store"
RUNS = {
    "sweep": "latency", "older": "allreduce", "checked": "allgather", "overlap": "ibcast", "compared": "bcast",
}  # fmt: skip
_READ: dict[str, tuple[str, ...]] = {
    "list": ("results list", "results list --format json", "results verify", "results show"),
    "show": (
        *(f"results show {{{name}}}" for name in RUNS),
        "results show {overlap} -f -z50,99", "results show {sweep} --format table",
        "results show {checked} --format csv",
    ),
    "show-json": ("results show {sweep} --format json",),
    "export-csv": ("results export --format csv",),
    "export-json": ("results export --format json --where benchmark=allgather",),
    "export-osu": ("results export --format osu",),
    "export-nccl-tests": ("results export {checked} --format nccl-tests",),
    "export-others": (
        "results export {checked} --format openmetrics", "results export {overlap} --format pytest-benchmark",
        "results export --where library_version=1.1 --where size_bytes=8 --format csv",
    ),
    "history": (
        "history allreduce", "history allreduce --unit launch",
        "history allreduce --by version --unit launch --format json", "history latency",
    ),
    "model": ("model latency", "model latency --format json", "model allgather"),
    "compare": (
        "compare {older} {newer}", "compare {older} {newer} --format json", "compare {compared}",
        "compare {compared} --format json", "compare {compared} --format markdown", "compare {compared} --format junit",
    ),
    "tidy": (
        "results compact --dry-run", "results prune --tag why=sweep", "results prune --tag why=sweep --yes",
        "results compact --older-than 0d", "results list", "results verify", "results recover",
        "compare {older} {newer} --format markdown",
    ),
}  # fmt: skip
OF_THE_OLD_STORE = {f"old-store-says/{name}.txt" for name in (*_READ, "report")}
"""Their ids and days stay: they do not vary."""


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    return {
        "store/schema.txt": _schema,
        "store/provenance.txt": _provenance,
        "store/import.txt": _import,
        "store/written.txt": _written,
        **{f"old-store-says/{name}.txt": _said(lines) for name, lines in _READ.items()},
        "old-store-says/report.txt": _report,
    }


def _old(place: Place) -> dict[str, str]:
    """A copy of the old store as ``omb-results``; what was measured -> its run."""
    shutil.copytree(OLD, place.root / "omb-results")
    found = json.loads(place.run("results list --format json").out)
    runs: dict[str, str] = {}
    for name, benchmark in RUNS.items():
        runs[name] = next(one["run_id"] for one in found if list(one["benchmarks"]) == [benchmark])
    runs["newer"] = next(one["run_id"] for one in found if "mock 1.1" in one["libraries"])
    return runs


def _said(lines: tuple[str, ...]) -> Callable[[Place], str]:
    def made(place: Place) -> str:
        runs = _old(place)
        return place.shown(*(line.format(**runs) for line in lines))

    return made


def _report(place: Place) -> str:
    _old(place)
    return place.shown("report -o r.html", "report -o some.html benchmark=allreduce ranks=2") + place.page("r.html")


def _one_launch(place: Place) -> Path:
    place.run("ibcast --backend mock -n 4 -m 8,1K -i 4 -c --seed 3 --tag a=1 --quiet --store s")
    (path,) = Path("s").rglob("*.parquet")
    return path


def _schema(place: Place) -> str:
    """Name, type and kind of null of each column as a reader without omb-py finds them."""
    import pyarrow.parquet as pq

    path = _one_launch(place)
    schema, file = pq.read_schema(path), pq.ParquetFile(path)
    columns = [f"{field.name}: {_type(field)}{'' if field.nullable else ' not null'}" for field in schema]
    leaves = [
        f"{file.schema.column(at).path}: {file.schema.column(at).physical_type}, "
        f"{file.metadata.row_group(0).column(at).compression}"
        for at in range(len(file.schema))
    ]
    keys = sorted(key.decode() for key in file.metadata.metadata)
    return "\n".join(["== columns", *columns, "== leaves", *leaves, "== metadata", *keys]) + "\n"


def _type(field: Any) -> str:
    return re.sub(r" \('\w+'\)", "", str(field.type))  # pyarrow came to say how a map's entries are called


_OF_THE_MACHINE = {"loaded_libraries", "node_facts", "rank_facts", "environment", "packages", "executable", "python"}


def _provenance(place: Place) -> str:
    """The facts of a launch: all names but those that depend on the machine, and the values that do not."""
    import pyarrow.parquet as pq

    facts = json.loads(pq.ParquetFile(_one_launch(place)).metadata.metadata[b"omb_py.provenance"])

    def reduced(value: object, key: str = "") -> object:
        if key in _OF_THE_MACHINE:
            return f"<{type(value).__name__}>"
        if isinstance(value, dict):
            return {
                name: reduced(one, name) for name, one in value.items() if name != "revision"
            }  # known in a clone only
        return value

    (node,) = facts["node_facts"]
    told = json.dumps(reduced(facts), indent=1, sort_keys=True)
    return place.normal(f"{told}\nnode facts: {sorted(node)}\nrank facts: {sorted(facts['rank_facts'][0])}\n")


def _written(place: Place) -> str:
    """What lies in a store after a run, and what reads it."""
    _one_launch(place)
    names = sorted(str(path) for path in Path("s").rglob("*") if path.is_file())
    told = place.normal("\n".join(names) + "\n")
    return told + place.shown(
        "results list --store s", "results show --store s -f", "results export --store s --format csv",
        "results verify --store s", "results recover --store s", "results show 2 --store s", "results show x --store s",
        "results list --store none", "results prune --store s", "results prune --older-than 1d --store s",
    )  # fmt: skip


def _import(place: Place) -> str:
    """Our own text, and that of nccl-tests, read again."""
    lines = {
        "latency.log": "latency -n 2 -m 8,1K -i 4 -z50,99",
        "allreduce.log": "allreduce -n 4 -m 8,1K -i 4 -f -c",
        "mbw.log": "mbw_mr -n 4 -m 8,1K -i 4",
    }
    for name, line in lines.items():
        place.write(name, place.run(f"{line} --backend mock --mock noise=0.05 --seed 3 --no-store --quiet").out)
    place.run("allreduce -n 4 -m 8,1K -i 4 -T float32 --backend mock --mock noise=0.05 --seed 3 --quiet --store t")
    place.write("nccl.log", place.run("results export --format nccl-tests --store t").out)
    place.write("notes.txt", "\nhello, world\n1 2 3\n")
    told = []
    for name in (*lines, "nccl.log", "notes.txt"):
        told.append(place.shown(f"results import {name} --tag site=a --store s"))
    told.append(place.shown("results import latency.log --store s", "results export --format osu --store s"))
    rows = json.loads(place.run("results export --format json --store s").out)
    varying = {"run_id", "launch_id", "started_at", "environment_key"}
    for row in sorted(rows, key=lambda row: (row["benchmark"], row["source"], row["size_bytes"])):
        kept = {key: value for key, value in row.items() if value not in (None, {}, []) and key not in varying}
        told.append(place.normal(json.dumps(kept)) + "\n")
    return "\n".join(told)
