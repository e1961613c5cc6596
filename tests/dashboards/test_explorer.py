from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import main
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.guard import is_loopback
from omb_py.dashboards.explorer.state import QUANTITIES, VIEWS, State, parse, query
from omb_py.dashboards.explorer.views import views
from tests.dashboards.stores import write

CHOSEN = st.dictionaries(
    st.sampled_from(FILTERS), st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3), max_size=3
)


@pytest.fixture
def data(tmp_path: Path, frame) -> Data:
    write(tmp_path / "s", frame)
    return Data(tmp_path / "s")


@given(
    st.builds(State, st.sampled_from(VIEWS), st.sampled_from(QUANTITIES), st.sampled_from(["", "8"]), CHOSEN, CHOSEN)
)
def test_a_link_holds_everything(state: State) -> None:
    assert parse(query(state)) == state


@given(st.text())
def test_no_link_is_an_error(text: str) -> None:
    assert parse(text).view in VIEWS


def test_a_filter_selects(data: Data) -> None:
    assert len(data.frame) == 18
    assert set(data.select({"library": ["MPICH"]})["library"]) == {"MPICH"}
    assert len(data.select({"ranks": ["4"], "library": ["Open MPI", "MPICH"]})) == 18
    assert len(data.select({"ranks": ["x"]})) == 0
    assert data.choices()["library"] == ["MPICH", "Open MPI"] and data.choices()["ranks"] == ["4"]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_of_the_store(data: Data, view: str) -> None:
    made, note = views(data, State(view))
    if view == "scaling":
        assert made == [] and note == "Nothing here was measured on more than one number of ranks."
        return
    assert made and note == ""
    for one in made:
        one.figure  # noqa: B018
        assert one.commands


def test_a_second_selection(data: Data) -> None:
    made, _ = views(data, State("beside", filters={"library": ["MPICH"]}, other={"library": ["Open MPI"]}))
    assert [view.title for view in made] == ["allreduce: Open MPI took up to 2× the time of MPICH, at 64 KiB"]


def test_nothing_fits(data: Data) -> None:
    made, note = views(data, State(filters={"library": ["none"]}))
    assert made == [] and note.startswith("No cell fits these filters.")


def test_new_launches_are_seen(data: Data, cell) -> None:
    import pandas as pd

    assert not data.refresh()
    before = data.version
    write(data.store, pd.DataFrame([cell(3.0, launch=77)]))
    assert data.refresh() and len(data.frame) == 19 and data.version != before


def test_only_this_machine_by_its_own_name(data: Data) -> None:
    client = make(data).server.test_client()
    assert client.get("/", headers={"Host": "127.0.0.1:8050"}).status_code == 200
    assert client.get("/", headers={"Host": "evil.example:8050"}).status_code == 403


def test_another_address_needs_the_token(data: Data) -> None:
    client = make(data, "s3cret").server.test_client()
    for path in ("/", "/_dash-layout", "/?token=wrong"):
        assert client.get(path).status_code == 403
    answer = client.get("/?token=s3cret&library=MPICH")
    assert answer.status_code == 302 and urlsplit(answer.headers["Location"]).query == "library=MPICH"
    assert "HttpOnly" in answer.headers["Set-Cookie"] and "SameSite=Strict" in answer.headers["Set-Cookie"]
    assert client.get("/_dash-layout").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../../../../etc/passwd",
        "/no-assets/x",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/_dash-component-suites/dash/../../../etc/passwd",
    ],
)
def test_no_request_reads_outside(data: Data, path: str) -> None:
    answer = make(data).server.test_client().get(path)
    assert b"root:" not in answer.data


def test_addresses() -> None:
    assert is_loopback("127.0.0.53") and is_loopback("::1") and not is_loopback("::") and not is_loopback("node7")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere"], 2, "no store at 'nowhere'"),
        (["--port", "70000"], 2, "port must be at most 65535, not 70000"),
        (["--bind", "203.0.113.1", "."], 3, "cannot listen on 203.0.113.1 port 8050"),
    ],
)
def test_bad_input(
    words: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dashboard", *words]) == code
    err = capsys.readouterr().err
    assert err.startswith("omb-py: error: ") and said in err and err.count("\n") == 1
