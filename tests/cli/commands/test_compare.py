"""``omb-py compare`` and ``omb-py aa`` on simulated ranks: verdicts, forms, exit codes, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from omb_py.cli import main
from omb_py.orchestrate.compare.interleaving import sides_of
from omb_py.results.compare.tags import COMPARE_PAIR, COMPARE_ROUND, COMPARE_SIDE
from omb_py.results.store.read import load

NOISE = "noise=0.005,launch=0.005"
OTHER = f"{NOISE},nodes=1"
"""Another text, the same machine."""
SMALL = "allreduce --backend mock -n 2 -m 8:64:8 -i 100"
ONE = "allreduce --backend mock -n 2 -m 8:8 -i 20"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(line: str, *more: str) -> tuple[int, str, str]:
        code = main([*line.split(), *more, "--store", str(tmp_path)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def sides(base: str = NOISE, new: str = NOISE) -> str:
    return f"compare --option BASE:mock={base} --option NEW:mock={new} --seed 1 --launches 8"


def run_of(store: Path) -> str:
    return next((store / ".reports").glob("*.report")).stem


def refused(run, line: str, *more: str) -> str:  # type: ignore[no-untyped-def]
    code, out, err = run(line, *more)
    assert code == 2 and out == "" and err.count("\n") == 1, err
    return str(err.removeprefix("omb-py: error: ").rstrip())


@pytest.mark.slow
def test_a_planted_change_is_found(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run(f"{sides(new=f'alpha=1.1us,{NOISE}')} {SMALL}")
    assert code == 1
    assert [line.split()[:3] for line in out.splitlines() if line.strip().startswith("allreduce")] == [
        ["allreduce", "8", "B"],
        ["allreduce", "64", "B"],
    ]
    assert out.count("SLOWER") >= 2
    assert f"differs: option mock: {NOISE} → alpha=1.1us,{NOISE}; nothing else that is recorded\n" in out
    assert out.startswith("NEW is slower in 2 of 2 cells (most: allreduce ")
    assert "a false SLOWER or FASTER is told in at most 1 %" in out
    assert "round 2 of up to 3: 1 cell still UNCLEAR, measured again, " in err
    frame = load(tmp_path)
    rounds = {t[COMPARE_ROUND] for t in frame["tags"]}
    assert {(t[COMPARE_SIDE], t[COMPARE_ROUND]) for t in frame["tags"]} == {
        (s, k) for s in ("BASE", "NEW") for k in rounds
    }
    order = frame.drop_duplicates("launch_id").sort_values("launch_index")["tags"]
    pairs = 8 * len(rounds)
    assert [t[COMPARE_PAIR] for t in order] == [str(k // 2) for k in range(2 * pairs)]
    assert [t[COMPARE_SIDE] for t in order] == [side for pair in range(pairs) for side in sides_of(1, pair)]
    assert frame["run_id"].nunique() == 1 and frame["environment_key"].nunique() == 1
    shuffles = frame.groupby("launch_index")["size_bytes"].apply(tuple)
    assert {(8, 64), (64, 8)} <= set(shuffles), "cells are shuffled"


@pytest.mark.slow
def test_an_unclear_cell_is_measured_again_and_its_row_holds_all_launches(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wide = "launch=0.02,noise=0.005"
    line = f"compare --option BASE:mock={wide} --option NEW:mock=alpha=1.1us,{wide} --seed 2 --launches 4"
    code, out, err = run(f"{line} {ONE}")
    assert code == 1 and "SLOWER" in out and "8 (2 rounds)" in out
    assert "round 2 of up to 3: 1 cell still UNCLEAR, measured again, 4 launches a side, interleaved" in err
    report = json.loads((tmp_path / ".reports" / f"{run_of(tmp_path)}.report").read_text())
    (cell,) = report["cells"]
    rows = load(tmp_path)
    for side, column in (("BASE", "base_us"), ("NEW", "new_us")):
        medians = rows[[tags[COMPARE_SIDE] == side for tags in rows["tags"]]]["median_us"]
        assert len(medians) == 8 and cell["median"][column] == pytest.approx(float(np.exp(np.median(np.log(medians)))))
    assert cell["median"]["launches"] == cell["tail"]["launches"] == [8, 8]
    assert report["seed"] == 2


@pytest.mark.slow
def test_too_few_launches_are_said_before_they_are_made(run) -> None:  # type: ignore[no-untyped-def]
    _, out, err = run(f"compare --option NEW:mock=alpha=2us --launches 3 --rounds 1 {ONE}")
    assert err.startswith(
        "omb-py: 3 launches of each side in 1 round cannot show a change, only that nothing has changed: --launches 6"
    )
    assert "UNCLEAR (about 6)" in out and "a new comparison of about N launches a side would decide" in out
    assert "cannot show" not in run(f"compare --option NEW:mock=alpha=2us --launches 5 {ONE}")[2]


class TestWorkloads:
    """Sides whose workloads do the same work in other ways."""

    LINE = "compare --seed 1 --launches 6 --rounds 1 --option BASE:workload={} --option NEW:workload={} step -n 2"

    @pytest.mark.slow
    def test_ddp_against_fsdp(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        line = self.LINE.format("ddp:compute=100us", "fsdp:compute=100us")
        code, out, _ = run(f"{line} --backend mock --mock {NOISE} --format json --quiet")
        told = json.loads(out)
        (cell,) = told["cells"]
        assert code == 1 and cell["verdict"] == "SLOWER"
        base, new = (told["communication"][side] for side in ("BASE", "NEW"))
        assert (base["bytes"], new["bytes"]) == (2_678_824, 2 * 2_678_824)  # FSDP gathers twice and scatters once
        assert new["exposed_us"] > base["exposed_us"] > 0
        # a stored comparison gives the same report again, in words too
        _, out, _ = run(f"compare {run_of(tmp_path)}")
        assert "SLOWER" in out and "bytes a step of a rank: 2678824 → 5357648 (× 2.00)" in out

    @pytest.mark.slow
    def test_two_runs_of_other_workloads_are_still_not_comparable(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        """Nothing says that their ranks were placed alike."""
        for workload in ("ddp", "fsdp"):
            run(f"step --workload {workload}:compute=1ms -n 2 --backend mock --launches 2 --tag w={workload}")
        assert "another program of steps or placement" in refused(run, "compare tag=w=ddp tag=w=fsdp")


@pytest.mark.slow
@pytest.mark.mpi
def test_two_trainings_over_gloo(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("torch")
    line = "compare --launches 2 --rounds 1 --option NEW:parallel=fsdp train mlp -n 2 -i 1 --steps 2 -x 1 --batch 2"
    code, out, err = run(f"{line} --format json --quiet")
    assert code in (0, 1), err
    told = json.loads(out)
    (cell,) = told["cells"]
    assert cell["benchmark"] == "train" and cell["verdict"] != "NOT COMPARABLE"
    assert told["communication"]["NEW"]["bytes"] > told["communication"]["BASE"]["bytes"] > 0
    assert [d for d in told["differences"] if d["what"] == "option parallel"] == [
        {"what": "option parallel", "base": "ddp", "new": "fsdp"}
    ]
    (side,) = {row for row in load(tmp_path)["benchmark"]}
    assert side == "train"


def test_trainings_of_other_work(run) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("torch")
    assert refused(run, "compare --option NEW:batch=2 train mlp -n 2") == (
        "trainings of another batch can never be compared: give both the same --batch"
    )
    assert "--timeline draws one step" in refused(
        run, "compare --set NEW:A=1 train mlp --trace /tmp/t.json --timeline /tmp/t.html"
    )


def test_one_broken_side_is_named_and_what_was_measured_is_kept(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = run(f"{sides(new='die=1')} {SMALL}")
    last, hint = err.splitlines()[-2:]
    assert code == 3 and out == ""
    assert last.startswith("omb-py: error: side NEW (--mock=die=1) is broken: ")
    assert "What was measured is kept in" in last and "1 launch of BASE and 0 launches of NEW" in last
    assert hint.startswith("omb-py: to go on: omb-py compare --resume=")
    assert len(load(tmp_path)) == 2


class TestRefusals:
    def test_mock_has_no_environments(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        python = tmp_path / "v1" / "bin" / "python"
        python.parent.mkdir(parents=True)
        import sys

        python.symlink_to(sys.executable)
        assert "--env, --pip and --module change nothing" in refused(
            run, f"compare --env NEW={tmp_path / 'v1'} {SMALL}"
        )

    @pytest.mark.slow
    def test_of_stored_sides(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        for n, launches in ((2, 3), (4, 3), (3, 1)):
            run(f"bcast --backend mock -n {n} -m 8:8 --launches {launches} --quiet --tag n={n}")
        run("allgather --backend mock -m 8:8 --launches 3 --quiet --tag n=other")
        told = refused(run, "compare tag=n=2 tag=n=4")
        assert "not comparable: bcast 8 B was measured with ranks 2 against 4" in told
        assert told.endswith("omb-py bcast --backend mock -n 2 -T char -m 8:8 --launches 10")
        told = refused(run, "compare tag=n=2 tag=n=other")
        assert "no cell in common: bcast against allgather: measure tag=n=other again with omb-py bcast" in told
        assert "did you mean tag=n=4?" in refused(run, "compare tag=n=2 tag=n=44")
        assert "in common" in refused(run, "compare tag=n=2 benchmark=bcast")
        assert "no run 'nosuch'" in refused(run, "compare nosuch last")
        assert "is no run of omb-py compare" in refused(run, "compare last")
        assert "has no value" in refused(run, "compare library_version= last")
        assert "no column 'librry'" in refused(run, "compare librry=1 last")
        assert "no store at" in refused(run, "compare ./nowhere last")

    @pytest.mark.slow
    def test_one_launch(self, run) -> None:  # type: ignore[no-untyped-def]
        for tag, launches in (("one", 1), ("more", 3)):
            run(f"bcast --backend mock -n 2 -m 8:8 --launches {launches} --quiet --tag t={tag}")
        told = refused(run, "compare tag=t=more tag=t=one")
        assert told.startswith("tag=t=one is only one launch; compare needs at least two a side: omb-py bcast")

    @pytest.mark.slow
    def test_both_sides_in_one(self, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        run(f"{sides(new=OTHER)} {ONE} --quiet")
        run(f"{ONE} --launches 3 --quiet")
        told = refused(run, f"compare {run_of(tmp_path)} last")
        assert f"holds both sides of a comparison: omb-py compare {run_of(tmp_path)} --store " in told
        assert run("compare tag=compare_side=BASE last")[0] in (0, 1)


SUITE = """
name = "two"
description = "two benchmarks, one of them on several numbers of ranks"
[defaults]
backend = "mock"
iterations = "100"
[[entry]]
benchmarks = ["allreduce"]
ranks = [2, 4]
message-size = "8:64:8"
[[entry]]
benchmarks = ["latency", "bcast"]
ranks = 2
message-size = "8:8"
"""


class TestSuites:
    @pytest.fixture
    def suite(self, tmp_path: Path) -> str:
        path = tmp_path / "two.toml"
        path.write_text(SUITE)
        return str(path)

    @pytest.mark.slow
    def test_all_cells_in_one_report(self, run, tmp_path: Path, suite: str) -> None:  # type: ignore[no-untyped-def]
        code, out, err = run(f"{sides(new=f'alpha=1.2us,{NOISE}')} {suite} --rounds 1 --output {tmp_path / 'a.json'}")
        assert code == 1 and "round 1 of up to 1: 6 cells" in err
        cells = [line.split("  ")[1].strip() for line in out.splitlines() if " ranks " in line or line[:6] == "  bcas"]
        assert cells[:4] == [f"allreduce {size} B, {n} ranks" for n in (2, 4) for size in (8, 64)]
        assert "NEW is slower in 6 of 6 cells" in out, "one report over all benchmarks"
        report = json.loads((tmp_path / "a.json").read_text())
        assert [cell["benchmark"] for cell in report["cells"]] == ["allreduce"] * 4 + ["bcast", "latency"]
        assert report["failed"] == []
        frame = load(tmp_path)
        assert frame["run_id"].nunique() == 1 and not any("suite" in tags for tags in frame["tags"])
        # what was stored gives the same report
        _, again, _ = run(f"compare {run_of(tmp_path)} --format json")
        assert json.loads(again)["cells"] == report["cells"]

    @pytest.mark.slow
    def test_options_of_the_command_line_hold_for_all(self, run, tmp_path: Path, suite: str) -> None:  # type: ignore[no-untyped-def]
        run(f"{sides(new=OTHER)} {suite} --rounds 1 --launches 2 --iterations 50 --quiet --tag why=test")
        frame = load(tmp_path)
        assert set(frame["iterations"]) == {50} and all(tags["why"] == "test" for tags in frame["tags"])

    @pytest.mark.slow
    def test_a_benchmark_that_fails_on_a_side_is_left_out_and_named(
        self, run, tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:  # type: ignore[no-untyped-def]
        from omb_py.errors import UsageError
        from omb_py.orchestrate.compare import session

        real, tried = session.start_on_nodes, []

        def refusing(run, launch) -> None:  # type: ignore[no-untyped-def]
            if run.request.tags[COMPARE_SIDE] == "NEW" and any(cell.benchmark == "latency" for cell in launch.cells):
                tried.append({cell.benchmark for cell in launch.cells})
                raise UsageError("no memory for it")
            real(run, launch)

        monkeypatch.setattr(session, "start_on_nodes", refusing)
        code, out, _ = run(f"{sides(new=OTHER)} {suite} --rounds 1 --quiet")
        assert code == 3 and "not measured: latency on NEW: no memory for it" in out
        assert "NEW is the same in 5 of 5 cells" in out and "bcast 8 B" in out
        assert tried == [{"allreduce", "latency", "bcast"}, {"latency"}], "then it is tried no more"
        frame = load(tmp_path)
        assert len(frame[frame["benchmark"] == "latency"]) == 1, "the first launch of BASE"
        # where one benchmark is all there is, the side is broken
        code, _, err = run(f"{sides(new=OTHER)} latency --backend mock -n 2 -m 8:8 --quiet")
        assert code == 3 and "side NEW" in err and "is broken: no memory for it" in err

    @pytest.mark.slow
    def test_of_itself(self, run, suite: str) -> None:  # type: ignore[no-untyped-def]
        code, out, _ = run(f"aa {suite} --mock {NOISE} --launches 3 --rounds 1 --seed 1 --quiet")
        assert code == 0 and "slower" not in out.splitlines()[0]
        assert "of 6 cells" in out.splitlines()[-1]


@pytest.mark.slow
def test_the_comparison_is_named_where_a_side_holds_other_runs_too(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An older run has the same version of the library; it is not the comparison that the error sends the user to."""
    run(f"{SMALL} --launches 2 --quiet --mock version=1.0")
    run(f"{SMALL} --launches 2 --quiet --mock version=1.1")
    run(f"compare --set NEW:A=b --rounds 1 --launches 2 {SMALL} --mock version=1.0")
    told = refused(run, "compare library_version=1.0 library_version=1.1")
    assert f"holds both sides of a comparison: omb-py compare {run_of(tmp_path)} --store " in told


@pytest.mark.parametrize("command", ["compare --option NEW:warmup=20", "aa"])
def test_a_value_that_begins_with_a_dash_is_the_benchmarks(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Letters of it were taken for short options: the h of ssh showed the help page."""
    words = [*command.split(), "allreduce", "--launcher-args", "-launcher ssh", "--launcher", "nope"]
    assert main(words) == 2
    assert "unknown launcher 'nope'" in capsys.readouterr().err


def test_a_line_that_names_another_tool_s_benchmark_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main("compare --option NEW:window-size=4 PingPong --backend mock -m 8:8 --launches 2".split()) == 2
    assert "NEW: latency has no window of messages in flight" in capsys.readouterr().err
    assert main("compare --option NEW:no-store IMB-MPI1 PingPong".split()) == 2
    assert "name its benchmark, as omb-py PingPong --format imb" in capsys.readouterr().err
    (tmp_path / "PingPong").mkdir()
    assert main("compare PingPong last".split()) != 0
    assert "nothing differs between the sides" not in capsys.readouterr().err  # a folder is a stored side
