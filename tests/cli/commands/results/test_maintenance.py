"""``omb-py results compact``, ``prune`` and ``verify``."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import EnvironmentProblem
from omb_py.results.store import compaction
from omb_py.results.store.paths import files
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of


@pytest.fixture
def store(tmp_path) -> Path:
    for number in range(4):
        launch = {"launch_id": f"r{number // 2}-{number % 2}", "started_at": "2026-01-02T12:00:00"}
        row = row_of(f"r{number // 2}", benchmark="bcast", tags={"try": str(number)}) | launch
        write_launch(tmp_path, [row], {})
    return tmp_path


@pytest.fixture
def run(store, capsys):
    def call(line: str) -> tuple[int, str, str]:
        code = main(["results", *line.split(), "--store", str(store)])
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
def test_compact_and_verify(run, store) -> None:
    assert run("compact --dry-run")[1].startswith("would merge 4 files, 4 launches, 4 cells: ")
    assert len(files(store)) == 4
    assert run("compact --older-than 1d")[1].startswith("merged 4 files, 4 launches, 4 cells: ")
    assert "nothing to merge" in run("compact")[1] and len(files(store)) == 1
    assert run("verify") == (0, f"1 files, 4 cells in {store}: 1 ok\n", "")
    data = bytearray(files(store)[0].read_bytes())
    data[100] ^= 1
    files(store)[0].write_bytes(data)
    code, out, _ = run("verify")
    assert code == 1 and out.startswith(f"changed: {files(store)[0]}: its bytes are not those that were written\n")


@pytest.mark.slow
def test_prune_lists_first(run, store) -> None:
    code, out, _ = run("prune --tag try=2")
    assert code == 0 and "would remove r1-0, 2026-01-02T12:00:00, 1 cell\n" in out and "repeat with --yes" in out
    assert len(files(store)) == 4
    assert "1 launch, 1 cell removed" in run("prune --tag try=2 --yes")[1]
    assert [path.stem for path in files(store)] == ["r0-0", "r0-1", "r1-1"]
    assert run("prune --run r0 --older-than 1w --yes")[0] == 0 and [p.stem for p in files(store)] == ["r1-1"]
    assert "no launch of" in run("prune --tag try=9")[1]


def test_prune_says_removed_only_of_what_it_removed(run, store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise EnvironmentProblem(f"cannot write to {str(store)!r}: permission denied")

    monkeypatch.setattr(compaction, "prune", refuse)
    code, out, err = run("prune --run r0 --yes")
    assert (code, out) == (3, "") and "permission denied" in err
    assert len(files(store)) == 4


@pytest.mark.parametrize(("line", "says"), [("prune --run r7", "no run 'r7'"), ("compct", "did you mean compact?")])
def test_bad_input(run, line: str, says: str) -> None:
    code, out, err = run(line)
    assert (code, out) == (2, "") and says in err and err.count("\n") == 1


def test_no_such_store(tmp_path, capsys) -> None:
    for verb in ("compact", "verify", "prune --older-than 1d"):
        assert main(["results", *verb.split(), "--store", str(tmp_path / "none")]) == 2
        assert "no store at" in capsys.readouterr().err
