"""``--buffer object``: what is admitted, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.engine.program.buffers import OBJECTS
from omb_py.errors import UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.plan import check, plan


@pytest.mark.parametrize(
    ("name", "fields", "says"),
    [
        ("bcast", {"bindings": ("native",)}, "binding native has no Python objects: use --binding mpi4py"),
        ("bw", {}, "bw needs the step isend, for which mpi4py has no method"),
        ("ibcast", {}, "needs the step ibcast"),
        ("alltoallw", {}, "needs the step alltoallw"),
        ("barrier", {}, "barrier moves no data"),
        ("allgather", {"in_place": True}, "no MPI_IN_PLACE"),
        ("allreduce", {}, "kind bytes would join them, not add: use --object ndarray"),
        ("allreduce", {"object_kind": "ndarray", "op": "max"}, "cannot do max on ndarrays"),
        ("allreduce", {"object_kind": "ndarray", "out_of_band": True}, "for which mpi4py.util.pkl5 has no method"),
        ("bcast", {"object_kind": "lst"}, "unknown object 'lst': did you mean list?"),
        ("bcast", {"object_kind": "dataclass", "sizes": "24:24"}, "24 bytes are no whole number of items of 16 bytes"),
        ("bcast", {"dtypes": ("bfloat16",)}, "NumPy has no bfloat16"),
    ],
)
def test_what_cannot_be_is_refused(name: str, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as caught:
        check(Request(name, buffer="object", **fields))
    assert says in str(caught.value)


@pytest.mark.parametrize("fields", [{"object_kind": "list"}, {"out_of_band": True}])
def test_options_of_objects_need_objects(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"is for Python objects: add --buffer object"):
        check(Request("bcast", **fields))


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_cells_hold_the_kind_and_the_binding(kind: str) -> None:
    (launch,) = plan(Request("latency", buffer="object", object_kind=kind, out_of_band=True, sizes="1:64"), 2)
    least = {"list": 8, "dict": 8, "dataclass": 16}.get(kind, 1)
    assert [cell.size for cell in launch.cells] == [n for n in (1, 2, 4, 8, 16, 32, 64) if n >= least]
    assert {(c.binding, c.options.object_kind, c.options.out_of_band) for c in launch.cells} == {("mpi4py", kind, True)}
