"""Commands of installed packages: found, shown, run, and refused with a reason where they are broken."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from omb_py.cli import main, registry
from omb_py.plugin import Command
from tests.support.entries import ABSENT, forget_plug_ins, install_entries


def _make() -> click.Command:
    return click.Command("greet", params=[click.Argument(["name"])], callback=_work, help="Say hello to somebody.")


def _work(name: str) -> int:
    click.echo(f"hello, {name}")
    return 4


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    greet = Command("greet", "say hello to somebody", _make, "Politeness")
    install_entries(monkeypatch, registry.ENTRY_POINTS, {"greet": greet, "gone": ABSENT, "list": greet})
    yield
    forget_plug_ins()


def test_a_command_of_another_package_is_shown_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greet", "you"]) == 4
    assert capsys.readouterr().out == "hello, you\n"
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "Politeness:\n  greet" in out and out.index("Tools:") < out.index("Politeness:")
    assert main(["gret"]) == 2
    assert "did you mean greet" in capsys.readouterr().err


def test_a_broken_one_is_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gone"]) == 3
    assert "command gone cannot be loaded: AttributeError" in capsys.readouterr().err
    assert registry.commands()["list"] is registry.OURS["list"], "none replaces ours"
