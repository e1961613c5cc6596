"""The figures of docs/workloads: a family each, measured here over Gloo, drawn by a browser.

    python -m tests.lab.results.workload_figures --store DIR --out docs/workloads [--ranks N] [--seconds S] [--only FAMILY]

Writes data-parallel.png, model-parallel.png, experts.png, classic.png and replay.png, each with a step time by layout, and says
what was run. Runs the suite dl-training too (--suite), as the docs tell a newcomer to. Exit code 1 where something could not be
measured or drawn.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from omb_py.dashboards.figures import models
from omb_py.dashboards.report.image_export import save
from omb_py.results.store.read import load
from tests.lab.quiet import watched

FAMILIES: dict[str, tuple[str, ...]] = {
    "data-parallel": tuple(
        (
            "ddp:model=resnet50,scale=1/4 ddp:model=resnet50,layout=first,scale=1/4 "
            "horovod:model=resnet50,scale=1/4 parameter_server:model=resnet50,scale=1/4 "
            "ring:model=resnet50,scale=1/4 zero:model=resnet50,scale=1/4 fsdp:model=resnet50,scale=1/4 "
            "fsdp:model=resnet50,prefetch=off,scale=1/4"
        ).split()
    ),
    "model-parallel": tuple(
        (
            "tensor:layers=2 tensor:layers=2,sequence=on ulysses:layers=2 context:layers=2 pipeline:scale=1/4 "
            "pipeline:schedule=gpipe,scale=1/4 halo:side=2048 decode:layers=4 decode:layers=4,requests=4"
        ).split()
    ),
    "experts": (
        "moe:tokens=64",
        "moe:tokens=64,traffic=zipf",
        "moe:tokens=64,traffic=hot",
        "moe:tokens=64,copies=ranks",
        "moe:tokens=8",
    ),
    "classic": ("kmeans", "kmeans:clusters=16,features=16", "knn", "pca", "pca:method=tsvd", "matmul"),
    "replay": ("replay:trace=@{trace}", "replay:trace=@{trace},wait=now", "replay:trace=@{trace},compute=5ms"),
}
TRACE = [
    {"comms": "all_reduce", "in_msg_size": count, "dtype": "float"} for count in (2049000, 1178112, 1051648, 590080)
] + [{"comms": "all_gather", "in_msg_size": 1000, "dtype": "float"}]
"""Calls as param's basic list has them."""
COLUMNS = "family launch_id parameters metrics ranks nodes backend library binding device tags".split()


def measure(store: Path, family: str, ranks: int, seconds: float) -> int:
    """Measure the workloads of a family, one launch; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        trace, file = Path(folder) / "trace.json", Path(folder) / "figures.toml"
        trace.write_text(json.dumps(TRACE))
        texts = [text.format(trace=trace) for text in FAMILIES[family]]
        file.write_text(
            f'name = "figures"\ndescription = "{family}"\n[defaults]\ntime-limit = "{seconds:g}s"\ntag = ["figure={family}"]\n'
            f'[[entry]]\nbenchmarks = ["step"]\nworkload = {json.dumps(texts)}\n'
        )
        words = ["run", str(file), "--backend", "gloo", "-n", str(ranks), "--store", str(store), "--quiet"]
        return run(words)


def run(words: list[str]) -> int:
    """A command of omb-py; its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "omb_py", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(f"omb-py {' '.join(words)}: exit code {done.returncode}\n{done.stderr}".rstrip(), flush=True)
    return done.returncode


def draw(store: Path, family: str, out: Path) -> bool:
    """The figure of a family's steps in a store; whether there was one."""
    rows = load(store, columns=COLUMNS, benchmark="step")
    mine = rows[[dict(tags or {}).get("figure") == family for tags in rows["tags"]]]
    for view, _ in models.layouts(mine):
        save(view, out / f"{family}.png")
        shown(out / f"{family}.md", family, view.title)
        print(f"{out / family}.png: {view.title}", flush=True)
        return True
    return False


def shown(page: Path, family: str, title: str) -> None:
    """Put the figure at the end of the family's page, or its new title where it stands already."""
    text, line = page.read_text() if page.exists() else "", f"![{title}]({family}.png)"
    found = re.compile(rf"^!\[.*\]\({family}\.png\)$", re.M)
    text = found.sub(lambda match: line, text) if found.search(text) else f"{text}\n## A real run\n{line}\n"
    page.write_text(text)


def main(words: list[str] | None = None) -> int:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="longest time of a loop")
    parser.add_argument("--only", choices=FAMILIES, help="this family alone")
    parser.add_argument("--suite", action="store_true", help="run the suite dl-training too")
    args = parser.parse_args(words)
    fine = True
    with watched(60):
        for family in [args.only] if args.only else FAMILIES:
            measured = measure(args.store, family, args.ranks, args.seconds) == 0
            fine = measured and draw(args.store, family, args.out) and fine
        if args.suite:
            words = ["run", "dl-training", "--backend", "gloo", "-n", "2", "--time-limit", "1"]
            fine = run([*words, "--store", str(args.store)]) == 0 and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
