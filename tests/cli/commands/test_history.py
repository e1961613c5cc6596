"""``omb-py history`` on stores with known steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from omb_py.cli import main
from omb_py.results.analysis.series import version_key
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of


def fill(
    store: Path,
    times: list[float],
    versions: list[str],
    sizes: tuple[int, ...] = (8, 1024),
    spread: float = 0.01,
    a_night: int = 1,
    sides: bool = False,
) -> None:
    rng = np.random.default_rng(3)
    for number, (time, version) in enumerate(zip(times, versions, strict=True)):
        launch = rng.lognormal(0, spread)
        rows = [
            row_of(
                f"run{number}",
                started_at=f"2026-10-{number // a_night + 1:02d}T12:{number % a_night:02d}:00",
                tags={"compare_side": "NEW" if number % 2 else "BASE"} if sides else {},
                binding="native",
                library="Open MPI",
                library_version=version,
                ranks=4,
                size_bytes=size,
                comparability_key=f"k{size}",
                environment_key=version,
                median_us=time * launch * (1 + size / 1024),
            )
            for size in sizes
        ]
        write_launch(store, rows, {"environment": {"UCX_TLS": "tcp" if time > 11 else "sm"}})


@pytest.fixture
def run(tmp_path, capsys):
    def call(line: str) -> tuple[int, str, str]:
        code = main([*f"history {line}".split(), "--store", str(tmp_path)])
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
def test_a_step_is_found_with_what_changed(run, tmp_path) -> None:
    fill(tmp_path, [10.0] * 8 + [12.0] * 8, ["5.0.9"] * 8 + ["5.0.10"] * 8)
    code, out, err = run("allreduce -m 8 --format json")
    assert (code, err) == (0, "")
    (found,) = json.loads(out)
    (change,) = found["changes"]
    assert (change["before"], change["after"], change["at"]) == ("run7-0", "run8-0", "2026-10-09T12:00:00+00:00")
    assert change["ratio"] == pytest.approx(1.2, rel=0.02) and change["p"] <= 0.01
    said = {d["what"]: (d["before"], d["after"]) for d in change["environment"]}
    assert said["library"] == ("Open MPI 5.0.9", "Open MPI 5.0.10") and said["variable UCX_TLS"] == ("sm", "tcp")
    assert [level["launches"] for level in found["levels"]] == [8, 8]
    code, out, _ = run("osu_allreduce -m 8")
    assert code == 0 and "allreduce · 8 B · 4 ranks · mpi · Open MPI · native" in out
    assert "variable UCX_TLS: sm → tcp" in out and "run7-0 → run8-0 (+" in out


def test_without_a_step_there_is_none(run, tmp_path) -> None:
    fill(tmp_path, [10.0] * 20, ["5.0.9"] * 20, spread=0.03)
    code, out, _ = run("allreduce")
    assert code == 0 and out.count("no change found") == 2


def test_by_version_puts_launches_of_a_version_together(run, tmp_path) -> None:
    fill(tmp_path, [10.0, 12.0] * 8, ["5.0.9", "5.0.10"] * 8)
    assert json.loads(run("allreduce -m 8 --format json")[1])[0]["changes"] == []
    (change,) = json.loads(run("allreduce -m 8 --by version --format json")[1])[0]["changes"]
    assert (change["library_version_before"], change["library_version_after"]) == ("5.0.9", "5.0.10")


def test_the_provenance_of_a_merged_launch_is_found(run, tmp_path) -> None:
    fill(tmp_path, [10.0] * 8 + [12.0] * 8, ["5"] * 16)
    assert main(["results", "compact", "--older-than", "1d", "--store", str(tmp_path)]) == 0
    assert "variable UCX_TLS: sm → tcp" in run("allreduce -m 8")[1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("alreduce", "no cell of alreduce in '{store}': did you mean allreduce?\n"),
        ("bcast", "no cell of bcast in '{store}': valid: allreduce; or measure with omb-py bcast --store {store}\n"),
        ("allreduce --where ranks=8", "ranks: valid: 4"),
        ("allreduce --where rnks=8", "the store has no column 'rnks': did you mean ranks?"),
        (
            "allreduce -m 8",
            "too few nights: 4 of allreduce, 10 are needed; repeat omb-py allreduce --backend mpi --binding native -n "
            "4 -m 8:8 --store {store} in 6 more nights",
        ),
        (
            "allreduce -m 8 --unit launch",
            "too few launches: 4 of allreduce, 10 are needed; measure more with omb-py allreduce --backend mpi "
            "--binding native -n 4 -m 8:8 --launches 6 --store {store}",
        ),
        ("allreduce --unit nite", "unknown unit 'nite': did you mean night?"),
    ],
)
def test_bad_input(run, tmp_path, line: str, says: str) -> None:
    fill(tmp_path, [10.0] * 4, ["5"] * 4)
    code, out, err = run(line)
    assert (code, out) == (2, "") and says.format(store=tmp_path) in err and err.count("\n") == 1


@pytest.mark.slow
def test_launches_of_few_nights_are_judged_if_that_is_asked_for(run, tmp_path) -> None:
    fill(tmp_path, [10.0] * 10 + [12.0] * 10, ["5"] * 20, a_night=5)
    code, out, err = run("allreduce -m 8")
    assert (code, out) == (2, "") and err == (
        "omb-py: error: too few nights: 20 launches of allreduce in 4 nights, 10 nights are needed, since launches of "
        f"one night share its conditions; repeat omb-py allreduce --backend mpi --binding native -n 4 -m 8:8 "
        f"--store {tmp_path} in 6 more nights, or take each launch as independent: --unit launch\n"
    )
    code, out, _ = run("allreduce -m 8 --unit launch")
    assert code == 0 and "+2" in out and "nights" not in out


@pytest.mark.slow
def test_nights_are_counted_beside_launches(run, tmp_path) -> None:
    fill(tmp_path, [10.0] * 24 + [12.0] * 24, ["5"] * 48, a_night=3)
    code, out, _ = run("allreduce -m 8")
    head, *lines = [line.split() for line in out.splitlines() if "launches" in line or "2026-10" in line]
    assert code == 0 and head[5:7] == ["nights", "launches"]
    assert [line[4:6] for line in lines] == [["8", "24"], ["8", "24"]]
    (found,) = json.loads(run("allreduce -m 8 --format json")[1])
    assert found["unit"] == "night" and [level["units"] for level in found["levels"]] == [8, 8]


def test_both_sides_of_a_comparison_are_shown_apart(run, tmp_path) -> None:
    fill(tmp_path, [10.0, 12.0] * 12, ["4", "5"] * 12, sides=True)
    code, out, _ = run("allreduce -m 8")
    assert code == 0 and out.count("no change found") == 2
    assert "side BASE of comparisons" in out and "side NEW of comparisons" in out and "4 … 5" not in out


def test_an_empty_store_and_none(run, tmp_path, capsys) -> None:
    code, _, err = run("allreduce")
    assert code == 2 and f"the store '{tmp_path}' is empty: measure with omb-py allreduce --store {tmp_path}" in err
    assert main(["history", "allreduce", "--store", str(tmp_path / "none")]) == 2
    assert "no store at" in capsys.readouterr().err


@pytest.mark.slow
def test_the_pairs_of_a_sweep_are_no_launches_of_latency(run, tmp_path, capsys) -> None:
    assert main(["links", "--backend", "mock", "-n", "4", "-i", "10", "--quiet", "--store", str(tmp_path)]) == 0
    capsys.readouterr()
    code, out, err = run("latency")
    assert (code, out) == (2, "") and "measure with omb-py latency" in err


def test_versions_in_order() -> None:
    ordered = ["4.1.6", "5.0.9", "5.0.10", "5.1rc1", "5.1rc2", "5.1", "5.1.1"]
    assert sorted(reversed(ordered), key=version_key) == ordered
