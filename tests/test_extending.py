"""A package of somebody else adds one of each thing that can be added to omb-py (docs/extending.md)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machines.mpi import run_command, run_omb_py

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package, built from a copy so that nothing is left behind in the tree."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for file in (ROOT / "tests" / "plugin").glob("*.*"):
        (source / file.name).write_bytes(file.read_bytes())
    words = ["install", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--target", folder]
    done = run_command([sys.executable, "-m", "pip", *map(str, words), str(source)], env=os.environ)
    assert done.returncode == 0, done.stderr
    return folder


def omb_py(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    return run_omb_py(*words, cwd=folder, PYTHONPATH=path)


@pytest.mark.slow
def test_it_is_listed_explained_and_has_a_help_page(ring: Path) -> None:
    assert re.search(r"^  ring ", omb_py(ring, "list").stdout, re.M)
    explained = omb_py(ring, "explain", "ring", "-n", "3").stdout
    assert "| isend 8 B to 1, request 0" in explained and "| recv 8 B from 2" in explained
    assert "a message to the next rank" in omb_py(ring, "list").stdout
    assert "--message-size" in omb_py(ring, "ring", "--help").stdout


@pytest.mark.slow
def test_it_is_measured_and_checked_on_the_simulation(ring: Path) -> None:
    done = omb_py(ring, "ring", "--backend", "mock", "-n", "5", "-m", "1:64:8", "-c", "--no-store")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.strip().splitlines()[-4:]
    assert head == "# Size       Avg Latency(us)        Validation"
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("1", "Pass"), ("8", "Pass"), ("64", "Pass")]
    assert "# omb-py ring Test v" in done.stdout


@pytest.mark.slow
def test_its_view_stands_in_the_report_and_a_broken_one_is_named(ring: Path) -> None:
    omb_py(ring, "ring", "--backend", "mock", "-n", "2", "-m", "8:8", "-i", "30", "--store", "counted")
    done = omb_py(ring, "report", "counted", "-o", "counted.html")
    assert done.returncode == 0 and "<h3>ring: 30 samples</h3>" in (ring / "counted.html").read_text()
    assert "omb-py: view broken cannot be loaded: AttributeError: " in done.stderr


@pytest.mark.slow
def test_its_reader_reads_a_log(ring: Path) -> None:
    (ring / "np.log").write_text("1 bytes 900 times --> 3.81 Mbps in 2.00 usec\n")
    done = omb_py(ring, "results", "import", "np.log", "--store", "imported")
    assert done.returncode == 0 and "np.log: 1 table of NetPIPE, 1 cell" in done.stdout + done.stderr


@pytest.mark.slow
def test_its_backend_measures_and_checks_every_byte(ring: Path) -> None:
    for benchmark in ("latency", "bw", "ring"):
        done = omb_py(ring, benchmark, "--backend", "threads", "-m", "8:64:8", "-c", "-i", "20", "--no-store")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Pass") == 2
        assert "# [ backend: threads ] [ library: queue.SimpleQueue ] [ library_version: 1.0 ]" in done.stdout


@pytest.mark.slow
def test_its_backend_has_an_option_of_its_own(ring: Path) -> None:
    words = ("latency", "--backend", "threads", "-m", "8:8", "-i", "20", "--format", "json", "--no-store")
    done = omb_py(ring, *words, "--threads", "3000")
    assert json.loads(done.stdout)[0]["median_us"] >= 3000, done.stderr
    assert "--threads MICROSECONDS" in omb_py(ring, "latency", "--help-all").stdout


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("allreduce", 3, "backend threads cannot do allreduce: threads has no allreduce: use --backend mpi"),
        ("put_latency", 3, "backend threads cannot do put_latency: threads has no put: use --backend mpi"),
        (
            "latency -T float64",
            3,
            "backend threads cannot do latency: threads has no type float64: it takes char, int32, float32",
        ),
        (
            "latency --cache rotate",
            2,
            "backend threads copies through queues, so it takes no --cache rotate: leave it out",
        ),
        ("latency --binding torch", 2, "unknown binding 'torch' for backend threads: valid: python"),
        ("latency --buffer torch", 2, "unknown buffer 'torch' for backend threads: valid: numpy"),
        ("latency -d sim", 3, "backend threads has no buffers on sim: use --device cpu"),
        (
            "latency --timing event",
            2,
            "--timing is for calls that return before they are done: leave it out, or --backend nccl",
        ),
        ("explain allreduce", 3, "backend threads cannot do allreduce: threads has no allreduce: use --backend mpi"),
    ],
)
def test_what_its_backend_lacks_is_refused_as_for_ours(ring: Path, words: str, code: int, error: str) -> None:
    done = omb_py(ring, *words.split(), "--backend", "threads")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"omb-py: error: {error}\n")


@pytest.mark.slow
def test_its_backend_is_named_where_a_word_is_near(ring: Path) -> None:
    for words in (("latency",), ("explain", "latency")):
        done = omb_py(ring, *words, "--backend", "thread")
        assert done.stderr == "omb-py: error: unknown backend 'thread': did you mean threads?\n"


@pytest.mark.slow
def test_its_backend_is_listed_explained_and_examined(ring: Path) -> None:
    entries = json.loads(omb_py(ring, "list", "--format", "json").stdout)["entries"]
    ours = {e["benchmark"]: e for e in entries if (e["backend"], e["device"]) == ("threads", "cpu")}
    assert ours["latency"]["available"] and ours["latency"]["binding"] == "python"
    assert (ours["bcast"]["reason"], ours["bcast"]["fix"]) == ("threads has no bcast", "use --backend mpi")
    assert "| send 8 B to 1" in omb_py(ring, "explain", "latency", "--backend", "threads").stdout
    found = {f["subject"].strip(): f for f in json.loads(omb_py(ring, "doctor", "--format", "json").stdout)["findings"]}
    assert (found["backend threads"]["status"], found["backend threads"]["text"]) == ("ok", "queue.SimpleQueue 1.0")
    assert found["what it is"]["text"] in ("threads of one process", "a simulation of all ranks in one process")


@pytest.mark.slow
@pytest.mark.mpi
def test_it_is_measured_and_checked_on_real_ranks(ring: Path) -> None:
    for binding in ("native", "mpi4py"):
        done = omb_py(ring, "ring", "-n", "2", "-m", "8:64:8", "-c", "--binding", binding, "-i", "20")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Pass") == 2
    stored = omb_py(ring, "results", "list")
    assert "ring" in stored.stdout, stored.stderr


@pytest.mark.slow
def test_it_adds_one_of_each_other_thing(ring: Path, tmp_path: Path) -> None:
    measured = omb_py(ring, *"latency --backend mock -m 8:8 -i 10 -x 2 --loops --format table --store looped".split())
    assert "operations" in measured.stdout and re.search(r"fixed +24\b", measured.stdout), measured.stderr
    printed = omb_py(ring, *"latency --backend mock -m 8:16 --format pipes --no-store".split())
    assert printed.stdout == "|latency|8|1.00|\n|latency|16|1.00|\n", printed.stderr
    (tmp_path / "pipes.log").write_text(printed.stdout)
    imported = omb_py(ring, "results", "import", str(tmp_path / "pipes.log"), "--store", str(tmp_path / "imported"))
    assert "1 table of pipes, 2 cells" in imported.stdout, imported.stderr
    assert omb_py(ring, "greet", "you").stdout == "hello, you\n"
    none_here = omb_py(ring, *"latency -d abacus --no-store".split())
    assert none_here.returncode == 3 and "Napier" in none_here.stderr, none_here.stderr
    no_launcher = omb_py(ring, *"latency --launcher abacusrun --no-store".split())
    assert no_launcher.returncode == 3 and "no abacus here: buy one" in no_launcher.stderr
