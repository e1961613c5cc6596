"""Comparisons, acceptances, guidelines, links, histories and models, in every form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

from omb_py.orchestrate.running import collector
from tests.golden.running import Place, place
from tests.golden.suites import MINE, SWEEP
from tests.support import planted_store

NOISE = "noise=0.005,launch=0.005"
CELLS = "allreduce --backend mock -n 2 -m 8:64:8 -i 30 -x 1"


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    return {
        "reports/compare.txt": _compare,
        "reports/compare-words.txt": _compare_words,
        "reports/compare-suite.txt": _compare_suite,
        "reports/compare-stored.txt": _compare_stored,
        "reports/aa.txt": _aa,
        **{f"reports/accept-{name}.txt": _accepted(name) for name in _FORMS},
        "reports/accept.txt": _accept,
        "reports/accept-baseline.txt": _accept_baseline,
        "reports/accept-others.txt": _accept_others,
        "reports/guidelines.txt": _guidelines,
        "reports/links.txt": _links,
        "reports/links-html.txt": _links_page,
        "reports/first-screen.txt": _first_screen,
        "reports/history.txt": _history,
        "reports/model.txt": _model,
        "reports/workloads.txt": _workloads,
    }


def _first_screen(place: Place) -> str:
    """The structure of the first screen: its texts, and of its figures the traces, rows and axes."""
    from omb_py.dashboards.base.reading import StoreSelection
    from omb_py.dashboards.report.build import report

    store = Path("planted")
    planted_store.write(store, 1)
    made = report(store, StoreSelection())
    lines = []
    for view in made.first:
        lines += [f"{view.kind}: {view.title}", f"  {view.caption}", *(f"  note: {note}" for note in view.notes)]
        lines += [f"  {item.kind}: {item.text}\n    {item.link}" for item in view.items]
        for trace in view.spec["data"] if view.spec else ():
            lines.append(f"  {trace['type']} {trace['name']} on {trace.get('xaxis', 'x')}: {len(trace['x'])} places")
        lines += [f"  axis {name}" for name in sorted(view.spec["layout"]) if "axis" in name] if view.spec else []
        lines += [f"  table of {len(view.rows)} rows: {', '.join(view.columns)}"] if view.columns else []
    lines += [f"tab {name}: {view.kind}: {view.title}" for name, tab in made.tabs.items() for view in tab.views]
    return "\n".join(lines) + "\n"


def _sides(base: str, new: str, launches: int = 8) -> str:
    return f"compare --option BASE:mock={base} --option NEW:mock={new} --seed 7 --launches {launches}"


def _in_files(place: Place, line: str, *names: str) -> str:
    """What a command says, and the files of other forms that it writes."""
    return place.shown(" ".join((line, *(f"--output {name}" for name in names)))) + "".join(map(place.file, names))


def _compare(place: Place) -> str:
    """A change that is found, in all forms, and what is stored of it."""
    told = _in_files(place, f"{_sides(NOISE, f'alpha=1.2us,{NOISE}')} {CELLS} --store s", "a.json", "a.md", "a.xml")
    (stored,) = Path("s/.reports").glob("*.report")
    told += place.normal(f"== s/.reports/{stored.name}\n{stored.read_text()}\n")
    return told + place.shown(f"compare {stored.stem} --store s --format table")


def _compare_words(place: Place) -> str:
    """Nothing found, nothing clear, nothing comparable, a side that breaks."""
    wide = "launch=0.3,noise=0.005"
    one = "allreduce --backend mock -n 2 -m 8:8 -i 20 -x 1 --store s"
    return place.shown(
        f"{_sides(NOISE, f'{NOISE},nodes=1')} {one}",
        f"{_sides(wide, f'alpha=1.1us,{wide}')} {one} --strict --rounds 1",
        f"{_sides(NOISE, f'{NOISE},nodes=1')} --option NEW:in-place {one} --strict --quiet",
        f"{_sides(NOISE, 'die=1')} {one}",
        f"{_sides(NOISE, f'spike=0.03:10,{NOISE}')} allreduce --backend mock -n 2 -m 8:8 -i 300 -x 1 --store s --quiet",
    )


def _compare_suite(place: Place) -> str:
    place.write("sweep.toml", SWEEP)
    line = f"{_sides(NOISE, f'alpha=1.2us,{NOISE}')} sweep.toml --rounds 1 --store s --quiet"
    return _in_files(place, line, "a.md", "a.xml")


def _compare_stored(place: Place) -> str:
    """Sides by tag, by version and by folder."""
    for version, folder in (("1.0", "s"), ("1.1", "s"), ("1.0", "t")):
        place.run(
            f"{CELLS} --launches 3 --quiet --tag v={version} --mock version={version},{NOISE} --seed 3 --store {folder}"
        )
    return place.shown(
        "compare tag=v=1.0 tag=v=1.1 --store s",
        "compare library_version=1.0 library_version=1.1 --store s --format json",
        "compare tag=v=1.1 ./t --store s --format markdown",
        "compare last last --store s",
        "compare tag=v=1.0 tag=v=1.2 --store s",
    )


def _aa(place: Place) -> str:
    line = f"aa {CELLS} --mock {NOISE} --launches 3 --reports 2 --seed 1 --store s"
    return place.shown(line, f"{line} --quiet --format json")


def _mine(place: Place) -> str:
    place.write("mine.toml", MINE)
    return "accept mine.toml -n 4 --mock noise=0.05,launch=0.02 --seed 4"


def _accept(place: Place) -> str:
    """Several verdicts; wrong bytes; criteria alone; a rank that dies."""
    line = _mine(place)
    more = place.shown(
        f"{line.replace('noise=0.05', 'flip=1:8')} --store t",
        f"{line} --store u --strict --quiet --no-correctness",
        f"{line.replace('noise=0.05', 'die=1:65536')} --store v --quiet",
    )
    return f"{_acceptance()['said']}\n{more}"


_FORMS = ("a.xml", "a.json", "a.md", "a.html")


@cache
def _acceptance() -> dict[str, str]:
    """What one acceptance says, and its files; five golden files share it."""
    with place() as own:
        said = own.shown(f"{_mine(own)} --store s {' '.join(f'--output {name}' for name in _FORMS)}")
        files = {name: own.page(name) if name.endswith("html") else own.file(name) for name in _FORMS}
    return {"said": said, **files}


def _accepted(name: str) -> Callable[[Place], str]:
    return lambda place: _acceptance()[name]


_BASELINE = """\
name = "kept"
description = "against a stored baseline"
[defaults]
backend = "mock"
iterations = 5
[[entry]]
benchmarks = ["allreduce"]
ranks = 2
message-size = "8,64"
[[criterion]]
id = "not-slower"
benchmark = "allreduce"
baseline = "5%"
"""


def _accept_baseline(place: Place) -> str:
    place.write("kept.toml", _BASELINE)
    for night in range(5):
        then = (datetime(2026, 11, 1, 22, tzinfo=UTC) + timedelta(days=night)).isoformat(timespec="milliseconds")
        with patch.object(collector, "now", lambda then=then: then):
            place.run(
                f"run kept.toml --mock {NOISE} --launches 3 --seed {night} --tag baseline=spring --quiet --store s"
            )
    place.run(f"run kept.toml --mock {NOISE} --launches 3 --tag baseline=tonight --quiet --store s")
    line = "accept kept.toml --quiet --store s --seed 3 --baseline tag=baseline=spring"
    return place.shown(
        f"{line} --mock {NOISE}",
        f"{line} --mock alpha=1.2us,{NOISE} --format markdown",
        f"{line} --mock version=1.1,{NOISE} --format junit",
        "accept kept.toml --store s",
        "accept kept.toml --store s --baseline tag=baseline=autumn",
        "accept kept.toml --store s --baseline tag=baseline=tonight",
    )


_OTHERS = """\
name = "others"
description = "what the hosts steal, a guideline that is broken, a table of bounds"
[defaults]
backend = "mock"
[accept]
undecided = "fail"
most-launches = 8
[[entry]]
benchmarks = ["noise"]
ranks = "max"
iterations = 200
[[entry]]
benchmarks = ["gather", "ibcast"]
message-size = "8,1K"
iterations = 5
[[criterion]]
id = "stolen"
text = "the hosts steal at most a tenth"
benchmark = "noise"
metric = "stolen"
max = "10 %"
[[criterion]]
id = "gather-not-slower"
benchmark = "gather"
guideline = "allgather"
tolerance = "50%"
[[criterion]]
id = "hidden"
benchmark = "ibcast"
metric = "overlap"
min = { 8 = "50 %", 1K = "99.99 %" }
"""


def _accept_others(place: Place) -> str:
    place.write("others.toml", _OTHERS)
    return place.shown(
        "suite show others.toml -n 4",
        "accept others.toml --mock noise=0.02 -n 4 --seed 6 --store s",
        "accept others.toml --mock noise=0.2,straggler=1:3us -n 2 --seed 6 --store s --quiet --no-correctness",
    )


def _guidelines(place: Place) -> str:
    line = "guidelines {} --backend mock -n 4 -m 8:64:8 -i 4 -x 1 --launches 11 --seed 3 --mock noise=0.02 --store s"
    few = line.replace("11", "5") + " --quiet --rounds 1"  # they only say that so few are unclear
    return _in_files(place, line.format("gl5 gl9"), "a.json", "a.md", "a.xml") + place.shown(
        few.format("patterns").replace("8:64:8", "8:8"), few.format("monotony split")
    )


def _links(place: Place) -> str:
    line = "links --backend mock --passes 3 -i 10 --windows 2 -W 2 --seed 1"
    slow = "-n 6 --mock noise=0.03,slow=5:1.5,link=1-2:2"
    told = place.shown(
        f"{line} {slow} --store s -G tty --output l.json",
        f"{line} -n 4 --mock noise=0.03 --rounds serial --no-store --quiet",
        f"{line} -n 4 --per-node 2 --mock slow=3:2 --no-store --format json",
    )
    return told + place.file("l.json")


def _links_page(place: Place) -> str:
    line = "links --backend mock --passes 3 -i 10 --windows 2 -W 2 --seed 1 -n 4 --mock noise=0.03,slow=2:1.5"
    return place.shown(f"{line} --no-store --quiet --output l.html") + place.page("l.html")


def _history(place: Place) -> str:
    for version, alpha in (("5.0.9", "1us"), ("5.0.10", "1.2us")):
        place.run(
            f"bcast --backend mock -n 2 -m 8,4K -i 5 -x 1 --launches 8 --seed 3 --quiet --store s "
            f"--mock version={version},alpha={alpha},noise=0.01,launch=0.01"
        )
    return place.shown(
        "history bcast --store s", "history bcast --store s --unit launch",
        "history bcast -m 8 --store s --unit launch --format json",
        "history bcast --by version --store s --unit launch",
        "history bcast --store s --where library_version=5.0.9",
        "history bcast -m 16 --store s",
    )  # fmt: skip


def _model(place: Place) -> str:
    common = "--backend mock --mock noise=0.01 -i 5 -x 1 --seed 3 --quiet --store s"
    for line in ("latency -n 2 -m 1:1M:4", *(f"allreduce -n {ranks} -m 8:1M:4" for ranks in (2, 4, 8))):
        place.run(f"{line} --launches 2 {common}")
    return place.shown(
        "model allreduce --store s --where ranks=4", "model allreduce --store s --where ranks=4 --format json",
        "model latency --store s", "model allreduce --predict 16 --store s", "model allreduce --predict 64 --store s",
        "model bcast --store s",
    )  # fmt: skip


def _workloads(place: Place) -> str:
    """What a step takes as sweeps predict it, and over numbers of ranks."""
    step, common = "ddp:scale=1/64,compute=1ms", "--backend mock -i 3 --seed 3 --quiet --store s"
    place.run(f"allreduce -n 4 -T float32 -l -m 4:256K {common} --format json")
    for ranks in (2, 4):
        place.run(f"step --workload {step} -n {ranks} {common}")
    return place.shown(
        f"step --workload {step} -n 4 {common}", f"workloads {step} -n 4 --predict --store s",
        f"workloads {step} -n 4 --predict --format json --store s", f"workloads {step} --scaling --store s",
        f"workloads {step} --scaling --format json --store s", "workloads knn -n 4 --predict --store s",
    )  # fmt: skip
