"""Help pages: every option, with the default that is really used."""

from __future__ import annotations

import re

import click
import pytest

from omb_py import errors
from omb_py.cli import main
from omb_py.cli.app import FAMILIES, FIRST, ROOT
from omb_py.cli.commands.benchmark import command
from omb_py.cli.registry import OURS
from omb_py.options.readers import human
from omb_py.options.request import DEFAULT_RANKS, Request
from omb_py.options.table import options_of, takes
from omb_py.suites import BENCHMARKS, find
from tests.support.kinds import one_of_each_family
from tests.support.planning import plan


def page(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(line.split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def default_of(option: str, text: str) -> str:
    """What a page says the default of an option is."""
    found = re.search(rf"^  (?:-\w\S*, )?{option}(?![\w-]).*?\(default:\s(.*?)\)", text, re.M | re.S)
    assert found, option
    return " ".join(found[1].split())


def test_top(capsys: pytest.CaptureFixture[str]) -> None:
    text = page("--help", capsys)
    assert text == page("-h", capsys)
    titles = re.findall(r"^(\S.*):$", text, re.M)
    every = f"Benchmarks: {len(BENCHMARKS)}. omb-py list names them all"
    assert titles == ["Type first", every, "Tools", "Other options", "Exit codes", "Environment variables"]
    for family, title in FAMILIES.items():
        of_family = [name for name, benchmark in BENCHMARKS.items() if benchmark.family == family]
        assert re.search(rf"^  {title} \({len(of_family)}\) +{of_family[0]}(,|$)", text, re.M), family
    for name in OURS:
        assert re.search(rf"^  {name} +\S.*$", text, re.M)
    assert len(text.splitlines()) <= 70
    codes = [value for name, value in vars(errors).items() if name.isupper()]
    assert re.findall(r"^  (\d+)  +\S", text, re.M) == [str(code) for code in sorted(codes)], "every exit code"
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("line", FIRST)
def test_what_to_type_first_can_be_typed(line: str) -> None:
    """Each line begins with a command that exists, and its options are known."""
    words = line.partition("   ")[0].partition("omb-py ")[2].split()
    ROOT.resolve_command(ROOT.make_context("omb-py", list(words)), words)[1].make_context(
        words[0], words[1:], resilient_parsing=True
    )


@pytest.mark.parametrize("name", one_of_each_family(BENCHMARKS))
def test_defaults_are_those_of_a_request(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark, request = find(name), Request(name)
    ranks = next(n for n in (DEFAULT_RANKS, 4, 8) if benchmark.ranks.admits(n))
    (launch,) = plan(request, ranks)
    cell, text = launch.cells[0], page(f"{name} --help-all", capsys)
    counts = benchmark.counts
    wanted = {
        "--backend": ",".join(request.backends),
        "--binding": cell.binding,
        "--ranks": f"{DEFAULT_RANKS}, or what the launcher around it started",
        "--device": cell.device,
        "--buffer": cell.buffer,
        "--launcher": request.launching.launcher,
        "--thread-level": f"{launch.needs.thread_level}; with binding mpi4py multiple",
        "--precision": f"{cell.sampling.precision:.0%}",
        "--launches": str(request.repetition.launches),
        "--timeout": f"{request.launching.timeout:g}s",
        "--store": f"./{request.store}",
        "--format": f"{request.printing.format}; table with several backends or bindings",
    }
    if benchmark.sizes:
        low, high = (human(launch.cells[i].size) for i in (0, -1))
        wanted["--message-size"] = f"{low}:{high}, doubling"
        wanted["--iterations"] = f"auto, at most {counts.small}, above 8K {counts.large}"
        wanted["--warmup"] = f"{counts.small_warmup}, above 8K {counts.large_warmup}"
    else:
        wanted["--iterations"], wanted["--warmup"] = f"auto, at most {counts.small}", str(counts.small_warmup)
    for key, option, value in (
        ("type", "--type", cell.dtype),
        ("op", "--op", cell.options.op),
        ("window", "--window-size", str(cell.options.window)),
        ("process_sync", "--process-sync", cell.options.process_sync),
    ):
        if takes(benchmark, key):
            wanted[option] = value
    for option, default in wanted.items():
        assert default_of(option, text) == default, option
    assert request.repetition.time_limit is None and default_of("--time-limit", text) == "none"


@pytest.mark.parametrize("name", one_of_each_family(BENCHMARKS))
def test_examples_parse(name: str, captured: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    """Each example of a page can be run as it stands."""
    text = page(f"{name} --help", capsys).partition("Examples:\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in text.splitlines()]
    assert len(lines) >= 3
    for line in lines:
        assert main(line.partition("omb-py ")[2].split()) == 0
    assert {request.benchmark for request in captured} == {name}


def test_the_page_has_what_most_people_need(capsys: pytest.CaptureFixture[str]) -> None:
    """One screen and a half; the rare options are one word away, and all of them are on that page alone."""
    text, whole = page("latency --help", capsys), page("latency --help-all", capsys)
    assert len(text.splitlines()) <= 60
    rare = [option for option in options_of(find("latency")) if option.rare and not option.hidden]
    shown = [option for option in rare if option.takes(find("latency"))]
    assert f"--help-all shows {len(shown)} more" in text
    for option in shown:
        line = re.compile(rf"^  (-\w, )?--{option.long} ", re.M)
        assert line.search(whole) and not line.search(text), option.name


def test_every_option_has_a_help_text() -> None:
    for name in BENCHMARKS:
        for param in command(find(name)).params:
            if isinstance(param, click.Option):
                assert param.help, param.name
