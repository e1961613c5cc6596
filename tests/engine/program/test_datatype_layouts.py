"""Derived datatypes: what travels, what stays, and that both are checked."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import main
from omb_py.engine.measuring.payload import mask
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.datatype_layouts import derived, itemsize, transmitted
from omb_py.engine.program.language import Region, Repeat, Step
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.suites.registry import BENCHMARKS
from tests.support.kinds import one_of_each
from tests.support.machines.simulated import cell, measured
from tests.support.planning import check, plan

TAKES = [name for name, b in BENCHMARKS.items() if "ddt" in b.options and not b.ranks.over_nodes]
LAYOUTS = ("cont", "vect:8:3", "indx:1+2,4+1")


def test_a_derived_type_is_one_element_a_message() -> None:
    kind = derived("int32@vect:8:3@70")
    assert kind is not None
    assert (kind.base, kind.pieces, kind.span, kind.times, kind.extent, kind.travels) == (
        "int32",
        ((0, 3),),
        8,
        2,
        70,
        24,
    )
    assert (itemsize("int32@vect:8:3@70"), itemsize("int32")) == (70, 4)
    assert derived("int32") is None


@given(
    st.sampled_from(["char", "int32", "float64"]),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 4),
)
def test_the_mask_has_as_many_bytes_as_travel(
    dtype: str, elements: int, stride: int, block: int, messages: int
) -> None:
    if block > stride:
        return
    extent = elements * itemsize(dtype)
    name = f"{dtype}@vect:{stride}:{block}@{extent}"
    kind, where = derived(name), mask(name, messages * extent)
    assert kind is not None
    wanted = transmitted(cell("bw", extent, dtype=dtype, ddt=f"vect:{stride}:{block}"))
    assert kind.travels == wanted
    assert (extent * messages if where is None else int(where.sum())) == wanted * messages


def test_the_mask_is_where_mpi_puts_the_pieces() -> None:
    found = mask("char@indx:1+2,4+1@11", 11)
    assert found is not None
    assert np.flatnonzero(found).tolist() == [1, 2, 4, 6, 7, 9]  # the span is 5, so it fits twice


def test_every_message_has_the_type_and_the_reply_has_not() -> None:
    made = BENCHMARKS["bw"].program(World(0, 2), cell("bw", 16, window=2, ddt="vect:8:4"))
    post, _, reply = made.stages[0].variants[0][1:4]
    out = Region("send", 0, 16)
    assert isinstance(post, Repeat)
    assert post.body == (steps.isend(out, 1, "char@vect:8:4@16", post.body[0]["request"], 100),)  # type: ignore[index]
    assert isinstance(reply, Step) and reply["dtype"] == "char"


def test_without_it_programs_are_as_they_were() -> None:
    for name in TAKES:
        made = BENCHMARKS[name].program(World(0, 2), cell(name, 16))
        assert "@" not in str(made)


@pytest.mark.parametrize(("name", "layout"), list(zip(one_of_each(TAKES), cycle(LAYOUTS), strict=False)))
def test_exactly_what_travels_is_checked(name: str, layout: str) -> None:
    done = measured(name, 2, size=64, dtype="int32", ddt=layout, validate=True, iterations=2)
    assert done.wrong_bytes == 0
    assert done.extra["transmit_size"] == {"cont": 64, "vect:8:3": 24, "indx:1+2,4+1": 36}[layout]


def test_a_library_that_fills_the_gaps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omb_py.backends.mock.simulator.simulate.mask", lambda dtype, nbytes: None)
    for name in ("latency", "bcast", "allgather", "alltoallv"):
        assert measured(name, 2, size=64, ddt="vect:8:3", validate=True).validated is False


def test_a_wrong_byte_that_travels_is_found() -> None:
    for name in ("latency", "bcast", "alltoall"):
        assert measured(name, 2, "flip=1", size=64, ddt="vect:8:3", validate=True).validated is False


def test_bandwidth_is_of_the_bytes_that_travel() -> None:
    done = measured("bw", 2, size=1000, window=4, ddt="vect:10:5")
    assert done.bytes_moved == 500 * 4


@pytest.mark.parametrize(
    ("layout", "sizes"),
    [("vect:8:4", [1, 2, 4, 8, 16]), ("indx:0+2,6+2", [8, 16]), ("once:0+2,6+2", [8, 16]), ("cont", [1, 2, 4, 8, 16])],
)
def test_sizes_without_one_repetition_are_skipped_but_of_a_vector(layout: str, sizes: list[int]) -> None:
    (launch,) = plan(Request("latency", sizes="1:16", ddt=layout), 2)
    assert [c.size for c in launch.cells] == sizes


@pytest.mark.parametrize(("more", "flag"), [({"in_place": True}, "-l"), ({"imbalance": 0.5}, "--imbalance")])
def test_what_does_not_go_together_is_refused(more: dict, flag: str) -> None:
    with pytest.raises(UsageError, match=f"-D/--ddt does not go together with {flag}"):
        check(Request("allgatherv", ddt="cont", **more))
    with pytest.raises(UsageError, match="allreduce has no derived datatypes"):
        check(Request("allreduce", ddt="cont"))


def test_the_text_is_omb_s(capsys: pytest.CaptureFixture[str]) -> None:
    line = "latency -D vect:8:4 --backend mock --mock series=10us -m 16:32 -i 2 -x 1 --no-store --quiet"
    assert main(line.split()) == 0
    assert capsys.readouterr().out == (
        "\n# OSU MPI Latency Test v7.5\n"
        "# [ backend: mock ] [ library: mock ] [ library_version: 1.0 ] [ binding: native ] [ device: cpu ]\n"
        "# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)     Transmit Size\n"
        "16                     10.00                 8\n32                     10.00                16\n"
    )
