"""Whole runs on simulated ranks: printed, stored, and the exit code."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import omb_py
from omb_py.backends.capabilities import RankStart
from omb_py.backends.registry import capabilities
from omb_py.cli import main
from omb_py.engine.program.steps import base
from omb_py.errors import EnvironmentProblem, LaunchFailed, UsageError
from omb_py.launchers.launcher import LaunchCommand
from omb_py.options.request import Request
from omb_py.orchestrate.running import run as running
from omb_py.orchestrate.running.run import execute_run
from omb_py.results.store.keys import environment_facts
from omb_py.results.store.paths import files
from omb_py.results.store.provenance import read_provenance
from omb_py.results.store.read import load
from omb_py.results.store.recovery import recover
from omb_py.suites import BENCHMARKS
from tests.support.kinds import one_of_each_family
from tests.support.machines.nvml import StandInGpu, StandInNvml, joined_by_switches
from tests.support.tiers import few_quick


def execute(request: Request) -> int:
    return execute_run(request).code


def mock(benchmark: str, store: Path | None, **changes: object) -> Request:
    defaults: dict[str, object] = {"backends": ("mock",), "ranks": 2, "quiet": True}
    return Request(benchmark, store=store, **{**defaults, **changes})  # type: ignore[arg-type]


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def test_text_of_an_allreduce_from_known_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # rank 0 takes 10 and 12 µs in turn, rank 1 takes 20 and 26: means 11 and 23, average over ranks 15 and 19
    request = mock(
        "allreduce",
        tmp_path,
        sizes="8:8",
        iterations="4",
        full=True,
        percentiles=(50, 99),
        settings={"mock": "series=10us/12us:20us/26us"},
    )
    assert execute(request) == 0
    out = capsys.readouterr().out
    blank, title, measured, dtype, *_ = out.splitlines()
    assert [blank, title, dtype] == ["", "# OSU MPI Allreduce Latency Test v7.5", "# Datatype: MPI_INT."]
    assert measured.startswith("# [ backend: mock ] [ library: mock ]"), "no MPI"
    # P50 is index floor(4 * 50 / 100) - 1 = 1 of 15 15 19 19, P99 index floor(3.96) - 1 = 2
    assert rows_of(out) == [["8", "17.00", "11.00", "23.00", "4", "15.00", "19.00"]]
    frame = load(tmp_path)
    assert frame["samples_us"][0].tolist() == [20.0, 26.0, 20.0, 26.0]
    assert frame["samples_avg_us"][0].tolist() == [15.0, 19.0, 15.0, 19.0]
    assert frame["slowest_rank_share"][0].tolist() == [0.0, 1.0]
    assert frame["stop_reason"][0] == "fixed"


@pytest.mark.slow
def test_several_launches_are_several_files(tmp_path: Path) -> None:
    # of any seed two medians may be equal
    three = {"launches": 3, "seed": 1, "settings": {"mock": "launch=0.1,noise=0.01"}}
    execute(mock("allreduce", tmp_path, sizes="8:16", format="csv", **three))
    frame = load(tmp_path)
    assert sorted(frame["launch_index"].unique()) == [0, 1, 2]
    assert len(list(tmp_path.glob("date=*/*.parquet"))) == 3
    medians = frame[frame["size_bytes"] == 8]["median_us"]
    assert medians.nunique() == 3, "each launch has an effect of its own"


_RECEIVING = [n for n, b in BENCHMARKS.items() if "validation" in b.options and b.sizes and n != "reduce_local"]
"""Benchmarks to whose ranks bytes arrive, so that one can be spoiled on its way."""


@pytest.mark.parametrize("benchmark_name", few_quick(one_of_each_family(_RECEIVING), 3))
def test_a_wrong_byte_fails_the_row_and_ends_the_sweep(
    benchmark_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = base(benchmark_name.removesuffix("_persistent").removesuffix("_mt"))
    rank = 0 if kind in ("reduce", "gather", "gatherv") or "get_" in kind else 1  # these arrive at rank 0 alone
    fewest = next(n for n in range(2, 9) if BENCHMARKS[benchmark_name].ranks.admits(n))
    request = mock(
        benchmark_name,
        tmp_path,
        # two ranks make every pair that is drawn the same, and its second message covers the first
        ranks=4 if benchmark_name == "birandom" else fewest,
        sizes="8:64",
        iterations="5",
        validate=True,
        settings={"mock": f"flip={rank}:16,nodes=2"},
    )
    # in bw rank 0 receives only the reply; the window arrives at rank 1
    assert execute(request) == 1
    out = capsys.readouterr().out
    said = ["passed", "failed"] if benchmark_name == "acc_latency" else ["Pass", "Fail"]
    rows = [line.split() for line in out.splitlines() if line.split()[-1:] and line.split()[-1] in said]
    assert [row[-1] for row in rows] == said
    assert f"DATA VALIDATION ERROR: omb-py {benchmark_name} exited with status 1 on message size 16." in out
    frame = load(tmp_path)
    assert frame["size_bytes"].tolist() == [8, 16]
    assert frame["validated"].tolist() == [True, False]
    assert frame["wrong_bytes"][1] > 0


def test_a_hang_is_named_and_finished_cells_are_stored(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed, match=r"rank 1 .*allreduce.*16 B") as caught:
        execute(mock("allreduce", tmp_path, sizes="8:32", iterations="5", settings={"mock": "hang=1:16"}))
    assert caught.value.exit_code == 3
    assert load(tmp_path)["size_bytes"].tolist() == [8]


def test_a_dead_rank_is_named(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed, match="rank 1"):
        execute(mock("bcast", tmp_path, sizes="8:32", iterations="5", settings={"mock": "die=1:32"}))
    assert load(tmp_path)["size_bytes"].tolist() == [8, 16]


def test_a_message_that_memory_cannot_hold_is_refused_before_anything_is_timed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs .* MiB .* choose a smaller -m"):
        execute(mock("allreduce", tmp_path, sizes="8,1T"))
    assert list(tmp_path.glob("date=*")) == []


def test_a_store_that_is_a_file_is_refused_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(EnvironmentProblem, match="results"):
        execute(mock("allreduce", tmp_path / "results"))


def test_a_store_that_cannot_be_made_is_refused_before_measuring() -> None:
    with pytest.raises(EnvironmentProblem, match="/proc/results"):
        execute(mock("allreduce", Path("/proc/results")))


def test_a_full_disk_keeps_the_journal_and_says_how_to_recover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.results.store import write

    def full(*arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(write, "write_atomically", full)
        with pytest.raises(EnvironmentProblem, match=r"recover --store") as caught:
            execute(mock("allreduce", tmp_path, sizes="8:16", format="csv"))
    assert caught.value.exit_code == 3
    assert ".journal" in str(caught.value)
    recovered = recover(tmp_path)
    assert [part.cells for part in recovered] == [2]
    assert load(tmp_path)["size_bytes"].tolist() == [8, 16]


def test_provenance_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JWT", "a-live-credential")
    monkeypatch.setenv("HOME_MADE", "not-allowed")
    monkeypatch.setenv("UCX_TLS", "tcp")
    execute(mock("allreduce", tmp_path, sizes="8:8", format="csv"))
    (path,) = tmp_path.glob("date=*/*.parquet")
    told = read_provenance(path)
    text = json.dumps(told)
    assert "a-live-credential" not in text and "not-allowed" not in text
    assert told["environment"]["UCX_TLS"] == "tcp"
    assert told["node_facts"][0]["kernel"] and told["loaded_libraries"]


def test_variables_of_a_backends_library_are_kept_and_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = RankStart(pass_names=("OTHER",), prefixes=("QUEUE_",))
    monkeypatch.setattr(running, "capabilities", lambda name: replace(capabilities(name), start=start))
    monkeypatch.setenv("QUEUE_DEPTH", "4")
    execute(mock("allreduce", tmp_path, sizes="8:8", format="csv"))
    (path,) = tmp_path.glob("date=*/*.parquet")
    assert read_provenance(path)["environment"]["QUEUE_DEPTH"] == "4"
    assert start.passed(os.environ) == ("OTHER", "QUEUE_DEPTH")


def test_a_secret_on_the_kernels_command_line_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.backends.mock import BACKEND
    from omb_py.engine.rank import system_info
    from omb_py.orchestrate.running.rank_process import launch_facts

    monkeypatch.setattr(system_info, "node_facts", lambda: {"kernel_command_line": "quiet root_password=abc ro"})
    session = BACKEND.connect({"ranks": 2, "settings": None})
    (node,) = launch_facts(session, {})["node_facts"]
    assert node["kernel_command_line"] == "quiet root_password=<redacted> ro"


def test_a_launch_on_gpus_stores_the_paths_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.backends.mock import BACKEND
    from omb_py.engine.devices import nvml
    from omb_py.orchestrate.running.rank_process import launch_facts

    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(joined_by_switches(2)))
    session = BACKEND.connect({"ranks": 2, "settings": None})
    assert "gpus" not in launch_facts(session, {})["node_facts"][0], "nobody asks for GPUs where none is used"
    session.places = [{"host": "n1", "device": "cuda:0", "identity": "x"}]
    (node,) = launch_facts(session, {})["node_facts"]
    assert [pair["path"] for pair in node["gpus"]["pairs"]] == ["NV18"]
    other = [StandInGpu(80, ["switch"] * 18), StandInGpu(81, ["switch"] * 18)]
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(other))
    twin = launch_facts(session, {})["node_facts"][0]["gpus"]
    assert environment_facts({"gpus": twin}) == environment_facts({"gpus": node["gpus"]}), "two machines of a kind"


SAID = "busy machine: other programs use 6.0 of 8 cores (load 7.5): end them, or expect wide spreads"


@pytest.mark.mpi
def test_a_busy_machine_is_said_first_and_stored(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, since stdout is C's text or a table that programs read; a quiet command stores it alone."""
    asked: list[bool] = []
    monkeypatch.setattr(running, "busy_now", lambda started: asked.append(started) or SAID)
    line = f"latency -m 8:8 -i 10 -x 1 --store {tmp_path}"
    assert main([*line.split(), "--format", "json"]) == 0
    out, err = capfd.readouterr()
    assert err.splitlines()[0] == f"omb-py: warning: {SAID}" and err.count("busy machine") == 1
    assert asked == [False] and [row["size_bytes"] for row in json.loads(out)] == [8]
    assert main(["results", "show", "last", "--store", str(tmp_path)]) == 0
    assert capfd.readouterr().out.splitlines()[:2] == ["", f"# {SAID}"]
    assert main([*line.split(), "--quiet"]) == 0
    assert capfd.readouterr().err == ""
    assert [read_provenance(path)["launch"]["busy_before"] for path in files(tmp_path)] == [SAID, SAID]


def test_simulated_ranks_feel_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "busy_now", lambda started: pytest.fail("watched for nothing"))
    assert execute(mock("latency", None, sizes="8:8", iterations="5")) == 0


def test_every_command_that_begins_a_run_says_it() -> None:
    """Those that judge say all that disturbs; the collector of a foreign launch leaves it to rank 0."""
    package = Path(omb_py.__file__).parent
    texts = {path.stem: path.read_text() for path in package.rglob("*.py") if path.name != "run.py"}
    begins = {name for name, text in texts.items() if re.search(r"= \(?(replace\()?(new|begin)_run\(", text)}
    says = {name for name, text in texts.items() if re.search(r"\b(say_busy|say_what_disturbs)\(", text)}
    assert begins - says == {"joined_collector"} and {"suite_run", "links", "joined_run"} <= begins


class Stumbling:
    """In place of a launcher: one that says so often that its listener failed, then that a host is unknown."""

    def __init__(self, folder: Path, times: int) -> None:
        self.count, script = folder / "count", folder / "launcher"
        script.write_text(
            f"#!/bin/sh\necho x >> {self.count}\nif [ $(wc -l < {self.count}) -le {times} ]; then\n"
            'echo "The PMIx server\'s listener thread failed to start. We cannot"; echo continue.; exit 213\nfi\n'
            "echo no such host; exit 1\n"
        )
        script.chmod(0o755)
        self.words = (str(script),)

    def command(self, *given: object, **named: object) -> LaunchCommand:
        return LaunchCommand("mpiexec (Open MPI 5)", self.words, dict(os.environ), True, notes=("4 ranks on 2 cores",))

    @property
    def tried(self) -> int:
        return len(self.count.read_text().splitlines())


@pytest.mark.parametrize(
    ("times", "tried", "last"), [(0, 1, "no such host"), (1, 2, "no such host"), (9, 3, "listener")]
)
def test_a_launcher_that_stumbles_is_started_again(
    times: int,
    tried: int,
    last: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    launcher = Stumbling(tmp_path, times)
    monkeypatch.setattr("omb_py.orchestrate.running.run.command_for", launcher.command)
    with pytest.raises(LaunchFailed, match=last):
        execute(Request("latency", backends=("mpi",), ranks=2, store=None))
    assert launcher.tried == tried
    err = capsys.readouterr().err
    assert err.count("launching again") == tried - 1
    assert err.count("4 ranks on 2 cores") == 1, "what holds for every launch is said once"
