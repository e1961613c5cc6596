"""A folder of results where something else is asked for: one line says how it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in it, and an empty folder that is called like a benchmark."""
    made = tmp_path_factory.mktemp("place")
    words = ["allreduce", "--backend", "mock", "-n", "2", "-m", "8:16", "-i", "5", "--quiet"]
    assert main([*words, "--store", str(made / "s")]) == 0
    (made / "bcast").mkdir()
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("history s", "s is a folder; history takes a benchmark of it: omb-py history BENCHMARK --store s"),
        ("model s", "s is a folder; model takes a benchmark of it: omb-py model BENCHMARK --store s"),
        ("history bcast --store s", "no cell of bcast in 's'"),
        (
            "compare s",
            "s is a folder, all of whose launches are one side: name the other too, as omb-py compare s OTHER",
        ),
        ("report FILE", "is a file; a store is the folder that such files lie in: s\n"),
        ("report DAY", "is a part of a store: omb-py report s date="),
        ("dashboard FILE", "is a file; a store is the folder that such files lie in: s\n"),
        ("allreduce s", "s is a folder: give it as --store s\n"),
        ("doctor s", "s is a folder: give it as --store s\n"),
        ("s", "s is a folder: omb-py report s shows it, omb-py dashboard s explores it\n"),
    ],
)
def test_one_line_says_what_to_type(
    words: str, said: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    (file,) = Path("s").rglob("*.parquet")
    assert main(words.replace("FILE", str(file)).replace("DAY", str(file.parent)).split()) == 2
    err = capsys.readouterr().err
    assert err.startswith("omb-py: error: ") and said in err and err.count("\n") == 1
