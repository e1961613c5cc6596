"""Take pictures of report and explorer: ``python -m tests.lab.results.pictures [FOLDER]``.

Without a folder those that the documents show, in docs/; with one the first screen of a store of each kind at 1440 and
390 pixels, to be looked at. The stores are made up. Needs chromium and chromedriver.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from omb_py.cli import main as omb_py
from tests.dashboards.stores import ACCEPTANCE, OSU
from tests.support import gpu_store, planted_cluster, planted_store
from tests.support.browser import chromium, missing, resize, until
from tests.support.explorer_server import served

DOCS = Path(__file__).parents[3] / "docs"
BENCHMARKS = ("allreduce", "allgather", "alltoall", "bcast")
READY = (
    "const plots = [...document.querySelectorAll('.plot, .js-plotly-plot')].filter((p) => p.clientWidth);"
    "return plots.every((p) => p.getBoundingClientRect().top > innerHeight || p.querySelector('.main-svg'))"
)
MOCK = "--backend mock --quiet --seed 1"
NCCL = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 67108864 step: 64(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
{rows}# Out of bounds values : 0 OK
# Avg bus bandwidth    : 10
#
"""


def _run(line: str, *more: str) -> None:
    omb_py([*line.split(), *more])


def _imported(store: Path) -> None:
    """nccl-tests at 8 to 128 GPUs, with its zeros."""
    for gpus in (8, 16, 32, 64, 128):
        rows = ""
        for size in (8 << n for n in range(0, 24, 3)):
            time = 20 + 0.2 * gpus + size / (90e3 if gpus <= 8 else 40e3)
            rate = size / time / 1e3
            times = f"{time:9.2f} {rate:7.2f} {2 * rate * (gpus - 1) / gpus:7.2f} 0"
            rows += f"{size:12d} {size // 4:12d} float sum -1 {times} {times}\n"
        Path("all_reduce_perf.log").write_text(NCCL.format(rows=rows))
        _run(f"results import all_reduce_perf.log --set ranks={gpus} --set devices={gpus} --store {store}")


def _osu(store: Path, libraries: int) -> None:
    for number in range(libraries):
        text = OSU.replace("30.11", f"{30.11 + number:.2f}").replace("1.31", f"{1.31 + number / 9:.2f}")
        Path("osu.log").write_text(text)
        _run(f"results import osu.log --set ranks=4 --set library=lib{number} --store {store}")


def _imb(store: Path) -> None:
    """IMB's table of PingPong and Allreduce, of two libraries."""
    for number, library in enumerate(("Intel MPI", "MPICH")):
        lines = []
        for ranks, name, heads in (
            (2, "PingPong", "t[usec]   Mbytes/sec"),
            (4, "Allreduce", "t_min[usec]  t_max[usec]  t_avg[usec]"),
        ):
            lines += ["#" + "-" * 60, f"# Benchmarking {name}", f"# #processes = {ranks}", "#" + "-" * 60]
            lines += [f"       #bytes #repetitions  {heads}"]
            for size in (0, *(1 << n for n in range(0, 23, 2))):
                time = (0.9 + 0.2 * number) * ranks / 2 + size / (8000 - 1500 * number)
                last = (f"{size / time:12.2f}",) if ranks == 2 else (f"{1.1 * time:12.2f}", f"{1.05 * time:12.2f}")
                lines += [f"{size:13d} {1000:12d} {time:12.2f} {' '.join(last)}"]
        Path("imb.log").write_text("\n".join(lines) + "\n")
        _run("results import imb.log --set", f"library={library}", "--store", str(store))


def _accepted(store: Path) -> None:
    Path("small.toml").write_text(ACCEPTANCE)
    _run(f"accept small.toml --backend mock --store {store} --output acceptance.html")


def _broken(store: Path) -> None:
    (store / "date=2026-01-01").mkdir(parents=True)
    (store / "date=2026-01-01" / "x.parquet").write_bytes(b"PAR1 no")


def _compared(store: Path) -> None:
    sides = ("--option=BASE:mock=launch=0.01", "--option=NEW:mock=alpha=1.3us,launch=0.01")
    _run(f"compare allreduce -n 4 -m 8:64K -i 4 --launches 8 {MOCK} --store {store}", *sides)


_TUNE = f"tune allreduce -n 2,4 -m 64,64K -i 4 -x 0 {MOCK} --budget 1m --delta 90% --folder tuned"
_KNOBS = ("--mock", "algorithm=tree:2us:1ns,algorithm=ring:10us:0.1ns", "--candidate", "ring=MOCK_COLL_ALGORITHM=ring")
_LINKS = f"links {MOCK} --passes 3 -i 10 --windows 2 -W 2 -n 6 --mock noise=0.03,slow=5:1.5,link=1-2:2"
STORES: Mapping[str, Callable[[Path], object]] = {
    "versions": lambda store: gpu_store.write(store, benchmarks=BENCHMARKS, launches=8),
    "one-library": lambda store: planted_store.write(store, 101),
    "several-libraries": lambda store: planted_cluster.write(store, 101),
    "nccl-tests": _imported,
    "omb": lambda store: _osu(store, 1),
    "imb": _imb,
    "nights": planted_store.write_nights,
    "twenty-libraries": lambda store: _osu(store, 20),
    "suite": lambda store: _run(f"run quick -n 4 -i 4 {MOCK} --store {store}"),
    "comparison": _compared,
    "acceptance": _accepted,
    "sweep": lambda store: _run(f"{_LINKS} --store {store}"),
    "tuning": lambda store: _run(f"{_TUNE} --store {store}", *_KNOBS),
    "one-row": lambda store: _run(f"latency -n 2 -m 8:8 {MOCK} --store {store}"),
    "none": lambda store: store.mkdir(),
    "broken": _broken,
}


def take(driver: Any, page: Path, folder: Path, name: str, sizes: tuple[tuple[int, int], ...]) -> None:
    """A picture of a page at each size."""
    for width, height in sizes:
        resize(driver, width, height)
        driver.get(page.absolute().as_uri())
        until(lambda: driver.execute_script(READY), True)
        driver.save_screenshot(str(folder / f"{name}-{width}.png"))


def take_explorer(driver: Any, store: Path) -> None:
    """The view that the explorer opens with."""
    resize(driver, 1440, 1130)
    with served(store) as address:
        driver.get(address)
        until(lambda: bool(driver.find_elements("css selector", "#figures .main-svg")), True)
        driver.save_screenshot(str(DOCS / "explorer-1440.png"))


def take_all(driver: Any, folder: Path) -> None:
    """The first screen of each store, and of two stores."""
    for name, write in STORES.items():
        write(Path(name))
        omb_py(["report", name, "-o", f"{name}.html"])
        take(driver, Path(f"{name}.html"), folder, name, ((1440, 900), (390, 844)))
    gpu_store.write(Path("new"), (8, 32), BENCHMARKS[:1])
    omb_py(["report", "versions", "new", "-o", "two.html"])
    take(driver, Path("two.html"), folder, "two-stores", ((1440, 900), (390, 844)))


def main() -> int:
    if missing():
        print(missing(), file=sys.stderr)
        return 3
    pictures = Path(sys.argv[1]).absolute() if sys.argv[1:] else None
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        chromium(Path(folder) / "profile") as driver,
    ):
        if pictures is not None:
            pictures.mkdir(exist_ok=True)
            take_all(driver, pictures)
            return 0
        store = Path("omb-results")
        STORES["versions"](store)
        omb_py(["report", str(store), "-o", "report.html"])
        take(driver, Path("report.html"), DOCS, "first-screen", ((1440, 900), (390, 1700)))
        take_explorer(driver, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
