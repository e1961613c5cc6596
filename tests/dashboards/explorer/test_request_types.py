"""Requests of a wrong form are refused before a callback sees them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from tests.dashboards.stores import write
from tests.support.tiers import few_quick

HOST = {"Host": "127.0.0.1:8050"}
ODD: list[Any] = [
    *(None, True, -1, 7, 1 << 70, 1.5, "", "x", "\ud800", "=1", [], [None], [[1]], ["a"], [{"a": 1}], {}),
    *({"a": {}}, {"id": 1}, {"startRow": "a"}, {"startRow": -5, "endRow": 3}, {"startRow": 0, "endRow": 1 << 60}),
    *({"sortModel": 3}, {"sortModel": [{"colId": ["a"]}]}),
]


@pytest.fixture
def data(tmp_path: Path, frame) -> Data:
    write(tmp_path / "s", frame)
    return Data(tmp_path / "s")


def filled(callback: dict[str, Any], value: Any) -> dict[str, Any]:
    """What a browser sends to a callback, with the value of each property from a function of its id and name."""
    several = callback["output"].strip(".").split("...")
    outputs = [dict(zip(("id", "property"), name.split("."), strict=True)) for name in several]
    inputs = [{**one, "value": value(one)} for one in callback["inputs"]]
    return {
        "output": callback["output"],
        "outputs": outputs if len(outputs) > 1 else outputs[0],
        "inputs": inputs,
        "state": [{**one, "value": value(one)} for one in callback["state"]],
        "changedPropIds": [f"{inputs[0]['id']}.{inputs[0]['property']}"],
    }


def server_callbacks(client: Any) -> list[dict[str, Any]]:
    answers = client.get("/_dash-dependencies", headers=HOST).get_json()
    return [callback for callback in answers if not callback["clientside_function"]]


@pytest.mark.slow
def test_odd_values_are_answered_400_or_well(data: Data) -> None:
    client = make(data).server.test_client()
    rng = random.Random(7)
    codes = []
    callbacks = server_callbacks(client)
    for number in range(200):
        odd = rng.randrange(4)
        callback = callbacks[number % len(callbacks)]
        body = filled(callback, lambda one, share=odd: None if rng.randrange(share + 1) else rng.choice(ODD))
        codes.append(client.post("/_dash-update-component", json=body, headers=HOST).status_code)
    assert set(codes) == {200, 400}


@pytest.mark.slow
@pytest.mark.parametrize("change", ["inputs", "state", "output", "changedPropIds", "swap", "extra"])
def test_a_body_of_another_form_is_answered_400(data: Data, change: str) -> None:
    client = make(data).server.test_client()
    callback = next(one for one in server_callbacks(client) if "figures" in one["output"])
    body = filled(callback, lambda one: None)
    assert client.post("/_dash-update-component", json=body, headers=HOST).status_code == 200
    for wrong in ODD[:14]:
        if change == "swap":
            body["inputs"][0]["id"] = wrong
        elif change == "extra":
            body["inputs"] = [*body["inputs"], wrong]
        else:
            body[change] = wrong
        expected = 200 if (change, wrong) == ("changedPropIds", []) else 400
        assert client.post("/_dash-update-component", json=body, headers=HOST).status_code == expected, wrong


@pytest.mark.parametrize("text", few_quick([b"", b"{", b"[]", b"null", b"3", b"\xff"]))
def test_what_is_no_json_object_is_answered_400(data: Data, text: bytes) -> None:
    answer = make(data).server.test_client().post("/_dash-update-component", data=text, headers=HOST)
    assert answer.status_code == 400 and answer.data == b"not what a page of this explorer asks\n"
