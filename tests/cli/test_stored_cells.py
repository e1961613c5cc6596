"""What the commands on stored cells share."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.cli.stored_cells import benchmark_name
from omb_py.dashboards.report import image_export


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tagged") / "s"
    for value in "ab":
        words = f"latency --backend mock -n 2 -m 8:64 -i 2 --launches 2 --quiet --tag v={value} --store"
        assert main([*words.split(), str(place)]) == 0
    return place


SELECTING = (
    "results export all --where {} --store s",
    "history latency --where {} --store s",
    "model latency --where {} --store s",
    "plot latency --where {} --store s",
    "compare {} tag=v=b --store s",
    "report s {}",
)


@pytest.mark.parametrize("line", SELECTING)
def test_a_tag_is_selected_in_one_way_everywhere(
    line: str, tagged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tagged.parent)
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    monkeypatch.setattr(image_export, "save_figure", lambda spec, path: None)

    def said(word: str) -> str:
        capsys.readouterr()
        main(shlex.split(line.format(word)))
        out, err = capsys.readouterr()
        return out.replace("tags.v=", "tag=v=") + err

    selected = said("tag=v=a")
    assert selected == said("tags.v=a") and "error: the store" not in selected
    assert "no column 'v': if it is a tag, write tag=v=a; docs/store.md" in said("v=a")
    assert "a tag is tag=K=V, as tag=v=a" in said("tags=v=a")
    if line.startswith(("history", "model", "compare")):
        assert "tag=v=c" in said("tag=v=c") and "did you mean tag=v=" in said("tag=v=c")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("PingPong", "latency"),
        ("osu_bw", "bw"),
        ("Uniband", "uniband"),
        ("Sendrecv", "sendrecv"),
        ("ib_send_bw", "ib_send_bw"),
    ],
)
def test_a_benchmark_is_known_by_each_of_its_names(word: str, name: str) -> None:
    assert benchmark_name("plot", word) == name
