from __future__ import annotations

import base64
import gzip
import io
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import main
from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.series import cell_names
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import COUNTS, THEMES, State, choices, drawer, parse, query, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.over_size import QUANTITIES
from tests.dashboards.stores import write
from tests.dashboards.views.test_checks import LINKS, PROMISES
from tests.dashboards.views.test_comparisons import compared
from tests.dashboards.views.test_registry import called
from tests.support.plotly_figures import plotly_figure
from tests.support.ports import free_port
from tests.support.tiers import few_quick

VIEWS = choices()["view"]
CHOSEN = st.dictionaries(
    st.sampled_from(FILTERS), st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3), max_size=3
)


@pytest.fixture
def data(tmp_path: Path, frame) -> Data:
    write(tmp_path / "s", frame)
    return Data(tmp_path / "s")


@given(
    st.builds(
        State,
        st.sampled_from(VIEWS),
        st.sampled_from(QUANTITIES),
        st.sampled_from(COUNTS),
        st.sampled_from(["", "8"]),
        st.sampled_from(THEMES),
        CHOSEN,
    )
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


LACKING = "scaling history steps model guidelines pairs tuned winners verdicts environment gpus".split()
"""Views that this store has nothing for."""


@pytest.mark.parametrize("view", few_quick(VIEWS, 6))
def test_each_view_of_the_store(data: Data, view: str) -> None:
    made, note = views(data, State(view))
    if view in LACKING:
        assert made == [] and note == registry.offered()[view].empty
        return
    assert made and note == ""
    for one in made:
        if one.spec is None and not one.columns:  # the status line and the list of the first screen
            assert view == "first" and one.kind in ("status", "changes")
            continue
        assert plotly_figure(one)
        assert one.commands


def test_stored_verdicts(data: Data) -> None:
    compared(data.store)
    made, _ = views(data, State("verdicts"))
    assert [view.kind for view in made] == ["board", "environment"]
    assert made[0].commands[0].startswith("omb-py compare r1")


@pytest.mark.slow
def test_each_quantity_over_ranks_and_gpus(tmp_path: Path, frame) -> None:
    parts = [frame.assign(devices=None)]
    for ranks, factor in ((8, 2.0), (16, 4.0)):
        more = frame.assign(ranks=ranks, devices=ranks, run_id=f"r{ranks}", median_us=frame["median_us"] * factor)
        parts.append(
            more.assign(
                launch_id=more["launch_id"] + f"-{ranks}", comparability_key=more["comparability_key"] + f"-{ranks}"
            )
        )
    data = Data(write(tmp_path / "s", pd.concat(parts)))

    def drawn(quantity: str, count: str = "ranks") -> tuple[str, dict[str, list[Any]]]:
        """The title, and what stands at 64 KiB over the counts by the name of its line."""
        ((view,), note) = views(data, State("scaling", quantity, count))
        assert note == "" and view.kind == "scaling"
        heads = [head["text"] for head in view.spec["layout"]["annotations"]]
        axis = f"x{heads.index('64 KiB') + 1}"
        lines = [t for t in view.spec["data"] if t["mode"] == "lines+markers" and t.get("xaxis", "x1") == axis]
        return view.title, {line["name"]: list(zip(line["x"], line["y"], strict=True)) for line in lines}

    title, times = drawn("time")
    assert title.startswith("allreduce, 64 KiB: MPICH 5.0.2 is fastest at every number; up to 2× apart")
    assert [x for x, _ in times["MPICH 5.0.2"]] == [4, 8, 16]
    first = times["MPICH 5.0.2"][0][1]
    assert [y / first for _, y in times["MPICH 5.0.2"]] == pytest.approx([1, 2, 4], rel=0.01)
    _, ratios = drawn("ratio", "devices")
    assert [x for x, _ in ratios["Open MPI 5.0.2"]] == [8, 16]
    assert [y for _, y in ratios["Open MPI 5.0.2"]] == pytest.approx([2, 2], rel=0.01)
    title, kept = drawn("kept")
    assert title.startswith("allreduce, 64 KiB, bus bandwidth that is kept: 25 % at 16 ranks by MPICH 5.0.2, 25 %")
    assert [y for _, y in kept["Open MPI 5.0.2"]] == pytest.approx([100, 50, 25], rel=0.01)
    for quantity in ("algbw", "busbw"):
        assert drawn(quantity)[1].keys() == {"MPICH 5.0.2", "Open MPI 5.0.2"}


def asked(data: Data, **request) -> list[dict]:
    return grid.answer(data.frame, {"startRow": 0, "endRow": 100, **request})["rowData"]


def test_the_grid_sorts_all_rows(data: Data) -> None:
    assert grid.answer(data.frame, {"startRow": 10, "endRow": 14})["rowCount"] == 18
    assert len(asked(data, startRow=10, endRow=14)) == 4
    down = asked(data, sortModel=[{"colId": "median_us", "sort": "desc"}, {"colId": "none", "sort": "asc"}])
    assert [row["median_us"] for row in down] == sorted(data.frame["median_us"], reverse=True)


def test_nothing_to_show_says_what_to_do_next(data: Data, tmp_path: Path) -> None:
    made, note = views(data, State(filters={"library": ["none"]}))
    assert made == [] and note.startswith("No cell fits these filters.")
    (tmp_path / "empty").mkdir()
    made, note = views(Data(tmp_path / "empty"), State())
    assert made == [] and "To measure something: omb-py allreduce -n 2 --store" in note


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_downloads_hold_what_is_chosen(data: Data, form: str) -> None:
    chosen = {f"{form}.n_clicks": 1, "library.value": ["MPICH"], "view.value": "curves"}
    file = called(data, "download.data", chosen, f"{form}.n_clicks")["download"]["data"]
    content = base64.b64decode(file["content"]) if file["base64"] else file["content"].encode()
    table = pd.read_csv(io.BytesIO(content)) if form == "csv" else pd.read_parquet(io.BytesIO(content))
    assert file["filename"] == f"omb-py.{form}" and set(table["library"]) == {"MPICH"}
    assert sorted(table["size_bytes"]) == [8] * 3 + [1024] * 3 + [65536] * 3


def test_another_address_needs_the_token(data: Data) -> None:
    client = make(data, "s3cret").server.test_client()
    for path in ("/", "/_dash-layout", "/?token=wrong"):
        assert client.get(path).status_code == 403
    answer = client.get("/?token=s3cret&library=MPICH")
    assert answer.status_code == 302 and urlsplit(answer.headers["Location"]).query == "library=MPICH"
    assert "HttpOnly" in answer.headers["Set-Cookie"] and "SameSite=Strict" in answer.headers["Set-Cookie"]
    assert client.get("/_dash-layout").status_code == 200


def test_explorers_on_two_ports_have_two_cookies(data: Data) -> None:
    """A browser sends the cookies of a host to all its ports."""
    cookies = [
        make(data, "s3cret").server.test_client().get("/?token=s3cret", headers={"Host": host}).headers["Set-Cookie"]
        for host in ("127.0.0.1:8050", "127.0.0.1:8060", "localhost", "a:b;c=d")
    ]
    assert [cookie.partition("=")[0] for cookie in cookies] == [
        "omb_py_token_8050",
        "omb_py_token_8060",
        "omb_py_token",
        "omb_py_token",
    ]


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/_dash-component-suites/dash/%2e%2e/%2e%2e/etc/passwd"])
def test_no_request_reads_outside(data: Data, path: str) -> None:
    answer = make(data).server.test_client().get(path)
    assert b"root:" not in answer.data


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere"], 2, "no store at 'nowhere'"),
        (["--port", "70000"], 2, "port must be at most 65535, not 70000"),
        (["--bind", "203.0.113.1", "."], 3, "cannot listen on 203.0.113.1 port 8050"),
        (["--bind", "203.0.113.1", "."], 3, "--bind takes an address of this machine"),
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


@pytest.mark.parametrize("words", [[], ["--port", "0"]])
def test_a_second_explorer_takes_a_free_port(
    words: list[str], data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ports: list[int] = []

    def make_server(application: Any, listening: Any) -> Any:
        ports.append(listening.getsockname()[1])
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr("omb_py.dashboards.explorer.server.make_server", make_server)
    with socket.create_server(("127.0.0.1", 0)) as first:
        taken = first.getsockname()[1]
        monkeypatch.setattr("omb_py.cli.commands.dashboard._PORTS", (taken, 0))
        assert main(["dashboard", str(tmp_path / "s"), *words]) == 0
    assert ports != [taken] and f": http://127.0.0.1:{ports[0]}/?" in capsys.readouterr().err


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.0.0.2"])
def test_every_address_needs_the_token(
    bind: str, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other users of a login node reach its loopback address."""
    served: list[Any] = []

    def make_server(application: Any, listening: Any) -> Any:
        served.append(application)
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr("omb_py.dashboards.explorer.server.make_server", make_server)
    with free_port(bind) as port:
        assert main(["dashboard", str(tmp_path / "s"), "--bind", bind, "--port", str(port)]) == 0
    err = capsys.readouterr().err
    (token,) = re.findall(r"/\?token=(\S+)", err)
    assert len(token) > 40 and f"http://{bind}:{port}/?token=" in err and f"ssh -L {port}:" in err
    client = served[0].test_client()
    local = {"Host": f"127.0.0.1:{port}"}
    assert [client.get(path, headers=local).status_code for path in ("/", "/?token=wrong")] == [403, 403]
    assert client.get(f"/?token={token}", headers=local).status_code == 302


@pytest.mark.slow
def test_more_ranks_on_one_node_are_a_series(tmp_path: Path, frame) -> None:
    """On one node the ranks on a node grow with the ranks."""
    more = frame.assign(ranks=8, ranks_per_node=8, run_id="r8", median_us=frame["median_us"] * 3)
    more["launch_id"] += "-8"
    data = Data(write(tmp_path / "s", pd.concat([frame.assign(ranks_per_node=4), more])))
    ((view,), note) = views(data, State("scaling"))
    names = {trace["name"] for trace in view.spec["data"]}
    assert note == "" and names == {"MPICH 5.0.2", "Open MPI 5.0.2"}
    assert [view.kind for view in report(data.store, StoreSelection()).views].count("scaling") == 1


def test_the_spread_of_a_cell_without_samples_is_that_of_its_quartiles(tmp_path: Path, frame) -> None:
    """An imported cell has none."""
    data = Data(write(tmp_path / "s", frame.assign(samples_us=None)))
    (view, *_), note = views(data, State("distribution"))
    box = view.spec["data"][0]
    first = frame.sort_values("started_at").iloc[0]
    assert note == "" and view.kind == "distribution"
    assert (box["q1"], box["upperfence"]) == ([first["p25_us"]], [first["max_us"]])


@pytest.mark.slow
def test_what_is_not_drawn_is_said(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch has three cells; the newest ones are drawn, whole."""
    monkeypatch.setattr("omb_py.dashboards.explorer.data.MOST_WHOLE", 17)
    monkeypatch.setattr("omb_py.dashboards.explorer.data.MOST_DRAWN", 10)
    made, note = views(data, State("curves"))
    assert note == (
        "Figures show 9 rows of 18 rows that are chosen: the newest of each version, 3 of 6 launches. Choose fewer "
        "to see the others; the table below has all."
    )
    assert "3 launches" in made[0].caption and len(made[0].cells) == 2, "both libraries are drawn"
    assert views(data, State("curves", filters={"library": ["MPICH"]}))[1] == ""


@pytest.mark.slow
def test_two_users_at_once_get_what_each_chose(data: Data) -> None:
    """The store is shared, the choice is not: every answer is that of a user who is alone."""
    states = [
        State(view, filters={"library": [library]})
        for view in ("curves", "distribution", "first")
        for library in ("MPICH", "Open MPI")
    ]

    def titles(state: State) -> list[str]:
        return [view.title for view in views(data, state)[0]]

    alone = [titles(state) for state in states]
    assert alone[0] != alone[1], "the two libraries are told apart"
    with ThreadPoolExecutor(8) as users:
        together = list(users.map(titles, states * 3))
    assert together == alone * 3


def test_a_store_that_is_removed_and_comes_back(data: Data, tmp_path: Path) -> None:
    app, known = make(data), data.version
    (tmp_path / "s").rename(tmp_path / "away")
    assert data.refresh() and data.gone and data.version != known and not data.refresh()
    answer = called(data, "version.data", {"version.data": known, "clock.n_intervals": 1}, "clock.n_intervals")
    assert answer["version"]["data"] == data.version and app is not None
    made, note = views(data, State("curves"))
    assert made and note == "" and len(data.frame) == 18
    (tmp_path / "away").rename(tmp_path / "s")
    assert data.refresh() and not data.gone and data.version == known


@pytest.mark.slow
def test_every_view_is_drawn_of_a_store_that_is_gone(tmp_path: Path, frame, step_cells) -> None:
    """What is read from files only is left out: the page goes on to show what was read last, and says so."""
    store = write(tmp_path / "s", pd.concat([frame, step_cells]))
    for words in (LINKS, PROMISES):
        assert main([*words.split(), "--store", str(store)]) == 1
    data = Data(store)
    (tmp_path / "s").rename(tmp_path / "away")
    assert data.refresh()
    shown = {view: views(data, State(view)) for view in VIEWS}
    assert all(drawn or note for drawn, note in shown.values())
    assert {view for view, (drawn, _) in shown.items() if drawn} >= {"first", "curves", "scaling"}
    title, drawn = drawer(data, cell_names(data.frame[data.frame["benchmark"] == "allreduce"].tail(1))[0])
    assert title.startswith("allreduce") and "trace" not in [view.kind for view in drawn]


@pytest.mark.parametrize("path", ["dash/nope.js", "dash/../../x"])
def test_a_component_that_is_not_there_is_404(data: Data, path: str) -> None:
    answer = make(data).server.test_client().get(f"/_dash-component-suites/{path}")
    assert answer.status_code == 404 and answer.data == b"no such file\n"


def test_the_page_may_load_only_its_own(data: Data) -> None:
    policy = make(data).server.test_client().get("/").headers["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in rules["script-src"]
    assert rules["script-src"].count("'sha256-") >= 1, "the page's own"


def test_answers_are_compressed_for_whoever_takes_that(data: Data) -> None:
    pytest.importorskip("flask_compress", reason="an installation without omb-bench[dashboard] sends plain answers")
    client = make(data).server.test_client()
    plain = client.get("/_dash-layout").data
    page = client.get("/", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in client.get("/").headers and page.headers["Content-Encoding"] == "gzip"
    assert b"omb-py" in gzip.decompress(page.data) and json.loads(plain)
    (script_of, *_) = re.findall(r'src="([^"]*dash_renderer[^"]*)"', gzip.decompress(page.data).decode())
    script = client.get(script_of, headers={"Accept-Encoding": "gzip"}).data
    assert 2 * len(script) < len(client.get(script_of).data)


def test_a_text_like_a_formula_is_a_text_in_the_csv(data: Data) -> None:
    rows = data.frame.assign(library="=1+1", tags="+x", benchmark="a=b", value=-1.5)
    stored = grid.without_formulas(rows)
    assert stored["library"].iloc[0] == "'=1+1" and stored["tags"].iloc[0] == "'+x"
    assert stored["benchmark"].iloc[0] == "a=b" and stored["value"].iloc[0] == -1.5
