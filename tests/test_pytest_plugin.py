"""The pytest plugin, run by pytest itself; the ranks of most tests are replaced by known times."""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is in the extra dev")
pytest_plugins = ("pytester",)
DOCS = Path(__file__).resolve().parent.parent / "docs" / "pytest.md"
INSTALLED = any(entry.name == "omb_py" for entry in entry_points(group="pytest11"))
PLUGIN = [] if INSTALLED else ["-p", "omb_py.pytest_plugin"]
"""An installation that is older than the plugin has no entry point yet."""
ALONE = ["-p", "benchmark", *(PLUGIN or ["-p", "omb_py"])]
"""Where pytest does not look for plugins: those of the other packages here take longer to load than a test to run."""

KNOWN = """
import pandas as pd
import pytest
from omb_py import pytest_plugin
from omb_py.errors import LaunchFailed

asked = []

@pytest.fixture(autouse=True)
def known(monkeypatch):
    def measured(workload, **options):
        asked.append(options)
        if "hang" in workload:
            raise LaunchFailed("rank 1 hangs in a call of the function")
        medians = [100.0, 300.0, 200.0][: options["launches"]]
        return pd.DataFrame({"median_us": medians, "library": "L", "library_version": "1", "run_id": "r"})
    monkeypatch.setattr(pytest_plugin, "_measure", measured)

@pytest.fixture
def options():
    return asked
"""
TEST = """
import pytest

def step(comm): pass
def hang(comm): pass

@pytest.mark.benchmark(group="mine")
def test_step(comm_benchmark, options):
    result = comm_benchmark(step, ranks=4, launches=3)
    print("result", result.median_us, result.medians_us, options[-1]["iterations"], options[-1]["store"])
"""


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-benchmark measures nothing where it sees the variable of a worker of xdist."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def run(pytester, monkeypatch: pytest.MonkeyPatch):
    pytester.makeconftest(KNOWN)

    def call(text: str, *words: str, found: bool = False):
        if not found:
            monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.makepyfile(text)
        flags = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-s"]
        return pytester.runpytest_subprocess(*(PLUGIN if found else ALONE), *flags, *words)

    return call


@pytest.mark.slow
def test_launches_are_the_samples_of_pytest_benchmark(run, pytester) -> None:
    result = run(TEST, "--omb-py", "--benchmark-json=b.json", "--omb-py-store=kept", found=True)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*result 200.0 (100.0, 300.0, 200.0) 100 kept*", "*benchmark 'mine'*", "*test_step*"])
    (benchmark,) = json.loads((pytester.path / "b.json").read_text())["benchmarks"]
    assert benchmark["stats"]["data"] == pytest.approx([100e-6, 300e-6, 200e-6])
    assert benchmark["stats"]["median"] == pytest.approx(200e-6) and benchmark["stats"]["rounds"] == 3
    assert benchmark["extra_info"]["ranks"] == 4 and benchmark["extra_info"]["library"] == "L 1"
    assert benchmark["group"] == "mine"


@pytest.mark.slow
def test_without_the_option_functions_are_only_called(run) -> None:
    result = run(TEST)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*result 100.0 (100.0,) 1 None*"])
    result.stdout.no_fnmatch_line("*benchmark 'mine'*")


@pytest.mark.slow
def test_a_limit_of_pytest_benchmark_fails_the_run(run, pytester) -> None:
    run(TEST, "--omb-py", "--benchmark-save=first").assert_outcomes(passed=1)
    faster = KNOWN.replace("[100.0, 300.0, 200.0]", "[150.0, 400.0, 300.0]")
    pytester.makeconftest(faster)
    pytester.makepyfile(TEST)
    words = ("--omb-py", "--benchmark-compare", "--benchmark-compare-fail=median:20%")
    again = pytester.runpytest_subprocess(*ALONE, "-p", "no:cacheprovider", "-p", "no:xdist", "-q", *words)
    assert again.ret != 0
    again.stderr.fnmatch_lines(["*Performance has regressed*"])


WRONG = (
    ("comm_benchmark(hang)", "*rank 1 hangs in a call of the function*"),
    ("comm_benchmark(lambda comm: None)", "*define it at the top of a module*"),
    ("comm_benchmark(step, ranks=0)", "*ranks must be 1 or more, not 0*"),
    ("comm_benchmark(step, iterations='x')", "*iterations 'x' is not a whole number*"),
    ("comm_benchmark(step, setup=hang, args=(1,))", "*setup= or args=, not both*"),
    ("comm_benchmark(step); comm_benchmark(hang)", "*one function in a test*"),
)


@pytest.mark.slow
def test_what_goes_wrong_is_one_line(run) -> None:
    tests = (f"def test_{number}(comm_benchmark):\n    {line}\n" for number, (line, _) in enumerate(WRONG))
    result = run("\n".join(("def step(comm): pass\ndef hang(comm): pass\n", *tests)), "--omb-py")
    result.assert_outcomes(failed=len(WRONG))
    result.stdout.fnmatch_lines([words for _, words in WRONG])
    result.stdout.no_fnmatch_line("*During handling of*")
    result.stdout.no_fnmatch_line("*__tracebackhide__*")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "no:benchmark"), "*pip install pytest-benchmark*"),
        (("-p", "xdist", "-n", "2"), "*for one test at a time*add -n 0*"),
    ],
)
def test_it_refuses_before_it_measures(run, words, said) -> None:
    result = run(TEST, "--omb-py", *words, found=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_the_frame_has_the_columns_of_the_store() -> None:
    from omb_py.pytest_plugin import CommResult

    result = CommResult((3.0, 1.0, 2.0), pd.DataFrame())
    assert result.median_us == 2.0


@pytest.mark.slow
@pytest.mark.mpi
def test_the_example_of_the_documentation(pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/pytest.md on real ranks, as it stands there."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    pytester.makepyfile(test_exchange=example)
    flags = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "test_exchange.py"]
    checked = pytester.runpytest_subprocess(*ALONE, *flags)
    checked.assert_outcomes(passed=1)
    measured = pytester.runpytest_subprocess(*ALONE, *flags, "--omb-py", "--omb-py-store=s", "--benchmark-json=b.json")
    measured.assert_outcomes(passed=1)
    (benchmark,) = json.loads((pytester.path / "b.json").read_text())["benchmarks"]
    stats = benchmark["stats"]
    assert stats["rounds"] == 3 and 0 < stats["min"] <= stats["median"] <= stats["max"]
    from omb_py.results.store.read import load

    rows = load(pytester.path / "s")
    assert rows["benchmark"].tolist() == ["function"] * 3 and rows["launch_id"].nunique() == 3
    assert rows["iterations"].tolist() == [50] * 3 and rows["ranks"].tolist() == [2] * 3
    assert sorted(rows["median_us"] * 1e-6) == pytest.approx(sorted(stats["data"]))


@pytest.mark.slow
@pytest.mark.mpi
def test_a_function_that_fails_on_one_rank_is_named(pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        def step(comm):
            if comm.rank == 1:
                raise ValueError("no neighbour")

        def test_step(comm_benchmark):
            comm_benchmark(step, ranks=2, timeout=30)
        """
    )
    result = pytester.runpytest_subprocess(*ALONE, "-p", "no:cacheprovider", "-p", "no:xdist", "-q")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*step failed on rank 1: ValueError: no neighbour (line 3 of test_*"])


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_import_what_only_pytest_finds(pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``--import-mode=importlib`` the root of the tests is in no path."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package = pytester.mkpydir("checks")
    (package / "shared.py").write_text("def step(comm): comm.barrier()\n")
    text = "from .shared import step as done\ndef step(comm): done(comm)\n"
    (package / "test_it.py").write_text(f"{text}def test_it(comm_benchmark): comm_benchmark(step)\n")
    words = ("-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--import-mode=importlib")
    pytester.runpytest_subprocess(*ALONE, *words).assert_outcomes(passed=1)
