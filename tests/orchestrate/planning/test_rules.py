"""Each rule of planning refuses what it is about, with its own message, and is applied once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.capabilities import Capabilities, Inspection, LibraryKnobs, PerformanceVariable
from omb_py.backends.registry import capabilities_of
from omb_py.cli import main
from omb_py.engine.program.buffers import OBJECTS
from omb_py.errors import OmbError, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning import resolution
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.orchestrate.planning.rule import RequestRule
from omb_py.orchestrate.planning.rules import RULES
from tests.support.capabilities import with_methods
from tests.support.planning import plan

_OURS = capabilities_of()
_MPI = _OURS["mpi"]
_COUNTERS = LibraryKnobs("mpi", pvars=(PerformanceVariable("sent", "counter", "int", "window"),))
_NCCL: Mapping[str, Any] = {"backends": ("nccl",), "device": "sim"}
_OBJECT: Mapping[str, Any] = {"buffer": "object"}


def _mpi(**methods: Any) -> Mapping[str, Capabilities]:
    return {**_OURS, "mpi": with_methods(_MPI, **methods)}


BREAKS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "word that is given twice": ("bcast", {"dtypes": ("char", "char")}, "type 'char' is given twice"),
    "no backend": ("bcast", {"backends": ()}, "no backend given"),
    "unknown backend": ("bcast", {"backends": ("mpich",)}, "unknown backend 'mpich': did you mean mpi?"),
    "unknown device": ("bcast", {"device": "cdua"}, "unknown device 'cdua': did you mean cuda?"),
    "unknown word of an option": ("allreduce", {"cache": "hott"}, "unknown cache 'hott': did you mean hot?"),
    "settings of another backend": ("bcast", {"settings": {"nccl": "ctas=2"}}, "--nccl is for --backend nccl"),
    "launcher where none starts ranks": ("bcast", {"backends": ("mock",), "hosts": ("a",)}, "--hosts: --backend mock"),
    "binding that cannot be used here": (
        "bcast",
        {"bindings": ("native",), "offers": _mpi(unbound=lambda self, binding, device: "no compiler: install one")},
        "no compiler: install one",
    ),
    "buffer that the backend lacks": ("bcast", {"buffer": "nunpy"}, "'nunpy' for backend mpi: did you mean numpy?"),
    "backend that is not installed": (
        "bcast",
        {"offers": _mpi(missing=lambda self: "no MPI: install it")},
        "backend mpi: no MPI: install it",
    ),
    "device that the backend lacks": (
        "bcast",
        {"backends": ("nccl",), "device": "cpu"},
        "no buffers on cpu: use --device cuda or rocm",
    ),
    "GPU that is not here": ("bcast", {"device": "cuda", "gpu": False}, "no NVIDIA GPU found here"),
    "timing of calls that wait": ("bcast", {"timing": "event"}, "leave it out, or --backend nccl"),
    "rows of a tool that times other calls": (
        "bcast",
        {"backends": ("nccl", "mpi"), "device": "sim", "format": "nccl-tests"},
        "one --backend, or --format table",
    ),
    "counters of computed times": ("bcast", {"backends": ("mock",), "energy": True}, "backend mock computes its times"),
    "buffer places of a backend without any": ("latency", {**_NCCL, "placement": "D D"}, "has all buffers on the dev"),
    "value that the backend refuses": ("bcast", {**_NCCL, "process_sync": "roundtime"}, "barrier or none"),
    "PyTorch that is not installed": ("bcast", {"buffer": "torch", "torch": False}, "--buffer torch needs PyTorch"),
    "computing beside no call": ("bcast", {"filler": "gpu", "device": "sim"}, "bcast computes nothing beside its call"),
    "batches of calls that cannot be timed": ("latency", {**_NCCL, "timing": "graph"}, "is for blocking collectives"),
    "batch where calls are timed alone": ("bcast", {**_NCCL, "batch": 5}, "is for --timing graph, pipelined"),
    "timing of another tool": ("bcast", {**_NCCL, "format": "nccl-tests", "timing": "event"}, "times pipelined"),
    "report of another tool": ("bcast", {"report": ("rank0",)}, "--report is for --format nccl-tests: add that"),
    "shared device without a device": ("bcast", {"share_device": True}, "--share-device is for ranks on devices"),
    "buffer on the host with a device": ("bcast", {"device": "sim", "buffer": "bytearray"}, "lies on the host"),
    "buffer that the GPU lacks": ("bcast", {"device": "rocm", "gpu": True, "buffer": "numba"}, "is for NVIDIA GPUs"),
    "computing without a device": ("ibcast", {"filler": "gpu"}, "-r gpu computes on a device: add --device"),
    "buffer places": ("bcast", {"placement": "H D", "device": "sim"}, "buffers of one kind on all ranks, not H D"),
    "option that the benchmark lacks": ("latency", {"window": 8}, "takes no -W/--window-size: for bw, bibw"),
    "number that is too small": ("bw", {"window": 0}, "window size must be 1 or more"),
    "benchmark or option that the tool lacks": ("init", {"format": "imb"}, "IMB"),
    "layout beside another one": ("allgatherv", {"ddt": "cont", "in_place": True}, "-D/--ddt does not go together"),
    "groups of objects or on devices": ("bcast", {"groups": "2x2", "device": "sim"}, "--groups is for arrays on"),
    "groups that start together": ("bcast", {"groups": "2x2", "process_sync": "roundtime"}, "use barrier or dissem"),
    "traffic beside another layout": ("alltoallv", {"traffic": "0,1;1,0", "in_place": True}, "--traffic does not go"),
    "thread level that is too low": ("latency_mt", {"thread_level": "single"}, "latency_mt needs --thread-level mult"),
    "windows in turn beside one": ("mbw_mr", {"vary_window": True, "window": 3}, "in turn: leave out -W"),
    "session of a backend without any": ("bcast", {"backends": ("mock",), "session": True}, "begins MPI with a sess"),
    "option of objects without objects": ("bcast", {"object_kind": "list"}, "--object is for Python objects: add"),
    "binding without objects": ("bcast", {**_OBJECT, "bindings": ("native",)}, "binding native has no Python objects"),
    "steps without objects": ("bw", _OBJECT, "bw needs the step isend, for which mpi4py has no method"),
    "objects in place": ("allgather", {**_OBJECT, "in_place": True}, "no MPI_IN_PLACE"),
    "reduction that joins objects": ("allreduce", _OBJECT, "kind bytes would join them, not add: use --object ndarray"),
    "reduction that objects lack": ("allreduce", {**_OBJECT, "object_kind": "ndarray", "op": "max"}, "cannot do max"),
    "type that objects lack": ("bcast", {**_OBJECT, "dtypes": ("bfloat16",)}, "NumPy has no bfloat16"),
    "objects in a rotating cache": ("bcast", {**_OBJECT, "cache": "rotate"}, "objects are made anew anyway"),
    "bound buffers in a rotating cache": ("bcast_persistent", {"cache": "rotate"}, "bcast_init binds before the loop"),
    "reduction that no backend has": ("allreduce", {"op": "avg"}, "--op avg is not in backend mpi"),
    "reductions that the text does not tell apart": ("allreduce", {"op": "sum,max"}, "one --op at a time"),
    "reduction of a type that lacks it": ("allreduce", {"op": "band", "dtypes": ("float32",)}, "reduction band is not"),
    "groups of too few ranks": ("bcast", {"groups": "4x1", "ranks": 4}, "bcast needs 2 ranks or more in a group"),
    "number of ranks": ("latency", {"ranks": 3}, "latency needs exactly 2 ranks, not 3: use -n 2"),
    "root that is no rank": ("bcast", {"root": 5, "ranks": 4}, "there is no root rank 5 among 4: fixed:0 to fixed:3"),
    "neighbors that are no ranks": (
        "neighbor_allgather",
        {"neighborhood": "graph:0>5", "ranks": 2},
        "graph has an edge",
    ),
    "traffic of other ranks": ("alltoallv", {"traffic": "0,1,1;1,0,1;1,1,0", "ranks": 2}, "traffic"),
    "options that the benchmark refuses": ("put_bibw", {"sync": "lock"}, "put_bibw"),
    "no size that holds an element": ("bcast", {"dtypes": ("float64",), "sizes": "1:4"}, "write -m 8:8"),
    "size that is no whole number of objects": (
        "bcast",
        {**_OBJECT, "object_kind": "dataclass", "sizes": "24:24"},
        "24 bytes are no whole number of items of 16 bytes",
    ),
    "library that counts nothing": (
        "bcast",
        {"pvars": "sent", "offers": _mpi(knobs=lambda self: None)},
        "backend mpi counts nothing that can be read",
    ),
    "name of no counter": (
        "bcast",
        {"pvars": "sent", "offers": _mpi(knobs=lambda self: _COUNTERS)},
        "--pvar sent belongs to a window",
    ),
    "benchmark that the backend cannot do": (
        "put_latency",
        {"backends": ("gloo",), "offers": {"gloo": with_methods(_OURS["gloo"], missing=lambda self: "")}},
        "backend gloo cannot do put_latency: Gloo has no one-sided",
    ),
    "unknown binding": ("bcast", {"bindings": ("mpi4pi",)}, "'mpi4pi' for backend mpi: did you mean mpi4py?"),
    "options that do not fit the ranks": ("step", {"workload": "ulysses:layers=2", "ranks": 3}, "divided by sp 3"),
}
"""Name of a rule -> benchmark, options and message of a request that it refuses."""


def _asked(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Request, Mapping[str, Capabilities] | None]:
    benchmark, given, _ = BREAKS[name]
    fields = dict(given)
    if "gpu" in fields:
        seen = bool(fields.pop("gpu"))
        monkeypatch.setattr("omb_py.orchestrate.planning.availability.gpu_here", lambda device: seen)
    if "torch" in fields and not fields.pop("torch"):
        monkeypatch.setattr("omb_py.orchestrate.planning.side_rules.find_spec", lambda module: None)
    offers = fields.pop("offers", None)
    return Request(benchmark, **fields), offers


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_refuses_with_its_own_message(rule: RequestRule, monkeypatch: pytest.MonkeyPatch) -> None:
    request, offers = _asked(rule.name, monkeypatch)
    with pytest.raises(OmbError, match=r"^[^\n]+$") as caught:
        resolve(parse(request), offers)
    assert type(caught.value) is rule.error
    assert BREAKS[rule.name][2] in str(caught.value)
    monkeypatch.setattr(resolution, "RULES", [other for other in RULES if other.name != rule.name])
    try:
        resolve(parse(request), offers)
    except Exception as other:  # without its check a wrong request may fail anywhere
        assert str(other) != str(caught.value), "another rule has the same message"


def test_each_example_is_of_a_rule() -> None:
    assert Counter(rule.name for rule in RULES) == Counter(BREAKS.keys())


class _Counted(list[RequestRule]):
    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, str]] = Counter()
        super().__init__(replace(rule, why=self._counting(rule)) for rule in RULES)

    def _counting(self, rule: RequestRule) -> Any:
        def why(on: Any) -> str | None:
            self.calls[rule.name, on.backend, on.device] += 1
            return rule.why(on)

        return why

    @property
    def most(self) -> Counter[int]:
        """How often one rule was applied to one thing -> number of such pairs."""
        return Counter(self.calls.values())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> _Counted:
    rules = _Counted()
    monkeypatch.setattr(resolution, "RULES", rules)
    return rules


@pytest.mark.parametrize(
    "line",
    [
        "allreduce --backend mock -m 8:16 -i 5",
        "allreduce --backend mock -n 4 -m 8:16 -i 5",
        "bcast --backend mpi,nccl,mock --device cpu,sim -m 8:16 -i 5",
    ],
)
def test_a_request_is_checked_once(line: str, counted: _Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules on sides once for each side; one backend is left out when it is asked."""

    def here(declared: Capabilities) -> Capabilities:
        return declared if declared.name == "mock" else replace(declared, inspection=Inspection("no launcher"))

    monkeypatch.setattr(Capabilities, "here", here)
    assert main([*line.split(), "--no-store", "--quiet"]) == 0
    assert len(counted.calls) > 30 and set(counted.most) == {1}


def test_each_side_of_a_comparison_is_checked_once(counted: _Counted, tmp_path: Path) -> None:
    line = f"aa allreduce --backend mock -n 2 -m 8:8 -i 5 --launches 2 --rounds 1 --store {tmp_path} --quiet"
    assert main(line.split()) in (0, 1, 4)
    assert set(counted.most) == {1}


def test_a_suite_checks_its_requests_once(counted: _Counted, tmp_path: Path) -> None:
    """Two requests of one entry, and one on two numbers of ranks, on which only the rules on ranks depend."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ndescription = "d"\n[defaults]\niterations = 5\nbackend = "mock"\n'
        '[[entry]]\nbenchmarks = ["latency", "allreduce"]\nmessage-size = "8:16"\n'
        '[[entry]]\nbenchmarks = ["bcast"]\nranks = [2, 4]\nmessage-size = "8:8"\n'
    )
    assert main(["run", str(file), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    by_subject = {rule.looks_at: {n for (name, *_), n in counted.calls.items() if name == rule.name} for rule in RULES}
    assert by_subject["words"] == by_subject["options"] == {3} and by_subject["ranks"] <= {4}


def test_a_size_never_returns_into_planning() -> None:
    """From the command line to the timed loop: parse, resolve, plan, and nothing of them afterwards."""
    entered: list[str] = []

    def profile(frame: Any, event: str, arg: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("omb_py.orchestrate.planning.") and frame.f_code.co_name != "<module>":
            entered.append(frame.f_code.co_name)
        elif event == "call" and name == "omb_py.engine.measuring.measure":
            entered.append("measure")

    sys.setprofile(profile)
    try:
        assert main("allreduce --backend mock -m 8:16 -i 5 --no-store --quiet".split()) == 0
    finally:
        sys.setprofile(None)
    steps = [name for name in entered if name in ("parse", "resolve", "plan_launches", "measure")]
    assert steps[:3] == ["parse", "resolve", "plan_launches"] and set(steps[3:]) == {"measure"}
    assert set(entered[entered.index("measure") :]) == {"measure"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_cells_hold_the_kind_of_objects_and_the_binding(kind: str) -> None:
    (launch,) = plan(Request("latency", buffer="object", object_kind=kind, out_of_band=True, sizes="1:64"), 2)
    least = {"list": 8, "dict": 8, "dataclass": 16}.get(kind, 1)
    assert [cell.size for cell in launch.cells] == [n for n in (1, 2, 4, 8, 16, 32, 64) if n >= least]
    assert {(c.binding, c.options.object_kind, c.options.out_of_band) for c in launch.cells} == {("mpi4py", kind, True)}


@pytest.mark.parametrize(
    ("benchmark", "fields", "says"),
    [
        ("bcast", {"backends": ("mpi", "mpi")}, "backend 'mpi' is given twice"),
        ("bcast", {"device": "cpu,cpu"}, "has one twice"),
        ("bcast", {"backends": ("mock",), "bindings": ("mpi4py",)}, "'mpi4py' for backend mock: valid: native"),
        ("bcast", {"settings": {"foo": "1"}}, "there are no settings of backend 'foo'"),
        ("bcast", {"placement": "H", "device": "sim"}, "come in twos"),
        ("bcast", {"placement": "M MX", "device": "sim"}, "unknown buffer place 'MX'"),
        ("bcast", {"placement": "M M", "device": "sim", "buffer": "cupy"}, "are not of --buffer cupy"),
        ("bcast", {"placement": "H D"}, "are on a device: add --device"),
        ("bcast", {"pvars": "snt", "offers": _mpi(knobs=lambda self: _COUNTERS)}, "did you mean sent?"),
        ("bcast", {"out_of_band": True}, "--out-of-band is for Python objects"),
        ("barrier", {"buffer": "object"}, "barrier moves no data"),
        ("allreduce", {"buffer": "object", "object_kind": "ndarray", "out_of_band": True}, "mpi4py.util.pkl5 has no"),
    ],
)
def test_other_messages_of_the_rules(benchmark: str, fields: Mapping[str, Any], says: str) -> None:
    given = dict(fields)
    offers = given.pop("offers", None)
    with pytest.raises(UsageError) as caught:
        resolve(parse(Request(benchmark, **given)), offers)
    assert says in str(caught.value)
