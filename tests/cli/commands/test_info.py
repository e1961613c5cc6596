"""list, explain, doctor, expect and completion."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from omb_py.backends import registry
from omb_py.backends.capabilities import Backend, Capabilities, Inspection, usable
from omb_py.cli import main
from omb_py.engine.program.steps import RESIZED
from omb_py.orchestrate.info import expect
from omb_py.suites import BENCHMARKS
from tests.results.analysis.test_peaks import CARD
from tests.support.machines.mpi import run_command


def fake(capabilities: Capabilities) -> Backend:
    return Backend(capabilities, lambda spec: pytest.fail("nothing is measured here"))


REAL = fake(
    Capabilities("mpi", bindings=usable("native", "mpi4py"), inspection=Inspection(library="MPICH", version="5.0"))
)
GONE = fake(Capabilities("mpi", inspection=Inspection("no MPI library found", "pip install 'omb-bench[mpich]'")))
MOCK = fake(Capabilities("mock", simulated=True, inspection=Inspection(library="mock", version="1")))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(registry, "backends", lambda: {"mpi": request.param, "mock": MOCK})


@pytest.mark.parametrize("here", [REAL], indirect=True)
def test_list(here: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"(^  |, ){name}(  |,| \[|$)", out, re.M) for name in BENCHMARKS)
    assert "native, mpi4py" in out and "no NVIDIA GPU found here" in out
    assert main(["list", "--format", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert {e["benchmark"] for e in entries} == set(BENCHMARKS)
    of_mpi = {e["benchmark"] for e in entries if e["device"] == "cpu" and e["backend"] == "mpi" and e["available"]}
    assert of_mpi == {*BENCHMARKS} - {*RESIZED}
    assert all(e["reason"] for e in entries if not e["available"])


@pytest.mark.slow
@pytest.mark.parametrize("here", [GONE], indirect=True)
def test_nothing_real(here: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["list"]) == 0
    assert "no MPI library found: pip install 'omb-bench[mpich]'" in capsys.readouterr().out
    assert main(["doctor", "--store", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert err == ""
    assert "no    backend mpi" in out and "→ pip install 'omb-bench[mpich]'" in out


@pytest.mark.parametrize(("width", "code"), [(16, 0), (8, 1)])
def test_expect_ends_with_1_where_a_card_has_too_few_lanes(
    width: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(expect, "machine", lambda: {"pcie": [{**CARD, "width": width}]})
    monkeypatch.setattr(expect, "copy_rates", lambda: {1 << 20: 12.0})
    monkeypatch.chdir(tmp_path)
    assert main(["expect"]) == code
    shown = capsys.readouterr()
    assert f"PCIe 4 x{width}" in shown.out and ("x8 of a card of x16" in shown.out) == bool(code)
    assert "Reached" not in shown.out and shown.err == ""
    assert main(["expect", "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["expected"][0]["narrow"] is bool(code)


@pytest.mark.slow
@pytest.mark.parametrize("here", [REAL], indirect=True)
def test_doctor(here: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--format", "json", "--store", str(tmp_path / "new")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["usable"] is True
    lines = {f["subject"]: f for f in report["findings"]}
    assert lines["backend mpi"]["status"] == "ok"
    assert str(tmp_path / "new") in lines["store"]["text"]


@pytest.mark.slow
def test_bash_accepts_the_script() -> None:
    """The script defines its function in a real bash."""
    script = run_command(
        [sys.executable, "-c", "from omb_py.cli import main; raise SystemExit(main(['completion', 'bash']))"],
        check=True,
    ).stdout
    done = run_command(["bash", "-c", f"{script}\ncomplete -p omb-py"])
    assert done.returncode == 0, done.stderr
    assert "_omb_py_completion" in done.stdout
