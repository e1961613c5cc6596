"""Options become a request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.options.conduct import PROGRAM_MARK
from omb_py.options.request import Request
from omb_py.suites import BENCHMARKS
from tests.support.kinds import one_of_each_family

Parse = Callable[[str], Request]


@pytest.mark.parametrize("name", one_of_each_family(BENCHMARKS))
def test_no_option_is_the_default_request(request_of: Parse, name: str) -> None:
    assert request_of(name) == Request(name)
    assert request_of(f"osu_{name}") == Request(name)


def test_every_option(request_of: Parse) -> None:
    line = (
        "allreduce --backend mpi,mock --binding native -m 4:1K:2 -T mpi_int -T float32,int8 --op MPI_MAX --cache hot "
        "--process-sync none -n 3 -d cpu --buffer bytearray --hosts a,B:2 --launcher srun --launcher-args --exclusive "
        "--thread-level serialized -i 8:100,0:10 -x 5 --precision 2% --time-limit 2m --launches 3 --seed 7 -c "
        "--repeat-for 1h --timeout 90 -f -z1,50 --format json --quiet --store results --tag a=1 --tag b=x=y "
        "--mock alpha=1us --inject flip --debug"
    )
    assert request_of(line) == Request(
        "allreduce",
        backends=("mpi", "mock"),
        bindings=("native",),
        sizes="4:1K:2",
        dtypes=("int32", "float32", "int8"),
        op="max",
        cache="hot",
        process_sync="none",
        repeat_for=3600.0,
        ranks=3,
        buffer="bytearray",
        hosts=("a", "B:2"),
        launcher="srun",
        launcher_args=("--exclusive",),
        thread_level="serialized",
        iterations="8:100,0:10",
        warmup=5,
        precision=0.02,
        time_limit=120.0,
        launches=3,
        seed=7,
        validate=True,
        timeout=90.0,
        full=True,
        percentiles=(1, 50),
        format="json",
        quiet=True,
        store=Path("results"),
        tags={"a": "1", "b": "x=y"},
        settings={"mock": "alpha=1us"},
        inject="flip",
        debug=True,
    )


@pytest.mark.parametrize(
    ("options", "validate", "percentiles", "full"),
    [
        ("-c", True, (), False),
        ("-z", False, (50, 90, 99), False),
        ("-z50,99", False, (50, 99), False),
        ("-c -z -f", True, (50, 90, 99), True),
        ("-fcz99", True, (99,), True),
        ("--validation --tail-lat=5 --full", True, (5,), True),
        ("-zf", False, (50, 90, 99), True),
    ],
)
def test_glued_options(
    request_of: Parse, options: str, validate: bool, percentiles: tuple[int, ...], full: bool
) -> None:
    request = request_of(f"allreduce {options} -n 4")
    assert (request.validate, request.printing.percentiles, request.printing.full) == (validate, percentiles, full)
    assert request.ranks == 4


def test_validation_log(request_of: Parse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert request_of("bcast -clog").validation_log == Path("validation_output")
    assert request_of("bcast -clog:there").validation_log == Path("there")
    assert request_of("bcast -clog").validate
    assert request_of("bcast -c").validation_log is None


def test_types(request_of: Parse) -> None:
    assert request_of("bcast -T all").dtypes == ("char", "int32", "float32")
    assert request_of("bcast -T mpi_double,char").dtypes == ("float64", "char")


def test_store(request_of: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    assert request_of("bcast --no-store").store is None
    assert request_of("bcast --store=x/y").store == Path("x/y")
    monkeypatch.setenv("OMB_PY_STORE", "elsewhere")
    assert request_of("bcast").store == Path("elsewhere")
    assert request_of("bcast --no-store").store is None, "the option is stronger than the variable"
    monkeypatch.setenv(PROGRAM_MARK, "1")
    assert request_of("bcast").store is None, "compare --run stores what the benchmark prints"
    assert request_of("bcast --store=x/y").store == Path("x/y")


def test_places(request_of: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    assert request_of("latency H H") == Request("latency")
    assert request_of("latency -d sim md h") == Request("latency", device="sim", placement="MD H")
    assert request_of("latency -d sim D D") == Request("latency", device="sim")
    assert request_of("latency -d sim H H") == Request("latency")
    assert request_of("iallreduce -d cpu,sim -r both") == Request("iallreduce", device="cpu,sim", filler="both")
    monkeypatch.setattr("omb_py.cli.commands.benchmark.gpu_here", lambda kind: kind == "cuda")
    monkeypatch.setattr("omb_py.orchestrate.planning.availability.gpu_here", lambda kind: kind == "cuda")
    assert request_of("bcast -d managed") == Request("bcast", device="cuda", placement="M M")
    assert request_of("latency D M") == Request("latency", device="cuda", placement="D M")
    assert request_of("bw -c h h -m 8:8").sizes == "8:8"


def test_launcher_arguments_are_split_as_in_a_shell(request_of: Parse) -> None:
    assert main(["bcast", "--launcher-args", "--bind-to 'a b' -x"]) == 0
    assert request_of("bcast").launching.launcher_args == ()
    assert main(["bcast", "--launcher-args=--a --b"]) == 0


def test_the_exit_code_is_that_of_the_run(monkeypatch: pytest.MonkeyPatch, captured: list[Request]) -> None:
    import sys

    module = sys.modules["omb_py.orchestrate.running.run"]
    monkeypatch.setattr(module, "execute", lambda request: 1)
    assert main(["bcast"]) == 1
