"""The public names, their signatures, and what they return on the simulated backend."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import get_type_hints

import pytest

import omb_py
import omb_py.plugin
from omb_py.options.request import Request
from omb_py.orchestrate.compare.side_environments import SideSpec
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.run_options import RunOptions
from tests.orchestrate.programs.conftest import count_launch
from tests.support.machines.mpi import ROOT, run_command

FUNCTIONS = ("accept", "compare", "compare_commands", "guidelines", "links", "load", "report", "run")
RESULTS = (
    "Acceptance CellVerdict Comparison CriterionVerdict GuidelineCheck GuidelineVerdict LinkCheck LinkVerdict "
    "ReportPage RunResult"
).split()
ASKED = ("Request", "Side")
ERRORS = ("EnvironmentProblem", "Interrupted", "LaunchFailed", "NoVerdict", "OmbError", "UsageError")
PLUGIN = (
    "BANDWIDTH_COUNTS Backend BadTable BatchSystem Benchmark Blocks Buffer COLLECTIVE_COUNTS COLLECTIVE_SIZES "
    "Capabilities Cell Check Context Counts Device DeviceKind Dialect EVEN EXACTLY_TWO EnvironmentProblem Framework "
    "GpuKind ImportedTable InReport Inspection LATENCY_COUNTS Lap LaunchCommand LaunchFailed LaunchMachine Launcher "
    "LogLine "
    "Metric MpiSupport Needs ONE_WAY Objects Observer OmbError OwnOption PER_CALL POWER_OF_TWO PT2PT_SIZES Parsed "
    "Problem Program REDUCTION_SIZES RankRequest RankRule RankStart RankVariables Region Repeat RequestSlot "
    "Requests Result Row Runner Session Shown Sizes Stage Step StepFailed TWO_OR_MORE TextOptions TextReader "
    "Transcript UsageError "
    "View ViewEntry WholeReader World body compile_stage index_of message_bytes request_count rma steps table "
    "usable window_bytes"
    " Command"
).split()
MOCK = {"quiet": True, "seed": 1}


def test_the_public_names_are_these() -> None:
    assert sorted(omb_py.__all__) == sorted((*FUNCTIONS, *RESULTS, *ASKED, *ERRORS, "__version__"))
    assert sorted(omb_py.plugin.__all__) == sorted(PLUGIN)
    for name in omb_py.__all__:
        assert getattr(omb_py, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        omb_py.lode  # noqa: B018


@pytest.mark.parametrize("module", ["omb_py", "omb_py.plugin", "omb_py.api"])
def test_importing_is_cheap(module: str) -> None:
    heavy = ("numpy", "pandas", "pyarrow", "scipy", "mpi4py", "click", "rich", "llvmlite", "plotly")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = run_command([sys.executable, "-c", code], cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ["accept", "guidelines", "links"])
def test_options_that_the_functions_share_have_one_type(name: str) -> None:
    of_run = RunOptions.__annotations__
    hints = get_type_hints(getattr(omb_py, name))
    for parameter in set(hints) & set(of_run) - {"iterations", "window"}:
        assert hints[parameter] in (of_run[parameter], of_run[parameter] | None) or (
            hints[parameter] | None == of_run[parameter]
        ), parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_typed_and_say_what_they_raise(name: str) -> None:
    function = getattr(omb_py, name)
    signature = inspect.signature(function)
    assert signature.return_annotation not in (inspect.Signature.empty, "Any")
    parameters = signature.parameters.values()
    named = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    assert all(parameter.annotation not in (parameter.empty, "Any") for parameter in named)
    assert len(named) == len(parameters) or name in ("load", "run"), (
        "whose keywords are the columns of the store, and RunOptions"
    )
    assert "UsageError" in (function.__doc__ or "")


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_frozen(name: str) -> None:
    kind = getattr(omb_py, name)
    assert is_dataclass(kind) and kind.__dataclass_params__.frozen and kind.__doc__


def test_what_a_third_party_needs_is_public() -> None:
    for file in (ROOT / "tests" / "plugin").glob("*.py"):
        imported = re.findall(r"^(?:from|import) (omb_py[\w.]*)", file.read_text(), re.M)
        assert set(imported) == {"omb_py.plugin"}, file
    blocks = re.findall(r"```python\n(.*?)```", "".join(f.read_text() for f in (ROOT / "docs").glob("*.md")), re.S)
    imported = re.findall(r"^(?:from|import) (omb_py[\w.]*)", "\n".join(blocks), re.M)
    assert set(imported) <= {"omb_py", "omb_py.plugin", "omb_py.reframe"}


@pytest.mark.slow
def test_two_commands_are_compared(tmp_path: Path) -> None:
    command = f"sh -c 'echo took $((${{SLOW:-1}}00000 + 37 * {count_launch(tmp_path)} % 1000)) us'"
    found = omb_py.compare_commands(
        command,
        command,
        new_variables={"SLOW": "2"},
        metrics=["step us lower took ([0-9]+) us"],
        launches=8,
        rounds=1,
        store=tmp_path,
    )
    assert [(verdict.cell, verdict.verdict) for verdict in found.verdicts] == [("step", "SLOWER")]
    assert found.exit_code == 1
    assert omb_py.compare(str(found.run_id), store=tmp_path).verdicts == found.verdicts
    with pytest.raises(omb_py.NoVerdict, match="printed nothing"):
        omb_py.compare_commands(command, "true", metrics=["step us lower took ([0-9]+) us"], store=tmp_path)


class TestOnSimulatedRanks:
    def test_run_gives_rows(self, tmp_path: Path) -> None:
        result = omb_py.run(
            "osu_allreduce", backends=("mock",), ranks=4, sizes="8:16", iterations="5", store=tmp_path, **MOCK
        )
        assert list(result.frame["size_bytes"]) == [8, 16] and set(result.frame["run_id"]) == {result.run_id}
        assert result.exit_code == 0 and result.root
        assert len(omb_py.load(tmp_path)) == 2

    def test_run_stores_nothing_unless_it_is_asked_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        result = omb_py.run("bcast", backends=("mock",), sizes="8:8", iterations="5", store=None)
        assert len(result.frame) == 1 and not list(tmp_path.iterdir())
        assert "stored in" not in capsys.readouterr().err

    def test_bad_input_is_named(self) -> None:
        with pytest.raises(omb_py.UsageError, match="did you mean allreduce"):
            omb_py.run("alreduce", store=None)
        with pytest.raises(TypeError, match="rank"):
            omb_py.run("allreduce", rank=2)  # type: ignore[call-arg]

    @pytest.mark.slow
    def test_stored_sides_are_compared(self, tmp_path: Path) -> None:
        base, new = (
            omb_py.run(
                "allreduce",
                backends=("mock",),
                sizes="8:8",
                iterations="100",
                launches=5,
                mock=f"alpha={alpha}us,noise=0.01",
                store=tmp_path,
                **MOCK,
            )
            for alpha in (1, 2)
        )
        comparison = omb_py.compare(base.run_id, new.run_id, store=tmp_path)
        (cell,) = comparison.verdicts
        assert (cell.cell, cell.verdict, cell.launches) == ("allreduce 8 B", "LIKELY SLOWER", (5, 5))
        assert cell.ratio is not None and 1.9 < cell.ratio < 2.1 and 1.8 < cell.low < cell.high < 2.2
        # runs of one day, one after the other, cannot tell a change from a drift
        assert (comparison.headline, comparison.exit_code, comparison.run_id) == ("0 slower, 1 likely slower", 0, None)

    @pytest.mark.slow
    def test_sides_are_interleaved(self, tmp_path: Path) -> None:
        request = Request("bcast", ("mock",), sizes="8:8", iterations="20", quiet=True)
        slow = omb_py.Side(replace(request, settings={"mock": "alpha=2us"}))
        comparison = omb_py.compare(omb_py.Side(request), slow, launches=8, rounds=1, seed=1, store=tmp_path)
        assert [verdict.verdict for verdict in comparison.verdicts] == ["SLOWER"]
        assert comparison.run_id is not None
        assert omb_py.compare(comparison.run_id, store=tmp_path).headline == comparison.headline == "1 slower"

    def test_a_side_may_have_packages_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def where_of(side: str, spec: SideSpec) -> RankEnvironment:
            asked.append((side, spec.pip))
            return RankEnvironment(facts={"config": {"pip": spec.pip}})

        monkeypatch.setattr("omb_py.orchestrate.compare.side_environments.where_of", where_of)
        request = Request("bcast", ("mock",), sizes="8:8", iterations="20", quiet=True)
        new = omb_py.Side(request, pip=("mpich==5.0.2",))
        with pytest.raises(omb_py.UsageError, match=r"NEW \(mpich==5\.0\.2\): mock simulates in this"):
            omb_py.compare(omb_py.Side(request), new, launches=2, rounds=1, seed=1, store=tmp_path)
        assert asked == [("BASE", []), ("NEW", ["mpich==5.0.2"])]
        with pytest.raises(omb_py.UsageError, match="venv and pip of NEW exclude each other"):
            omb_py.compare(omb_py.Side(request), replace(new, venv="v"), store=tmp_path)
        with pytest.raises(omb_py.UsageError, match="pip of NEW: mpich 5: not a requirement"):
            omb_py.compare(omb_py.Side(request), replace(new, pip=("mpich 5",)), store=tmp_path)

    def test_sides_of_two_kinds_are_refused(self, tmp_path: Path) -> None:
        side = omb_py.Side(Request("bcast", ("mock",)))
        for base, new in ((side, None), (side, "last"), ("last", side)):
            with pytest.raises(omb_py.UsageError, match="two stored sides, or two Sides"):
                omb_py.compare(base, new, store=tmp_path)
        with pytest.raises(omb_py.UsageError, match="nothing differs"):
            omb_py.compare(side, side, store=tmp_path)
        with pytest.raises(omb_py.UsageError, match="--rounds 9"):
            omb_py.compare(side, omb_py.Side(Request("barrier", ("mock",))), rounds=9, store=tmp_path)

    @pytest.mark.slow
    def test_a_suite_is_judged(self, tmp_path: Path) -> None:
        suite = tmp_path / "mine.toml"
        suite.write_text(
            'name = "mine"\ndescription = "d"\n[defaults]\nbackend = "mock"\niterations = 5\n'
            '[[entry]]\nbenchmarks = ["bcast"]\nmessage-size = "8:8"\n'
            '[[criterion]]\nid = "fast"\nbenchmark = "bcast"\nmetric = "median"\nmax = "1us"\n'
        )
        acceptance = omb_py.accept(suite, ranks=2, store=tmp_path / "s", quiet=True, mock="alpha=5us")
        (verdict,) = acceptance.verdicts
        assert (verdict.verdict, acceptance.verdict, acceptance.exit_code) == ("FAIL", "FAIL", 1)
        assert verdict.measured == pytest.approx(5.0, rel=0.01) and verdict.limit == 1.0
        assert set(acceptance.correctness.values()) == {"PASS"}

    @pytest.mark.slow
    def test_guidelines_are_checked(self, tmp_path: Path) -> None:
        check = omb_py.guidelines("gl5", backend="mock", ranks=4, sizes=[8], launches=10, store=tmp_path, **MOCK)
        (verdict,) = check.verdicts
        assert (verdict.name, verdict.size_bytes, verdict.verdict) == ("gl5_allreduce", 8, "HOLDS")
        assert verdict.left_us < verdict.right_us and check.exit_code == 0 and check.skipped == {}
        with pytest.raises(omb_py.UsageError, match="--launches 0: at least 2"):
            omb_py.guidelines(["gl5"], backend="mock", launches=0)

    @pytest.mark.slow
    def test_links_are_swept(self, tmp_path: Path) -> None:
        check = omb_py.links(
            backend="mock",
            ranks=6,
            passes=3,
            iterations=10,
            windows=2,
            mock="noise=0.03,slow=4:2",
            store=tmp_path,
            **MOCK,
        )
        assert {(verdict.name, verdict.state) for verdict in check.verdicts} == {("node4", "confirmed")}
        assert len(check.nodes) == 6 and check.exit_code == 1

    @pytest.mark.slow
    def test_a_report_is_written(self, tmp_path: Path) -> None:
        omb_py.run("bcast", backends=("mock",), sizes="8:8", iterations="5", store=tmp_path / "s", **MOCK)
        page = omb_py.report(tmp_path / "s", ["benchmark=bcast"], output=tmp_path / "page.html")
        assert page.path.read_text().startswith("<!DOCTYPE html>") and "bcast" in page.summary and not page.problem
