"""Help pages, explanations, lists and completions."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable

from tests.golden.benchmarks import FAMILIES
from tests.golden.running import Place

COMMANDS = (
    "list", "explain", "doctor", "expect", "run", "workloads", "train", "replay", "suite", "suite list", "suite show",
    "suite check", "tune", "gate", "bisect",
    "accept", "compare", "aa", "links", "guidelines", "results", "results list", "results show", "results export",
    "results import", "results recover", "results compact", "results prune", "results verify", "history", "model",
    "report", "plot", "dashboard", "completion",
)  # fmt: skip
EXPLAINED = (
    "latency", "bw -W 4", "mbw_mr -n 4", "latency_mt", "latency_persistent", "partitioned_latency",
    "allreduce -n 4 -m 1M",
    "bcast -n 3", "alltoallv -n 3", "scatterv -n 4", "ibcast -n 2", "allreduce_persistent", "neighbor_alltoall -n 4",
    "put_latency -w create -s pscw", "get_bw -s fence", "cas_latency", "barrier", "init", "comm_split", "noise", "step",
    "bw_fan_in -n 4", "sendrecv -n 3", "hypercube -n 4", "allreduce --backend gloo", "latency --backend mock",
    "ireduce_scatter -n 4",
)  # fmt: skip
WORKLOADS = (
    "", "ddp:model=resnet50", "fsdp:model=gpt2-124m -n 4", "three_d:tp=2,pp=2 -n 8 --rank 3", "knn --format json",
    "ddp:model=gpt2-124m,tokens=16",
)  # fmt: skip
TYPED = (
    "all", "do", "explain la", "allreduce --op m", "allreduce -z --format j", "allreduce --binding native,m",
    "latency --w", "results r", "run q", "run quick --re", "suite s", "suite show o", "latency --backend ",
    "compare --", "accept --o", "put_latency -w ",
)  # fmt: skip


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    made: dict[str, Callable[[Place], str]] = {"help/omb-py.txt": _page("")}
    made |= {f"help/{name.replace(' ', '-')}.txt": _page(name) for name in COMMANDS}
    for names in FAMILIES.values():
        made[f"help/benchmarks/{names[0]}.txt"] = _page(f"{names[0]} --help-all")
        made |= {f"help/benchmarks/{name}.txt": _beside(names[0], name) for name in names[1:]}
    made["explain.txt"] = lambda place: place.shown(*(f"explain {one}" for one in EXPLAINED))
    made["workloads.txt"] = lambda place: place.shown(*(f"workloads {one}".rstrip() for one in WORKLOADS))
    made["list.txt"] = _list
    made["completion.txt"] = lambda place: place.shown(*(f"completion {one}" for one in ("bash", "zsh", "fish")))
    made["completed.txt"] = _completed
    made["version.txt"] = lambda place: place.shown("--version", "-v", "")
    return made


def _page(name: str) -> Callable[[Place], str]:
    return lambda place: place.said(name if "--help" in name else f"{name} --help")


def _beside(other: str, name: str) -> Callable[[Place], str]:
    """A page as what differs from that of another benchmark of the family."""

    def made(place: Place) -> str:
        pages = [place.said(f"{one} --help-all").splitlines() for one in (other, name)]
        found = list(difflib.unified_diff(*pages, "", "", "", "", 0, ""))[2:]
        return (
            "\n".join([f"as the page of {other}, except:", *("@@" if one[:2] == "@@" else one for one in found)]) + "\n"
        )

    return made


def _list(place: Place) -> str:
    """What the simulation can run: what else is here depends on the machine."""
    entries = json.loads(place.said("list --format json"))["entries"]
    kept = [entry for entry in entries if entry["backend"] == "mock" and entry["device"] == "cpu"]
    return "\n".join(json.dumps(entry) for entry in kept) + "\n"


def _completed(place: Place) -> str:
    import os

    parts = []
    for typed in TYPED:
        line = f"omb-py {typed}"
        os.environ.update(_OMB_PY_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1))
        parts.append(f"$ {line}⇥\n{place.run([]).out}")
    return "\n".join(parts)
